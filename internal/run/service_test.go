package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// definitionMap provides definitions by id.
type definitionMap map[string]string

func (s definitionMap) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	text, ok := s[id]
	if !ok {
		return nil, guideway.Errorf(guideway.CodeNotFound, "Workflow with id '%s' not found", id)
	}
	d, found := workflow.Check("", []byte(text))
	for _, f := range found {
		if f.Severity == guideway.SeverityError {
			return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "%s", f.Message).WithFix("%s", f.Fix)
		}
	}
	return d, nil
}

func testWorkflow(id, steps string) string {
	return fmt.Sprintf(`{"id":%q,"name":"The %s","description":"d","version":"1.0.0","steps":%s}`, id, id, steps)
}

const guardedSteps = `[
	{"id":"plan","title":"Plan","prompt":"Plan it.","validationCriteria":[{"type":"contains","value":"PLAN","message":"say PLAN"}]},
	{"id":"approve","title":"Approve","prompt":"Approve.","requireConfirmation":true},
	{"id":"large","title":"Large","prompt":"Only for what is large.","runCondition":{"var":"size","equals":"large"}},
	{"id":"rounds","type":"loop","title":"Rounds","loop":{"type":"for","count":3,"maxIterations":5},"body":[{"id":"work","title":"Work","prompt":"Work."}]},
	{"id":"report","title":"Report","prompt":"SECRET LAST STEP"}]`

const personSteps = `[{"id":"plan","title":"Plan","prompt":"Plan.","approval":"human"},{"id":"build","title":"Build","prompt":"Build."}]`

// testBench is a service with its dependencies.
type testBench struct {
	*run.Service
	journal *memoryJournal
	heads   *memoryHeads
	shelf   definitionMap
	mu      sync.Mutex
	now     time.Time
}

func newTestBench(t testing.TB, change ...func(*run.Options)) *testBench {
	t.Helper()
	b := &testBench{
		journal: newMemoryJournal(), heads: newMemoryHeads(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		shelf: definitionMap{"guarded": testWorkflow("guarded", guardedSteps), "person": testWorkflow("person", personSteps)},
	}
	b.Service = b.newService(t, change...)
	return b
}

// newService returns another service with the same journal, as a different process would
// have.
func (b *testBench) newService(t testing.TB, change ...func(*run.Options)) *run.Service {
	t.Helper()
	o := run.Options{
		Journal: b.journal, Definitions: b.shelf, Key: bytes.Repeat([]byte{7}, run.KeySize), Heads: b.heads,
		Now: func() time.Time {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.now = b.now.Add(time.Second)
			return b.now
		},
	}
	for _, c := range change {
		c(&o)
	}
	s, err := run.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func agentCaller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada", Client: "editor"}}
}

func personCaller(via run.Via) run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada"}, Via: via}
}

func startRun(t testing.TB, s *run.Service, id string, vars map[string]any) *run.Answer {
	t.Helper()
	a, err := s.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: id, Goal: "make the " + id, Context: vars})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// mustContinue submits input that must be accepted.
func mustContinue(t testing.TB, s *run.Service, r run.ContinueRequest) *run.Answer {
	t.Helper()
	a, err := s.Continue(t.Context(), agentCaller(), r)
	if err != nil {
		t.Fatalf("continue: %v", err)
	}
	return a
}

func confirmAnswer() *engine.Answer { return &engine.Answer{OptionID: engine.OptionConfirm} }

// checkRule fails the test unless an error is a refusal by a rule.
func checkRule(t testing.TB, err error, rule string) {
	t.Helper()
	_ = requireRefusal(t, err, rule)
}

// requireRefusal returns the refusal in an error, or fails the test.
func requireRefusal(t testing.TB, err error, rule string) *run.Refusal {
	t.Helper()
	r, ok := run.AsRefusal(err)
	if !ok || r.Rule != rule {
		t.Fatalf("got %v (%+v), want a refusal by %s", err, r, rule)
	}
	return r
}

// requireAnyRefusal fails the test unless an error is a refusal.
func requireAnyRefusal(t testing.TB, err error) *run.Refusal {
	t.Helper()
	r, ok := run.AsRefusal(err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r
}

// runToLastStep runs the guarded workflow to its last step and returns every answer.
func runToLastStep(t testing.TB, s *run.Service) []*run.Answer {
	t.Helper()
	answers := []*run.Answer{startRun(t, s, "guarded", nil)}
	next := func(r run.ContinueRequest) {
		r.Handle = answers[len(answers)-1].Handle
		answers = append(answers, mustContinue(t, s, r))
	}
	next(run.ContinueRequest{Output: "PLAN: a careful one", Notes: "looked at the parser"})
	next(run.ContinueRequest{Output: "please approve"})
	next(run.ContinueRequest{Answer: confirmAnswer()})
	next(run.ContinueRequest{Context: map[string]any{"size": "small"}})
	for i := range 3 {
		next(run.ContinueRequest{Output: fmt.Sprint("round ", i)})
	}
	return answers
}

func TestARunWalksFromStartToEnd(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	answers := runToLastStep(t, b.Service)
	last := answers[len(answers)-1]
	if last.Position.ID != "report" || last.Status != engine.StatusRunning {
		t.Fatalf("at %+v", last)
	}
	for _, a := range answers[:len(answers)-1] {
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("SECRET")) {
			t.Errorf("a step that is not reached is shown: %s", text)
		}
	}
	end := mustContinue(t, b.Service, run.ContinueRequest{Handle: last.Handle, Output: "done"})
	if end.Status != engine.StatusCompleted || end.Next != nil || end.Position.Kind != engine.PositionEnd {
		t.Errorf("the end is %+v", end)
	}
	report, err := b.Verify(t.Context(), "")
	if err != nil || len(report.Faults) > 0 || report.Runs != 1 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

// fillForm returns the request of a form with values for its fields. A field without a
// value gets its first choice, or a value of its type.
func fillForm(t testing.TB, next *run.Call, values map[string]any) run.ContinueRequest {
	t.Helper()
	if next.Tool != "workflow_continue" || len(next.Arguments) != 1 {
		t.Fatalf("next is %+v", next)
	}
	r := run.ContinueRequest{Handle: next.Arguments["handle"].(string)}
	for _, f := range next.Fields {
		v := values[f.Name]
		switch {
		case f.Optional:
			continue
		case v != nil:
		case len(f.Choices) > 0:
			v = f.Choices[0]
		default:
			v = map[string]any{"number": 1, "boolean": true, "array": []any{"item"}, "object": map[string]any{"a": "b"}}[f.Type]
		}
		if v == nil {
			v = "the work is done"
		}
		switch name, rest, _ := strings.Cut(f.Name, "."); name {
		case "output":
			r.Output = v.(string)
		case "notes":
			r.Notes = v.(string)
		case "answer":
			r.Answer = &engine.Answer{OptionID: v.(string)}
		default:
			if r.Context == nil {
				r.Context = map[string]any{}
			}
			r.Context[rest] = v
		}
	}
	return r
}

// TestNextIsLegal checks that, at every position of a run, the call that the answer
// suggests is legal with its fields filled in, and refused without them.
func TestNextIsLegal(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	for range 20 {
		if a.Next == nil {
			break
		}
		if _, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle}); requireAnyRefusal(t, err).Next == nil {
			t.Fatalf("at %+v the refusal suggests no call", a.Position)
		}
		values := map[string]any{"context.list": []any{"a"}}
		if a.Position.ID == "plan" {
			values["output"] = "PLAN"
		}
		a = mustContinue(t, b.Service, fillForm(t, a.Next, values))
	}
	if a.Status != engine.StatusCompleted {
		t.Errorf("the run ended at %+v", a.Position)
	}
}

func TestRefusalsKeepTheRunWhereItIs(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "no plan"})
	r := requireRefusal(t, err, engine.RuleCriteria)
	if !slices.Equal(r.Issues, []string{"say PLAN"}) || r.Next == nil || r.Next.Arguments["handle"] != a.Handle {
		t.Errorf("the refusal is %+v", r)
	}
	after, err := b.Status(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil || after.Handle != a.Handle || after.Position.ID != "plan" {
		t.Errorf("after the refusal, the status is %+v, %v", after, err)
	}
	d, err := b.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	if e := d.Events[len(d.Events)-1]; e.Kind != run.KindRefused || !strings.Contains(string(e.Data), "say PLAN") || !strings.Contains(string(e.Data), "no plan") {
		t.Errorf("the attempt is not recorded: %+v", e)
	}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
}

// TestRepeatsAreIdempotent checks that a repeated command with an earlier handle returns
// the same answer and adds no event, also in another process. Different input with this
// handle is refused.
func TestRepeatsAreIdempotent(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	first := run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"b": json.Number("2"), "a": 1.0}}
	want := mustContinue(t, b.Service, first)
	second := run.ContinueRequest{Handle: want.Handle, Output: "please approve"}
	mustContinue(t, b.Service, second)
	writes := b.journal.writes
	for _, s := range []*run.Service{b.Service, b.newService(t)} {
		got := mustContinue(t, s, first)
		if !got.Replayed {
			t.Error("the answer is not marked as replayed")
		}
		got.Replayed = false
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the repeat differs (-first +again):\n%s", d)
		}
	}
	if b.journal.writes != writes {
		t.Error("a repeat added events")
	}
	other := first
	other.Output = "PLAN B"
	_, err := b.Continue(t.Context(), agentCaller(), other)
	r := requireRefusal(t, err, run.RuleStaleHandle)
	if r.Next.Tool != "workflow_status" {
		t.Errorf("next is %+v", r.Next)
	}
	status, err := b.Status(t.Context(), agentCaller(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.Kind != engine.PositionGate {
		t.Errorf("an old handle returns %+v, %v", status, err)
	}
}

func TestNobodyElseGetsIn(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	eve := run.Caller{Principal: guideway.Principal{User: "eve"}}
	forged := a.Handle[:len(a.Handle)-1] + map[bool]string{true: "1", false: "0"}[a.Handle[len(a.Handle)-1] == '0']
	for _, handle := range []string{a.Handle} {
		_, err := b.Continue(t.Context(), eve, run.ContinueRequest{Handle: handle, Output: "PLAN"})
		checkRule(t, err, run.RuleUnknownHandle)
	}
	for _, handle := range []string{forged, "", "x", a.RunID, strings.ToUpper(a.Handle), a.Handle + " ", a.Handle[:10], strings.Repeat("h_", 500)} {
		_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: handle, Output: "PLAN"})
		r := requireRefusal(t, err, run.RuleUnknownHandle)
		if text, _ := json.Marshal(r); len(text) > 500 {
			t.Errorf("the refusal has %d bytes", len(text))
		}
	}
	for name, call := range map[string]func() error{
		"status": func() error { _, err := b.Status(t.Context(), eve, run.Ref{RunID: a.RunID}); return err },
		"fork": func() error {
			_, err := b.Fork(t.Context(), eve, run.ForkRequest{Ref: run.Ref{RunID: a.RunID}})
			return err
		},
		"abort": func() error {
			_, err := b.Abort(t.Context(), eve, run.AbortRequest{Ref: run.Ref{RunID: a.RunID}})
			return err
		},
		"get":    func() error { _, err := b.GetWithEvents(t.Context(), eve, run.Ref{RunID: a.RunID}); return err },
		"export": func() error { _, err := b.Export(t.Context(), eve, run.Ref{RunID: a.RunID}); return err },
		"answer": func() error {
			_, err := b.Answer(t.Context(), eve, run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirmAnswer()})
			return err
		},
		"resume": func() error { _, err := b.Resume(t.Context(), eve, run.ResumeRequest{RunID: a.RunID}); return err },
	} {
		if r := requireRefusal(t, call(), run.RuleUnknownRun); r.Position != nil {
			t.Errorf("%s reveals the position of the run", name)
		}
	}
	found, err := b.Resume(t.Context(), eve, run.ResumeRequest{Query: "guarded"})
	if err != nil || len(found) != 0 {
		t.Errorf("eve finds %v, %v", found, err)
	}
	list, err := b.List(t.Context(), eve, run.Filter{User: "ada"})
	if err != nil || len(list) != 0 {
		t.Errorf("eve lists %v, %v", list, err)
	}
}

// TestHumanApproval checks that only the channels that prove a person open a gate with
// human approval.
func TestHumanApproval(t *testing.T) {
	t.Parallel()
	for _, via := range []run.Via{run.ViaElicitation, run.ViaTerminal, run.ViaBrowser, run.ViaToken} {
		b := newTestBench(t)
		a := startRun(t, b.Service, "person", nil)
		gate := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
		if !gate.Position.Person || gate.Next != nil {
			t.Fatalf("at the gate, the answer is %+v", gate)
		}
		for _, c := range []run.Caller{agentCaller(), personCaller(run.ViaServer), personCaller(run.ViaImport), personCaller("person"), personCaller("")} {
			_, err := b.Continue(t.Context(), c, run.ContinueRequest{Handle: gate.Handle, Answer: confirmAnswer()})
			checkRule(t, err, engine.RulePerson)
			_, err = b.Answer(t.Context(), c, run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirmAnswer()})
			checkRule(t, err, engine.RulePerson)
		}
		open, err := b.Answer(t.Context(), personCaller(via), run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirmAnswer()})
		if err != nil || open.Position.ID != "build" {
			t.Fatalf("%s: %+v, %v", via, open, err)
		}
		d, _ := b.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
		if e := d.Events[len(d.Events)-1]; e.Kind != string(engine.EventGateAnswered) || e.By.Via != via {
			t.Errorf("the journal has %+v", e)
		}
		// The handle of the agent belongs to an earlier position now and is refused.
		_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: gate.Handle, Output: "built"})
		checkRule(t, err, run.RuleStaleHandle)
	}
}

func TestEveryGateCanBeAPersons(t *testing.T) {
	t.Parallel()
	b := newTestBench(t, func(o *run.Options) { o.PersonGates = true })
	a := startRun(t, b.Service, "guarded", nil)
	a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "please"})
	lax := b.newService(t) // the run keeps its original setting
	_, err := lax.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Answer: confirmAnswer()})
	checkRule(t, err, engine.RulePerson)
}

func TestAForkGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	answers := runToLastStep(t, b.Service)
	for i, a := range answers {
		fork, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{Handle: a.Handle}})
		if err != nil {
			t.Fatalf("the fork at answer %d returned %v", i, err)
		}
		if d := cmp.Diff(a.Position, fork.Position); d != "" || fork.RunID == a.RunID || fork.Handle == a.Handle {
			t.Errorf("fork at answer %d (-old +fork):\n%s", i, d)
		}
	}
	whole, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: answers[0].RunID}})
	if err != nil || whole.Position.ID != "report" {
		t.Errorf("a fork by id begins at the last event: %+v, %v", whole, err)
	}
	for _, seq := range []int64{-1, 1, 1000} {
		_, err = b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: answers[0].RunID}, Seq: seq})
		r := requireRefusal(t, err, run.RuleUnknownSeq)
		if _, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{
			Ref: run.Ref{RunID: r.Next.Arguments["runId"].(string)}, Seq: r.Next.Arguments["seq"].(int64),
		}); err != nil {
			t.Errorf("the fork that the refusal of event %d suggests returned %v", seq, err)
		}
	}
	done := runToLastStep(t, b.Service)
	end := mustContinue(t, b.Service, run.ContinueRequest{Handle: done[len(done)-1].Handle, Output: "report"})
	for _, ref := range []run.Ref{{RunID: end.RunID}, {Handle: end.Handle}} {
		again, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: ref})
		if err != nil || again.Position.ID != "report" {
			t.Errorf("the fork of a completed run returned %+v, %v", again, err)
		}
	}
	aborted, err := b.Abort(t.Context(), agentCaller(), run.AbortRequest{Ref: run.Ref{RunID: answers[0].RunID}, Reason: "enough"})
	if err != nil || aborted.Status != engine.StatusAborted {
		t.Fatalf("abort: %+v, %v", aborted, err)
	}
	again, err := b.Abort(t.Context(), agentCaller(), run.AbortRequest{Ref: run.Ref{RunID: answers[0].RunID}})
	if err != nil || !again.Replayed {
		t.Errorf("the second Abort returned %+v, %v", again, err)
	}
	_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: aborted.Handle, Output: "x"})
	checkRule(t, err, engine.RuleEnded)
	revived, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: answers[0].RunID}})
	if err != nil || revived.Position.ID != "report" {
		t.Errorf("the fork of an aborted run returned %+v, %v", revived, err)
	}
	report, err := b.Verify(t.Context(), "")
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

func TestStartIsRepeatableByItsRequestID(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	req := run.StartRequest{WorkflowID: "guarded", Goal: "once", RequestID: "req-1"}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			a, err := b.Start(t.Context(), agentCaller(), req)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = a.RunID
		})
	}
	wg.Wait()
	if len(slices.Compact(slices.Clone(ids))) != 1 || len(b.journal.records) != 1 {
		t.Errorf("%d runs were started: %v", len(b.journal.records), ids)
	}
	req.WorkflowID = "person"
	_, err := b.Start(t.Context(), agentCaller(), req)
	checkRule(t, err, run.RuleRequestReused)
	_, err = b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "nope"})
	checkRule(t, err, run.RuleUnknownWorkflow)
	b.shelf["bad"] = testWorkflow("bad", `[{"id":"one","title":"One","prompt":"p","validationCriteria":[{"type":"regex","pattern":"(","message":"m"}]}]`)
	_, err = b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "bad"})
	checkRule(t, err, engine.RuleDefinition)
	_, err = b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "guarded", Context: map[string]any{"_loopState": 1}})
	checkRule(t, err, engine.RuleServerVariable)
}

// TestARaceHasOneWinner checks that only one of the clients that use a handle concurrently
// succeeds. The others get its answer if they sent the same input, and otherwise a refusal.
func TestARaceHasOneWinner(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	services := []*run.Service{b.Service, b.newService(t), b.newService(t)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, replayed, stale := 0, 0, 0
	for i := range 30 {
		wg.Go(func() {
			got, err := services[i%3].Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: fmt.Sprint("PLAN ", i%2)})
			mu.Lock()
			defer mu.Unlock()
			switch r, refused := run.AsRefusal(err); {
			case err == nil && got.Replayed:
				replayed++
			case err == nil:
				won++
			case refused && r.Rule == run.RuleStaleHandle:
				stale++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || replayed != 14 || stale != 15 {
		t.Errorf("%d won, %d replayed, %d stale; want 1, 14, 15", won, replayed, stale)
	}
}

// TestTheDefinitionIsPinned checks that editing the definition does not affect a started
// run.
func TestTheDefinitionIsPinned(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	b.shelf["guarded"] = testWorkflow("guarded", `[{"id":"other","title":"Other","prompt":"Other."}]`)
	fresh := b.newService(t)
	status, err := fresh.Status(t.Context(), agentCaller(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.ID != "plan" {
		t.Errorf("the run is at %+v, %v", status, err)
	}
	if next := startRun(t, fresh, "guarded", nil); next.Position.ID != "other" {
		t.Errorf("a new run is at %+v", next.Position)
	}
}

func TestResumeFindsTheRunThatIsMeant(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	begin := func(goal, project string) *run.Answer {
		a, err := b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "guarded", Goal: goal, Project: run.Project{ID: project, Path: "/src/" + project}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	auth := begin("refactoring of auth tokens", "api")
	docs := begin("write the docs", "web")
	old := begin("auth cleanup", "api")
	if _, err := b.Abort(t.Context(), agentCaller(), run.AbortRequest{Ref: run.Ref{RunID: old.RunID}}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		req  run.ResumeRequest
		want []string
	}{
		{"by words", run.ResumeRequest{Query: "resume the auth refactoring"}, []string{auth.RunID, old.RunID}},
		{"by id", run.ResumeRequest{RunID: docs.RunID}, []string{docs.RunID}},
		{"by an id among the words", run.ResumeRequest{Query: docs.RunID}, []string{docs.RunID}},
		{"by an old handle", run.ResumeRequest{Query: auth.Handle}, []string{auth.RunID}},
		{"open runs come first", run.ResumeRequest{}, []string{docs.RunID, auth.RunID, old.RunID}},
		{"in one project", run.ResumeRequest{Project: "api"}, []string{auth.RunID, old.RunID}},
		{"by the path of the caller's project", run.ResumeRequest{Project: "/src/web", Here: run.Project{ID: "web", Path: "/src/web"}}, []string{docs.RunID}},
		{"by unknown words", run.ResumeRequest{Query: "kubernetes"}, nil},
		{"with a limit", run.ResumeRequest{Limit: 1}, []string{docs.RunID}},
	}
	for _, tt := range tests {
		found, err := b.Resume(t.Context(), agentCaller(), tt.req)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var ids []string
		for _, c := range found {
			ids = append(ids, c.RunID)
			if c.Handle == "" || c.Why == "" || c.Next == nil {
				t.Errorf("%s: a candidate is not ready to use: %+v", tt.name, c)
			}
		}
		if d := cmp.Diff(tt.want, ids); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestABundleGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	answers := runToLastStep(t, b.Service)
	bundle, err := b.Export(t.Context(), agentCaller(), run.Ref{RunID: answers[0].RunID})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := newTestBench(t, func(o *run.Options) { o.Key = bytes.Repeat([]byte{9}, run.KeySize) })
	a, err := elsewhere.Import(t.Context(), agentCaller(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(answers[len(answers)-1].Position, a.Position); d != "" {
		t.Errorf("the imported run has a different position (-want +got):\n%s", d)
	}
	if end := mustContinue(t, elsewhere.Service, run.ContinueRequest{Handle: a.Handle, Output: "done"}); end.Status != engine.StatusCompleted {
		t.Errorf("the imported run continues to %+v", end)
	}
	for name, edit := range map[string]func(string) string{
		"no JSON":              func(string) string { return "{" },
		"another format":       func(s string) string { return strings.Replace(s, "guideway-run", "x", 1) },
		"a newer version":      func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) },
		"an edited definition": func(s string) string { return strings.Replace(s, "Only for what is large", "For all", 1) },
		"a forged event":       func(s string) string { return strings.Replace(s, `"step": "plan"`, `"step": "report"`, 1) },
		"no events":            func(s string) string { before, _, _ := strings.Cut(s, `"events"`); return before + `"events": []}` },
	} {
		if _, err := elsewhere.Import(t.Context(), agentCaller(), []byte(edit(string(bundle)))); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
