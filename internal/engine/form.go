package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// Field is an argument of the next call that only the caller can fill in. A suggested call
// never has a value for it: a copied suggestion must not pass a check.
type Field struct {
	// Name is the argument, or the path of a member, such as "answer.optionId".
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Type is the JSON type, if only one is accepted and it is not a string.
	Type string `json:"type,omitempty"`
	// Choices are the accepted values, if no other value is accepted.
	Choices []any `json:"choices,omitempty"`
	// Optional is set if the call is complete without the field.
	Optional bool `json:"optional,omitempty"`
}

// The descriptions of the fields that do not depend on the definition. A caller that sends
// one of them back has not filled in the field.
const (
	describeOutput   = "the step's full result"
	describeNotes    = "the result of each check"
	describeOption   = "the user's choice"
	describeBranch   = "the option that applies"
	describeNote     = "the user's words"
	describeDecline  = "true if the user declines, instead of an option"
	describeVariable = "the actual value"

	// DescribeSame is the description of an argument that a suggested call leaves out because
	// it is long.
	DescribeSame = "the same value as in the refused call, which stored nothing"
	// DescribeOutputArgument, DescribeNotesArgument and DescribeContextArgument describe the
	// arguments of workflow_continue in its schema.
	DescribeOutputArgument  = "The step's full output"
	DescribeNotesArgument   = "What was done, decided, left open"
	DescribeContextArgument = "Variables to set"
)

// Fields returns the arguments that the caller must fill in for the next call at a
// position, and the optional ones, which have Optional set. A position that an agent cannot
// continue has no fields.
func (pos *Position) Fields() []Field {
	if pos.DeadEnd {
		return nil
	}
	switch pos.Kind {
	case PositionStep:
		return pos.stepFields()
	case PositionGate:
		if pos.Person {
			return nil
		}
		return pos.answerFields()
	case PositionContext:
		return needFields(pos.Needs)
	default:
		return nil
	}
}

func (pos *Position) stepFields() []Field {
	fields := []Field{{Name: "output", Description: describeOutput}}
	if pos.NeedsNotes {
		fields = append(fields, Field{Name: "notes", Description: describeNotes})
	}
	return append(fields, needFields(pos.Sets)...)
}

func (pos *Position) answerFields() []Field {
	option := Field{Name: "answer.optionId", Description: describeOption}
	if pos.Branches {
		option.Description = describeBranch
	}
	for _, o := range pos.Options {
		option.Choices = append(option.Choices, o.ID)
	}
	fields := []Field{option}
	if pos.Declinable {
		fields = append(fields, Field{Name: "answer.decline", Type: "boolean", Description: describeDecline, Optional: true})
	}
	return append(fields, Field{Name: "answer.note", Description: describeNote, Optional: true})
}

func needFields(needs []Need) []Field {
	fields := make([]Field, len(needs))
	for i, n := range needs {
		about := n.Description
		if about == "" {
			about = describeVariable
			if len(n.Tests) > 0 {
				about += "; the workflow tests: " + strings.Join(n.Tests, "; ")
			}
		}
		fields[i] = Field{Name: "context." + n.Variable, Description: about, Type: n.Type, Choices: n.Allowed}
		if len(n.Allowed) > 0 && !n.Exhaustive {
			fields[i].Choices, fields[i].Description = nil, about+"; such as "+JoinValues(n.Allowed)+", or a different value"
		}
	}
	return fields
}

// JoinValues lists values, such as the choices of a field, for a sentence.
func JoinValues(values []any) string {
	texts := lists.Map(values, describeValue)
	return strings.Join(texts, ", ")
}

// Admit implements Flow.
func (p *Program) Admit(s State, context map[string]any) *Refusal { return p.checkContext(s, context) }

// Admit implements Flow.
func (p *PhaseProgram) Admit(s State, context map[string]any) *Refusal {
	return p.checkContext(s, context)
}

// readSet collects the variables that a definition uses.
type readSet map[string]bool

func (r readSet) addCondition(e *expr.Expr) {
	if e == nil {
		return
	}
	for _, name := range e.Variables() {
		r[expr.Root(name)] = true
	}
}

func (r readSet) addText(texts ...string) {
	for _, text := range texts {
		for _, part := range template.Parse(text) {
			if part.Expr && len(part.Path) > 0 {
				r[part.Path[0]] = true
			}
		}
	}
}

func (r readSet) sortedNames() []string {
	delete(r, "")
	return slices.Sorted(maps.Keys(r))
}

// Hints implements Flow.
func (p *Program) Hints() compress.Hints {
	r := readSet{}
	for i := range p.Workflow.Steps {
		r.addStep(&p.Workflow.Steps[i])
	}
	return compress.Hints{Rules: p.Workflow.ContextRules, Variables: r.sortedNames()}
}

func (r readSet) addStep(step *steps.Step) {
	r.addCondition(step.RunCondition)
	r.addCondition(step.Confirm)
	r.addCriteria(step.Criteria)
	r.addText(step.Title, step.Prompt, step.AgentRole)
	r.addText(step.Guidance...)
	l := step.Loop
	if l == nil {
		return
	}
	r.addCondition(l.Condition)
	r[expr.Root(boundsVar(l))] = true
	for _, name := range l.Variables() {
		r[name] = true
	}
	for i := range l.Body {
		r.addStep(&l.Body[i])
	}
}

// addCriteria adds the variables of the conditions and checks of criteria.
func (r readSet) addCriteria(c *criteria.Criterion) {
	if c == nil {
		return
	}
	r.addCondition(c.Condition)
	if c.CheckRule != nil {
		for _, text := range c.CheckRule.Texts() {
			r.addText(text.Text)
		}
	}
	for _, part := range c.Of {
		r.addCriteria(part)
	}
}

// Hints implements Flow.
func (p *PhaseProgram) Hints() compress.Hints {
	r := readSet{}
	for i := range p.Workflow.Phases {
		r.addPhase(&p.Workflow.Phases[i])
	}
	for _, name := range p.owned {
		r[name] = true
	}
	for _, v := range p.Workflow.Variables {
		if v.Required {
			r[v.Name] = true
		}
	}
	return compress.Hints{Rules: p.Workflow.ContextRules, Variables: r.sortedNames()}
}

func (r readSet) addPhase(phase *phases.Phase) {
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			r.addCondition(b.Condition)
		}
	}
	for _, t := range phase.Transitions {
		r.addCondition(t.Condition)
	}
	for i := range phase.Loops {
		l := &phase.Loops[i]
		r.addCondition(l.Condition)
		r.addCondition(l.BreakCondition)
		r[expr.Root(l.Over)] = true
		r[l.Variable] = true
		for j := range l.Steps {
			r.addCriteria(l.Steps[j].Criteria)
		}
	}
	actions := func(list []phases.Action) {
		for i := range list {
			if list[i].Action == phases.ActionValidate {
				r[expr.Root(list[i].Target)] = true
			}
		}
	}
	actions(phase.EntryActions)
	actions(phase.ExitActions)
	for i := range phase.Steps {
		actions(phase.Steps[i].Actions)
		r.addCriteria(phase.Steps[i].Criteria)
	}
}
