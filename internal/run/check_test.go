package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

const checkedSteps = `[
	{"id":"build","title":"Build","prompt":"Build it.","validationCriteria":[
		{"type":"contains","value":"BUILT","message":"say BUILT"},
		{"type":"check","check":"test","message":"the tests fail"}, {"type":"check","check":"lint","message":"the linter reports errors"}]},
	{"id":"either","title":"Either","prompt":"Either.","validationCriteria":{"or":[
		{"type":"check","check":"test","message":"the tests fail"}, {"type":"contains","value":"CLAIM","message":"say CLAIM"}]}},
	{"id":"report","title":"Report","prompt":"Report."}]`

// scriptedChecker returns prepared results by the name of a check.
type scriptedChecker struct {
	mu       sync.Mutex
	outcomes map[string]criteria.CheckOutcome
	errors   map[string]error
	// pause is the duration of a check.
	pause    time.Duration
	executed []string
	requests []evidence.Request
	starts   int
	// host is the computer of the checker.
	host string
}

func (c *scriptedChecker) Workspace(_ context.Context, dir string) (*evidence.Workspace, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts++
	return &evidence.Workspace{Root: dir, Host: c.host, Commit: strings.Repeat("c", 39) + string(rune('0'+c.starts))}, nil
}

func (c *scriptedChecker) Check(ctx context.Context, r evidence.Request) (evidence.Result, error) {
	select {
	case <-ctx.Done():
		return evidence.Result{}, ctx.Err()
	case <-time.After(c.pause):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := r.Rule.Check
	if err := c.errors[name]; err != nil {
		return evidence.Result{}, err
	}
	c.executed, c.requests = append(c.executed, name), append(c.requests, r)
	return evidence.Result{Type: r.Rule.Type, Name: name, Describe: "the check " + name, CheckOutcome: c.outcomes[name], Head: "output of " + name}, nil
}

func newCheckedBench(t *testing.T) (*testBench, *scriptedChecker) {
	t.Helper()
	c := &scriptedChecker{outcomes: map[string]criteria.CheckOutcome{"test": {Passed: true}, "lint": {Passed: true}}, errors: map[string]error{}}
	b := newTestBench(t, func(o *run.Options) { o.Checker = c })
	b.shelf["checked"] = testWorkflow("checked", checkedSteps)
	return b, c
}

func startChecked(t *testing.T, b *testBench) *run.Answer {
	t.Helper()
	a, err := b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "checked", Project: run.Project{Path: "/work/project"}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// kindsOf returns the kinds of the events of a run, and the labels of its completed steps.
func kindsOf(t *testing.T, b *testBench, id string) (kinds, labels []string) {
	t.Helper()
	d, err := b.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range d.Events {
		kinds = append(kinds, e.Kind)
		var fact engine.Event
		if e.Kind == string(engine.EventStepCompleted) {
			if err := json.Unmarshal(e.Data, &fact); err != nil {
				t.Fatal(err)
			}
			labels = append(labels, fact.Step+" "+fact.Label())
		}
	}
	return kinds, labels
}

// TestFailedCheckRefuses checks that a failed check refuses the output, that its result is
// recorded before the refusal, and that a passed check makes the step evidence.
func TestFailedCheckRefuses(t *testing.T) {
	t.Parallel()
	b, c := newCheckedBench(t)
	a := startChecked(t, b)
	c.outcomes["test"] = criteria.CheckOutcome{Issue: "the tests fail"}
	lie := run.ContinueRequest{Handle: a.Handle, Output: "BUILT, all tests pass"}
	_, err := b.Continue(t.Context(), agentCaller(), lie)
	r := requireRefusal(t, err, engine.RuleCriteria)
	if !slices.Equal(r.Issues, []string{"the tests fail"}) || len(r.Checks) != 2 || r.Checks[0].Output != "output of test" {
		t.Errorf("the refusal is %+v", r)
	}
	c.outcomes["test"] = criteria.CheckOutcome{Passed: true}
	done := mustContinue(t, b.Service, lie)
	if done.Position.ID != "either" || len(done.Checks) != 2 {
		t.Errorf("after the check passes the answer is %+v", done)
	}
	c.outcomes["test"] = criteria.CheckOutcome{Issue: "the tests fail"}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: done.Handle, Output: "CLAIM"})
	kinds, labels := kindsOf(t, b, a.RunID)
	if d := cmp.Diff([]string{
		run.KindCreated, "run_started", run.KindCheckRun, run.KindCheckRun, run.KindRefused,
		run.KindCheckRun, run.KindCheckRun, "step_completed", "step_completed",
	}, kinds); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"build evidence", "either claim"}, labels); d != "" {
		t.Error(d)
	}
	if got := c.requests[0]; got.Run != a.RunID || got.Step != "build" || got.Key != "/1" || got.ProjectPath != "/work/project" || got.Start.Root != "/work/project" {
		t.Errorf("the request is %+v", got)
	}
}

// TestTextRulesComeFirst checks that an output that fails a rule over its text executes no
// check.
func TestTextRulesComeFirst(t *testing.T) {
	t.Parallel()
	b, c := newCheckedBench(t)
	a := startChecked(t, b)
	_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "x"})
	checkRule(t, err, engine.RuleCriteria)
	if len(c.executed) > 0 {
		t.Errorf("executed %v", c.executed)
	}
}

// TestUndefinedChecksAreClaims checks that a check that the project does not define is
// skipped, and that its step is a claim.
func TestUndefinedChecksAreClaims(t *testing.T) {
	t.Parallel()
	b, c := newCheckedBench(t)
	a := startChecked(t, b)
	c.outcomes = map[string]criteria.CheckOutcome{"test": {Undefined: true}, "lint": {Undefined: true}}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "BUILT"})
	if _, labels := kindsOf(t, b, a.RunID); !slices.Equal(labels, []string{"build claim"}) {
		t.Errorf("the labels are %v", labels)
	}
}

// TestCheckWaits checks that a check that cannot be executed keeps the step waiting, with the
// reason and the fix.
func TestCheckWaits(t *testing.T) {
	t.Parallel()
	b, c := newCheckedBench(t)
	a := startChecked(t, b)
	c.errors["lint"] = guideway.Errorf(guideway.CodeForbidden, "nobody approved the check lint").WithFix("ask the person to run guideway checks approve lint")
	_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "BUILT"})
	r := requireRefusal(t, err, run.RuleCheckWaits)
	if !strings.Contains(r.Message, "nobody approved") || !strings.Contains(r.Fix, "guideway checks approve lint") || r.Position == nil && r.Next == nil {
		t.Errorf("the refusal is %+v", r)
	}
	kinds, _ := kindsOf(t, b, a.RunID)
	if d := cmp.Diff([]string{run.KindCreated, "run_started", run.KindCheckRun, run.KindRefused}, kinds); d != "" {
		t.Error(d)
	}
	delete(c.errors, "lint")
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "BUILT"})
}

// TestConcurrentCallsExecuteChecksOnce checks that a client that repeats a call while its
// checks run gets the answer of the first call.
func TestConcurrentCallsExecuteChecksOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, c := newCheckedBench(t)
		a := startChecked(t, b)
		c.pause = time.Minute
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				got, err := b.Continue(context.Background(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "BUILT"})
				if err != nil || got.Position.ID != "either" {
					t.Errorf("got %+v, %v", got, err)
				}
			})
		}
		calls.Wait()
		if !slices.Equal(c.executed, []string{"test", "lint"}) {
			t.Errorf("executed %v", c.executed)
		}
	})
}

// TestCancelledCheckRecordsNothing checks that a call that is cancelled during its checks, or
// whose process ends then, leaves the run as it was: a later call of another process
// completes the step, and each check is recorded once.
func TestCancelledCheckRecordsNothing(t *testing.T) {
	t.Parallel()
	b, c := newCheckedBench(t)
	a := startChecked(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	c.pause = time.Hour
	cancel()
	if _, err := b.Continue(ctx, agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "BUILT"}); err == nil {
		t.Fatal("a cancelled call succeeded")
	}
	c.pause = 0
	other := b.newService(t, func(o *run.Options) { o.Checker = c })
	mustContinue(t, other, run.ContinueRequest{Handle: a.Handle, Output: "BUILT"})
	kinds, _ := kindsOf(t, b, a.RunID)
	if d := cmp.Diff([]string{run.KindCreated, "run_started", run.KindCheckRun, run.KindCheckRun, "step_completed"}, kinds); d != "" {
		t.Error(d)
	}
}

// TestForkKeepsWorkspace checks that the checks of a fork compare with the start of the
// original run, so that a fork cannot hide a change of a protected file.
func TestForkKeepsWorkspace(t *testing.T) {
	t.Parallel()
	b, c := newCheckedBench(t)
	a := startChecked(t, b)
	fork, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}})
	if err != nil {
		t.Fatal(err)
	}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: fork.Handle, Output: "BUILT"})
	if c.starts != 1 || c.requests[0].Start.Commit != strings.Repeat("c", 39)+"1" {
		t.Errorf("the workspace was read %d times, and the check compares with %+v", c.starts, c.requests[0].Start)
	}
}

// TestWorkspaceOfCaller checks which computer executes the checks of a new run: the client's,
// if it is connected through guideway connect and its directory means nothing here. The
// process is asked for the directory that the client named, even if the client may not name
// directories of this computer.
func TestWorkspaceOfCaller(t *testing.T) {
	t.Parallel()
	there := &evidence.Workspace{Root: "/there", Host: "desk"}
	for name, tt := range map[string]struct {
		connect *run.Connected
		roles   []guideway.Role
		needs   bool
		host    string
	}{
		"no guideway connect":          {nil, nil, false, "here"},
		"guideway connect here":        {&run.Connected{Host: "here"}, nil, false, "here"},
		"another computer, not asked":  {&run.Connected{Host: "desk"}, nil, true, ""},
		"another computer, answered":   {&run.Connected{Host: "desk", Workspace: there}, nil, false, "desk"},
		"a token, not asked":           {&run.Connected{Host: "here", Foreign: true}, nil, true, ""},
		"another person, not asked":    {&run.Connected{Host: "here", Foreign: true}, []guideway.Role{guideway.RoleOperator}, true, ""},
		"another computer, it refuses": {&run.Connected{Host: "desk", Err: guideway.Errorf(guideway.CodeForbidden, "no")}, nil, false, ""},
	} {
		s, checker := newCheckedBench(t)
		checker.host = "here"
		c := agentCaller()
		c.Connect, c.Roles = tt.connect, tt.roles
		a, err := s.Start(t.Context(), c, run.StartRequest{WorkflowID: "checked", Project: run.Project{Path: "/work"}})
		var needed *run.ConnectNeeded
		if errors.As(err, &needed) != tt.needs || tt.needs && needed.ProjectPath != "/work" {
			t.Errorf("%s: the error is %v, %+v", name, err, needed)
		}
		if tt.host == "" {
			if err == nil {
				t.Errorf("%s: a run was started", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		events, err := s.Events(t.Context(), c, run.Ref{RunID: a.RunID}, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		var created run.Created
		if err := json.Unmarshal(events[0].Data, &created); err != nil {
			t.Fatal(err)
		}
		if w := created.Workspace; w == nil || w.Host != tt.host || w.Connect != (tt.host == "desk") {
			t.Errorf("%s: the workspace is %+v", name, w)
		}
	}
}
