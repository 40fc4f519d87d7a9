package notice

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

// memoryState is a shared state in memory.
type memoryState struct {
	deployment.State
	mu      sync.Mutex
	entries map[string]string
	failing error
}

func (m *memoryState) Change(_ context.Context, name string, edit func(string) (string, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := edit(m.entries[name])
	if m.failing != nil || err != nil {
		return errors.Join(m.failing, err)
	}
	m.entries[name] = text
	return nil
}

func (m *memoryState) Prune(context.Context, string, time.Time) error { return nil }

// startInstances starts the senders of two machines that share a state.
func startInstances(t *testing.T, dirs [2]string, shared *memoryState, deliver [2]func(Notice) error, ids ...string) (source [2]*fakeSource, closeAll func()) {
	t.Helper()
	var senders [2]*Sender
	for i := range senders {
		source[i] = newFakeSource(ids...)
		o := testOptions(dirs[i], source[i], "r")
		o.Shared, o.Receivers[0].Shared, o.Receivers[0].Timeout = shared, true, 5*time.Second
		senders[i] = start(o, func(_ context.Context, _ *Receiver, n Notice) error { return deliver[i](n) })
	}
	return source, func() {
		for _, s := range senders {
			s.Close()
		}
	}
}

// TestOneInstanceDelivers checks that each notice is delivered by one of two machines with a
// shared state, in whichever order they see it, that another one tries if the receiver refused
// it, and that an error of the state only delays it.
func TestOneInstanceDelivers(t *testing.T) {
	t.Parallel()
	dirs := [2]string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{begin: time.Now()}
		refused := 0
		d.reject = func(n Notice, _ int) error {
			if n.ID == "b" && refused < 2 {
				refused++
				return errors.New("refused")
			}
			return nil
		}
		deliver := func(n Notice) error { return d.deliver(t.Context(), &Receiver{Name: "r"}, n) }
		shared := &memoryState{entries: map[string]string{}, failing: errors.New("the database is away")}
		source, closeAll := startInstances(t, dirs, shared, [2]func(Notice) error{deliver, deliver}, "a")
		<-time.After(1500 * time.Millisecond)
		shared.mu.Lock()
		shared.failing = nil
		shared.mu.Unlock()
		<-time.After(time.Second)
		d.check(t, "2s r a")
		for _, s := range source {
			s.append("b", "c")
		}
		<-time.After(time.Minute)
		closeAll()
		got := map[string]int{}
		for _, line := range d.list {
			got[line[len(line)-1:]]++
		}
		if got["a"] != 0 || got["b"] != 3 || got["c"] != 1 {
			t.Errorf("deliveries %q", d.list)
		}
	})
}

// TestClaimOfDeadInstance checks that another machine delivers a notice if the one that
// claimed it does not end the delivery.
func TestClaimOfDeadInstance(t *testing.T) {
	t.Parallel()
	dirs := [2]string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{begin: time.Now()}
		shared := &memoryState{entries: map[string]string{}}
		dead, claimed := make(chan struct{}), make(chan struct{}, 2)
		var begun atomic.Bool
		deliver := func(n Notice) error {
			if begun.CompareAndSwap(false, true) {
				claimed <- struct{}{}
				<-dead
				return errors.New("ended")
			}
			return d.deliver(t.Context(), &Receiver{Name: "r"}, n)
		}
		_, closeAll := startInstances(t, dirs, shared, [2]func(Notice) error{deliver, deliver}, "a")
		<-claimed
		<-time.After(5*time.Second + claimReserve - time.Second)
		d.check(t)
		<-time.After(3 * time.Second)
		if len(d.list) != 1 {
			t.Errorf("deliveries %q", d.list)
		}
		close(dead)
		<-time.After(time.Minute)
		closeAll()
		if len(d.list) != 1 {
			t.Errorf("deliveries %q", d.list)
		}
	})
}
