package crashtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// crowd is an order to a worker to run many clients that save to one session concurrently.
type crowd struct {
	Name    string `json:"name"`
	Clients int    `json:"clients"`
	Steps   int    `json:"steps"`
	Session string `json:"session"`
}

// saved is the result of one save by a client.
type saved struct {
	listedCheckpoint
	Text text `json:"text"`
	// Head is the expected head of the request.
	Head  string `json:"head,omitempty"`
	Error string `json:"error,omitempty"`
}

// runCrowd saves as fast as possible. Every other client sends as the expected head the
// checkpoint that it saved last.
func (d *orderExecutor) runCrowd(ctx context.Context, c crowd) (reply, error) {
	var mu sync.Mutex
	var all []saved
	var clients sync.WaitGroup
	for i := range c.Clients {
		clients.Go(func() {
			head := ""
			for n := range c.Steps {
				s := saved{Text: text{Session: c.Session + "/" + c.Name + fmt.Sprint("/", i), N: n, Size: 3000}, Head: head}
				r, err := d.saveTo(ctx, c.Session, s.Text, head)
				if err != nil {
					s.Error = err.Error()
				}
				s.listedCheckpoint = r.listedCheckpoint
				if i%2 == 1 {
					head = r.Checkpoint
				}
				mu.Lock()
				all = append(all, s)
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return reply{Crowd: all}, nil
}

// saveTo saves the context of a text to the given session, whatever session the text names.
func (d *orderExecutor) saveTo(ctx context.Context, session string, x text, head string) (reply, error) {
	request := x
	request.Session = session
	return d.saveContext(ctx, request, x.contextJSON(), head)
}

// TestCrowd checks 4 processes with 4 clients each that save to one session: no checkpoint
// is lost or duplicated, no client gets an error, and a conflicting save begins a branch.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const processes, clients = 4, 4
	for _, k := range storeKinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := k.place(t)
			steps := crash.Amount(t, "GUIDEWAY_CRASH_STEPS", 12, 6)
			var workers []*worker
			for range processes { // the workers create the same store concurrently
				workers = append(workers, startWorker(t, p))
			}
			for _, w := range workers {
				w.MustOpen()
			}
			replies := make([]reply, processes)
			var under sync.WaitGroup
			for i, w := range workers {
				under.Go(func() {
					var err error
					replies[i], err = w.Do(order{Do: opCrowd, Crowd: &crowd{Name: fmt.Sprint("worker ", i), Clients: clients, Steps: steps, Session: "shared"}})
					if err != nil {
						t.Error(err)
					}
				})
			}
			under.Wait()
			var all []saved
			for _, r := range replies {
				all = append(all, r.Crowd...)
			}
			if len(all) != processes*clients*steps {
				t.Fatalf("only %d of %d saves were acknowledged", len(all), processes*clients*steps)
			}
			compareCrowd(t, workers[0], all)
			for _, w := range workers {
				if r := w.MustDo(order{Do: opVerify}); len(r.Damaged) > 0 || r.Total != len(all) {
					t.Errorf("verified: %d, damaged: %v", r.Total, r.Damaged)
				}
				w.Shutdown()
			}
		})
	}
}

// compareCrowd compares the session with the results of all clients.
func compareCrowd(t *testing.T, w *worker, all []saved) {
	t.Helper()
	list := w.MustDo(order{Do: opList, Session: "shared"}).List
	there := map[string]listedCheckpoint{}
	for i, c := range list {
		there[c.Checkpoint] = c
		if want := int64(len(all) - i); c.Number != want {
			t.Fatalf("want number %d, got %d", want, c.Number)
		}
		if i > 0 && list[i-1].Created <= c.Created {
			t.Fatalf("%d is not later than the previous one", list[i-1].Number)
		}
	}
	if len(there) != len(all) {
		t.Fatalf("%d checkpoints exist, %d were saved", len(there), len(all))
	}
	branches := 0
	for _, s := range all {
		if s.Error != "" {
			t.Fatalf("a save got the error %s", s.Error)
		}
		c := there[s.Checkpoint]
		if c.Sum != s.Text.contextSum() || c.Number != s.Number || (s.Head != "" && c.Parent != s.Head) || c.Branch != s.Branch {
			t.Fatalf("%+v was acknowledged, but %+v is stored", s, c)
		}
		if s.Branch {
			branches++
		}
		r := w.MustDo(order{Do: opLoad, Checkpoint: s.Checkpoint})
		if r.Sum != s.Text.contextSum() || r.Degraded {
			t.Fatalf("%s is loaded as %+v", s.Checkpoint, r)
		}
	}
	if branches == 0 {
		t.Error("no save had a conflict: nothing was tested")
	}
	successors := map[string]int{}
	for _, c := range list {
		successors[c.Parent]++
	}
	more := 0
	for parent, n := range successors {
		if parent != "" {
			more += n - 1
		}
	}
	if more != branches {
		t.Errorf("%d checkpoints have a parent with another successor, but %d are marked as branches", more, branches)
	}
	if first := slices.IndexFunc(list, func(c listedCheckpoint) bool { return c.Parent == "" }); first != len(list)-1 {
		t.Error("a checkpoint in the middle has no parent")
	}
}
