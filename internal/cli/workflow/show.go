package workflow

import hookscmd "github.com/guideway-dev/guideway/internal/cli/hooks"

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/graph"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/spf13/cobra"
)

// ShowOptions is the command line of guideway show.
type ShowOptions struct {
	app *app.App
	// Name is the id or the file of a definition.
	Name string
	// Graph is the format of a drawing; "" prints text.
	Graph string
	JSON  bool
}

func NewShowCmd(a *app.App, run func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{app: a}
	cmd := &cobra.Command{
		Use:               "show {ID|FILE}",
		Args:              app.ExactArgs(1, "one workflow, by id or file", "guideway show coding-task"),
		ValidArgsFunction: a.CompleteDefinitions(),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	app.AddGraphFlag(cmd, &o.Graph, "draw the workflow as a flowchart in this `format`: "+app.GraphMermaid)
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func RunShow(ctx context.Context, o *ShowOptions) error {
	if isHook, err := o.showHook(ctx); isHook || err != nil {
		return err
	}
	if isMachine, err := o.showMachine(ctx); isMachine || err != nil {
		return err
	}
	def, err := o.app.FindDefinition(ctx, o.Name)
	if err != nil {
		return err
	}
	out := o.app.Host.Out
	var drawing string
	if o.Graph != "" {
		drawing = graph.Of(def.Definition).Mermaid()
	}
	switch {
	case o.JSON:
		answer := newShowAnswer(def)
		if drawing != "" {
			answer.Graph = &app.GraphOutput{Format: o.Graph, Text: drawing}
		}
		return app.WriteJSON(out, answer)
	case drawing != "":
		fmt.Fprint(out, drawing)
	default:
		s := &showText{app.NewTextPrinter(o.app.Host, out)}
		s.writeWorkflow(def)
	}
	return nil
}

// showAnswer is the answer of guideway show --json.
type showAnswer struct {
	ID                   string               `json:"id"`
	Name                 string               `json:"name"`
	Description          string               `json:"description"`
	Version              string               `json:"version"`
	Dialect              guideway.Dialect     `json:"dialect"`
	Hash                 string               `json:"hash"`
	Source               string               `json:"source"`
	Path                 string               `json:"path"`
	Revision             string               `json:"revision,omitempty"`
	Trust                catalog.Level        `json:"trust,omitempty"`
	Stale                bool                 `json:"stale,omitempty"`
	Overrides            []catalog.Overridden `json:"overrides,omitempty"`
	Preconditions        []string             `json:"preconditions,omitempty"`
	ClarificationPrompts []string             `json:"clarificationPrompts,omitempty"`
	MetaGuidance         []string             `json:"metaGuidance,omitempty"`
	Functions            []steps.Function     `json:"functionDefinitions,omitempty"`
	Steps                []showStep           `json:"steps,omitempty"`
	Rules                []string             `json:"rules,omitempty"`
	Variables            []showVariable       `json:"variables,omitempty"`
	InitialPhase         string               `json:"initialPhase,omitempty"`
	Phases               []showPhase          `json:"phases,omitempty"`
	Graph                *app.GraphOutput     `json:"graph,omitempty"`
}

// showStep is a step, or a loop if Loop is set.
type showStep struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Prompt string `json:"prompt,omitempty"`
	// Condition and Confirm are conditions as text. An empty Condition means always, an
	// empty Confirm never.
	Condition string    `json:"condition,omitempty"`
	Confirm   string    `json:"confirm,omitempty"`
	Criteria  []string  `json:"criteria,omitempty"`
	Loop      *showLoop `json:"loop,omitempty"`
}

// showLoop is the loop of a step.
type showLoop struct {
	Type          steps.LoopType `json:"type"`
	Extent        string         `json:"extent"`
	MaxIterations int            `json:"maxIterations"`
	Steps         []showStep     `json:"steps"`
}

func newShowAnswer(f app.LoadedDefinition) showAnswer {
	a := showAnswer{
		ID: f.ID, Name: f.Name, Description: f.Description, Version: f.Version, Dialect: f.Dialect, Hash: f.Hash,
		Source: f.Source(), Path: f.Path(),
	}
	if f.Entry != nil {
		a.Stale, a.Overrides = f.Entry.Stale, f.Entry.Overrides
		a.Revision, a.Trust = f.Entry.Revision, f.Entry.Source.Level
	}
	if w := f.Phases; w != nil {
		a.Rules, a.Variables, a.InitialPhase = w.Rules, showVariables(w), w.InitialPhase
		for i := range w.Phases {
			a.Phases = append(a.Phases, newShowPhase(w, i))
		}
		return a
	}
	w := f.Steps
	a.Preconditions, a.ClarificationPrompts, a.MetaGuidance = w.Preconditions, w.ClarificationPrompts, w.MetaGuidance
	a.Functions = w.Functions
	for _, s := range w.Walked() {
		a.Steps = append(a.Steps, newShowStep(s))
	}
	return a
}

func newShowStep(s *steps.Step) showStep {
	step := showStep{
		ID: s.ID, Title: s.Title, Prompt: s.Prompt,
		Condition: app.FormatCondition(s.RunCondition), Confirm: app.FormatConfirmation(s.Confirm), Criteria: s.Criteria.Describe(),
	}
	if s.Loop != nil {
		step.Loop = &showLoop{Type: s.Loop.Type, Extent: graph.Extent(s.Loop), MaxIterations: s.Loop.MaxIterations}
		for i := range s.Loop.Body {
			step.Loop.Steps = append(step.Loop.Steps, newShowStep(&s.Loop.Body[i]))
		}
	}
	return step
}

// showText prints a definition as text.
type showText struct{ app.TextPrinter }

func (v *showText) writeWorkflow(f app.LoadedDefinition) {
	s := v.Styles
	fmt.Fprintf(v.Out, "%s %s\n", s.Bold(app.OneLine(f.Name)), s.Faint(fmt.Sprintf("%s %s (%s, %s)", f.ID, f.Version, f.Dialect, app.OneLine(f.Path()))))
	v.PrintText("", f.Description)
	if f.Entry != nil && f.Entry.Stale {
		fmt.Fprintf(v.Out, "%s the file no longer loads; the last valid version is shown\n", s.Yellow("warning:"))
	}
	if f.Entry != nil {
		v.writeSource(f)
	}
	if f.Phases != nil {
		v.writePhases(f.Phases)
		return
	}
	v.PrintList("Preconditions", f.Steps.Preconditions)
	v.PrintList("Questions to ask first", f.Steps.ClarificationPrompts)
	v.PrintList("Rules for the whole run", f.Steps.MetaGuidance)
	fmt.Fprintf(v.Out, "\n%s\n", s.Bold("Steps"))
	for i, step := range newShowAnswer(f).Steps {
		if i > 0 {
			fmt.Fprintln(v.Out)
		}
		v.writeStep("  ", fmt.Sprint(i+1), step)
	}
}

// writeSource prints the source of a definition and the definitions that it overrides.
func (v *showText) writeSource(f app.LoadedDefinition) {
	from := app.FormatSource(f.Entry.Source.Name, f.Entry.Revision)
	fmt.Fprintf(v.Out, "%s\n", v.Styles.Faint(fmt.Sprintf("From %s (%s), %s", from, f.Entry.Source.Level, f.Hash)))
	for _, o := range f.Entry.Overrides {
		fmt.Fprintf(v.Out, "%s\n", v.Styles.Faint(fmt.Sprintf("Overrides %s of %s (%s): guideway show %s@%s", o.Version, o.Source.Name, app.OneLine(o.Path), f.ID, o.Source.Name)))
	}
}

// writeStep prints a step; number is 3, or 3.1 in a loop.
func (v *showText) writeStep(indent, number string, step showStep) {
	s := v.Styles
	fmt.Fprintf(v.Out, "%s%s. %s %s\n", indent, number, s.Bold(app.OneLine(step.Title)), s.Faint("("+step.ID+")"))
	below := indent + strings.Repeat(" ", len(number)+2)
	if step.Condition != "" {
		v.writeField(below, "if", step.Condition)
	}
	if step.Confirm == string(expr.Always) {
		v.writeField(below, "gate", v.gateText(step))
	} else if step.Confirm != "" {
		v.writeField(below, "gate", v.gateText(step)+", if "+step.Confirm)
	}
	for _, c := range step.Criteria {
		v.writeField(below, "must", c)
	}
	if step.Loop != nil {
		v.writeLoop(below, number, step.Loop)
	}
}

func (v *showText) gateText(step showStep) string {
	if step.Loop != nil {
		return "confirmation before the loop starts"
	}
	return "confirmation of the result"
}

// writeField prints a label and its text with a hanging indent.
func (v *showText) writeField(indent, word, text string) {
	lines := app.Wrap(app.OneLine(text), v.Width-app.TextWidth(indent)-len(word)-1)
	for i, line := range lines {
		lead := v.Styles.Cyan(word)
		if i > 0 {
			lead = strings.Repeat(" ", len(word))
		}
		fmt.Fprintf(v.Out, "%s%s %s\n", indent, lead, line)
	}
}

// writeLoop draws a loop around the steps of its body.
func (v *showText) writeLoop(indent, number string, l *showLoop) {
	v.writeLoopStart(indent, l.Extent)
	for i, step := range l.Steps {
		v.writeStep(indent+"│ ", fmt.Sprintf("%s.%d", number, i+1), step)
	}
	fmt.Fprintf(v.Out, "%s╰\n", indent)
}

// writeLoopStart prints the first line of the frame of a loop, with its number of rounds.
func (v *showText) writeLoopStart(indent, extent string) {
	for i, line := range app.Wrap(app.OneLine(extent), v.Width-app.TextWidth(indent)-3) {
		corner := "╭ "
		if i > 0 {
			corner = "│ "
		}
		fmt.Fprintf(v.Out, "%s%s%s\n", indent, corner, v.Styles.Cyan(line))
	}
}

// showHook shows a hook graph if the name is a file of a graph, or the id of a graph that
// is not also the id of a workflow.
func (o *ShowOptions) showHook(ctx context.Context) (isHook bool, err error) {
	if o.Name == "-" {
		return false, nil // standard input can be read only once; it is read as a workflow
	}
	if app.IsPath(o.Name) {
		data, err := o.app.Host.ReadDefinition(ctx, o.Name)
		if err != nil {
			return false, nil //nolint:nilerr // the search for a workflow reports the error
		}
		root, _ := doc.Parse(o.Name, data, doc.Limits{})
		if hookdef.Guess(root) != hookdef.KindGraph {
			return false, nil
		}
	}
	d, err := hookscmd.OpenHooks(ctx, o.app)
	if err != nil {
		return false, err
	}
	if !app.IsPath(o.Name) {
		if _, err := d.Snapshot.HookOf(o.Name); err != nil {
			return false, nil //nolint:nilerr // the search for a workflow reports the error
		}
		if _, err := d.Snapshot.Get(o.Name); guideway.ErrorCode(err) != guideway.CodeNotFound {
			return false, nil
		}
	}
	e, err := d.Find(ctx, o.Name)
	if err != nil {
		return true, err
	}
	return true, (&hookscmd.HooksShowOptions{App: o.app, Name: o.Name, Graph: o.Graph, JSON: o.JSON}).Show(d, e)
}
