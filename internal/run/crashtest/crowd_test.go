package crashtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// crowd has many clients work at once, each on a run of its own and, every
// fourth command, on one that all workers' clients race for.
func (d *desk) crowd(ctx context.Context, o crowdOrder) (reply, error) {
	all := crowdReply{Runs: map[string][]string{}, Won: map[string][]string{}, Lost: map[string]int{}}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i := range o.Clients {
		clients.Go(func() {
			c := client{d: d, name: fmt.Sprintf("%s client %d", o.Name, i), seen: crowdReply{
				Runs: map[string][]string{}, Won: map[string][]string{}, Lost: map[string]int{},
			}}
			c.work(ctx, o.Steps, o.Shared)
			mu.Lock()
			defer mu.Unlock()
			all.add(c.seen)
		})
	}
	clients.Wait()
	return reply{Crowd: &all}, nil
}

// add adds what a client or a worker has seen.
func (r *crowdReply) add(more crowdReply) {
	maps.Copy(r.Runs, more.Runs)
	for id, texts := range more.Won {
		r.Won[id] = append(r.Won[id], texts...)
	}
	for rule, n := range more.Lost {
		r.Lost[rule] += n
	}
	r.Took = append(r.Took, more.Took...)
	r.Errors = append(r.Errors, more.Errors...)
}

// client is one of a crowd.
type client struct {
	d    *desk
	name string
	sent int
	seen crowdReply
}

func (c *client) work(ctx context.Context, steps int, shared []string) {
	a, err := c.d.service.Start(ctx, caller(), run.StartRequest{WorkflowID: workflowID, Goal: c.name})
	if err != nil {
		c.seen.Errors = append(c.seen.Errors, err.Error())
		return
	}
	own := []string{}
	for i := range steps {
		if i%4 == 3 && len(shared) > 0 {
			c.race(ctx, shared[(i/4)%len(shared)])
			continue
		}
		next, text, err := c.send(ctx, a)
		if err != nil {
			c.seen.Errors = append(c.seen.Errors, err.Error())
			return
		}
		own = append(own, text)
		a = next
	}
	c.seen.Runs[a.RunID] = own
}

// send hands in what the position asks for, with a text that nobody else has.
func (c *client) send(ctx context.Context, a *run.Answer) (*run.Answer, string, error) {
	c.sent++
	text := fmt.Sprintf("%s %d done", c.name, c.sent)
	r := run.ContinueRequest{Handle: a.Handle, Output: text}
	if a.Position.Kind == engine.PositionGate {
		r = run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: engine.OptionConfirm, Note: text}}
	}
	began := time.Now()
	next, err := c.d.service.Continue(ctx, caller(), r)
	if err == nil {
		c.seen.Took = append(c.seen.Took, time.Since(began))
	}
	return next, text, err
}

// race tries to move a shared run on. Who is late is refused, by a rule that
// says so.
func (c *client) race(ctx context.Context, id string) {
	a, err := c.d.service.Status(ctx, caller(), run.Ref{RunID: id})
	if err != nil {
		c.seen.Errors = append(c.seen.Errors, err.Error())
		return
	}
	next, text, err := c.send(ctx, a)
	refusal, refused := run.AsRefusal(err)
	switch {
	case err == nil && next.Replayed:
		c.seen.Errors = append(c.seen.Errors, "a command that nobody has sent before was replayed: "+text)
	case err == nil:
		c.seen.Won[id] = append(c.seen.Won[id], text)
	case refused && refusal.Code == guideway.CodeRefused && refusal.Rule == run.RuleStaleHandle:
		c.seen.Lost[refusal.Rule]++
	default:
		c.seen.Errors = append(c.seen.Errors, fmt.Sprintf("%T %s", err, err))
	}
}

// TestCrowd has 4 processes with 8 clients each work on one journal. No event is
// lost or doubled, and nobody gets an error but for refusals in races.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for _, store := range stores() {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			crowd(t, store.place(t), crash.Amount(t, "GUIDEWAY_CRASH_STEPS", 40, 40))
		})
	}
}

// crowd runs the crowd and checks what it leaves.
func crowd(t *testing.T, p place, steps int) {
	t.Helper()
	const processes, clients, races = 4, 8, 3
	var workers []*worker
	for range processes {
		workers = append(workers, hire(t, p))
	}
	for _, w := range workers { // they open one new journal at once
		w.MustOpen()
	}
	var shared []string
	for i := range races {
		shared = append(shared, workers[0].MustDo(order{Do: opStart, Goal: fmt.Sprintf("shared %d", i)}).Run)
	}
	all := crowdReply{Runs: map[string][]string{}, Won: map[string][]string{}, Lost: map[string]int{}}
	replies := make([]reply, processes)
	errs := make([]error, processes)
	var under sync.WaitGroup
	for i, w := range workers {
		under.Go(func() {
			replies[i], errs[i] = w.Do(order{Do: opCrowd, Crowd: &crowdOrder{
				Clients: clients, Steps: steps, Name: fmt.Sprintf("worker %d", i), Shared: shared,
			}})
		})
	}
	under.Wait()
	for i, r := range replies {
		if errs[i] != nil || !r.OK() {
			t.Fatalf("worker %d: %v %+v", i, errs[i], r)
		}
		all.add(*r.Crowd)
	}
	for _, text := range all.Errors {
		t.Errorf("an answer is neither good nor a refusal: %s", text)
	}
	if len(all.Runs) != processes*clients {
		t.Errorf("%d of %d clients came to the end", len(all.Runs), processes*clients)
	}
	for id, texts := range all.Runs {
		if got := textsOf(t, workers[0], id); !slices.Equal(got, texts) {
			t.Errorf("run %s has the texts %q, of %q that were acknowledged", id, got, texts)
		}
	}
	for _, id := range shared {
		got := textsOf(t, workers[1], id)
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(all.Won[id])); !slices.Equal(got, want) {
			t.Errorf("shared run %s has the texts %q, of %q that were acknowledged", id, got, want)
		}
	}
	for _, w := range workers {
		if err := verified(w, ""); err != nil {
			t.Error(err)
		}
		w.Shutdown()
	}
	tell(t, fmt.Sprintf("%d processes x %d clients, %d lost races", processes, clients, all.Lost[run.RuleStaleHandle]), all.Took)
}

// textsOf are the texts that were handed in to a run, in order.
func textsOf(t *testing.T, w *worker, id string) []string {
	t.Helper()
	texts := []string{}
	r := w.MustDo(order{Do: opEvents, Run: id})
	for i, e := range r.Events {
		if e.Seq != int64(i+1) {
			t.Errorf("run %s has event %d in the place of %d", id, e.Seq, i+1)
		}
		switch engine.EventKind(e.Kind) {
		case engine.EventStepCompleted, engine.EventGateAnswered:
			texts = append(texts, decode(t, e).Output+decode(t, e).Notes)
		}
	}
	return texts
}

// tell prints the latency of commands.
func tell(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	if n := len(took); n > 0 {
		t.Logf("%s: %d commands, p50 %v, p99 %v, max %v", what, n,
			took[n/2].Round(10*time.Microsecond), took[n*99/100].Round(10*time.Microsecond), took[n-1].Round(10*time.Microsecond))
	}
}
