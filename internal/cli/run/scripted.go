package run

import "github.com/guideway-dev/guideway/internal/cli/walk"

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// scriptedPlayer answers from a file.
type scriptedPlayer struct {
	answers *answers
	// times counts the requests of each position, by its kind, its id and the id of its phase.
	times map[string]int
	// lastVarsID is the id of the last position for which the variables without a list of
	// values were set.
	lastVarsID string
}

var _ walk.Player = (*scriptedPlayer)(nil)

// lookupByID returns the answers for the id of a position. The id with its phase takes
// precedence, since ids are unique only within a phase.
func lookupByID[T any](list map[string]series[T], pos engine.Position) series[T] {
	if pos.Phase != nil {
		if s, ok := list[pos.Phase.ID+"/"+pos.ID]; ok {
			return s
		}
	}
	return list[pos.ID]
}

func (s *scriptedPlayer) NextInput(_ context.Context, w *walk.Walk, pos engine.Position) (*engine.Continue, error) {
	n := s.countRequest(pos)
	if pos.Kind != engine.PositionContext {
		s.lastVarsID = ""
	}
	notes, _ := lookupByID(s.answers.notes, pos).nth(n)
	switch pos.Kind {
	case engine.PositionGate:
		return s.answerGate(pos, n, notes)
	case engine.PositionContext:
		return s.setVariables(w, pos, n)
	}
	if reason := s.skipReason(w, pos, n); reason != "" {
		return &engine.Continue{Skip: &engine.Skip{Reason: reason}}, nil
	}
	outputs := lookupByID(s.answers.outputs, pos)
	output, ok := outputs.nth(n)
	if !ok && notes == "" {
		return nil, s.missingAnswerError(pos, n, len(outputs.list), "outputs", "...")
	}
	vars, _ := lookupByID(s.answers.sets, pos).nth(n)
	return &engine.Continue{Output: output, Notes: notes, Context: vars}, nil
}

func (s *scriptedPlayer) answerGate(pos engine.Position, n int, note string) (*engine.Continue, error) {
	gates := lookupByID(s.answers.gates, pos)
	option, ok := gates.nth(n)
	if !ok {
		return nil, s.missingAnswerError(pos, n, len(gates.list), "answers", pos.Options[0].ID)
	}
	answer := &engine.Answer{OptionID: option, Note: note}
	if option == declineWord {
		answer = &engine.Answer{Decline: true, Note: note}
	}
	return &engine.Continue{Answer: answer}, nil
}

// setVariables returns the variables that a phase workflow waits for. In a step workflow,
// "sets" belongs to the output of the step, which has the same id.
func (s *scriptedPlayer) setVariables(w *walk.Walk, pos engine.Position, n int) (*engine.Continue, error) {
	sets := lookupByID(s.answers.sets, pos)
	vars, ok := sets.nth(n)
	if w.Def.Phases == nil || !ok || len(vars) == 0 || s.lastVarsID == pos.ID {
		return nil, s.missingVariablesError(w, pos)
	}
	if sets.same {
		s.lastVarsID = pos.ID // setting the same values again would not change the position
	}
	return &engine.Continue{Context: vars}, nil
}

// skipReason returns the reason for skipping a step: the reason for the step, or else the
// reason for its phase.
func (s *scriptedPlayer) skipReason(w *walk.Walk, pos engine.Position, n int) string {
	if !w.Workflow.IsSkippable(pos) {
		return ""
	}
	if reason, ok := lookupByID(s.answers.skips, pos).nth(n); ok {
		return reason
	}
	reason, _ := s.answers.skips[pos.Phase.ID].nth(0)
	return reason
}

// countRequest returns the number of earlier requests of a position, and counts this one.
func (s *scriptedPlayer) countRequest(pos engine.Position) int {
	key := string(pos.Kind) + " " + pos.ID
	if pos.Phase != nil {
		key += " " + pos.Phase.ID
	}
	n := s.times[key]
	s.times[key]++
	return n
}

// missingAnswerError returns the error for an answer that the file lacks.
func (s *scriptedPlayer) missingAnswerError(pos engine.Position, n, have int, key, example string) error {
	what := map[string]string{"outputs": "output", "answers": "answer"}[key]
	if have == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "the run stopped at %s: %s has no %s for %q", walk.DescribePosition(pos), s.answers.file, what, pos.ID).
			WithFix("add to %q: %s: %s", key, pos.ID, example)
	}
	return guideway.Errorf(guideway.CodeInvalid, "the run stopped at %s: the position needs an %s for the %s time, but the list in %s has only %d",
		walk.DescribePosition(pos), what, walk.FormatOrdinal(n+1), s.answers.file, have).WithFix("add a value to the list of %q in %q", pos.ID, key)
}

// missingVariablesError returns the error for variables that a waiting run needs.
func (s *scriptedPlayer) missingVariablesError(w *walk.Walk, pos engine.Position) error {
	var names []string
	why := ""
	for _, need := range pos.Needs {
		names = append(names, walk.FormatNeed(need))
		if need.Found != "" {
			why = " (" + pos.Message + ")"
		}
	}
	fix := "set the variable in \"context\", or in \"sets\" of an earlier step"
	if w.Def.Phases != nil && pos.Phase != nil {
		fix = fmt.Sprintf("set the variable in \"context\", in \"sets\" of an earlier step, or at this position: add to \"sets\": %s: { NAME: VALUE }", pos.ID)
	}
	return guideway.Errorf(guideway.CodeInvalid, "the run stopped at %s: the position needs %s%s", walk.DescribePosition(pos), strings.Join(names, ", "), why).
		WithFix("%s", fix)
}

func (s *scriptedPlayer) HandleRefusal(pos engine.Position, r *engine.Refusal) error {
	text := r.Message
	for _, issue := range r.Issues {
		text += "\n  - " + app.OneLine(issue)
	}
	return guideway.Errorf(guideway.CodeRefused, "the input at %s was refused: %s", walk.DescribePosition(pos), text).
		WithFix("correct the input for %q in %s", pos.ID, s.answers.file)
}
