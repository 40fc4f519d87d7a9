package run

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/walk"

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// answers is the content of the file of guideway run --answers.
type answers struct {
	file    string
	context map[string]any
	outputs map[string]series[string]
	notes   map[string]series[string]
	sets    map[string]series[map[string]any]
	gates   map[string]series[string]
	skips   map[string]series[string]
}

// declineWord is the option that declines a gate. declinePlain has the same meaning if no
// option has that id.
const (
	declineWord  = ":decline"
	declinePlain = "decline"
)

// series is a list of values for the first time, the second time and so on, or one value
// for every time.
type series[T any] struct {
	list []T
	same bool
}

// nth returns the nth value, counted from 0.
func (s series[T]) nth(n int) (T, bool) {
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

// readAnswers reads and checks the answers for a workflow.
func readAnswers(ctx context.Context, h *app.Host, name string, c walk.WorkflowView) (*answers, error) {
	data, err := h.ReadDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	file := app.DisplayName(name)
	root, problems := doc.Parse(file, data, doc.Limits{})
	r := &answersReader{course: c, diagnostics: problems}
	r.answers = &answers{
		file: file, outputs: map[string]series[string]{}, notes: map[string]series[string]{},
		sets: map[string]series[map[string]any]{}, gates: map[string]series[string]{}, skips: map[string]series[string]{},
	}
	if root != nil {
		r.readRoot(root)
	}
	if len(r.diagnostics) > 0 {
		app.WriteDiagnostics(h.Err, r.diagnostics, h.ErrStyles())
		return nil, guideway.Errorf(guideway.CodeInvalid, "the answers in %s are invalid (%s)", file, app.Plural(len(r.diagnostics), "error", "errors")).
			WithFix("guideway run --help")
	}
	return r.answers, nil
}

// answersReader reads a file of answers and collects its errors.
type answersReader struct {
	*answers
	course      walk.WorkflowView
	diagnostics []guideway.Diagnostic
}

func (r *answersReader) addError(n *doc.Node, fix, format string, args ...any) {
	r.diagnostics = append(r.diagnostics, guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: "answers", File: r.file, Line: n.Line, Column: n.Column,
		Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

func (r *answersReader) readRoot(root *doc.Node) {
	if !r.checkObject(root, "the answers") {
		return
	}
	for _, m := range root.Members {
		if !r.checkObject(m.Value, m.Key) {
			continue
		}
		switch m.Key {
		case "context":
			r.context, _ = m.Value.Any().(map[string]any)
		case "outputs":
			r.readMembers(m.Value, r.readOutput)
		case "sets":
			r.readMembers(m.Value, r.readVars)
		case "answers":
			r.readMembers(m.Value, r.readGateAnswer)
		case "notes":
			r.readMembers(m.Value, r.readNote)
		case "skips":
			r.readMembers(m.Value, r.readSkip)
		default:
			r.addError(m.Value, "use one of: context, outputs, notes, sets, answers, skips", "unknown member %q", m.Key)
		}
	}
}

func (r *answersReader) checkObject(n *doc.Node, what string) bool {
	if n.Kind != doc.Object {
		r.addError(n, "write an object of names and values", "%s must be an object, not a value of type %s", what, n.Kind)
		return false
	}
	return true
}

// readMembers reads the members of an object whose keys are ids.
func (r *answersReader) readMembers(n *doc.Node, read func(id string, n *doc.Node, one bool)) {
	for _, m := range n.Members {
		if !r.course.ExpectedInput(m.Key).Known {
			r.addError(m.Value, "use one of: "+strings.Join(r.course.ExpectedInputIDs(), ", "), "the workflow takes no input with the id %q", m.Key)
			continue
		}
		if m.Value.Kind != doc.Array {
			read(m.Key, m.Value, true)
			continue
		}
		if len(m.Value.Items) == 0 {
			r.addError(m.Value, "write one value, which is used every time, or a list with one value for each time", "the list of %q is empty", m.Key)
		}
		for _, item := range m.Value.Items {
			read(m.Key, item, false)
		}
	}
}

// placeFix returns the fix for input in the wrong member: it names the member for the input
// of id.
func (r *answersReader) placeFix(id string) string {
	switch in := r.course.ExpectedInput(id); {
	case in.Output:
		return fmt.Sprintf("write the output of %q in \"outputs\"", id)
	case len(in.Options) > 0:
		return fmt.Sprintf("write the answer to %q in \"answers\"", id)
	default:
		return fmt.Sprintf("remove %q: only \"sets\" may contain the id", id)
	}
}

func (r *answersReader) readOutput(id string, n *doc.Node, same bool) {
	if !r.course.ExpectedInput(id).Output {
		r.addError(n, r.placeFix(id), "%q takes no output", id)
		return
	}
	text := n.Text
	switch n.Kind {
	case doc.String, doc.Number:
	case doc.Object:
		data, err := json.Marshal(n.Any())
		if err != nil {
			r.addError(n, "write a string", "the output of %q cannot be written as JSON: %v", id, err)
			return
		}
		text = string(data)
	default:
		r.addError(n, "write a string, or an object for JSON", "the output of %q must be a string, a number or an object, not a value of type %s", id, n.Kind)
		return
	}
	r.outputs[id] = series[string]{list: append(r.outputs[id].list, text), same: same}
}

func (r *answersReader) readVars(id string, n *doc.Node, same bool) {
	if r.checkObject(n, fmt.Sprintf("the value of %q in \"sets\"", id)) {
		vars, _ := n.Any().(map[string]any)
		r.sets[id] = series[map[string]any]{list: append(r.sets[id].list, vars), same: same}
	}
}

func (r *answersReader) readNote(id string, n *doc.Node, same bool) {
	if n.Kind != doc.String {
		r.addError(n, "write a string", "the notes of %q must be a string, not a value of type %s", id, n.Kind)
		return
	}
	r.notes[id] = series[string]{list: append(r.notes[id].list, n.Text), same: same}
}

// readSkip reads the reason for skipping a step; an empty reason does not skip.
func (r *answersReader) readSkip(id string, n *doc.Node, same bool) {
	switch {
	case !r.course.ExpectedInput(id).Skippable:
		r.addError(n, r.placeFix(id), "%q cannot be skipped: it is not an optional step or phase", id)
	case n.Kind != doc.String:
		r.addError(n, "write the reason as a string", "the reason for skipping %q must be a string, not a value of type %s", id, n.Kind)
	default:
		r.skips[id] = series[string]{list: append(r.skips[id].list, n.Text), same: same}
	}
}

func (r *answersReader) readGateAnswer(id string, n *doc.Node, same bool) {
	gate := r.course.ExpectedInput(id)
	options, text := gate.Options, n.Text
	if gate.Declinable {
		if text == declinePlain && !slices.Contains(options, text) {
			text = declineWord
		}
		options = append(slices.Clone(options), declineWord)
	}
	switch {
	case len(options) == 0:
		r.addError(n, r.placeFix(id), "%q is not a gate", id)
	case n.Kind != doc.String || !slices.Contains(options, text):
		r.addError(n, "write "+strings.Join(options, " or "), "the gate of %q has no option %s", id, walk.FormatValue(n.Any()))
	case same && slices.Contains(gate.Repeating, n.Text):
		r.addError(n, "write a list, such as ["+n.Text+", "+options[0]+"]", "the run would never end if %q is answered with %s every time", id, n.Text)
	default:
		r.gates[id] = series[string]{list: append(r.gates[id].list, text), same: same}
	}
}
