package workflow

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/walk"

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog/graph"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// showVariable is a declared variable.
type showVariable struct {
	Name        string              `json:"name"`
	Type        phases.VariableType `json:"type"`
	Description string              `json:"description,omitempty"`
	Default     any                 `json:"default,omitempty"`
	Required    bool                `json:"required,omitempty"`
	// Workflow reports whether only the workflow sets the variable.
	Workflow bool `json:"setByWorkflow,omitempty"`
}

// showPhase is a phase. Its contents are executed in the order of the members.
type showPhase struct {
	Number        int              `json:"number"`
	ID            string           `json:"id"`
	Name          string           `json:"name"`
	Description   string           `json:"description,omitempty"`
	EstimatedTime string           `json:"estimatedTime,omitempty"`
	Optional      bool             `json:"optional,omitempty"`
	Entry         []showAction     `json:"entry,omitempty"`
	Steps         []showPhaseStep  `json:"steps,omitempty"`
	Loops         []showPhaseLoop  `json:"loops,omitempty"`
	Checkpoints   []showCheckpoint `json:"checkpoints,omitempty"`
	Decisions     []showDecision   `json:"decisions,omitempty"`
	Ways          []showTransition `json:"transitions,omitempty"`
	Exit          []showAction     `json:"exit,omitempty"`
	// Ends reports whether the run is complete after the phase.
	Ends bool `json:"ends,omitempty"`
}

// showAction is an action with its text.
type showAction struct {
	Action phases.ActionKind `json:"action"`
	Text   string            `json:"text"`
}

type showPhaseStep struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	Optional bool         `json:"optional,omitempty"`
	Actions  []showAction `json:"actions,omitempty"`
}

type showPhaseLoop struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Type   phases.LoopType `json:"type"`
	Extent string          `json:"extent"`
	Steps  []showPhaseStep `json:"steps,omitempty"`
}

type showCheckpoint struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	Message  string       `json:"message"`
	Optional bool         `json:"optional,omitempty"`
	Person   bool         `json:"person,omitempty"`
	Options  []showOption `json:"options"`
}

type showOption struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Effect is the effect as text, and To the phase that the answer leads to directly.
	Effect string `json:"effect,omitempty"`
	To     string `json:"to,omitempty"`
}

type showDecision struct {
	ID   string           `json:"id"`
	Name string           `json:"name"`
	Ways []showTransition `json:"branches"`
}

// showTransition is a branch or a transition.
type showTransition struct {
	ID    string `json:"id,omitempty"`
	Label string `json:"label,omitempty"`
	To    string `json:"to"`
	// When is the condition as text.
	When string `json:"when"`
}

func showVariables(w *phases.Workflow) []showVariable {
	owned := map[string]bool{}
	for _, name := range w.Owned() {
		root, _, _ := strings.Cut(name, ".")
		owned[root] = true
	}
	var list []showVariable
	for _, v := range w.Variables {
		list = append(list, showVariable{
			Name: v.Name, Type: v.Type, Description: v.Description, Default: v.DefaultValue, Required: v.Required, Workflow: owned[v.Name],
		})
	}
	return list
}

func newShowPhase(w *phases.Workflow, i int) showPhase {
	phase := &w.Phases[i]
	p := showPhase{
		Number: i + 1, ID: phase.ID, Name: phase.Name, Description: phase.Description, EstimatedTime: phase.EstimatedTime,
		Optional: !phase.Required, Entry: showActions(phase.EntryActions), Steps: showPhaseSteps(phase.Steps),
		Exit: showActions(phase.ExitActions), Ends: phase.Terminal(),
	}
	for j := range phase.Loops {
		l := &phase.Loops[j]
		p.Loops = append(p.Loops, showPhaseLoop{ID: l.ID, Name: l.Name, Type: l.Type, Extent: graph.PhaseExtent(l), Steps: showPhaseSteps(l.Steps)})
	}
	for _, c := range phase.Checkpoints {
		k := showCheckpoint{ID: c.ID, Name: c.Name, Message: c.Message, Optional: !c.Required, Person: c.Person}
		for j := range c.Options {
			o := &c.Options[j]
			k.Options = append(k.Options, showOption{ID: o.ID, Label: o.Label, Effect: graph.EffectWords(&o.Effect), To: o.Effect.TransitionTo})
		}
		p.Checkpoints = append(p.Checkpoints, k)
	}
	for _, d := range phase.Decisions {
		s := showDecision{ID: d.ID, Name: d.Name}
		for _, b := range d.Branches {
			s.Ways = append(s.Ways, showTransition{ID: b.ID, Label: b.Label, To: b.TransitionTo, When: transitionText(b.Condition, b.IsDefault, "by an answer, if no condition decides")})
		}
		p.Decisions = append(p.Decisions, s)
	}
	for _, t := range phase.Transitions {
		p.Ways = append(p.Ways, showTransition{To: t.To, When: transitionText(t.Condition, t.IsDefault, unconditional)})
	}
	return p
}

// unconditional is the text of a transition without a condition.
const unconditional = "always"

// transitionText returns the condition of a transition as text; bare is the text for a
// transition with neither a condition nor a default.
func transitionText(c *expr.Expr, isDefault bool, bare string) string {
	switch {
	case c != nil && isDefault:
		return "if " + c.String() + ", or by default"
	case c != nil:
		return "if " + c.String()
	case isDefault:
		return "by default"
	default:
		return bare
	}
}

func showPhaseSteps(steps []phases.Step) []showPhaseStep {
	var list []showPhaseStep
	for i := range steps {
		list = append(list, showPhaseStep{
			ID: steps[i].ID, Name: steps[i].Name, Optional: !steps[i].Required, Actions: showActions(steps[i].Actions),
		})
	}
	return list
}

func showActions(actions []phases.Action) []showAction {
	var list []showAction
	for i := range actions {
		a := &actions[i]
		text := a.Target
		if a.HasValue {
			text = strings.TrimSpace(text + " = " + walk.FormatValue(a.Value))
		}
		if a.Message != "" {
			text = strings.TrimPrefix(text+": "+a.Message, ": ")
		}
		list = append(list, showAction{Action: a.Action, Text: text})
	}
	return list
}

// writePhases prints the phases of a definition.
func (v *showText) writePhases(w *phases.Workflow) {
	s := v.Styles
	v.PrintList("Rules for the whole run", w.Rules)
	if vars := showVariables(w); len(vars) > 0 {
		fmt.Fprintf(v.Out, "\n%s\n", s.Bold("Variables"))
		for _, one := range vars {
			v.writeVariable(one)
		}
	}
	fmt.Fprintf(v.Out, "\n%s\n", s.Bold("Phases"))
	if w.InitialPhase != w.Phases[0].ID {
		fmt.Fprintf(v.Out, "  starts with %s\n\n", w.InitialPhase)
	}
	for i := range w.Phases {
		if i > 0 {
			fmt.Fprintln(v.Out)
		}
		v.writePhase(newShowPhase(w, i))
	}
}

func (v *showText) writeVariable(one showVariable) {
	text := fmt.Sprintf("%s (%s", one.Name, one.Type)
	if one.Default != nil {
		text += ", initially " + walk.FormatValue(one.Default)
	}
	if one.Required {
		text += ", required at start"
	}
	if one.Workflow {
		text += ", set by the workflow"
	}
	text += ")"
	if one.Description != "" {
		text += " " + one.Description
	}
	v.PrintText("  ", "- "+app.OneLine(text))
}

func (v *showText) writePhase(p showPhase) {
	s := v.Styles
	about := p.EstimatedTime
	if p.Optional {
		about = strings.TrimPrefix(about+", optional", ", ")
	}
	fmt.Fprintf(v.Out, "  %d. %s %s\n", p.Number, s.Bold(app.OneLine(p.Name)), s.Faint(strings.TrimSpace("("+p.ID+") "+about)))
	below := "     "
	v.writeActions(below, "enter", p.Entry)
	n := 0
	number := func() string {
		n++
		return fmt.Sprintf("%d.%d", p.Number, n)
	}
	for _, step := range p.Steps {
		v.writePhaseStep(below, number(), step)
	}
	for _, l := range p.Loops {
		at := number()
		v.writeHeading(below, at, l.Name, l.ID)
		inner := below + strings.Repeat(" ", len(at)+2)
		v.writeLoopStart(inner, l.Extent)
		for i, step := range l.Steps {
			v.writePhaseStep(inner+"│ ", fmt.Sprintf("%s.%d", at, i+1), step)
		}
		fmt.Fprintf(v.Out, "%s╰\n", inner)
	}
	for _, c := range p.Checkpoints {
		v.writeCheckpoint(below, number(), c)
	}
	for _, d := range p.Decisions {
		at := number()
		v.writeHeading(below, at, d.Name, d.ID)
		for _, w := range d.Ways {
			v.writeField(below+strings.Repeat(" ", len(at)+2), "way", fmt.Sprintf("to %s %s (%s: %s)", w.To, w.When, w.ID, w.Label))
		}
	}
	for _, w := range p.Ways {
		v.writeField(below, "way", strings.TrimSuffix(fmt.Sprintf("to %s %s", w.To, w.When), " "+unconditional))
	}
	v.writeActions(below, "leave", p.Exit)
	if p.Ends {
		v.writeField(below, "end", "the run is complete")
	}
}

func (v *showText) writeHeading(indent, number, name, id string) {
	fmt.Fprintf(v.Out, "%s%s. %s %s\n", indent, number, v.Styles.Bold(app.OneLine(name)), v.Styles.Faint("("+id+")"))
}

func (v *showText) writePhaseStep(indent, number string, step showPhaseStep) {
	v.writeHeading(indent, number, step.Name, step.ID)
	below := indent + strings.Repeat(" ", len(number)+2)
	if step.Optional {
		v.writeField(below, "may", "be skipped with a reason")
	}
	v.writeActions(below, "does", step.Actions)
}

func (v *showText) writeCheckpoint(indent, number string, c showCheckpoint) {
	v.writeHeading(indent, number, c.Name, c.ID)
	below := indent + strings.Repeat(" ", len(number)+2)
	v.writeField(below, "gate", c.Message)
	if c.Person {
		v.writeField(below, "needs", "human approval")
	}
	for _, o := range c.Options {
		text := o.ID + ": " + o.Label
		if o.Effect != "" {
			text += "; " + o.Effect
		}
		if o.To != "" {
			text += "; to " + o.To
		}
		v.writeField(below, "  or", text)
	}
	if c.Optional {
		v.writeField(below, "may", "be declined")
	}
}

func (v *showText) writeActions(indent, word string, actions []showAction) {
	for _, a := range actions {
		v.writeField(indent, word, string(a.Action)+" "+a.Text)
	}
}
