package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
)

// walk leads one run through a definition.
type walk struct {
	def    found
	course course
	state  guide.State
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
	events, refusal := w.course.Decide(w.state, guide.Command{Start: &guide.Start{Context: w.vars}})
	if refusal != nil {
		return guideway.Errorf(guideway.CodeRefused, "the run cannot begin: %w", refusal)
	}
	v.begin(w)
	w.apply(events, v)
	for range maxMoves {
		if err := ctx.Err(); err != nil {
			return interrupted(err)
		}
		pos := w.course.PositionOf(w.state)
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
		events, refusal := w.course.Decide(w.state, guide.Command{Continue: given})
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

// past is what happened so far, in the order in which it first did.
type past struct {
	phases []pastPhase
	steps  []pastStep
	loops  []pastLoop
}

// pastPhase is what happened to one phase.
type pastPhase struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Entered and Skipped count how often it was, and Reason says why it was
	// skipped the last time.
	Entered int    `json:"entered"`
	Skipped int    `json:"skipped"`
	Reason  string `json:"reason,omitempty"`
}

// pastStep is what happened to one step, or to a loop that was passed over.
type pastStep struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Phase is the step's, in a phase workflow: ids are unique in it only.
	Phase string `json:"phase,omitempty"`
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
	Phase  string `json:"phase,omitempty"`
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
	if len(p.phases) > 0 {
		entered, passed := 0, 0
		for _, phase := range p.phases {
			entered += phase.Entered
			passed += phase.Skipped
		}
		text += ", " + plural(entered, "phase", "phases")
		if passed > 0 {
			text += fmt.Sprintf(" and %d skipped", passed)
		}
	}
	return text
}

func (p *past) add(w *walk, e guide.Event) {
	switch e.Kind {
	case guide.EventPhaseEntered:
		p.phase(w, e).Entered++
	case guide.EventPhaseSkipped:
		phase := p.phase(w, e)
		phase.Skipped++
		phase.Reason = e.Reason
	case guide.EventStepCompleted:
		p.step(w, e).Done++
	case guide.EventStepSkipped:
		step := p.step(w, e)
		step.Skipped++
		step.Reason = e.Reason
	case guide.EventLoopEntered, guide.EventRoundStarted:
		p.loop(w, e).Rounds = e.Round
	case guide.EventLoopEnded:
		p.loop(w, e).Ended = e.Reason
	case guide.EventLoopStarted:
		p.loop(w, e).Ended = ""
	case guide.EventLoopIteration: // a phase may be entered again, and its loops with it
		p.loop(w, e).Rounds++
	case guide.EventLoopCompleted, guide.EventLoopBroken:
		p.loop(w, e).Ended = e.Reason
	case guide.EventGateAnswered:
		p.answered(w, e)
	}
}

// answered takes back what was done where a gate's answer is to revise it.
func (p *past) answered(w *walk, e guide.Event) {
	step := p.step(w, e)
	switch e.Option {
	case guide.OptionSkip:
		step.Skipped++
		step.Reason = "passed over at its gate"
	case guide.OptionRevise:
		step.Done--
		step.Revised++
	}
}

func (p *past) phase(w *walk, e guide.Event) *pastPhase {
	i := slices.IndexFunc(p.phases, func(f pastPhase) bool { return f.ID == e.Step })
	if i < 0 {
		i = len(p.phases)
		p.phases = append(p.phases, pastPhase{ID: e.Step, Title: w.course.title(e)})
	}
	return &p.phases[i]
}

func (p *past) step(w *walk, e guide.Event) *pastStep {
	phase := w.course.phaseOf(e)
	i := slices.IndexFunc(p.steps, func(s pastStep) bool { return s.ID == e.Step && s.Phase == phase })
	if i < 0 {
		i = len(p.steps)
		p.steps = append(p.steps, pastStep{ID: e.Step, Title: w.course.title(e), Phase: phase})
	}
	return &p.steps[i]
}

func (p *past) loop(w *walk, e guide.Event) *pastLoop {
	phase := w.course.phaseOf(e)
	i := slices.IndexFunc(p.loops, func(l pastLoop) bool { return l.ID == e.Step && l.Phase == phase })
	if i < 0 {
		i = len(p.loops)
		p.loops = append(p.loops, pastLoop{ID: e.Step, Title: w.course.title(e), Phase: phase})
	}
	return &p.loops[i]
}

// summary is the end of a walk.
type summary struct {
	Status guide.Status `json:"status"`
	// Position is where a walk stopped that did not end.
	Position  *guide.Position `json:"position,omitempty"`
	Phases    []pastPhase     `json:"phases,omitempty"`
	Steps     []pastStep      `json:"steps"`
	Loops     []pastLoop      `json:"loops"`
	Variables map[string]any  `json:"variables"`
}

func (w *walk) summary() summary {
	s := summary{
		Status: w.course.Status(w.state), Phases: w.past.phases, Steps: orEmpty(w.past.steps), Loops: orEmpty(w.past.loops),
		Variables: w.state.Vars,
	}
	if pos := w.course.PositionOf(w.state); pos.Kind != guide.PositionEnd {
		s.Position = &pos
	}
	return s
}
