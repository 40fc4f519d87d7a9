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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
)

// shelf serves definitions by id.
type shelf map[string]string

func (s shelf) Startable(_ context.Context, id string) (*definition.Definition, error) {
	text, ok := s[id]
	if !ok {
		return nil, guideway.Errorf(guideway.CodeNotFound, "Workflow with id '%s' not found", id)
	}
	d, found := definition.Check("", []byte(text))
	for _, f := range found {
		if f.Severity == guideway.SeverityError {
			return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "%s", f.Message).WithFix("%s", f.Fix)
		}
	}
	return d, nil
}

func workflow(id, steps string) string {
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
		shelf: shelf{"guarded": workflow("guarded", guardedSteps), "person": workflow("person", personSteps)},
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

func confirm() *guide.Answer { return &guide.Answer{OptionID: guide.OptionConfirm} }

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
	if last.Position.ID != "report" || last.Status != guide.StatusRunning {
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
	if end.Status != guide.StatusCompleted || end.Next != nil || end.Position.Kind != guide.PositionEnd {
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
			req.Answer = &guide.Answer{OptionID: r.Answer.OptionID}
		}
		a = legal(t, b.Service, req)
	}
	if a.Status != guide.StatusCompleted {
		t.Errorf("it ended at %+v", a.Position)
	}
}

func TestRefusalsKeepTheRunWhereItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	_, err := b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "no plan"})
	r := refusalBy(t, err, guide.RuleCriteria)
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
	if err != nil || status.Position.Kind != guide.PositionGate {
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
			wantRule(t, err, guide.RulePerson)
			_, err = b.Answer(t.Context(), c, run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirm()})
			wantRule(t, err, guide.RulePerson)
		}
		open, err := b.Answer(t.Context(), person(via), run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirm()})
		if err != nil || open.Position.ID != "build" {
			t.Fatalf("%s: %+v, %v", via, open, err)
		}
		d, _ := b.Get(t.Context(), agent(), run.Ref{RunID: a.RunID})
		if e := d.Events[len(d.Events)-1]; e.Kind != string(guide.EventGateAnswered) || e.By.Via != via {
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
	wantRule(t, err, guide.RulePerson)
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
	if err != nil || aborted.Status != guide.StatusAborted {
		t.Fatalf("abort: %+v, %v", aborted, err)
	}
	again, err := b.Abort(t.Context(), agent(), run.AbortRequest{Ref: run.Ref{RunID: answers[0].RunID}})
	if err != nil || !again.Replayed {
		t.Errorf("abort again: %+v, %v", again, err)
	}
	_, err = b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: aborted.Handle, Output: "x"})
	wantRule(t, err, guide.RuleEnded)
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
	b.shelf["bad"] = workflow("bad", `[{"id":"one","title":"One","prompt":"p","validationCriteria":[{"type":"regex","pattern":"(","message":"m"}]}]`)
	_, err = b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "bad"})
	wantRule(t, err, guide.RuleDefinition)
	_, err = b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "guarded", Context: map[string]any{"_loopState": 1}})
	wantRule(t, err, guide.RuleServerVariable)
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
	b.shelf["guarded"] = workflow("guarded", `[{"id":"other","title":"Other","prompt":"Other."}]`)
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
	if end := legal(t, elsewhere.Service, run.ContinueRequest{Handle: a.Handle, Output: "done"}); end.Status != guide.StatusCompleted {
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

// What a bundle says of a person's gate opens none.
func TestAPersonsAnswerIsNotImported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "person", nil)
	a = legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
	a, err := b.Answer(t.Context(), person(run.ViaTerminal), run.AnswerRequest{Ref: run.Ref{Handle: a.Handle}, Answer: *confirm()})
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := b.Export(t.Context(), agent(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Import(t.Context(), agent(), bundle)
	if err != nil || again.Position.Kind != guide.PositionGate || !again.Position.Person {
		t.Errorf("imported by an agent: %+v, %v", again, err)
	}
	again, err = b.Import(t.Context(), person(run.ViaTerminal), bundle)
	if err != nil || again.Position.ID != "build" {
		t.Errorf("imported by a person: %+v, %v", again, err)
	}
}

// An agent that goes on trying does not fill the journal.
func TestRefusalsAreRecordedUpToABound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	for range 300 {
		_, err := b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "no"})
		wantRule(t, err, guide.RuleCriteria)
	}
	if n := len(b.journal.events[a.RunID]); n > 120 {
		t.Errorf("the journal has %d events", n)
	}
}

// Whatever is changed in the journal by somebody without the key is found, with
// the first event that is not as it was.
func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		tamper func(b *bench, id string)
		kind   run.FaultKind
		seq    int64
	}{
		{"an edited event", func(b *bench, id string) { b.journal.events[id][2].Data = []byte(`{}`) }, run.FaultEdited, 3},
		{"an edited time", func(b *bench, id string) { b.journal.events[id][2].At = time.Unix(0, 0) }, run.FaultEdited, 3},
		{"an edited author", func(b *bench, id string) { b.journal.events[id][2].By.Via = run.ViaTerminal }, run.FaultEdited, 3},
		{"a recomputed chain", func(b *bench, id string) {
			events := b.journal.events[id]
			events[2].Data = []byte(`{}`)
			forger := run.Key(bytes.Repeat([]byte{8}, run.KeySize))
			prev := events[1].MAC
			for i := 2; i < len(events); i++ {
				events[i].MAC = forger.Chain(id, prev, events[i])
				prev = events[i].MAC
			}
			r := b.journal.records[id]
			r.Head = prev
			b.journal.records[id] = r
		}, run.FaultEdited, 3},
		{"a removed event", func(b *bench, id string) { b.journal.events[id] = slices.Delete(b.journal.events[id], 2, 3) }, run.FaultGap, 3},
		{"a removed tail", func(b *bench, id string) { b.journal.events[id] = b.journal.events[id][:4] }, run.FaultTruncated, 5},
		{"a removed tail with its record", func(b *bench, id string) {
			b.journal.events[id] = b.journal.events[id][:4]
			r := b.journal.records[id]
			r.Seq, r.Head = 4, b.journal.events[id][3].MAC
			b.journal.records[id] = r
		}, run.FaultTruncated, 5},
		{"a removed run", func(b *bench, id string) { delete(b.journal.records, id); delete(b.journal.events, id) }, run.FaultMissing, 1},
		{"another goal", func(b *bench, id string) {
			r := b.journal.records[id]
			r.Goal = "another"
			b.journal.records[id] = r
		}, run.FaultRecord, 15},
		{"another status", func(b *bench, id string) {
			r := b.journal.records[id]
			r.Status = guide.StatusCompleted
			b.journal.records[id] = r
		}, run.FaultRecord, 15},
		{"fewer events named than there are", func(b *bench, id string) {
			r := b.journal.records[id]
			r.Seq, r.Head = 8, b.journal.events[id][7].MAC
			b.journal.records[id] = r
		}, run.FaultRecord, 9},
		{"another owner", func(b *bench, id string) {
			r := b.journal.records[id]
			r.User = "eve"
			b.journal.records[id] = r
		}, run.FaultRecord, 1},
		{"an edited definition", func(b *bench, id string) {
			r := b.journal.records[id]
			d := b.journal.defs[r.Hash]
			d.Text = strings.Replace(d.Text, "PLAN", "P", 1)
			b.journal.defs[r.Hash] = d
		}, run.FaultDefinition, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			id := walk(t, b.Service)[0].RunID
			start(t, b.Service, "person", nil)
			tt.tamper(b, id)
			report, err := b.service(t).Verify(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Faults) != 1 || report.Faults[0].Run != id || report.Faults[0].Kind != tt.kind || report.Faults[0].Seq != tt.seq {
				t.Errorf("faults = %+v, want one: %s at %d", report.Faults, tt.kind, tt.seq)
			}
		})
	}
}

// A rolled-back journal that went on differently is found, and a deliberate
// restore can be accepted.
func TestARollbackIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	oldEvents, oldRecord := slices.Clone(b.journal.events[a.RunID]), b.journal.records[a.RunID]
	legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN one"})
	b.journal.events[a.RunID], b.journal.records[a.RunID] = oldEvents, oldRecord
	delete(b.journal.snaps, a.RunID)
	b.journal.outcomes = map[string]run.Handle{}
	fresh := b.service(t)
	report, err := fresh.Verify(t.Context(), a.RunID)
	if err != nil || len(report.Faults) != 1 || report.Faults[0].Kind != run.FaultTruncated {
		t.Fatalf("after the rollback: %+v, %v", report, err)
	}
	legal(t, fresh, run.ContinueRequest{Handle: a.Handle, Output: "PLAN two"})
	report, err = fresh.Verify(t.Context(), "")
	if err != nil || len(report.Faults) != 1 || report.Faults[0].Kind != run.FaultReplaced {
		t.Fatalf("after it went on: %+v, %v", report, err)
	}
	if err := fresh.AcceptRestore(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err = fresh.Verify(t.Context(), "")
	if err != nil || len(report.Faults) != 0 {
		t.Errorf("after it was accepted: %+v, %v", report, err)
	}
}

// Damage of the heads is told, and hides nothing else; a run that is not there is
// no run whose links hold.
func TestVerifyGoesOnWithDamagedHeads(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *run.Options) { o.Heads = damaged{newHeads()} })
	a := start(t, b.Service, "guarded", nil)
	b.journal.events[a.RunID][1].Data = []byte(`{}`)
	report, err := b.Verify(t.Context(), "")
	if err != nil || len(report.Faults) != 2 || report.Faults[0].Kind != run.FaultHeads || report.Faults[1].Kind != run.FaultEdited {
		t.Errorf("verify: %+v, %v", report, err)
	}
	fine := newBench(t)
	if _, err := fine.Verify(t.Context(), "r_nosuchrun"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a run that is not there: %v", err)
	}
}

// damaged are heads with a line that does not read.
type damaged struct{ *heads }

func (d damaged) Heads() (map[string]run.Head, error) {
	known, _ := d.heads.Heads()
	return known, guideway.Errorf(guideway.CodeInvalid, "1 line of the heads is damaged")
}

// A page of events is checked by itself.
func TestEventsByThePage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := walk(t, b.Service)[0].RunID
	d, err := b.Get(t.Context(), agent(), run.Ref{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	for after := range d.Seq + 2 {
		page, err := b.Events(t.Context(), agent(), run.Ref{RunID: id}, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		from := min(after, d.Seq)
		if diff := cmp.Diff(d.Events[from:min(from+3, d.Seq)], page, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after %d (-whole +page):\n%s", after, diff)
		}
	}
	b.journal.events[id][4].Data = []byte(`{}`)
	if _, err := b.Events(t.Context(), agent(), run.Ref{RunID: id}, 3, 3); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("an edited event is told: %v", err)
	}
}

// A snapshot is a cache: a forged one opens no way past a step, and a run whose
// events were changed takes no command.
func TestSnapshotsAndEventsAreNotTrusted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	snap := b.journal.snaps[a.RunID]
	var state guide.State
	if err := json.Unmarshal(snap.State, &state); err != nil {
		t.Fatal(err)
	}
	state.Cursor = 4
	snap.State, _ = json.Marshal(state)
	b.journal.snaps[a.RunID] = snap
	status, err := b.service(t).Status(t.Context(), agent(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.ID != "plan" {
		t.Fatalf("a forged snapshot leads to %+v, %v", status, err)
	}
	b.journal.events[a.RunID][1].Data = []byte(`{"kind":"run_started","vars":{"size":"small"}}`)
	_, err = b.service(t).Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "runs verify") {
		t.Errorf("a changed run takes a command: %v", err)
	}
}

// An edited record opens no way to another's run, nor to laxer rules for one's own.
func TestEditedRecordsOpenNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(b *bench, r *run.Record){
		"the owner": func(_ *bench, r *run.Record) { r.User = "eve" },
		"the definition": func(b *bench, r *run.Record) {
			lax, _ := b.shelf.Startable(t.Context(), "guarded")
			d, _ := definition.Check("", []byte(strings.Replace(lax.Canonical, "PLAN", "", 1)))
			b.journal.defs[d.Hash] = run.Definition{Hash: d.Hash, Text: d.Canonical}
			r.Hash = d.Hash
		},
	} {
		b := newBench(t)
		a := start(t, b.Service, "guarded", nil)
		r := b.journal.records[a.RunID]
		edit(b, &r)
		b.journal.records[a.RunID] = r
		caller := run.Caller{Principal: guideway.Principal{User: r.User}}
		for _, s := range []*run.Service{b.Service, b.service(t)} {
			_, err := s.Continue(t.Context(), caller, run.ContinueRequest{Handle: a.Handle, Output: "no"})
			if guideway.ErrorCode(err) != guideway.CodeUnavailable {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// What could not be stored did not happen.
func TestAFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	b.journal.failing = guideway.Errorf(guideway.CodeUnavailable, "the disk is full")
	req := run.ContinueRequest{Handle: a.Handle, Output: "PLAN"}
	if _, err := b.Continue(t.Context(), agent(), req); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Fatalf("got %v", err)
	}
	status, err := b.Status(t.Context(), agent(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.ID != "plan" {
		t.Errorf("after it: %+v, %v", status, err)
	}
	if got := legal(t, b.Service, req); got.Replayed || got.Position.ID != "approve" {
		t.Errorf("the command again: %+v", got)
	}
}

// An answer is for the gate that was shown, and not for a later one.
func TestAnAnswerOpensTheGateThatWasShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shelf["rounds"] = workflow("rounds", `[{"id":"loop","type":"loop","title":"L","loop":{"type":"for","count":2,"maxIterations":2},
		"body":[{"id":"work","title":"Work","prompt":"p","approval":"human"}]}]`)
	a := start(t, b.Service, "rounds", nil)
	first := legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "one"})
	open := run.AnswerRequest{Ref: run.Ref{Handle: first.Handle}, Step: "work", Answer: *confirm()}
	next, err := b.Answer(t.Context(), person(run.ViaBrowser), open)
	if err != nil {
		t.Fatal(err)
	}
	legal(t, b.Service, run.ContinueRequest{Handle: next.Handle, Output: "two"})
	_, err = b.Answer(t.Context(), person(run.ViaBrowser), open)
	wantRule(t, err, run.RuleStaleHandle)
	status, err := b.Status(t.Context(), agent(), run.Ref{RunID: a.RunID})
	if err != nil || status.Position.Kind != guide.PositionGate {
		t.Errorf("the second gate is gone: %+v, %v", status, err)
	}
}

// What a caller changes afterwards in what it has sent changes no run.
func TestTheCallersValuesAreCopied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	list := []any{"a"}
	a, err := b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "guarded", Goal: "bad \xff text", Context: map[string]any{"files": list}})
	if err != nil {
		t.Fatal(err)
	}
	list[0] = "b"
	here, err := b.Get(t.Context(), agent(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	there, err := b.service(t).Get(t.Context(), agent(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(there.Variables, here.Variables); d != "" || here.Goal != "bad \uFFFD text" {
		t.Errorf("two processes differ: %s; goal %q", d, here.Goal)
	}
}

func TestInputIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	_, err := b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: strings.Repeat("PLAN", 1<<20)})
	wantRule(t, err, run.RuleTooLarge)
	_, err = b.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "guarded", Goal: strings.Repeat("g", 5000)})
	wantRule(t, err, run.RuleTooLarge)
	_, err = b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": strings.Repeat("x", 200_000)}})
	wantRule(t, err, guide.RuleContextTooLarge)
	_, err = b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": json.Number(strings.Repeat("1", 200_000))}})
	wantRule(t, err, guide.RuleContextTooLarge)
	var deep any
	for range 200 {
		deep = []any{deep}
	}
	_, err = b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": deep}})
	wantRule(t, err, guide.RuleContextTooDeep)
	for range 20_000 {
		deep = []any{deep}
	}
	_, err = b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": deep}})
	if err == nil {
		t.Error("a context that nobody can read back is taken")
	}
}

// "Yesterday" is the person's, where the day began hours before UTC's.
func TestResumeByTheDaysOfThisMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	east := time.FixedZone("east", 10*60*60)
	b.now = time.Date(2026, 11, 19, 23, 30, 0, 0, east)
	a := start(t, b.Service, "guarded", nil)
	b.now = time.Date(2026, 11, 20, 8, 0, 0, 0, east) // still the 19th in UTC
	found, err := b.Resume(t.Context(), agent(), run.ResumeRequest{Query: "yesterday"})
	if err != nil || len(found) != 1 || found[0].RunID != a.RunID {
		t.Errorf("%v, %v", found, err)
	}
}
