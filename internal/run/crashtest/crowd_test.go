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

// runCrowd runs many clients concurrently. Each uses its own run and, for every fourth
// command, a run that the clients of all workers share.
func (d *workerState) runCrowd(ctx context.Context, o crowdOrder) (reply, error) {
	all := crowdReply{Runs: map[string][]string{}, Won: map[string][]string{}, Lost: map[string]int{}}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i := range o.Clients {
		clients.Go(func() {
			c := crowdClient{d: d, name: fmt.Sprintf("%s client %d", o.Name, i), seen: crowdReply{
				Runs: map[string][]string{}, Won: map[string][]string{}, Lost: map[string]int{},
			}}
			c.runSteps(ctx, o.Steps, o.Shared)
			mu.Lock()
			defer mu.Unlock()
			all.addReply(c.seen)
		})
	}
	clients.Wait()
	return reply{Crowd: &all}, nil
}

// addReply adds the results of a client or a worker.
func (r *crowdReply) addReply(more crowdReply) {
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

// crowdClient is a client of a crowd.
type crowdClient struct {
	d    *workerState
	name string
	sent int
	seen crowdReply
}

func (c *crowdClient) runSteps(ctx context.Context, steps int, shared []string) {
	a, err := c.d.service.Start(ctx, testCaller(), run.StartRequest{WorkflowID: workflowID, Goal: c.name})
	if err != nil {
		c.seen.Errors = append(c.seen.Errors, err.Error())
		return
	}
	own := []string{}
	for i := range steps {
		if i%4 == 3 && len(shared) > 0 {
			c.raceForRun(ctx, shared[(i/4)%len(shared)])
			continue
		}
		next, text, err := c.sendStep(ctx, a)
		if err != nil {
			c.seen.Errors = append(c.seen.Errors, err.Error())
			return
		}
		own = append(own, text)
		a = next
	}
	c.seen.Runs[a.RunID] = own
}

// sendStep submits the input of the position, with a unique text.
func (c *crowdClient) sendStep(ctx context.Context, a *run.Answer) (*run.Answer, string, error) {
	c.sent++
	text := fmt.Sprintf("%s %d done", c.name, c.sent)
	r := run.ContinueRequest{Handle: a.Handle, Output: text}
	if a.Position.Kind == engine.PositionGate {
		r = run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: engine.OptionConfirm, Note: text}}
	}
	began := time.Now()
	next, err := c.d.service.Continue(ctx, testCaller(), r)
	if err == nil {
		c.seen.Took = append(c.seen.Took, time.Since(began))
	}
	return next, text, err
}

// raceForRun tries to advance a shared run. A late command is refused because its handle is
// stale.
func (c *crowdClient) raceForRun(ctx context.Context, id string) {
	a, err := c.d.service.Status(ctx, testCaller(), run.Ref{RunID: id})
	if err != nil {
		c.seen.Errors = append(c.seen.Errors, err.Error())
		return
	}
	next, text, err := c.sendStep(ctx, a)
	refusal, refused := run.AsRefusal(err)
	switch {
	case err == nil && next.Replayed:
		c.seen.Errors = append(c.seen.Errors, "a new command was answered as a replay: "+text)
	case err == nil:
		c.seen.Won[id] = append(c.seen.Won[id], text)
	case refused && refusal.Code == guideway.CodeRefused && refusal.Rule == run.RuleStaleHandle:
		c.seen.Lost[refusal.Rule]++
	default:
		c.seen.Errors = append(c.seen.Errors, fmt.Sprintf("%T %s", err, err))
	}
}

// TestCrowd checks that 4 processes with 8 clients each can use one journal: no event is
// lost or duplicated, and the only errors are refusals in races.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for _, store := range storeKinds() {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			testCrowd(t, store.place(t), crash.Amount(t, "GUIDEWAY_CRASH_STEPS", 40, 40))
		})
	}
}

// testCrowd runs the crowd and checks the journal afterwards.
func testCrowd(t *testing.T, p workerPlace, steps int) {
	t.Helper()
	const processes, clients, races = 4, 8, 3
	var workers []*worker
	for range processes {
		workers = append(workers, startWorker(t, p))
	}
	for _, w := range workers { // all workers create the same journal at the same time
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
		all.addReply(*r.Crowd)
	}
	for _, text := range all.Errors {
		t.Errorf("an answer is neither a success nor a refusal: %s", text)
	}
	if len(all.Runs) != processes*clients {
		t.Errorf("%d of %d clients finished", len(all.Runs), processes*clients)
	}
	for id, texts := range all.Runs {
		if got := textsOf(t, workers[0], id); !slices.Equal(got, texts) {
			t.Errorf("run %s has the outputs %q, acknowledged were %q", id, got, texts)
		}
	}
	for _, id := range shared {
		got := textsOf(t, workers[1], id)
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(all.Won[id])); !slices.Equal(got, want) {
			t.Errorf("shared run %s has the outputs %q, acknowledged were %q", id, got, want)
		}
	}
	for _, w := range workers {
		if err := verifyChains(w, ""); err != nil {
			t.Error(err)
		}
		w.Shutdown()
	}
	printLatency(t, fmt.Sprintf("%d processes x %d clients, %d lost races", processes, clients, all.Lost[run.RuleStaleHandle]), all.Took)
}

// textsOf returns the outputs that were submitted to a run, in order.
func textsOf(t *testing.T, w *worker, id string) []string {
	t.Helper()
	texts := []string{}
	r := w.MustDo(order{Do: opEvents, Run: id})
	for i, e := range r.Events {
		if e.Seq != int64(i+1) {
			t.Errorf("run %s has event %d instead of %d", id, e.Seq, i+1)
		}
		switch engine.EventKind(e.Kind) {
		case engine.EventStepCompleted, engine.EventGateAnswered:
			texts = append(texts, decodeFact(t, e).Output+decodeFact(t, e).Notes)
		}
	}
	return texts
}

// printLatency prints the latency of commands.
func printLatency(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	if n := len(took); n > 0 {
		t.Logf("%s: %d commands, p50 %v, p99 %v, max %v", what, n,
			took[n/2].Round(10*time.Microsecond), took[n*99/100].Round(10*time.Microsecond), took[n-1].Round(10*time.Microsecond))
	}
}
