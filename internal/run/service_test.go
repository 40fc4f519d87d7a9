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

// shelf serves definitions by id.
type shelf map[string]string

func (s shelf) Startable(_ context.Context, id string) (*workflow.Definition, error) {
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

// bench is a service with all that it works with.
type bench struct {
	*run.Service
	journal *memory
	heads   *heads
	shelf   shelf
	mu      sync.Mutex
	now     time.Time
}

func newBench(t testing.TB, change ...func(*run.Options)) *bench {
	t.Helper()
	b := &bench{
		journal: newMemory(), heads: newHeads(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		shelf: shelf{"guarded": testWorkflow("guarded", guardedSteps), "person": testWorkflow("person", personSteps)},
	}
	b.Service = b.service(t, change...)
	return b
}

// service is another process on the same journal.
func (b *bench) service(t testing.TB, change ...func(*run.Options)) *run.Service {
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

func agent() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada", Client: "editor"}}
}

func person(via run.Via) run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada"}, Via: via}
}

func start(t testing.TB, s *run.Service, id string, vars map[string]any) *run.Answer {
	t.Helper()
	a, err := s.Start(t.Context(), agent(), run.StartRequest{WorkflowID: id, Goal: "make the " + id, Context: vars})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// legal hands in what must be accepted.
func legal(t testing.TB, s *run.Service, r run.ContinueRequest) *run.Answer {
	t.Helper()
	a, err := s.Continue(t.Context(), agent(), r)
	if err != nil {
		t.Fatalf("continue: %v", err)
	}
	return a
}

func confirm() *engine.Answer { return &engine.Answer{OptionID: engine.OptionConfirm} }

// wantRule checks that an error is a refusal by a rule.
func wantRule(t testing.TB, err error, rule string) {
	t.Helper()
	_ = refusalBy(t, err, rule)
}

// refusalBy gives the refusal that an error must be.
func refusalBy(t testing.TB, err error, rule string) *run.Refusal {
	t.Helper()
	r, ok := run.IsRefusal(err)
	if !ok || r.Rule != rule {
		t.Fatalf("got %v (%+v), want a refusal by %s", err, r, rule)
	}
	return r
}

// walk takes the guarded workflow to its last step and gives every answer.
func walk(t testing.TB, s *run.Service) []*run.Answer {
	t.Helper()
	answers := []*run.Answer{start(t, s, "guarded", nil)}
	next := func(r run.ContinueRequest) {
		r.Handle = answers[len(answers)-1].Handle
		answers = append(answers, legal(t, s, r))
	}
	next(run.ContinueRequest{Output: "PLAN: a careful one", Notes: "looked at the parser"})
	next(run.ContinueRequest{Output: "please approve"})
	next(run.ContinueRequest{Answer: confirm()})
	next(run.ContinueRequest{Context: map[string]any{"size": "small"}})
	for i := range 3 {
		next(run.ContinueRequest{Output: fmt.Sprint("round ", i)})
	}
	return answers
}

func TestARunWalksFromStartToEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answers := walk(t, b.Service)
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
	end := legal(t, b.Service, run.ContinueRequest{Handle: last.Handle, Output: "done"})
	if end.Status != engine.StatusCompleted || end.Next != nil || end.Position.Kind != engine.PositionEnd {
		t.Errorf("the end is %+v", end)
	}
	report, err := b.Verify(t.Context(), "")
	if err != nil || len(report.Faults) > 0 || report.Runs != 1 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

// The call that an answer suggests is legal, at every position but where only
// the caller knows what to hand in.
func TestNextIsLegal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	for range 20 {
		if a.Next == nil {
			break
		}
		text, _ := json.Marshal(a.Next.Arguments)
		var r struct {
			Handle, Output string
			Context        map[string]any
			Answer         *struct {
				OptionID string `json:"optionId"`
			}
		}
		if err := json.Unmarshal(text, &r); err != nil || a.Next.Tool != "workflow_continue" {
			t.Fatalf("next is %s %s: %v", a.Next.Tool, text, err)
		}
		req := run.ContinueRequest{Handle: r.Handle, Output: r.Output, Context: r.Context}
		if a.Position.ID == "plan" {
			req.Output = "PLAN"
		}
		if r.Answer != nil {
			req.Answer = &engine.Answer{OptionID: r.Answer.OptionID}
		}
		a = legal(t, b.Service, req)
	}
	if a.Status != engine.StatusCompleted {
		t.Errorf("it ended at %+v", a.Position)
	}
}

func TestRefusalsKeepTheRunWhereItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	_, err := b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "no plan"})
	r := refusalBy(t, err, engine.RuleCriteria)
	if !slices.Equal(r.Issues, []string{"say PLAN"}) || r.Next == nil || r.Next.Arguments["handle"] != a.Handle {
		t.Errorf("the refusal is %+v", r)
	}
	after, err := b.Status(t.Context(), agent(), run.Ref{RunID: a.RunID})
	if err != nil || after.Handle != a.Handle || after.Position.ID != "plan" {
		t.Errorf("after it: %+v, %v", after, err)
	}
	d, err := b.Get(t.Context(), agent(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	if e := d.Events[len(d.Events)-1]; e.Kind != run.KindRefused || !strings.Contains(string(e.Data), "say PLAN") {
		t.Errorf("the attempt is not recorded: %+v", e)
	}
	if strings.Contains(fmt.Sprint(d.Events), "no plan") {
		t.Error("the refused output is kept")
	}
	legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
}

// The same handle with the same input gives the same answer and adds nothing, at
// once, later, and in another process; with other input it is refused.
func TestRepeatsAreIdempotent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	first := run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"b": json.Number("2"), "a": 1.0}}
	want := legal(t, b.Service, first)
	second := run.ContinueRequest{Handle: want.Handle, Output: "please approve"}
	legal(t, b.Service, second)
	writes := b.journal.writes
	for _, s := range []*run.Service{b.Service, b.service(t)} {
		got := legal(t, s, first)
		if !got.Replayed {
			t.Error("it does not say that it is a repeat")
		}
		got.Replayed = false
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the repeat differs (-first +again):\n%s", d)
		}
	}
	if b.journal.writes != writes {
		t.Error("a repeat has written")
	}
	other := first
	other.Output = "PLAN B"
	_, err := b.Continue(t.Context(), agent(), other)
	r := refusalBy(t, err, run.RuleStaleHandle)
	if r.Next.Tool != "workflow_status" {
		t.Errorf("next is %+v", r.Next)
	}
	status, err := b.Status(t.Context(), agent(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.Kind != engine.PositionGate {
		t.Errorf("an old handle gives %+v, %v", status, err)
	}
}

func TestNobodyElseGetsIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	eve := run.Caller{Principal: guideway.Principal{User: "eve"}}
	forged := a.Handle[:len(a.Handle)-1] + map[bool]string{true: "1", false: "0"}[a.Handle[len(a.Handle)-1] == '0']
	for _, handle := range []string{a.Handle} {
		_, err := b.Continue(t.Context(), eve, run.ContinueRequest{Handle: handle, Output: "PLAN"})
		wantRule(t, err, run.RuleUnknownHandle)
	}
	for _, handle := range []string{forged, "", "x", a.RunID, strings.ToUpper(a.Handle), a.Handle + " ", a.Handle[:10], strings.Repeat("h_", 500)} {
		_, err := b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: handle, Output: "PLAN"})
		r := refusalBy(t, err, run.RuleUnknownHandle)
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
		"get":    func() error { _, err := b.Get(t.Context(), eve, run.Ref{RunID: a.RunID}); return err },
		"export": func() error { _, err := b.Export(t.Context(), eve, run.Ref{RunID: a.RunID}); return err },
		"answer": func() error {
			_, err := b.Answer(t.Context(), eve, run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirm()})
			return err
		},
		"resume": func() error { _, err := b.Resume(t.Context(), eve, run.ResumeRequest{RunID: a.RunID}); return err },
	} {
		if r := refusalBy(t, call(), run.RuleUnknownRun); r.Position != nil {
			t.Errorf("%s tells where the run is", name)
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

// A gate for people opens by the ways that prove one, and by no other.
func TestAPersonsGate(t *testing.T) {
	t.Parallel()
	for _, via := range []run.Via{run.ViaElicitation, run.ViaTerminal, run.ViaBrowser, run.ViaToken} {
		b := newBench(t)
		a := start(t, b.Service, "person", nil)
		gate := legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
		if !gate.Position.Person || gate.Next.Tool != "workflow_status" {
			t.Fatalf("at the gate: %+v", gate)
		}
		for _, c := range []run.Caller{agent(), person(run.ViaServer), person(run.ViaImport), person("person"), person("")} {
			_, err := b.Continue(t.Context(), c, run.ContinueRequest{Handle: gate.Handle, Answer: confirm()})
			wantRule(t, err, engine.RulePerson)
			_, err = b.Answer(t.Context(), c, run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirm()})
			wantRule(t, err, engine.RulePerson)
		}
		open, err := b.Answer(t.Context(), person(via), run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirm()})
		if err != nil || open.Position.ID != "build" {
			t.Fatalf("%s: %+v, %v", via, open, err)
		}
		d, _ := b.Get(t.Context(), agent(), run.Ref{RunID: a.RunID})
		if e := d.Events[len(d.Events)-1]; e.Kind != string(engine.EventGateAnswered) || e.By.Via != via {
			t.Errorf("the journal says %+v", e)
		}
		// The agent's handle is of an earlier position now, and says so.
		_, err = b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: gate.Handle, Output: "built"})
		wantRule(t, err, run.RuleStaleHandle)
	}
}

func TestEveryGateCanBeAPersons(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *run.Options) { o.PersonGates = true })
	a := start(t, b.Service, "guarded", nil)
	a = legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	a = legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "please"})
	lax := b.service(t) // the run keeps to what it began with
	_, err := lax.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Answer: confirm()})
	wantRule(t, err, engine.RulePerson)
}

func TestAForkGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answers := walk(t, b.Service)
	for i, a := range answers {
		fork, err := b.Fork(t.Context(), agent(), run.ForkRequest{Ref: run.Ref{Handle: a.Handle}})
		if err != nil {
			t.Fatalf("fork at answer %d: %v", i, err)
		}
		if d := cmp.Diff(a.Position, fork.Position); d != "" || fork.RunID == a.RunID || fork.Handle == a.Handle {
			t.Errorf("fork at answer %d (-old +fork):\n%s", i, d)
		}
	}
	whole, err := b.Fork(t.Context(), agent(), run.ForkRequest{Ref: run.Ref{RunID: answers[0].RunID}})
	if err != nil || whole.Position.ID != "report" {
		t.Errorf("a fork by id begins at the last event: %+v, %v", whole, err)
	}
	for _, seq := range []int64{-1, 1, 1000} {
		_, err = b.Fork(t.Context(), agent(), run.ForkRequest{Ref: run.Ref{RunID: answers[0].RunID}, Seq: seq})
		r := refusalBy(t, err, run.RuleUnknownSeq)
		if _, err := b.Fork(t.Context(), agent(), run.ForkRequest{
			Ref: run.Ref{RunID: r.Next.Arguments["runId"].(string)}, Seq: r.Next.Arguments["seq"].(int64),
		}); err != nil {
			t.Errorf("the fork that the refusal of %d proposes: %v", seq, err)
		}
	}
	done := walk(t, b.Service)
	end := legal(t, b.Service, run.ContinueRequest{Handle: done[len(done)-1].Handle, Output: "report"})
	for _, ref := range []run.Ref{{RunID: end.RunID}, {Handle: end.Handle}} {
		again, err := b.Fork(t.Context(), agent(), run.ForkRequest{Ref: ref})
		if err != nil || again.Position.ID != "report" {
			t.Errorf("a fork of a completed run: %+v, %v", again, err)
		}
	}
	aborted, err := b.Abort(t.Context(), agent(), run.AbortRequest{Ref: run.Ref{RunID: answers[0].RunID}, Reason: "enough"})
	if err != nil || aborted.Status != engine.StatusAborted {
		t.Fatalf("abort: %+v, %v", aborted, err)
	}
	again, err := b.Abort(t.Context(), agent(), run.AbortRequest{Ref: run.Ref{RunID: answers[0].RunID}})
	if err != nil || !again.Replayed {
		t.Errorf("abort again: %+v, %v", again, err)
	}
	_, err = b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: aborted.Handle, Output: "x"})
	wantRule(t, err, engine.RuleEnded)
	revived, err := b.Fork(t.Context(), agent(), run.ForkRequest{Ref: run.Ref{RunID: answers[0].RunID}})
	if err != nil || revived.Position.ID != "report" {
		t.Errorf("a fork of an aborted run: %+v, %v", revived, err)
	}
	report, err := b.Verify(t.Context(), "")
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

func TestStartIsRepeatableByItsRequestID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	req := run.StartRequest{WorkflowID: "guarded", Goal: "once", RequestID: "req-1"}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			a, err := b.Start(t.Context(), agent(), req)
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
	_, err := b.Start(t.Context(), agent(), req)
	wantRule(t, err, run.RuleRequestReused)
	_, err = b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "nope"})
	wantRule(t, err, run.RuleUnknownWorkflow)
	b.shelf["bad"] = testWorkflow("bad", `[{"id":"one","title":"One","prompt":"p","validationCriteria":[{"type":"regex","pattern":"(","message":"m"}]}]`)
	_, err = b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "bad"})
	wantRule(t, err, engine.RuleDefinition)
	_, err = b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "guarded", Context: map[string]any{"_loopState": 1}})
	wantRule(t, err, engine.RuleServerVariable)
}

// Clients that race on one handle: one gets on, the others get its answer if
// they said the same, else a refusal.
func TestARaceHasOneWinner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	services := []*run.Service{b.Service, b.service(t), b.service(t)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, replayed, stale := 0, 0, 0
	for i := range 30 {
		wg.Go(func() {
			got, err := services[i%3].Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: fmt.Sprint("PLAN ", i%2)})
			mu.Lock()
			defer mu.Unlock()
			switch r, refused := run.IsRefusal(err); {
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

// An edit of the definition does not reach a run that has begun.
func TestTheDefinitionIsPinned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	b.shelf["guarded"] = testWorkflow("guarded", `[{"id":"other","title":"Other","prompt":"Other."}]`)
	fresh := b.service(t)
	status, err := fresh.Status(t.Context(), agent(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.ID != "plan" {
		t.Errorf("the run is at %+v, %v", status, err)
	}
	if next := start(t, fresh, "guarded", nil); next.Position.ID != "other" {
		t.Errorf("a new run is at %+v", next.Position)
	}
}

func TestResumeFindsTheRunThatIsMeant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	begin := func(goal, project string) *run.Answer {
		a, err := b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "guarded", Goal: goal, Project: run.Project{ID: project, Path: "/src/" + project}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	auth := begin("refactoring of auth tokens", "api")
	docs := begin("write the docs", "web")
	old := begin("auth cleanup", "api")
	if _, err := b.Abort(t.Context(), agent(), run.AbortRequest{Ref: run.Ref{RunID: old.RunID}}); err != nil {
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
		{"what is open comes first", run.ResumeRequest{}, []string{docs.RunID, auth.RunID, old.RunID}},
		{"in one project", run.ResumeRequest{Project: "api"}, []string{auth.RunID, old.RunID}},
		{"by the path of here", run.ResumeRequest{Project: "/src/web", Here: run.Project{ID: "web", Path: "/src/web"}}, []string{docs.RunID}},
		{"by nothing that is known", run.ResumeRequest{Query: "kubernetes"}, nil},
		{"with a limit", run.ResumeRequest{Limit: 1}, []string{docs.RunID}},
	}
	for _, tt := range tests {
		found, err := b.Resume(t.Context(), agent(), tt.req)
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
	b := newBench(t)
	answers := walk(t, b.Service)
	bundle, err := b.Export(t.Context(), agent(), run.Ref{RunID: answers[0].RunID})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := newBench(t, func(o *run.Options) { o.Key = bytes.Repeat([]byte{9}, run.KeySize) })
	a, err := elsewhere.Import(t.Context(), agent(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(answers[len(answers)-1].Position, a.Position); d != "" {
		t.Errorf("the imported run is elsewhere (-want +got):\n%s", d)
	}
	if end := legal(t, elsewhere.Service, run.ContinueRequest{Handle: a.Handle, Output: "done"}); end.Status != engine.StatusCompleted {
		t.Errorf("it goes on to %+v", end)
	}
	for name, edit := range map[string]func(string) string{
		"no JSON":              func(string) string { return "{" },
		"another format":       func(s string) string { return strings.Replace(s, "guideway-run", "x", 1) },
		"a newer version":      func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) },
		"an edited definition": func(s string) string { return strings.Replace(s, "Only for what is large", "For all", 1) },
		"a forged event":       func(s string) string { return strings.Replace(s, `"step": "plan"`, `"step": "report"`, 1) },
		"no events":            func(s string) string { before, _, _ := strings.Cut(s, `"events"`); return before + `"events": []}` },
	} {
		if _, err := elsewhere.Import(t.Context(), agent(), []byte(edit(string(bundle)))); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
