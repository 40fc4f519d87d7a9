package crashtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// crowd has a worker play many clients at once, who all save to one session.
type crowd struct {
	Name    string `json:"name"`
	Clients int    `json:"clients"`
	Steps   int    `json:"steps"`
	Session string `json:"session"`
}

// saved is what a client has seen of a save.
type saved struct {
	one
	Text text `json:"text"`
	// Head is what the client expected.
	Head  string `json:"head,omitempty"`
	Error string `json:"error,omitempty"`
}

// crowd saves as fast as it can: of the clients every other one names the
// checkpoint that its own context began from.
func (d *desk) crowd(ctx context.Context, c crowd) (reply, error) {
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
				s.one = r.one
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

// saveTo saves a text to a session that is not the text's own.
func (d *desk) saveTo(ctx context.Context, session string, x text, head string) (reply, error) {
	request := x
	request.Session = session
	return d.saveContext(ctx, request, x.json(), head)
}

// TestCrowd has 4 processes with 4 clients each save to one session. No checkpoint
// is lost or doubled, nobody gets an error, and who was overtaken begins a branch.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const processes, clients = 4, 4
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := k.place(t)
			steps := crash.Amount(t, "GUIDEWAY_CRASH_STEPS", 12, 6)
			var workers []*worker
			for range processes { // they open one new store at once
				workers = append(workers, hire(t, p))
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
				t.Fatalf("%d saves were answered, of %d", len(all), processes*clients*steps)
			}
			compareCrowd(t, workers[0], all)
			for _, w := range workers {
				if r := w.MustDo(order{Do: opVerify}); len(r.Damaged) > 0 || r.Total != len(all) {
					t.Errorf("verified are %d, damaged %v", r.Total, r.Damaged)
				}
				w.Dismiss()
			}
		})
	}
}

// compareCrowd compares the session with what everybody has seen of it.
func compareCrowd(t *testing.T, w *worker, all []saved) {
	t.Helper()
	list := w.MustDo(order{Do: opList, Session: "shared"}).List
	there := map[string]one{}
	for i, c := range list {
		there[c.Checkpoint] = c
		if want := int64(len(all) - i); c.Number != want {
			t.Fatalf("in the place of %d stands %d", want, c.Number)
		}
		if i > 0 && list[i-1].Created <= c.Created {
			t.Fatalf("%d is not later than the one before it", list[i-1].Number)
		}
	}
	if len(there) != len(all) {
		t.Fatalf("there are %d checkpoints, of %d that were saved", len(there), len(all))
	}
	branches := 0
	for _, s := range all {
		if s.Error != "" {
			t.Fatalf("a save got the error %s", s.Error)
		}
		c := there[s.Checkpoint]
		if c.Sum != s.Text.sum() || c.Number != s.Number || (s.Head != "" && c.Parent != s.Head) || c.Branch != s.Branch {
			t.Fatalf("%+v was acknowledged, there is %+v", s, c)
		}
		if s.Branch {
			branches++
		}
		r := w.MustDo(order{Do: opLoad, Checkpoint: s.Checkpoint})
		if r.Sum != s.Text.sum() || r.Degraded {
			t.Fatalf("%s is loaded as %+v", s.Checkpoint, r)
		}
	}
	if branches == 0 {
		t.Error("nobody was overtaken: nothing was tested")
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
		t.Errorf("%d checkpoints have a parent with another successor, and %d say so", more, branches)
	}
	if first := slices.IndexFunc(list, func(c one) bool { return c.Parent == "" }); first != len(list)-1 {
		t.Error("one in the middle has no parent")
	}
}
