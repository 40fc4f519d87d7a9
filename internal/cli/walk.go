package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/steps"
	"github.com/guideway-dev/guideway/internal/graph"
	"github.com/guideway-dev/guideway/internal/guide"
)

// walk leads one run through a definition.
type walk struct {
	def     found
	program *guide.Program
	state   guide.State
	// vars are the variables that the run begins with.
	vars map[string]any
	past past
}

// player stands in the agent's place.
type player interface {
	// next gives what the position asks for; errStopped ends the walk.
	next(ctx context.Context, w *walk, pos guide.Position) (*guide.Continue, error)
	// refused hears why an answer was refused; an error ends the walk.
	refused(pos guide.Position, r *guide.Refusal) error
}

// view shows a walk.
type view interface {
	begin(w *walk)
	position(w *walk, pos guide.Position)
	event(w *walk, e guide.Event)
	refusal(w *walk, r *guide.Refusal)
	end(w *walk)
}

// errStopped says that the person does not want to go on.
var errStopped = errors.New("stopped")

// maxMoves ends a walk that would not end by itself. No workflow of a person's
// size comes near it.
const maxMoves = 100_000

// lead goes from position to position until the run ends.
func (w *walk) lead(ctx context.Context, p player, v view) error {
	events, refusal := w.program.Decide(w.state, guide.Command{Start: &guide.Start{Context: w.vars}})
	if refusal != nil {
		return guideway.Errorf(guideway.CodeRefused, "the run cannot begin: %w", refusal)
	}
	v.begin(w)
	w.apply(events, v)
	for range maxMoves {
		if err := ctx.Err(); err != nil {
			return interrupted(err)
		}
		pos := w.program.PositionOf(w.state)
		if pos.Kind == guide.PositionEnd {
			v.end(w)
			return nil
		}
		v.position(w, pos)
		if err := w.move(ctx, pos, p, v); err != nil {
			v.end(w)
			return err
		}
	}
	return guideway.Errorf(guideway.CodeRefused, "the run did not end within %d moves", maxMoves)
}

// move hands in what the position asks for, as often as it is refused.
func (w *walk) move(ctx context.Context, pos guide.Position, p player, v view) error {
	for {
		given, err := p.next(ctx, w, pos)
		if err != nil {
			return err
		}
		events, refusal := w.program.Decide(w.state, guide.Command{Continue: given})
		if refusal == nil {
			w.apply(events, v)
			return nil
		}
		v.refusal(w, refusal)
		if err := p.refused(pos, refusal); err != nil {
			return err
		}
	}
}

func (w *walk) apply(events []guide.Event, v view) {
	for _, e := range events {
		w.state = guide.Apply(w.state, e)
		w.past.add(w, e)
		v.event(w, e)
	}
}

// title gives the title of a step or loop.
func (w *walk) title(id string) string {
	if step, ok := w.program.Step(id); ok {
		return step.Title
	}
	return id
}

func (w *walk) isLoop(id string) bool {
	step, ok := w.program.Step(id)
	return ok && step.Loop != nil
}

// number is the place of a step or loop among those that are walked, from 1 on;
// a step in a loop is at the loop's.
func (w *walk) number(id string) int {
	walked := graph.Walked(w.def.Steps)
	i := slices.IndexFunc(walked, func(s *steps.Step) bool { return s.ID == id })
	if i < 0 {
		return min(w.state.Cursor+1, len(walked))
	}
	return i + 1
}

// undecided says in words the condition that a step or loop waits for.
func (w *walk) undecided(id string) string {
	step, ok := w.program.Step(id)
	switch {
	case !ok:
		return ""
	case step.Loop != nil && w.state.Frame != nil:
		return string(step.Loop.Type) + " " + step.Loop.Condition.String()
	default:
		return conditionWords(step.RunCondition)
	}
}

// past is what happened so far, in the order in which it first did.
type past struct {
	steps []pastStep
	loops []pastLoop
}

// pastStep is what happened to one step, or to a loop that was passed over.
type pastStep struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Done  int    `json:"done"`
	// Revised counts the outputs that were not confirmed.
	Revised int `json:"revised,omitempty"`
	// Skipped counts how often the step did not apply, and Reason says why the
	// last time.
	Skipped int    `json:"skipped"`
	Reason  string `json:"reason,omitempty"`
}

// pastLoop is what happened to one loop.
type pastLoop struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Rounds int    `json:"rounds"`
	// Ended says why the loop ended; empty while it goes on.
	Ended string `json:"ended,omitempty"`
}

// String counts what happened.
func (p past) String() string {
	done, skipped, rounds := 0, 0, 0
	for _, s := range p.steps {
		done += s.Done
		skipped += s.Skipped
	}
	for _, l := range p.loops {
		rounds += l.Rounds
	}
	text := fmt.Sprintf("%s done, %d skipped", plural(done, "step", "steps"), skipped)
	if len(p.loops) > 0 {
		text += fmt.Sprintf(", %s in %s", plural(rounds, "round", "rounds"), plural(len(p.loops), "loop", "loops"))
	}
	return text
}

func (p *past) add(w *walk, e guide.Event) {
	switch e.Kind {
	case guide.EventStepCompleted:
		p.step(w, e.Step).Done++
	case guide.EventStepSkipped:
		step := p.step(w, e.Step)
		step.Skipped++
		step.Reason = e.Reason
	case guide.EventLoopEntered, guide.EventRoundStarted:
		p.loop(w, e.Step).Rounds = e.Round
	case guide.EventLoopEnded:
		p.loop(w, e.Step).Ended = e.Reason
	case guide.EventGateAnswered:
		p.answered(w, e)
	}
}

// answered takes back what was done where a gate's answer is to revise it.
func (p *past) answered(w *walk, e guide.Event) {
	step := p.step(w, e.Step)
	switch e.Option {
	case guide.OptionSkip:
		step.Skipped++
		step.Reason = "passed over at its gate"
	case guide.OptionRevise:
		step.Done--
		step.Revised++
	}
}

func (p *past) step(w *walk, id string) *pastStep {
	i := slices.IndexFunc(p.steps, func(s pastStep) bool { return s.ID == id })
	if i < 0 {
		i = len(p.steps)
		p.steps = append(p.steps, pastStep{ID: id, Title: w.title(id)})
	}
	return &p.steps[i]
}

func (p *past) loop(w *walk, id string) *pastLoop {
	i := slices.IndexFunc(p.loops, func(l pastLoop) bool { return l.ID == id })
	if i < 0 {
		i = len(p.loops)
		p.loops = append(p.loops, pastLoop{ID: id, Title: w.title(id)})
	}
	return &p.loops[i]
}

// summary is the end of a walk.
type summary struct {
	Status guide.Status `json:"status"`
	// Position is where a walk stopped that did not end.
	Position  *guide.Position `json:"position,omitempty"`
	Steps     []pastStep      `json:"steps"`
	Loops     []pastLoop      `json:"loops"`
	Variables map[string]any  `json:"variables"`
}

func (w *walk) summary() summary {
	s := summary{
		Status: w.program.Status(w.state), Steps: orEmpty(w.past.steps), Loops: orEmpty(w.past.loops),
		Variables: w.state.Vars,
	}
	if pos := w.program.PositionOf(w.state); pos.Kind != guide.PositionEnd {
		s.Position = &pos
	}
	return s
}
