package runs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/runs"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// newDetails returns a run with these events.
func newDetails(t *testing.T, events ...run.Event) *run.Details {
	t.Helper()
	d := &run.Details{Record: run.Record{
		ID: "r_1", Workflow: "w", Version: "1", Hash: "sha256:0", Goal: "fix it", Seq: int64(len(events)), Head: []byte{1, 255},
		Project: run.Project{Path: "/project"},
	}, Events: events}
	for i := range d.Events {
		d.Events[i].Seq = int64(i + 1)
	}
	return d
}

func newEvent(t *testing.T, kind string, via run.Via, data any) run.Event {
	t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return run.Event{Kind: kind, At: time.Unix(9, 0).UTC(), By: run.By{User: "ann", Via: via}, Data: text}
}

func newFact(t *testing.T, via run.Via, fact engine.Event) run.Event {
	t.Helper()
	return newEvent(t, string(fact.Kind), via, fact)
}

// TestPredicateOfRun checks that a step is evidence only with the result of a check that
// decided it, that the last result of each rule counts, and that no text is copied.
func TestPredicateOfRun(t *testing.T) {
	t.Parallel()
	exit := 1
	result := func(step, key string, code *int, tree string) run.Event {
		return newEvent(t, run.KindCheckRun, run.ViaAgent, evidence.Result{
			Step: step, Key: key, Type: criteria.NamedCheck, Name: "test", Hash: "sha256:1", Argv: []string{"go", "test"}, ExitCode: code,
			Head: "SECRET", Workspace: &evidence.Workspace{Root: "/root", Host: "pc", Commit: "c", Tree: "t", WorkTree: tree, DirtyCount: 2},
		})
	}
	refused := newEvent(t, run.KindRefused, run.ViaAgent, run.Refused{Rule: "criteria-failed", Output: "SECRET"})
	answer := func(option string, via run.Via) run.Event {
		return newFact(t, via, engine.Event{Kind: engine.EventGateAnswered, Step: "gate", Option: option, Notes: "SECRET"})
	}
	d := newDetails(
		t,
		newEvent(t, run.KindCreated, run.ViaAgent, run.Created{Workspace: &evidence.Workspace{Root: "/start", Commit: "b", Tree: "s"}}),
		newFact(t, run.ViaAgent, engine.Event{Kind: engine.EventRunStarted}),
		result("one", "/0", &exit, "t1"), refused,
		result("one", "/0", new(int), "t2"),
		newFact(t, run.ViaAgent, engine.Event{Kind: engine.EventStepCompleted, Step: "one", Output: "SECRET", Evidence: []engine.Evidence{{Key: "/0", Passed: true, Decided: true}}}),
		answer("revise", run.ViaAgent), refused,
		// The results of an earlier step do not count for a later one.
		newFact(t, run.ViaAgent, engine.Event{Kind: engine.EventStepCompleted, Step: "one", Round: 2, Evidence: []engine.Evidence{{Key: "/0", Passed: true, Decided: true}}}),
		newFact(t, run.ViaAgent, engine.Event{Kind: engine.EventStepSkipped, Step: "two", Reason: "SECRET"}),
		answer("confirm", run.ViaTerminal),
		result("three", "/or/0", new(int), "t2"),
		newFact(t, run.ViaAgent, engine.Event{Kind: engine.EventStepCompleted, Step: "three", Evidence: []engine.Evidence{{Key: "/or/0", Passed: true}}}),
	)
	p, root, err := runs.NewPredicate(d)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(9, 0).UTC()
	workspace := &attest.Workspace{Commit: "c", Tree: "t", WorkTree: "t2", Dirty: 2}
	want := &attest.Predicate{
		Run:      attest.Run{ID: "r_1", GoalHash: attest.HashText("fix it"), Events: int64(len(d.Events)), Head: "01ff"},
		Workflow: attest.Workflow{ID: "w", Version: "1", Definition: "sha256:0"},
		Start:    &attest.Workspace{Commit: "b", Tree: "s"},
		Steps: []attest.Step{
			{ID: "one", Seq: 6, At: at, Label: attest.Evidence, OutputHash: attest.HashText("SECRET"), Checks: []attest.Check{{
				Key: "/0", Type: criteria.NamedCheck, Name: "test", Definition: "sha256:1", Passed: true, Decided: true,
				Argv: []string{"go", "test"}, ExitCode: new(int), Workspace: workspace, Host: "pc",
			}}},
			{ID: "one", Round: 2, Seq: 9, At: at, Label: attest.Claim},
			{ID: "three", Seq: 13, At: at, Label: attest.Claim, Checks: []attest.Check{{
				Key: "/or/0", Type: criteria.NamedCheck, Name: "test", Definition: "sha256:1", Passed: true,
				Argv: []string{"go", "test"}, ExitCode: new(int), Workspace: workspace, Host: "pc",
			}}},
		},
		Skipped: []string{"two"},
		Approvals: []attest.Approval{
			{Gate: "gate", Option: "revise", Seq: 7, At: at, By: "ann", Via: "agent"},
			{Gate: "gate", Option: "confirm", Seq: 11, At: at, By: "ann", Via: "terminal", Person: true},
		},
		Refused: map[string]int{"criteria-failed": 2},
	}
	if diff := cmp.Diff(want, p); diff != "" || root != "/root" {
		t.Errorf("the root is %s (-want +got):\n%s", root, diff)
	}
	if text, err := json.Marshal(p); err != nil || strings.Contains(string(text), "SECRET") || strings.Contains(string(text), "/root") {
		t.Errorf("the predicate contains a text of the run or a path of the machine: %s, %v", text, err)
	}
}

func TestPredicateOfUntrustedRun(t *testing.T) {
	t.Parallel()
	created := newEvent(t, run.KindCreated, run.ViaAgent, run.Created{})
	imported := newFact(t, run.ViaImport, engine.Event{Kind: engine.EventStepCompleted, Step: "one"})
	if _, _, err := runs.NewPredicate(newDetails(t, created, imported)); guideway.ErrorCode(err) != guideway.CodeRefused || guideway.ErrorFix(err) == "" {
		t.Errorf("an imported run: %v", err)
	}
	damaged := newEvent(t, run.KindCheckRun, run.ViaAgent, "text")
	if _, _, err := runs.NewPredicate(newDetails(t, created, damaged)); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("a damaged event: %v", err)
	}
	d := newDetails(t, created)
	d.Project.Path = ""
	if _, _, err := runs.NewPredicate(d); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("a run without a workspace: %v", err)
	}
}
