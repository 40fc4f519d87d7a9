package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// approvalFlows are workflows of both dialects with a gate that needs two approvers or
// admins.
func approvalFlows(t *testing.T) map[string]engine.Flow {
	t.Helper()
	const approval = `"approval":{"by":["approver","admin"],"count":2}`
	flows := map[string]engine.Flow{"steps": compileSteps(t, `[{"id":"plan","title":"Plan","prompt":"p",`+approval+`},{"id":"build","title":"B","prompt":"b"}]`)}
	d, found := workflow.Check("", []byte(`{"id":"w","title":"T","description":"d","version":"1.0.0","initialPhase":"a","phases":[
		{"id":"a","name":"A","steps":[{"id":"draft","name":"Draft"}],"checkpoints":[{"id":"ok","name":"OK","message":"Good?",`+approval+`,
			"options":[{"id":"confirm","label":"Yes"},{"id":"other","label":"No"}]}],"transitions":[{"to":"b"}]},{"id":"b","name":"B","steps":[{"id":"end","name":"End"}]}]}`))
	if d == nil {
		t.Fatal(found)
	}
	flows["phases"] = engine.CompilePhases(d.Phases)
	return flows
}

func personWith(user string, roles ...guideway.Role) guideway.Principal {
	return guideway.Principal{User: user, Roles: append([]guideway.Role{}, roles...)}
}

// A gate that needs two persons opens after the same answer of two different persons with
// the roles, and after nothing else. The events are possible and follow from the commands.
func TestGateNeedsDistinctPersons(t *testing.T) {
	t.Parallel()
	for name, flow := range approvalFlows(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, refusal := flow.Decide(engine.State{}, engine.Command{Start: &engine.Start{}})
			s := applyAll(engine.State{}, events)
			decide := func(by guideway.Principal, person bool, option string, rule string) {
				t.Helper()
				c := &engine.Continue{Person: person, By: by, Answer: &engine.Answer{OptionID: option}}
				if option == "" {
					c = &engine.Continue{Output: "the plan"}
				}
				var more []engine.Event
				more, refusal = flow.Decide(s, engine.Command{Continue: c})
				got := ""
				if refusal != nil {
					got = refusal.Rule
				}
				if got != rule {
					t.Fatalf("%s answers %s: %q (%+v), want %q", by.User, option, got, more, rule)
				}
				s, events = applyAll(s, more), append(events, more...)
			}
			decide(guideway.Principal{}, false, "", "")
			bob, ann, eve := personWith("bob", guideway.RoleApprover), personWith("ann", guideway.RoleAdmin), personWith("eve", guideway.RoleOperator)
			decide(bob, false, "confirm", engine.RulePerson)
			decide(eve, true, "confirm", engine.RuleRole)
			decide(personWith("none"), true, "confirm", engine.RuleRole)
			decide(bob, true, "unknown", engine.RuleUnknownOption)
			decide(bob, true, "confirm", "")
			decide(bob, true, "confirm", engine.RuleApproved)
			pos := flow.PositionOf(s)
			if pos.Kind != engine.PositionGate || !cmp.Equal(pos.Votes, []engine.Vote{{User: "bob", Option: "confirm"}}) || pos.Approval.Persons() != 2 {
				t.Fatalf("after one approval the run is at %+v", pos)
			}
			if name == "phases" { // Another answer of the same person replaces the first.
				decide(bob, true, "other", "")
				decide(ann, true, "confirm", "")
				decide(bob, true, "confirm", "")
			} else {
				decide(ann, true, "confirm", "")
			}
			if pos := flow.PositionOf(s); pos.Kind == engine.PositionGate {
				t.Errorf("after two approvals the run is at %+v", pos)
			}
			if _, err := flow.FoldFrom(engine.State{}, events); err != nil {
				t.Error(err)
			}
			if _, err := engine.Recheck(flow, events); err != nil {
				t.Error(err)
			}
		})
	}
}

// One person is enough to send a step back, and the gate then needs all persons again.
func TestOnePersonSendsBack(t *testing.T) {
	t.Parallel()
	flow := approvalFlows(t)["steps"]
	events, _ := flow.Decide(engine.State{}, engine.Command{Start: &engine.Start{}})
	s := applyAll(engine.State{}, events)
	for _, c := range []*engine.Continue{
		{Output: "one"},
		{Person: true, By: personWith("bob", guideway.RoleApprover), Answer: &engine.Answer{OptionID: engine.OptionConfirm}},
		{Person: true, By: personWith("ann", guideway.RoleAdmin), Answer: &engine.Answer{OptionID: engine.OptionRevise, Note: "no"}},
		{Output: "two"},
	} {
		more, refusal := flow.Decide(s, engine.Command{Continue: c})
		if refusal != nil {
			t.Fatal(refusal)
		}
		s = applyAll(s, more)
	}
	if pos := flow.PositionOf(s); pos.Kind != engine.PositionGate || len(pos.Votes) != 0 {
		t.Errorf("the run is at %+v", pos)
	}
}

func applyAll(s engine.State, events []engine.Event) engine.State {
	for _, e := range events {
		s = engine.Apply(s, e)
	}
	return s
}

// The local user is one person, whatever name the commands have.
func TestLocalUserIsOnePerson(t *testing.T) {
	t.Parallel()
	for name, flow := range approvalFlows(t) {
		events, _ := flow.Decide(engine.State{}, engine.Command{Start: &engine.Start{}})
		s := applyAll(engine.State{}, events)
		for _, c := range []struct {
			engine.Continue
			rule string
		}{
			{engine.Continue{Output: "the plan"}, ""},
			{engine.Continue{Person: true, By: guideway.Principal{User: "ada"}, Answer: &engine.Answer{OptionID: "confirm"}}, ""},
			{engine.Continue{Person: true, By: guideway.Principal{User: "bea"}, Answer: &engine.Answer{OptionID: "confirm"}}, engine.RuleApproved},
			{engine.Continue{Person: true, By: personWith("bob", guideway.RoleApprover), Answer: &engine.Answer{OptionID: "confirm"}}, ""},
		} {
			if flow.PositionOf(s).Kind != engine.PositionGate && c.Answer != nil {
				t.Fatalf("%s: the gate opens before the answer of %s", name, c.By.User)
			}
			more, refusal := flow.Decide(s, engine.Command{Continue: &c.Continue})
			if (refusal == nil) != (c.rule == "") || refusal != nil && refusal.Rule != c.rule {
				t.Fatalf("%s: %s answers: %+v, want %q", name, c.By.User, refusal, c.rule)
			}
			s, events = applyAll(s, more), append(events, more...)
		}
		if pos := flow.PositionOf(s); pos.Kind == engine.PositionGate {
			t.Errorf("%s: after two persons the run is at %+v", name, pos)
		}
		if _, err := engine.Recheck(flow, events); err != nil {
			t.Error(err)
		}
	}
}
