package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/guide"
)

// answers is the file of guideway run --answers.
type answers struct {
	file    string
	context map[string]any
	outputs map[string]series[string]
	sets    map[string]series[map[string]any]
	gates   map[string]series[string]
}

// series is what is given the first time, the second time and so on; or the
// same every time.
type series[T any] struct {
	list []T
	same bool
}

// at gives the nth answer, counted from 0.
func (s series[T]) at(n int) (T, bool) {
	switch {
	case s.same && len(s.list) > 0:
		return s.list[0], true
	case n < len(s.list):
		return s.list[n], true
	default:
		var none T
		return none, false
	}
}

// readAnswers reads and checks the answers to a program.
func (h *Host) readAnswers(name string, program *guide.Program) (*answers, error) {
	data, err := h.readDefinition(name)
	if err != nil {
		return nil, err
	}
	file := name
	if name == "-" {
		file = stdinName
	}
	root, problems := doc.Parse(file, data, doc.Limits{})
	r := &answersReader{program: program, problems: problems}
	r.answers = &answers{file: file, outputs: map[string]series[string]{}, sets: map[string]series[map[string]any]{}, gates: map[string]series[string]{}}
	if root != nil {
		r.root(root)
	}
	if len(r.problems) > 0 {
		writeDiagnostics(h.Err, r.problems, h.errStyles())
		return nil, guideway.Errorf(guideway.CodeInvalid, "the answers in %s are invalid (%s)", file, plural(len(r.problems), "error", "errors")).
			WithFix("guideway run --help")
	}
	return r.answers, nil
}

// answersReader collects what is wrong with a file of answers.
type answersReader struct {
	*answers
	program  *guide.Program
	problems []guideway.Diagnostic
}

func (r *answersReader) errorf(n *doc.Node, fix, format string, args ...any) {
	r.problems = append(r.problems, guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: "answers", File: r.file, Line: n.Line, Column: n.Column,
		Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

func (r *answersReader) root(root *doc.Node) {
	if !r.object(root, "the answers") {
		return
	}
	for _, m := range root.Members {
		if !r.object(m.Value, m.Key) {
			continue
		}
		switch m.Key {
		case "context":
			r.context, _ = m.Value.Any().(map[string]any)
		case "outputs":
			r.each(m.Value, r.output)
		case "sets":
			r.each(m.Value, r.set)
		case "answers":
			r.each(m.Value, r.gate)
		default:
			r.errorf(m.Value, "use context, outputs, sets and answers", "%q means nothing here", m.Key)
		}
	}
}

func (r *answersReader) object(n *doc.Node, what string) bool {
	if n.Kind != doc.Object {
		r.errorf(n, "write names and values", "%s must be an object, not a value of type %s", what, n.Kind)
		return false
	}
	return true
}

// each reads the members of an object whose keys are ids.
func (r *answersReader) each(n *doc.Node, read func(id string, n *doc.Node, one bool)) {
	for _, m := range n.Members {
		if _, ok := r.program.Step(m.Key); !ok {
			r.errorf(m.Value, "the steps are "+strings.Join(r.program.StepIDs(), ", "), "the workflow has no step %q", m.Key)
			continue
		}
		if m.Value.Kind != doc.Array {
			read(m.Key, m.Value, true)
			continue
		}
		if len(m.Value.Items) == 0 {
			r.errorf(m.Value, "give one for each time, or a single one for every time", "the list of %q is empty", m.Key)
		}
		for _, item := range m.Value.Items {
			read(m.Key, item, false)
		}
	}
}

func (r *answersReader) output(id string, n *doc.Node, same bool) {
	text := n.Text
	switch n.Kind {
	case doc.String, doc.Number:
	case doc.Object:
		data, err := json.Marshal(n.Any())
		if err != nil {
			r.errorf(n, "write it as text", "the output of %q cannot be written as JSON: %v", id, err)
			return
		}
		text = string(data)
	default:
		r.errorf(n, "write a text, or an object for JSON", "the output of %q is a value of type %s", id, n.Kind)
		return
	}
	r.outputs[id] = series[string]{list: append(r.outputs[id].list, text), same: same}
}

func (r *answersReader) set(id string, n *doc.Node, same bool) {
	if r.object(n, "what "+id+" sets") {
		vars, _ := n.Any().(map[string]any)
		r.sets[id] = series[map[string]any]{list: append(r.sets[id].list, vars), same: same}
	}
}

func (r *answersReader) gate(id string, n *doc.Node, same bool) {
	step, _ := r.program.Step(id)
	options := []string{guide.OptionConfirm, guide.OptionRevise}
	if step.Loop != nil {
		options[1] = guide.OptionSkip
	}
	switch {
	case n.Kind != doc.String || !slices.Contains(options, n.Text):
		r.errorf(n, "write "+strings.Join(options, " or "), "the gate of %q has no option %v", id, n.Any())
	case same && n.Text == guide.OptionRevise:
		r.errorf(n, "write a list, such as [revise, confirm]", "to revise %q every time would never end", id)
	default:
		r.gates[id] = series[string]{list: append(r.gates[id].list, n.Text), same: same}
	}
}

// scripted answers from a file.
type scripted struct {
	answers *answers
	// times counts how often each step was asked for, and each gate, whose key
	// is "gate " and its step.
	times map[string]int
}

var _ player = (*scripted)(nil)

func (s *scripted) next(_ context.Context, _ *walk, pos guide.Position) (*guide.Continue, error) {
	switch pos.Kind {
	case guide.PositionGate:
		n := s.count("gate " + pos.ID)
		option, ok := s.answers.gates[pos.ID].at(n)
		if !ok {
			return nil, s.missing(pos, n, len(s.answers.gates[pos.ID].list), "answers", guide.OptionConfirm)
		}
		return &guide.Continue{Answer: &guide.Answer{OptionID: option}}, nil
	case guide.PositionContext:
		return nil, s.needed(pos)
	default:
		n := s.count(pos.ID)
		output, ok := s.answers.outputs[pos.ID].at(n)
		if !ok {
			return nil, s.missing(pos, n, len(s.answers.outputs[pos.ID].list), "outputs", "...")
		}
		vars, _ := s.answers.sets[pos.ID].at(n)
		return &guide.Continue{Output: output, Context: vars}, nil
	}
}

// count gives how often something was asked for before.
func (s *scripted) count(key string) int {
	n := s.times[key]
	s.times[key]++
	return n
}

// missing says what the file lacks.
func (s *scripted) missing(pos guide.Position, n, have int, key, example string) error {
	what := map[string]string{"outputs": "an output", "answers": "an answer"}[key]
	if have == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "the run stopped at %s: %s lacks %s", whereIs(pos), s.answers.file, what).
			WithFix("add to %q: %s: %s", key, pos.ID, example)
	}
	return guideway.Errorf(guideway.CodeInvalid, "the run stopped at %s: it is asked for %s for the %s time, and %s has %d",
		whereIs(pos), what, ordinal(n+1), s.answers.file, have).WithFix("add another to the list of %q in %q", pos.ID, key)
}

// needed says which variables a waiting run lacks.
func (s *scripted) needed(pos guide.Position) error {
	var names []string
	why := ""
	for _, need := range pos.Needs {
		names = append(names, needWords(need))
		if need.Found != "" {
			why = " (" + pos.Message + ")"
		}
	}
	return guideway.Errorf(guideway.CodeInvalid, "the run stopped at %s: it waits for %s%s", whereIs(pos), strings.Join(names, ", "), why).
		WithFix("set it in \"context\", or in \"sets\" of an earlier step")
}

func (s *scripted) refused(pos guide.Position, r *guide.Refusal) error {
	text := r.Message
	for _, issue := range r.Issues {
		text += "\n  - " + oneLine(issue)
	}
	return guideway.Errorf(guideway.CodeRefused, "refused at %s: %s", whereIs(pos), text)
}

// whereIs names a position.
func whereIs(pos guide.Position) string {
	kinds := map[guide.PositionKind]string{
		guide.PositionStep: "step", guide.PositionGate: "the gate of", guide.PositionContext: "step",
	}
	text := fmt.Sprintf("%s %q", kinds[pos.Kind], pos.ID)
	if pos.Loop != nil {
		text += fmt.Sprintf(", round %d of loop %q", pos.Loop.Round, pos.Loop.ID)
	}
	return text
}

// needWords names a variable with the values that would decide.
func needWords(need guide.Need) string {
	text := need.Variable
	if len(need.Allowed) > 0 {
		text += ", such as " + valueList(need.Allowed)
	}
	if len(need.Tests) > 0 {
		text += " (" + strings.Join(need.Tests, ", ") + ")"
	}
	return text
}

// valueList writes values as JSON, joined for a sentence.
func valueList(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = valueWords(v)
	}
	return strings.Join(words, " or ")
}

// valueWords writes a value as JSON on one line.
func valueWords(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return oneLine(b.String())
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "first"
	case 2:
		return "second"
	case 3:
		return "third"
	default:
		return fmt.Sprintf("%dth", n)
	}
}
