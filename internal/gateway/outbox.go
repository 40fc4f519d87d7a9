package gateway

import "sync"

// outbox sends what upstreams tell a client outside of calls, one after the other, and
// keeps no more of it than a bound for a client that does not read: what comes then is
// dropped.
type outbox struct {
	mu    sync.Mutex
	queue []parcel
	bytes int
	busy  bool
}

// parcel is one notification. Of two with the same name the first one that waits is
// enough; an empty name is of no other.
type parcel struct {
	name string
	size int
	send func()
}

const (
	maxParcels     = 256
	maxParcelBytes = 1 << 20
)

// put adds a notification, and tells whether it will be sent.
func (o *outbox) put(p parcel) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.queue {
		if p.name != "" && each.name == p.name {
			return true
		}
	}
	if len(o.queue) >= maxParcels || o.bytes+p.size > maxParcelBytes {
		return false
	}
	o.queue, o.bytes = append(o.queue, p), o.bytes+p.size
	if !o.busy {
		o.busy = true
		go o.work()
	}
	return true
}

// work sends until nothing waits.
func (o *outbox) work() {
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
