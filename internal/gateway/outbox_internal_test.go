package gateway

import "testing"

// For a client that does not read, a bounded number of notifications and bytes is kept, and
// all further notifications are dropped. The kept notifications are sent in order after the
// client reads again.
func TestOutboxIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ size, fit int }{
		"number":         {1, maxParcels},
		"bytes":          {maxParcelBytes / 4, 4},
		"no byte beyond": {maxParcelBytes/4 + 1, 3},
		"too large":      {maxParcelBytes + 1, 0},
		"just fits":      {maxParcelBytes, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o outbox
			reading, blocked := make(chan struct{}), make(chan struct{})
			o.addParcel(parcel{send: func() { close(blocked); <-reading }})
			<-blocked // the first notification has left the queue
			const added = 2 * maxParcels
			sent := make(chan int, added+1)
			for i := range added {
				o.addParcel(parcel{size: tt.size, send: func() { sent <- i }})
			}
			o.mu.Lock()
			queued, bytes := len(o.queue), o.bytes
			o.mu.Unlock()
			if queued != tt.fit || bytes != tt.fit*tt.size || bytes > maxParcelBytes {
				close(reading)
				t.Fatalf("%d notifications of %d bytes wait, want %d", queued, bytes, tt.fit)
			}
			close(reading)
			for want := range tt.fit {
				if got := <-sent; got != want {
					t.Fatalf("notification %d was sent instead of %d", got, want)
				}
			}
			// The queue has room again.
			o.addParcel(parcel{size: tt.size, send: func() { sent <- added }})
			if tt.fit > 0 {
				if got := <-sent; got != added {
					t.Errorf("notification %d was sent, want the new one", got)
				}
			}
		})
	}
}

// While a named notification waits, another one with the same name is dropped.
func TestOutboxMergesNamedNotifications(t *testing.T) {
	t.Parallel()
	var o outbox
	reading, blocked := make(chan struct{}), make(chan struct{})
	o.addParcel(parcel{send: func() { close(blocked); <-reading }})
	<-blocked
	for _, name := range []string{"a", "b", "a", "", "", "b"} {
		o.addParcel(parcel{name: name, send: func() {}})
	}
	o.mu.Lock()
	queued := len(o.queue)
	o.mu.Unlock()
	if close(reading); queued != 4 {
		t.Errorf("%d notifications wait, want 4", queued)
	}
}

// A full queue drops no named notification: without it, the client would keep an outdated
// list or resource.
func TestOutboxKeepsNamedNotificationsIfFull(t *testing.T) {
	t.Parallel()
	var o outbox
	reading, blocked, sent := make(chan struct{}), make(chan struct{}), make(chan string, maxParcels+1)
	o.addParcel(parcel{send: func() { close(blocked); <-reading }})
	<-blocked
	for range 2 * maxParcels {
		o.addParcel(parcel{size: 1, send: func() { sent <- "" }})
	}
	o.addParcel(parcel{name: "list", size: 1, send: func() { sent <- "list" }})
	close(reading)
	for range maxParcels {
		if got := <-sent; got != "" {
			t.Fatalf("%q was sent", got)
		}
	}
	if got := <-sent; got != "list" {
		t.Errorf("%q was sent", got)
	}
}
