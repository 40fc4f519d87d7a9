package walk

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Walk leads one run through a definition.
type Walk struct {
	Def    app.LoadedDefinition
	Course Course
	State  engine.State
	// Vars are the variables that the run begins with.
	Vars map[string]any
	Past past
}

// Player stands in the agent's place.
type Player interface {
	// Next gives what the position asks for; errStopped ends the walk.
	Next(ctx context.Context, w *Walk, pos engine.Position) (*engine.Continue, error)
	// Refused hears why an answer was refused; an error ends the walk.
	Refused(pos engine.Position, r *engine.Refusal) error
}

// View shows a walk.
type View interface {
	Begin(w *Walk)
	Position(w *Walk, pos engine.Position)
	Event(w *Walk, e engine.Event)
	Refusal(w *Walk, r *engine.Refusal)
	End(w *Walk)
}

// ErrStopped says that the person does not want to go on.
var ErrStopped = errors.New("stopped")

// MaxMoves ends a walk that would not end by itself. No workflow of a person's
// size comes near it.
const MaxMoves = 100_000

// Lead goes from position to position until the run ends.
func (w *Walk) Lead(ctx context.Context, p Player, v View) error {
	events, refusal := w.Course.Decide(w.State, engine.Command{Start: &engine.Start{Context: w.Vars}})
	if refusal != nil {
		return guideway.Errorf(guideway.CodeRefused, "the run cannot begin: %w", refusal)
	}
	v.Begin(w)
	w.apply(events, v)
	for range MaxMoves {
		if err := ctx.Err(); err != nil {
			return app.InterruptedError(err)
		}
		pos := w.Course.PositionOf(w.State)
		if pos.Kind == engine.PositionEnd {
			v.End(w)
			return nil
		}
		v.Position(w, pos)
		if err := w.move(ctx, pos, p, v); err != nil {
			v.End(w)
			return err
		}
	}
	return guideway.Errorf(guideway.CodeRefused, "the run did not end within %d moves", MaxMoves)
}

// move hands in what the position asks for, as often as it is refused.
func (w *Walk) move(ctx context.Context, pos engine.Position, p Player, v View) error {
	for {
		given, err := p.Next(ctx, w, pos)
		if err != nil {
			return err
		}
		events, refusal := w.Course.Decide(w.State, engine.Command{Continue: given})
		if refusal == nil {
			w.apply(events, v)
			return nil
		}
		v.Refusal(w, refusal)
		if err := p.Refused(pos, refusal); err != nil {
			return err
		}
	}
}

func (w *Walk) apply(events []engine.Event, v View) {
	for _, e := range events {
		w.State = engine.Apply(w.State, e)
		w.Past.Add(w, e)
		v.Event(w, e)
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
	text := fmt.Sprintf("%s done, %d skipped", app.Plural(done, "step", "steps"), skipped)
	if len(p.loops) > 0 {
		text += fmt.Sprintf(", %s in %s", app.Plural(rounds, "round", "rounds"), app.Plural(len(p.loops), "loop", "loops"))
	}
	if len(p.phases) > 0 {
		entered, passed := 0, 0
		for _, phase := range p.phases {
			entered += phase.Entered
			passed += phase.Skipped
		}
		text += ", " + app.Plural(entered, "phase", "phases")
		if passed > 0 {
			text += fmt.Sprintf(" and %d skipped", passed)
		}
	}
	return text
}

func (p *past) Add(w *Walk, e engine.Event) {
	switch e.Kind {
	case engine.EventPhaseEntered:
		p.phase(w, e).Entered++
	case engine.EventPhaseSkipped:
		phase := p.phase(w, e)
		phase.Skipped++
		phase.Reason = e.Reason
	case engine.EventStepCompleted:
		p.step(w, e).Done++
	case engine.EventStepSkipped:
		step := p.step(w, e)
		step.Skipped++
		step.Reason = e.Reason
	case engine.EventLoopEntered, engine.EventRoundStarted:
		p.loop(w, e).Rounds = e.Round
	case engine.EventLoopEnded:
		p.loop(w, e).Ended = e.Reason
	case engine.EventLoopStarted:
		p.loop(w, e).Ended = ""
	case engine.EventLoopIteration: // a phase may be entered again, and its loops with it
		p.loop(w, e).Rounds++
	case engine.EventLoopCompleted, engine.EventLoopBroken:
		p.loop(w, e).Ended = e.Reason
	case engine.EventGateAnswered:
		p.answered(w, e)
	}
}

// answered takes back what was done where a gate's answer is to revise it.
func (p *past) answered(w *Walk, e engine.Event) {
	step := p.step(w, e)
	switch e.Option {
	case engine.OptionSkip:
		step.Skipped++
		step.Reason = "passed over at its gate"
	case engine.OptionRevise:
		step.Done--
		step.Revised++
	}
}

func (p *past) phase(w *Walk, e engine.Event) *pastPhase {
	i := slices.IndexFunc(p.phases, func(f pastPhase) bool { return f.ID == e.Step })
	if i < 0 {
		i = len(p.phases)
		p.phases = append(p.phases, pastPhase{ID: e.Step, Title: w.Course.title(e)})
	}
	return &p.phases[i]
}

func (p *past) step(w *Walk, e engine.Event) *pastStep {
	phase := w.Course.phaseOf(e)
	i := slices.IndexFunc(p.steps, func(s pastStep) bool { return s.ID == e.Step && s.Phase == phase })
	if i < 0 {
		i = len(p.steps)
		p.steps = append(p.steps, pastStep{ID: e.Step, Title: w.Course.title(e), Phase: phase})
	}
	return &p.steps[i]
}

func (p *past) loop(w *Walk, e engine.Event) *pastLoop {
	phase := w.Course.phaseOf(e)
	i := slices.IndexFunc(p.loops, func(l pastLoop) bool { return l.ID == e.Step && l.Phase == phase })
	if i < 0 {
		i = len(p.loops)
		p.loops = append(p.loops, pastLoop{ID: e.Step, Title: w.Course.title(e), Phase: phase})
	}
	return &p.loops[i]
}

// summary is the end of a walk.
type summary struct {
	Status engine.Status `json:"status"`
	// Position is where a walk stopped that did not end.
	Position  *engine.Position `json:"position,omitempty"`
	Phases    []pastPhase      `json:"phases,omitempty"`
	Steps     []pastStep       `json:"steps"`
	Loops     []pastLoop       `json:"loops"`
	Variables map[string]any   `json:"variables"`
}

func (w *Walk) summary() summary {
	s := summary{
		Status: w.Course.Status(w.State), Phases: w.Past.phases, Steps: app.OrEmpty(w.Past.steps), Loops: app.OrEmpty(w.Past.loops),
		Variables: w.State.Vars,
	}
	if pos := w.Course.PositionOf(w.State); pos.Kind != engine.PositionEnd {
		s.Position = &pos
	}
	return s
}
