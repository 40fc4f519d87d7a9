// Package walk executes a run step by step and shows it. The inputs come from the user at a
// terminal or from a script.
package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// Walk executes one run of a definition step by step.
type Walk struct {
	Def      app.LoadedDefinition
	Workflow WorkflowView
	State    engine.State
	// Vars are the initial variables of the run.
	Vars map[string]any
	// Checker executes the checks of steps in Dir; if it is nil, they are skipped.
	Checker run.Checker
	Dir     string
	// start is the workspace at the start.
	start   *evidence.Workspace
	History history
}

// Player supplies the inputs that an agent would.
type Player interface {
	// NextInput returns the input for a position. ErrStopped ends the walk.
	NextInput(ctx context.Context, w *Walk, pos engine.Position) (*engine.Continue, error)
	// HandleRefusal handles the refusal of an input. An error ends the walk.
	HandleRefusal(pos engine.Position, r *engine.Refusal) error
}

// View shows a walk.
type View interface {
	Begin(w *Walk)
	Position(w *Walk, pos engine.Position)
	Event(w *Walk, e engine.Event)
	Refusal(w *Walk, r *engine.Refusal)
	End(w *Walk)
}

// ErrStopped is returned if the user ends the walk.
var ErrStopped = errors.New("stopped")

// MaxMoves limits the moves of a walk, because a workflow may loop forever.
const MaxMoves = 100_000

// Run moves from position to position until the run ends.
func (w *Walk) Run(ctx context.Context, p Player, v View) error {
	if w.Checker != nil && len(w.Def.CheckRules()) > 0 {
		start, err := w.Checker.Workspace(ctx, w.Dir)
		if err != nil {
			return err
		}
		w.start = start
	}
	events, refusal := w.Workflow.Decide(w.State, engine.Command{Start: &engine.Start{Context: w.Vars}})
	if refusal != nil {
		return guideway.Errorf(guideway.CodeRefused, "the run cannot start: %w", refusal)
	}
	v.Begin(w)
	w.applyEvents(events, v)
	for range MaxMoves {
		if err := ctx.Err(); err != nil {
			return app.InterruptedError(err)
		}
		pos := w.Workflow.PositionOf(w.State)
		if pos.Kind == engine.PositionEnd {
			v.End(w)
			return nil
		}
		v.Position(w, pos)
		if err := w.answerPosition(ctx, pos, p, v); err != nil {
			v.End(w)
			return err
		}
	}
	return guideway.Errorf(guideway.CodeRefused, "the run did not end within %d commands", MaxMoves).
		WithFix("check the conditions that end the loops of the workflow")
}

// answerPosition asks for input until the engine accepts it.
func (w *Walk) answerPosition(ctx context.Context, pos engine.Position, p Player, v View) error {
	for {
		given, err := p.NextInput(ctx, w, pos)
		if err != nil {
			return err
		}
		events, refusal, err := w.decide(ctx, pos, given)
		if err != nil {
			return err
		}
		if refusal == nil {
			w.applyEvents(events, v)
			return nil
		}
		v.Refusal(w, refusal)
		if err := p.HandleRefusal(pos, refusal); err != nil {
			return err
		}
	}
}

// decide decides an input, and executes the checks that decide it.
func (w *Walk) decide(ctx context.Context, pos engine.Position, given *engine.Continue) ([]engine.Event, *engine.Refusal, error) {
	if w.Checker != nil {
		given.Checks = map[string]criteria.CheckOutcome{}
	}
	for {
		events, refusal := w.Workflow.Decide(w.State, engine.Command{Continue: given})
		if refusal == nil || refusal.Rule != engine.RuleChecksPending {
			return events, refusal, nil
		}
		for _, p := range refusal.Pending {
			result, err := w.Checker.Check(ctx, evidence.Request{Step: pos.ID, Key: p.Key, Template: p.Template, Rule: p.Rule, Start: w.start, ProjectPath: w.Dir})
			switch {
			case ctx.Err() != nil:
				return nil, nil, app.InterruptedError(ctx.Err())
			case err != nil:
				waits := "the step waits for a check: " + err.Error()
				if fix := guideway.ErrorFix(err); fix != "" {
					waits += "; " + fix
				}
				return nil, &engine.Refusal{Rule: run.RuleCheckWaits, Message: waits}, nil
			}
			given.Checks[p.Key] = result.CheckOutcome
		}
	}
}

func (w *Walk) applyEvents(events []engine.Event, v View) {
	for _, e := range events {
		w.State = engine.Apply(w.State, e)
		w.History.AddEvent(w, e)
		v.Event(w, e)
	}
}

// history lists the phases, steps and loops of the walk in the order of their first event.
type history struct {
	phases []phaseHistory
	steps  []stepHistory
	loops  []loopHistory
}

// phaseHistory counts the events of one phase.
type phaseHistory struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Entered and Skipped count the entries and skips. Reason is the reason of the last
	// skip.
	Entered int    `json:"entered"`
	Skipped int    `json:"skipped"`
	Reason  string `json:"reason,omitempty"`
}

// stepHistory counts the events of one step, or of a skipped loop.
type stepHistory struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Phase is the id of the phase in a phase workflow, in which ids are unique only within
	// a phase.
	Phase string `json:"phase,omitempty"`
	Done  int    `json:"done"`
	// Revised counts the outputs that were not confirmed.
	Revised int `json:"revised,omitempty"`
	// Skipped counts the skips. Reason is the reason of the last skip.
	Skipped int    `json:"skipped"`
	Reason  string `json:"reason,omitempty"`
}

// loopHistory counts the rounds of one loop.
type loopHistory struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Phase  string `json:"phase,omitempty"`
	Rounds int    `json:"rounds"`
	// Ended is the reason for the end of the loop. It is empty while the loop runs.
	Ended string `json:"ended,omitempty"`
}

// String returns the totals.
func (p history) String() string {
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

func (p *history) AddEvent(w *Walk, e engine.Event) {
	switch e.Kind {
	case engine.EventPhaseEntered:
		p.phaseEntry(w, e).Entered++
	case engine.EventPhaseSkipped:
		phase := p.phaseEntry(w, e)
		phase.Skipped++
		phase.Reason = e.Reason
	case engine.EventStepCompleted:
		p.stepEntry(w, e).Done++
	case engine.EventStepSkipped:
		step := p.stepEntry(w, e)
		step.Skipped++
		step.Reason = e.Reason
	case engine.EventLoopEntered, engine.EventRoundStarted:
		p.loopEntry(w, e).Rounds = e.Round
	case engine.EventLoopStarted:
		p.loopEntry(w, e).Ended = ""
	case engine.EventLoopIteration: // a loop runs again if its phase is entered again
		p.loopEntry(w, e).Rounds++
	case engine.EventLoopEnded, engine.EventLoopCompleted, engine.EventLoopBroken:
		p.loopEntry(w, e).Ended = e.Reason
	case engine.EventGateAnswered:
		p.addGateAnswer(w, e)
	}
}

// addGateAnswer counts an answer. The answer "revise" undoes the completion of the step.
func (p *history) addGateAnswer(w *Walk, e engine.Event) {
	step := p.stepEntry(w, e)
	switch e.Option {
	case engine.OptionSkip:
		step.Skipped++
		step.Reason = "skipped at its gate"
	case engine.OptionRevise:
		step.Done--
		step.Revised++
	}
}

func (p *history) phaseEntry(w *Walk, e engine.Event) *phaseHistory {
	same := func(f phaseHistory) bool { return f.ID == e.Step }
	return findOrAdd(&p.phases, same, phaseHistory{ID: e.Step, Title: w.Workflow.eventTitle(e)})
}

func (p *history) stepEntry(w *Walk, e engine.Event) *stepHistory {
	phase := w.Workflow.eventPhaseID(e)
	same := func(s stepHistory) bool { return s.ID == e.Step && s.Phase == phase }
	return findOrAdd(&p.steps, same, stepHistory{ID: e.Step, Title: w.Workflow.eventTitle(e), Phase: phase})
}

func (p *history) loopEntry(w *Walk, e engine.Event) *loopHistory {
	phase := w.Workflow.eventPhaseID(e)
	same := func(l loopHistory) bool { return l.ID == e.Step && l.Phase == phase }
	return findOrAdd(&p.loops, same, loopHistory{ID: e.Step, Title: w.Workflow.eventTitle(e), Phase: phase})
}

// findOrAdd returns the element of a list that same accepts, or adds one.
func findOrAdd[T any](list *[]T, same func(T) bool, added T) *T {
	i := slices.IndexFunc(*list, same)
	if i < 0 {
		i = len(*list)
		*list = append(*list, added)
	}
	return &(*list)[i]
}

// summary is the result of a walk.
type summary struct {
	Status engine.Status `json:"status"`
	// Position is the last position of a walk that did not complete.
	Position  *engine.Position `json:"position,omitempty"`
	Phases    []phaseHistory   `json:"phases,omitempty"`
	Steps     []stepHistory    `json:"steps"`
	Loops     []loopHistory    `json:"loops"`
	Variables map[string]any   `json:"variables"`
}

func (w *Walk) newSummary() summary {
	s := summary{
		Status: w.Workflow.Status(w.State), Phases: w.History.phases, Steps: app.OrEmpty(w.History.steps), Loops: app.OrEmpty(w.History.loops),
		Variables: w.State.Vars,
	}
	if pos := w.Workflow.PositionOf(w.State); pos.Kind != engine.PositionEnd {
		s.Position = &pos
	}
	return s
}
