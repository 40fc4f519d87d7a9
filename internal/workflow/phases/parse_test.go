package phases_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// parseText parses a text as a document of a kind.
func parseText(t *testing.T, kind phases.Kind, text string) []guideway.Diagnostic {
	t.Helper()
	root, found := doc.Parse("x.json", []byte(text), doc.Limits{})
	if len(found) > 0 {
		t.Fatalf("%s: %v", text, found)
	}
	return parseKind(kind, root)
}

// parseKind parses a tree as a document of a kind.
func parseKind(kind phases.Kind, root *doc.Node) (found []guideway.Diagnostic) {
	switch kind {
	case phases.KindWorkflow:
		_, found = phases.Parse("x.json", root)
	case phases.KindCondition:
		_, found = phases.ParseCondition("x.json", root)
	case phases.KindState:
		_, found = phases.ParseState("x.json", root)
	case phases.KindSkill:
		_, found = phases.ParseSkill("x.json", root)
	case phases.KindActivity:
		_, found = phases.ParseActivity("x.json", root)
	}
	return found
}

// workflowText returns a minimal workflow with additional members in its root and its
// phase.
func workflowText(root, phase string) string {
	return `{"id":"w","version":"1.0.0","title":"T","initialPhase":"p1"` + root + `,"phases":[{"id":"p1","name":"P1"` + phase + `}]}`
}

// loopText returns a minimal workflow with a loop.
func loopText(members string) string {
	return workflowText("", `,"loops":[{"id":"l","name":"L",`+members+`}]`)
}

// transitionText returns a minimal workflow with a transition that has a condition.
func transitionText(condition string) string {
	return workflowText("", `,"transitions":[{"to":"p1","condition":`+condition+`}]`)
}

// stateText returns a minimal state with additional members.
func stateText(more string) string {
	return `{"workflowId":"w","workflowVersion":"1","startedAt":"2026-01-22T10:00:00Z","updatedAt":"2026-01-22T10:00:00Z","currentPhase":1` + more + `}`
}

// TestConformance tests the cases of the dialect's original implementation. Where its two
// validators differ or are incomplete, the expected result follows its documentation.
func TestConformance(t *testing.T) {
	t.Parallel()
	const (
		comparison = `{"type":"simple","variable":"x","operator":"exists"}`
		activity   = `{"id":"a","version":"1.0.0","problem":"p","recognition":["r"],"skills":{"primary":"s"},"outcome":["o"],"flow":["f"]%s}`
		question   = `,"checkpoints":[{"id":"c","name":"C","message":"M","options":[{"id":"o","label":"O"%s}]%s}]`
	)
	for _, c := range []struct {
		row, text string
		kind      phases.Kind
		// want are the pointers and codes of the diagnostics; an empty list means a valid
		// document.
		want []string
	}{
		{"1", workflowText("", ""), "", nil},
		{"2", strings.Replace(workflowText("", ""), `"id":"w",`, "", 1), "", []string{" field-missing"}},
		{"3", strings.Replace(workflowText("", ""), `"initialPhase":"p1",`, "", 1), "", []string{" field-missing"}},
		{"4", `{"id":"w","version":"1.0.0","title":"T","initialPhase":"p1","phases":[]}`, "", []string{"/phases list-empty"}},
		{"5 v1", strings.Replace(workflowText("", ""), "1.0.0", "v1", 1), "", []string{"/version version-format"}},
		{"5 1.0", strings.Replace(workflowText("", ""), "1.0.0", "1.0", 1), "", []string{"/version version-format"}},
		{"5 rc", strings.Replace(workflowText("", ""), "1.0.0", "1.0.0-rc1", 1), "", []string{"/version version-format"}},
		{"6", strings.Replace(workflowText("", ""), `"1.0.0"`, "1.0", 1), "", []string{"/version field-type"}},
		{"7", workflowText(`,"extra":1`, ""), "", []string{"/extra field-unknown"}},
		{"8", workflowText("", fmt.Sprintf(question, `,"effect":{"goto":"x"}`, "")), "", []string{"/phases/0/checkpoints/0/options/0/effect/goto field-unknown"}},
		{"9", strings.Replace(workflowText("", ""), `"initialPhase":"p1"`, `"initialPhase":"nope"`, 1), "", []string{"/initialPhase phase-unknown"}},
		{"10", workflowText("", `,"transitions":[{"to":"nope"}]`), "", []string{"/phases/0/transitions/0/to phase-unknown"}},
		{"10 branch", workflowText("", `,"decisions":[{"id":"d","name":"D","branches":[{"id":"a","label":"A","transitionTo":"nope"},{"id":"b","label":"B","transitionTo":"p1"}]}]`), "", []string{"/phases/0/decisions/0/branches/0/transitionTo phase-unknown"}},
		{"11", workflowText("", fmt.Sprintf(question, `,"effect":{"transitionTo":"nope"}`, "")), "", []string{"/phases/0/checkpoints/0/options/0/effect/transitionTo phase-unknown"}},
		{"11 skip", workflowText("", fmt.Sprintf(question, `,"effect":{"skipPhases":["nope"]}`, "")), "", []string{"/phases/0/checkpoints/0/options/0/effect/skipPhases/0 phase-unknown"}},
		{"12", `{"id":"w","version":"1.0.0","title":"T","initialPhase":"p1","phases":[{"id":"p1","name":"A"},{"id":"p1","name":"B"}]}`, "", []string{"/phases/1/id id-duplicate"}},
		{"14", workflowText("", `,"checkpoints":[{"id":"c","name":"C","message":"M","options":[]}]`), "", []string{"/phases/0/checkpoints/0/options list-empty"}},
		{"15", workflowText("", `,"checkpoints":[{"id":"c","name":"C","options":[{"id":"o","label":"O"}]}]`), "", []string{"/phases/0/checkpoints/0 field-missing"}},
		{"16", workflowText("", fmt.Sprintf(question, "", `,"blocking":false`)), "", []string{"/phases/0/checkpoints/0/blocking checkpoint-blocking"}},
		{"17", workflowText("", `,"decisions":[{"id":"d","name":"D","branches":[{"id":"a","label":"A","transitionTo":"p1"}]}]`), "", []string{"/phases/0/decisions/0/branches decision-branches"}},
		{"18", workflowText("", `,"decisions":[{"id":"d","name":"D","branches":[{"id":"a","label":"A"},{"id":"b","label":"B","transitionTo":"p1"}]}]`), "", []string{"/phases/0/decisions/0/branches/0 field-missing"}},
		{"19", loopText(`"type":"until"`), "", []string{"/phases/0/loops/0/type loop-type"}},
		{"20 zero", loopText(`"type":"forEach","over":"x","maxIterations":0`), "", []string{"/phases/0/loops/0/maxIterations loop-max-iterations"}},
		{"20 fraction", loopText(`"type":"forEach","over":"x","maxIterations":1.5`), "", []string{"/phases/0/loops/0/maxIterations loop-max-iterations"}},
		{"21 forEach", loopText(`"type":"forEach"`), "", []string{"/phases/0/loops/0 loop-over-missing"}},
		{"21 while", loopText(`"type":"while"`), "", []string{"/phases/0/loops/0 loop-condition-missing"}},
		{"22 range", workflowText("", `,"estimatedTime":"10-15m"`), "", nil},
		{"22 bare", workflowText("", `,"estimatedTime":"90"`), "", nil},
		{"22 word", workflowText("", `,"estimatedTime":"1 hour"`), "", nil},
		{"23 as the schema has it", workflowText("", `,"estimatedTime":"2H"`), "", []string{"/phases/0/estimatedTime text-pattern"}},
		{"24 weeks", workflowText("", `,"estimatedTime":"2 weeks"`), "", []string{"/phases/0/estimatedTime text-pattern"}},
		{"24 ranges", workflowText("", `,"estimatedTime":"1-2-3h"`), "", []string{"/phases/0/estimatedTime text-pattern"}},
		{"25", workflowText("", `,"entryActions":[{"action":"message"}]`), "", []string{"/phases/0/entryActions/0/action value-unknown"}},
		{"26", workflowText(`,"variables":[{"name":"v","type":"integer"}]`, ""), "", []string{"/variables/0/type value-unknown"}},
		{"27 default", workflowText(`,"variables":[{"name":"v","type":"number","defaultValue":"abc"}]`, ""), "", []string{"/variables/0/defaultValue variable-type"}},
		{"27 twice", workflowText(`,"variables":[{"name":"v","type":"number"},{"name":"v","type":"string"}]`, ""), "", []string{"/variables/1/name variable-duplicate"}},
		{"28 guide", workflowText("", `,"guide":{"section":"S"}`), "", []string{"/phases/0/guide field-missing"}},
		{"28 step", workflowText("", `,"steps":[{"id":"s"}]`), "", []string{"/phases/0/steps/0 field-missing"}},
		{"29 one", transitionText(`{"type":"and","conditions":[` + comparison + `]}`), "", []string{"/phases/0/transitions/0/condition/conditions condition-operands"}},
		{"29 none", transitionText(`{"type":"or","conditions":[]}`), "", []string{"/phases/0/transitions/0/condition/conditions condition-operands"}},
		{"30", transitionText(`{"type":"and","conditions":[` + comparison + `,{"type":"bogus"}]}`), "", []string{"/phases/0/transitions/0/condition/conditions/1/type condition-type"}},
		{"30 alone", `{"type":"and","conditions":[` + comparison + `,{"type":"bogus"}]}`, phases.KindCondition, []string{"/conditions/1/type condition-type"}},
		{"31 operator", `{"type":"simple","variable":"x","operator":"contains","value":1}`, phases.KindCondition, []string{"/operator value-unknown"}},
		{"31 list", `{"type":"simple","variable":"x","operator":"==","value":[1]}`, phases.KindCondition, []string{"/value field-type"}},
		{"31 object", `{"type":"simple","variable":"x","operator":"==","value":{}}`, phases.KindCondition, []string{"/value field-type"}},
		{"32", `{"type":"simple","variable":"x","operator":"=="}`, phases.KindCondition, []string{" condition-value"}},
		{"33 zero", strings.Replace(stateText(""), `"currentPhase":1`, `"currentPhase":0`, 1), phases.KindState, []string{"/currentPhase number-bounds"}},
		{"33 text", strings.Replace(stateText(""), `"currentPhase":1`, `"currentPhase":"phase-1"`, 1), phases.KindState, []string{"/currentPhase field-type"}},
		{"33 fraction", strings.Replace(stateText(""), `"currentPhase":1`, `"currentPhase":1.5`, 1), phases.KindState, []string{"/currentPhase number-bounds"}},
		{"34", strings.Replace(stateText(""), "2026-01-22T10:00:00Z", "2026-01-22", 1), phases.KindState, []string{"/startedAt time-format"}},
		{"35", strings.Replace(stateText(""), "2026-01-22T10:00:00Z", "2026-01-22T10:00:00+01:00", 1), phases.KindState, nil},
		{"36 status", stateText(`,"status":"done"`), phases.KindState, []string{"/status value-unknown"}},
		{"36 type", stateText(`,"history":[{"timestamp":"2026-01-22T10:00:00Z","type":"phase_started"}]`), phases.KindState, []string{"/history/0/type value-unknown"}},
		{"37", stateText(`,"completedSteps":{"phase-1":[1]}`), phases.KindState, []string{"/completedSteps/phase-1 state-key"}},
		{"38 response", stateText(`,"checkpointResponses":{"1-1":{"optionId":"o"}}`), phases.KindState, []string{"/checkpointResponses/1-1 field-missing"}},
		{"38 outcome", stateText(`,"decisionOutcomes":{"1-1":{"branchId":"b","decidedAt":"2026-01-22T10:00:00Z"}}`), phases.KindState, []string{"/decisionOutcomes/1-1 field-missing"}},
		{"39 recognition", strings.Replace(fmt.Sprintf(activity, ""), `["r"]`, `[]`, 1), phases.KindActivity, []string{"/recognition list-empty"}},
		{"39 primary", strings.Replace(fmt.Sprintf(activity, ""), `{"primary":"s"}`, `{}`, 1), phases.KindActivity, []string{"/skills field-missing"}},
		{"39 version", strings.Replace(fmt.Sprintf(activity, ""), `1.0.0`, `2.1`, 1), phases.KindActivity, []string{"/version version-format"}},
		{"39 flow", strings.Replace(fmt.Sprintf(activity, ""), `,"flow":["f"]`, ``, 1), phases.KindActivity, []string{" field-missing"}},
		{"40", fmt.Sprintf(activity, `,"mandatory_guide":{"workflow_id":"w","index":"1"}`), phases.KindActivity, nil},
		{"41 capability", `{"id":"s","version":"1.0.0"}`, phases.KindSkill, []string{" field-missing"}},
		{"41 params", `{"id":"s","version":"1.0.0","capability":"c","tools":{"t":{"params":["a"]}}}`, phases.KindSkill, []string{"/tools/t/params field-type"}},
		{"41 start", `{"id":"s","version":"1.0.0","capability":"c","execution_pattern":{"start":"x"}}`, phases.KindSkill, []string{"/execution_pattern/start field-type"}},
	} {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			kind := c.kind
			if kind == "" {
				kind = phases.KindWorkflow
			}
			var got []string
			for _, f := range parseText(t, kind, c.text) {
				got = append(got, f.Pointer+" "+f.Code)
				if f.Severity != guideway.SeverityError || f.Message == "" || f.Fix == "" {
					t.Errorf("incomplete: %+v", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

// TestOriginalExamples parses the complete examples of the dialect's specification, if it
// is available. Only the first example is invalid: its list of phases is empty.
func TestOriginalExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../shared/seeds/002_1ad3c5cb6ce7647a.txt")
	if err != nil {
		t.Skip("the dialect's specification is not available")
	}
	seen := map[phases.Kind]int{}
	for i, block := range strings.Split(string(text), "```json\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		root, found := doc.Parse("x.json", []byte(block), doc.Limits{})
		if len(found) > 0 {
			continue
		}
		kind := phases.Guess(root)
		if kind == "" || kind == phases.KindWorkflow && root.Get("id") == nil || kind == phases.KindActivity && root.Get("id") == nil ||
			kind == phases.KindSkill && root.Get("id") == nil {
			continue
		}
		seen[kind]++
		found = parseKind(kind, root)
		if i == 0 {
			if len(found) != 1 || found[0].Code != shape.CodeEmptyList {
				t.Errorf("the diagnostics of the first example are %v", found)
			}
			continue
		}
		if len(found) > 0 {
			t.Errorf("example %d (%s): %v", i+1, kind, found)
		}
	}
	want := map[phases.Kind]int{phases.KindWorkflow: 2, phases.KindCondition: 5, phases.KindState: 1, phases.KindActivity: 2, phases.KindSkill: 2}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
}

// TestWorkflow parses a workflow with every construct.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	w, found := phases.Parse("full.json", shapetest.Load(t, "../testdata/phases-full.json"))
	if len(found) > 0 {
		t.Fatal(found)
	}
	if w.ID != "full-phases" || w.Version != "1.2.3" || w.Title != "Everything" || w.Author != "Guideway" || len(w.Tags) != 1 || len(w.Rules) != 1 ||
		w.InitialPhase != "prepare" || w.Index("done") != 3 || w.Index("nowhere") != -1 || w.Canonical == "" {
		t.Errorf("got %+v", w)
	}
	if diff := cmp.Diff([]string{"approved", "round", "task", "tries"}, w.Owned()); diff != "" {
		t.Errorf("owned (-want +got):\n%s", diff)
	}
	if v := w.Variable("plan"); v == nil || v.Type != phases.TypeObject || !v.HasDefault || v.DefaultValue != nil || w.Variable("nothing") != nil {
		t.Errorf("the variable plan is %+v", v)
	}
	p := w.Phases[0]
	p.Source = ""
	for i := range p.Checkpoints {
		p.Checkpoints[i].Source = ""
	}
	simple := func(name string, op expr.Op, value any) *expr.Expr {
		return &expr.Expr{Op: op, Mode: expr.Strict, Var: name, Value: value}
	}
	join := func(op expr.Op, of ...*expr.Expr) *expr.Expr {
		return &expr.Expr{Op: op, Mode: expr.Strict, Of: of}
	}
	want := phases.Phase{
		ID: "prepare", Name: "Prepare", Description: "Say what is to be done.", Required: true, EstimatedTime: "10-15m",
		Guide: &phases.Guide{Path: "01-start.md", Section: "Plan", Title: "How to begin"},
		EntryActions: []phases.Action{
			{Action: phases.ActionLog, Message: "begun"},
			{Action: phases.ActionEmit, Target: "begun", Value: map[string]any{"n": []any{1.0, nil, true}}, HasValue: true},
			{Action: phases.ActionValidate, Target: "owner", Message: "Name an owner."},
		},
		ExitActions: []phases.Action{{Action: phases.ActionSet, Target: "tries", Value: 1.0, HasValue: true}},
		Steps: []phases.Step{
			{
				ID: "write", Name: "Write the plan", Description: "Put it into `plan`.", Required: true, Guide: &phases.Guide{Path: "https://example.com/guide"},
				Actions: []phases.Action{{Action: phases.ActionValidate, Message: "Read it once more."}},
			},
			{ID: "polish", Name: "Polish it", Tools: &toolpolicy.Policy{
				Allow: []toolpolicy.Rule{{Tool: "Edit"}, {Tool: "github__*"}},
				Deny:  []toolpolicy.Rule{{Tool: "Bash", Arguments: map[string]string{"command": "git push*", "/env/0": "*"}}},
				Hold:  []toolpolicy.Rule{{Tool: "*", Annotations: map[string]bool{"destructive": true, "readOnly": false}}},
			}},
		},
		Loops: []phases.Loop{
			{
				ID: "tasks", Name: "Task by task", Type: phases.LoopForEach, Variable: "task", Over: "plan.tasks", MaxIterations: 20,
				BreakCondition: simple("task.last", expr.Exists, nil), Tools: &toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "Bash"}}}, Steps: []phases.Step{{ID: "do", Name: "Do the task", Required: true}},
			},
			{
				ID: "retry", Name: "Until it works", Type: phases.LoopWhile, MaxIterations: phases.DefaultMaxIterations,
				Condition: simple("score", expr.Lt, 3.0), Steps: []phases.Step{{ID: "again", Name: "Try again", Required: true}},
			},
			{
				ID: "check", Name: "Check", Type: phases.LoopDoWhile, Variable: "round", MaxIterations: phases.DefaultMaxIterations,
				Condition: join(expr.Or, simple("labels.length", expr.Gt, 3.0), join(expr.Not, simple("labels.0", expr.NotExists, nil))),
				Steps:     []phases.Step{{ID: "look", Name: "Look", Required: true}},
			},
		},
		Checkpoints: []phases.Checkpoint{
			{
				ID: "agree", Name: "Agreement", Message: "Shall we?", Prerequisite: "Show the plan.", Guide: &phases.Guide{Path: "01-start.md"},
				Required: true, Blocking: true, Person: true,
				Options: []phases.Option{
					{ID: "yes", Label: "Yes", Description: "Go on.", Effect: phases.Effect{
						SetVariable: []phases.Assignment{{Name: "approved", Value: true}, {Name: "tries", Value: 2.0}}, SkipPhases: []string{"rest"},
					}},
					{ID: "no", Label: "No", Effect: phases.Effect{TransitionTo: "rejected"}},
					{ID: "later", Label: "Later"},
				},
			},
			{
				ID: "name", Name: "Name", Message: "Which name?", Blocking: true,
				Options: []phases.Option{{ID: "any", Label: "Any", Effect: phases.Effect{SetVariable: []phases.Assignment{{Name: "approved", Value: false}}}}},
			},
		},
		Decisions: []phases.Decision{{
			ID: "how", Name: "How", Description: "Which way.", Guide: &phases.Guide{Path: "01-start.md"},
			Branches: []phases.Branch{
				{ID: "well", Label: "Well", TransitionTo: "rest", Condition: join(expr.And, simple("approved", expr.Equals, true), simple("owner", expr.NotEquals, "nobody"))},
				{ID: "so", Label: "So so", TransitionTo: "rejected", Condition: simple("score", expr.Gte, 2.0)},
			},
		}},
		Transitions: []phases.Transition{
			{To: "rest", Condition: simple("tries", expr.Equals, 2.0)},
			{To: "rejected", Condition: simple("score", expr.Lte, 0.0), IsDefault: true},
		},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSource checks the source texts of phases and checkpoints.
func TestSource(t *testing.T) {
	t.Parallel()
	root, _ := doc.Parse("x.json", []byte(workflowText("", `, "checkpoints": [ {"message": "M", "id": "c", "name": "C", "options": [{"label": "O", "id": "o"}]} ]`)), doc.Limits{})
	w, found := phases.Parse("x.json", root)
	if w == nil {
		t.Fatal(found)
	}
	const checkpoint = `{"id":"c","message":"M","name":"C","options":[{"id":"o","label":"O"}]}`
	if got := w.Phases[0].Checkpoints[0].Source; got != checkpoint {
		t.Errorf("the source of the checkpoint is %s", got)
	}
	if got := w.Phases[0].Source; got != `{"checkpoints":[`+checkpoint+`],"id":"p1","name":"P1"}` {
		t.Errorf("the source of the phase is %s", got)
	}
}

func TestNothingIsNoDocument(t *testing.T) {
	t.Parallel()
	for _, kind := range phases.Kinds() {
		for _, root := range []*doc.Node{nil, {Kind: doc.Array}, {Kind: doc.Null}} {
			if found := parseKind(kind, root); len(found) != 1 || found[0].Code != shape.CodeObject {
				t.Errorf("%s: got %v", kind, found)
			}
		}
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  phases.VariableType
		value any
	}{
		{phases.TypeString, "x"}, {phases.TypeNumber, 1.5}, {phases.TypeBoolean, false}, {phases.TypeArray, []any{}}, {phases.TypeObject, map[string]any{}}, {"", nil},
	} {
		for _, kind := range []phases.VariableType{phases.TypeString, phases.TypeNumber, phases.TypeBoolean, phases.TypeArray, phases.TypeObject} {
			if got := kind.Fits(c.value); got != (kind == c.kind) {
				t.Errorf("%v fits %s: %v", c.value, kind, got)
			}
		}
	}
}
