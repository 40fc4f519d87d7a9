package gateway

import "sync"

// outbox sends notifications to a client in order. If the client does not read, the outbox
// keeps a limited number and drops the others.
type outbox struct {
	mu    sync.Mutex
	queue []parcel
	bytes int
	busy  bool
}

// parcel is one notification. While a named parcel is queued, others with the same name are
// dropped. A parcel without a name is dropped if the queue is full. A named one is not, since
// the client would never learn of the change: there is one name for each list and for each
// resource that the client follows.
type parcel struct {
	name string
	size int
	send func()
}

const (
	maxParcels     = 256
	maxParcelBytes = 1 << 20
)

// addParcel adds a notification, unless the queue is full. It does not block.
func (o *outbox) addParcel(p parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.queue {
		if p.name != "" && each.name == p.name {
			return
		}
	}
	if p.name == "" && (len(o.queue) >= maxParcels || o.bytes+p.size > maxParcelBytes) {
		return
	}
	o.queue, o.bytes = append(o.queue, p), o.bytes+p.size
	if !o.busy {
		o.busy = true
		go o.sendAll()
	}
}

// sendAll sends until the queue is empty.
func (o *outbox) sendAll() {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			o.busy, o.queue = false, nil
			o.mu.Unlock()
			return
		}
		next := o.queue[0]
		o.queue[0] = parcel{}
		o.queue, o.bytes = o.queue[1:], o.bytes-next.size
		o.mu.Unlock()
		next.send()
	}
}
