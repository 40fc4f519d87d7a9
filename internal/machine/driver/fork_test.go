package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// newApproved returns a service with the machine "waiting", which waits for a human
// approval, and "outer", which has it as its sub-machine.
func newApproved(t *testing.T) *rig {
	t.Helper()
	return newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, waiting, smallRoles), parseMachine(t, outer, smallRoles)}, handlers{},
		`{"rules": [{"content": "one"}]}`)
}

// asPerson returns anna as a person at a terminal.
func asPerson() run.Caller {
	c := anna
	c.Via = run.ViaTerminal
	return c
}

// approveRun answers the approval of a run as a person.
func (r *rig) approveRun(id string) {
	r.t.Helper()
	if _, err := r.answerInput(asPerson(), id, json.RawMessage(`"yes"`)); err != nil {
		r.t.Fatal(err)
	}
}

// forkRun forks a run and drives the fork.
func (r *rig) forkRun(c run.Caller, id string, seq int64) string {
	r.t.Helper()
	s, err := r.Fork(r.t.Context(), c, id, seq)
	if err != nil {
		r.t.Fatalf("fork of %s at %d: %v", id, seq, err)
	}
	r.driveRun(s.RunID)
	return s.RunID
}

// forksOf forks a run as an agent, once without an event number and once at every event
// that leaves work to do. It returns the ids of the forks.
func (r *rig) forksOf(id string) []string {
	r.t.Helper()
	forks := []string{r.forkRun(anna, id, 0)}
	for seq := int64(2); seq <= r.runStatus(id).Seq; seq++ {
		s, err := r.Fork(r.t.Context(), anna, id, seq)
		if refusal := (*run.Refusal)(nil); errors.As(err, &refusal) && refusal.Rule == run.RuleUnknownSeq {
			continue // nothing is left to do after the event
		}
		if err != nil {
			r.t.Fatalf("fork of %s at %d: %v", id, seq, err)
		}
		r.driveRun(s.RunID)
		forks = append(forks, s.RunID)
	}
	return forks
}

// checkWaits checks that a run waits for its own human approval, and that an agent cannot
// give it.
func (r *rig) checkWaits(name, id string) {
	r.t.Helper()
	s := r.runStatus(id)
	asks := s.Asks
	if s.Child != nil {
		asks = s.Child.Asks
	}
	if s.Status != machineengine.StatusWaiting || asks == nil || !asks.Person {
		r.t.Errorf("%s: the run is %s: %+v", name, s.Status, s)
		return
	}
	_, err := r.answerInput(anna, id, json.RawMessage(`"yes"`))
	checkRefusal(r.t, name, err, "machine-person")
	if refusal, ok := run.AsRefusal(err); s.Next != nil || !ok || refusal.Next != nil || !strings.Contains(refusal.Fix, "guideway machine input ") || !strings.Contains(refusal.Fix, "dashboard") {
		r.t.Errorf("%s: the calls that an agent is sent to: %+v, %+v", name, s.Next, refusal)
	}
	if _, err := r.Resume(r.t.Context(), anna, id, machineengine.Limits{States: 99}); err != nil {
		r.t.Errorf("%s: resume: %v", name, err)
	}
	if s := r.driveRun(id); s.Status != machineengine.StatusWaiting {
		r.t.Errorf("%s: a resumed run is %s", name, s.Status)
	}
}

func checkRefusal(t *testing.T, name string, err error, rule string) {
	t.Helper()
	if refusal := (*run.Refusal)(nil); !errors.As(err, &refusal) || refusal.Rule != rule {
		t.Errorf("%s: %v, want the rule %s", name, err, rule)
	}
}

// TestAgentForksOfMachinesInheritNoApproval checks that a fork by an agent at any event
// stops before a human approval that the original run has passed. The original is a run in
// progress, a finished run, a fork, or a run that an agent cancelled. A person's fork keeps
// the approval.
func TestAgentForksOfMachinesInheritNoApproval(t *testing.T) {
	t.Parallel()
	r := newApproved(t)
	id := r.startRun("waiting", map[string]any{"topic": "x"})
	r.driveRun(id)
	r.approveRun(id)
	for _, fork := range r.forksOf(id) {
		r.checkWaits("a fork of an approved run", fork)
	}
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted {
		t.Fatalf("the run is %s", s.Status)
	}
	for _, fork := range r.forksOf(id) {
		r.checkWaits("a fork of a finished run", fork)
		for _, second := range r.forksOf(fork) {
			r.checkWaits("a fork of a fork", second)
		}
	}
	kept := r.forkRun(asPerson(), id, 0)
	if s := r.runStatus(kept); s.Status != machineengine.StatusCompleted || string(s.Output) != `"yes"` {
		t.Errorf("a person's fork is %s: %s", s.Status, s.Output)
	}
	for _, fork := range r.forksOf(kept) {
		r.checkWaits("a fork of a person's fork", fork)
	}

	cancelled := r.startRun("waiting", map[string]any{"topic": "x"})
	r.driveRun(cancelled)
	r.approveRun(cancelled)
	if _, err := r.Cancel(t.Context(), anna, cancelled, ""); err != nil {
		t.Fatal(err)
	}
	for _, fork := range r.forksOf(cancelled) {
		r.checkWaits("a fork of a run that an agent cancelled", fork)
	}
}

// TestAgentForksInheritNoApprovalOfSubMachines checks that a fork by an agent inherits no
// human approval that was given to a sub-machine. It forks the run while the sub-machine
// waits, after the approval, and after the end of the run.
func TestAgentForksInheritNoApprovalOfSubMachines(t *testing.T) {
	t.Parallel()
	r := newApproved(t)
	id := r.startRun("outer", map[string]any{"what": "x"})
	inner := r.driveRun(id).Child.RunID
	waits := r.forksOf(id) // the sub-machine waits for the person
	r.approveRun(id)
	given := r.forksOf(id) // the person has approved, and the sub-machine has not continued
	for _, forks := range [][]string{waits, given} {
		for _, fork := range forks {
			r.driveRun(fork)
			r.checkWaits("a fork while the sub-machine waits", fork)
			if own := r.runStatus(fork).Child; own == nil || own.RunID == inner {
				t.Errorf("the fork has the sub-machine of the original run: %+v", own)
			}
		}
	}
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted || string(s.Output) != `"yes"` {
		t.Fatalf("the run is %s: %s", s.Status, s.Output)
	}
	for _, of := range []string{id, inner, r.forkRun(asPerson(), id, 0)} {
		for _, fork := range r.forksOf(of) {
			r.checkWaits("a fork of a finished run", fork)
		}
	}
	// Cancelling an agent's fork ends its own sub-machine only.
	other := r.startRun("outer", map[string]any{"what": "x"})
	r.driveRun(other)
	if _, err := r.Cancel(t.Context(), anna, r.forkRun(anna, other, 0), ""); err != nil {
		t.Fatal(err)
	}
	r.checkWaits("the original of a cancelled fork", other)
}

// TestAgentCannotForkACancelledMachine checks that only a person can fork a machine run
// that a person cancelled, and the sub-machine runs that were cancelled with it.
func TestAgentCannotForkACancelledMachine(t *testing.T) {
	t.Parallel()
	r := newApproved(t)
	id := r.startRun("outer", map[string]any{"what": "x"})
	inner := r.driveRun(id).Child.RunID
	if _, err := r.Cancel(t.Context(), asPerson(), id, "not like this"); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{id, inner} {
		for seq := range r.runStatus(of).Seq + 2 {
			_, err := r.Fork(t.Context(), anna, of, seq)
			checkRefusal(t, "an agent's fork", err, run.RuleAbortedByPerson)
		}
	}
	if s := r.runStatus(r.forkRun(asPerson(), inner, 0)); s.Status != machineengine.StatusWaiting {
		t.Errorf("a person's fork is %s", s.Status)
	}
}

// TestPersonsCancelFollowsAnAgents checks that a person can cancel a machine run that an
// agent has cancelled. Afterwards, an agent can fork neither the run nor its sub-machine
// run.
func TestPersonsCancelFollowsAnAgents(t *testing.T) {
	t.Parallel()
	r := newApproved(t)
	id := r.startRun("outer", map[string]any{"what": "x"})
	inner := r.driveRun(id).Child.RunID
	for _, c := range []run.Caller{anna, anna, asPerson(), asPerson()} {
		if _, err := r.Cancel(t.Context(), c, id, "enough"); err != nil {
			t.Fatal(err)
		}
		if s := r.runStatus(id); s.Status != machineengine.StatusCancelled {
			t.Fatalf("the run is %s", s.Status)
		}
		if c.Via == anna.Via {
			r.forkRun(anna, inner, 0)
		}
	}
	for _, of := range []string{id, inner} {
		events, err := r.Events(t.Context(), anna, of)
		if err != nil {
			t.Fatal(err)
		}
		var vias []run.Via
		for _, e := range events {
			if e.Kind == string(machineengine.KindCancelled) {
				vias = append(vias, e.By.Via)
			}
		}
		if want := []run.Via{run.ViaAgent, run.ViaTerminal}; !slices.Equal(vias, want) {
			t.Errorf("%s is recorded as cancelled by %v, want %v", of, vias, want)
		}
		for seq := range r.runStatus(of).Seq + 2 {
			_, err := r.Fork(t.Context(), anna, of, seq)
			checkRefusal(t, "an agent's fork", err, run.RuleAbortedByPerson)
		}
	}
	if s := r.runStatus(r.forkRun(asPerson(), inner, 0)); s.Status != machineengine.StatusWaiting {
		t.Errorf("a person's fork is %s", s.Status)
	}
}

// TestAgentForksKeepFinishedSubMachines checks that a fork by an agent keeps the result of
// a sub-machine without a human approval, and repeats no request for it.
func TestAgentForksKeepFinishedSubMachines(t *testing.T) {
	t.Parallel()
	r := newNested(t, "", "", `{"rules": [{"content": "one"}]}`)
	id := r.startRun("outer", map[string]any{"what": "x"})
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted {
		t.Fatalf("the run is %s", s.Status)
	}
	events, err := r.Events(t.Context(), anna, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Kind != string(machineengine.KindSubResult) {
			continue
		}
		r.model.requests = nil
		if s := r.runStatus(r.forkRun(anna, id, e.Seq)); s.Status != machineengine.StatusCompleted || len(r.model.requests) != 1 {
			t.Errorf("the fork is %s after %d requests, want the one after the sub-machine", s.Status, len(r.model.requests))
		}
	}
}

// TestRefusedInputsAreRecorded checks that an agent's answers to a human approval are
// recorded with their value, that a flood of them is bounded, and that the person's answer
// is accepted after them.
func TestRefusedInputsAreRecorded(t *testing.T) {
	t.Parallel()
	r := newApproved(t)
	id := r.startRun("waiting", map[string]any{"topic": "t"})
	r.driveRun(id)
	const flood = 30
	for range flood {
		_, err := r.answerInput(anna, id, json.RawMessage(`"yes"`))
		checkRefusal(t, "agent", err, "machine-person")
	}
	events, err := r.Events(t.Context(), anna, id)
	if err != nil {
		t.Fatal(err)
	}
	var refused []machineengine.Event
	for _, e := range events {
		if e.Kind != string(machineengine.KindInputRefused) {
			continue
		}
		var fact machineengine.Event
		if err := json.Unmarshal(e.Data, &fact); err != nil {
			t.Fatal(err)
		}
		if e.By.User != anna.User || e.By.Via.Person() {
			t.Errorf("event %d is recorded as an act of %+v", e.Seq, e.By)
		}
		refused = append(refused, fact)
	}
	if n := len(refused); n == 0 || n >= flood {
		t.Fatalf("%d of %d refused inputs are recorded", n, flood)
	}
	if first := refused[0]; first.State != "ask" || first.Reason != "machine-person" || string(first.Value) != `"yes"` {
		t.Errorf("the first recorded refusal is %+v", first)
	}
	r.reopen()
	r.approveRun(id)
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted {
		t.Errorf("after the person's answer the run is %s", s.Status)
	}
}

// TestRefusedInputIsCut checks that a long refused input is recorded in part.
func TestRefusedInputIsCut(t *testing.T) {
	t.Parallel()
	r := newApproved(t)
	id := r.startRun("waiting", map[string]any{"topic": "t"})
	r.driveRun(id)
	long := json.RawMessage(`"` + strings.Repeat("ä", 100_000) + `"`)
	_, err := r.answerInput(anna, id, long)
	checkRefusal(t, "agent", err, "machine-person")
	events, err := r.Events(t.Context(), anna, id)
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	if last.Kind != string(machineengine.KindInputRefused) || len(last.Data) > 20<<10 || !strings.Contains(string(last.Data), "äää") {
		t.Errorf("the last event is %s with %d bytes", last.Kind, len(last.Data))
	}
}

// lateOutcome is a journal whose first call of Outcome does not find the request, as if
// another start stored it right after the call.
type lateOutcome struct {
	*memory
	asked int
}

func (j *lateOutcome) Outcome(ctx context.Context, id, user, key string) (run.Handle, error) {
	if j.asked++; j.asked == 1 {
		return run.Handle{}, notFoundError("outcome")
	}
	return j.memory.Outcome(ctx, id, user, key)
}

// TestConcurrentStartsWithOneRequestID checks that a start returns the run of a concurrent
// start with the same request id.
func TestConcurrentStartsWithOneRequestID(t *testing.T) {
	t.Parallel()
	store := newMemory()
	r := newRig(t, store, []*machinedef.Definition{parseMachine(t, waiting, smallRoles)}, handlers{}, `{"rules": [{"content": "one"}]}`)
	start := func() string {
		s, err := r.Start(t.Context(), anna, driver.StartRequest{Machine: "waiting", Inputs: map[string]json.RawMessage{"topic": json.RawMessage(`"t"`)}, RequestID: "at once"})
		if err != nil {
			t.Fatal(err)
		}
		return s.RunID
	}
	first := start()
	r.opts.Journal = &lateOutcome{memory: store}
	r.reopen()
	if second := start(); second != first {
		t.Errorf("the second start returned %s, want %s", second, first)
	}
}
