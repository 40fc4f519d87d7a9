package driver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// The rules that this package refuses by.
const (
	// RuleNotWaiting is an input that the run does not wait for.
	RuleNotWaiting = "machine-not-waiting"
	// RulePerson is an input that only a person may give.
	RulePerson = "machine-person"
	// RuleEnded is a run that is at its end.
	RuleEnded = "machine-ended"
	// RuleBudget is a run that goes on only with a larger budget.
	RuleBudget = "machine-budget"
	// RulePermit is a run whose beginner may not have it go on any more.
	RulePermit = "machine-permit"
	// RuleOutcome is a decision on a call that nobody asked for.
	RuleOutcome = "machine-outcome"
)

// attempts is how often a command is decided anew after another one was faster.
const attempts = 20

// change decides a command on a run and appends what follows from it, as often as
// another one comes in between.
func (s *Service) change(ctx context.Context, c run.Caller, id string, decide func(*loaded) error) (*Status, error) {
	for n := 1; ; n++ {
		l, _, err := s.load(ctx, c.User, id, 0)
		if err != nil {
			return nil, err
		}
		if err := decide(l); err != nil {
			return nil, err
		}
		err = s.flush(ctx, l, by(c))
		if err == nil {
			return s.tell(ctx, l)
		}
		if guideway.ErrorCode(err) != guideway.CodeConflict || n == attempts || ctx.Err() != nil {
			return nil, err
		}
	}
}

// refused makes a refusal that leaves the run where it is.
func refused(id, rule, message, fix string) *run.Refusal {
	return &run.Refusal{
		Code: guideway.CodeRefused, Rule: rule, Message: message, Fix: fix, RunID: id,
		Next: &run.Call{Tool: "machine_status", Arguments: map[string]any{"runId": id}},
	}
}

// Input gives a run the value that it waits for. Where the run waits for a machine
// within it, that one gets it. The run is not driven by it.
func (s *Service) Input(ctx context.Context, c run.Caller, id string, value json.RawMessage) (*Status, error) {
	if id, err := s.innermost(ctx, c, id); err == nil {
		return s.input(ctx, c, id, value)
	}
	return s.input(ctx, c, id, value)
}

func (s *Service) input(ctx context.Context, c run.Caller, id string, value json.RawMessage) (*Status, error) {
	return s.change(ctx, c, id, func(l *loaded) error {
		in := l.asks()
		if in == nil {
			return refused(id, RuleNotWaiting, fmt.Sprintf("the run does not wait for an input: it is %s", l.state.Status), "look where it stands")
		}
		if in.Person && !c.Via.Person() {
			return refused(id, RulePerson, "only a person may give this input",
				"ask the person to give it at a terminal: guideway machine input "+id)
		}
		checked := in.Default
		if len(value) > 0 || checked == nil {
			var err error
			if checked, err = checkValue(in, orNull(value)); err != nil {
				return err
			}
		}
		return l.add(machineengine.Event{Kind: machineengine.KindInputGiven, State: l.state.At, Value: checked})
	})
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

// innermost finds the run that waits within another.
func (s *Service) innermost(ctx context.Context, c run.Caller, id string) (string, error) {
	for range maxDepth + 1 {
		l, _, err := s.load(ctx, c.User, id, 0)
		if err != nil {
			return "", err
		}
		p := l.state.Pending
		if p == nil || p.Kind != machineengine.KindSubIntent {
			return id, nil
		}
		if _, _, err := s.load(ctx, c.User, p.Run, 0); err != nil {
			return id, nil // it was not begun yet
		}
		id = p.Run
	}
	return id, nil
}

// Decide says what became of a call of a tool whose outcome is not known.
func (s *Service) Decide(ctx context.Context, c run.Caller, id string, decision machineengine.Decision, result string) (*Status, error) {
	inner, err := s.innermost(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, c, inner, func(l *loaded) error {
		if l.state.Status != machineengine.StatusPaused || l.state.Unknown == nil {
			return refused(inner, RuleOutcome, "no call of this run has an unknown outcome that somebody must decide on", "look where it stands")
		}
		e := machineengine.Event{Kind: machineengine.KindToolDecided, State: l.state.At, Tool: l.state.Unknown, Decision: decision}
		switch decision {
		case machineengine.DecideRetry:
		case machineengine.DecideDone:
			e.Result = &machineengine.ToolResult{Content: result}
		case machineengine.DecideFailed:
			if result == "" {
				result = "The tool failed; nobody knows how far it came."
			}
			e.Result = &machineengine.ToolResult{Content: result, Error: true}
		default:
			return guideway.Errorf(guideway.CodeInvalid, "there is no outcome %q", decision).WithFix("use retry, done or failed")
		}
		return l.add(e)
	})
}

// Resume lets a paused run go on, or the one within it that is. Limits that are not
// zero take the place of that run's; one whose budget is used up goes on only with
// more of that than it has used.
func (s *Service) Resume(ctx context.Context, c run.Caller, id string, limits machineengine.Limits) (*Status, error) {
	if inner, err := s.innermost(ctx, c, id); err == nil {
		id = inner
	}
	return s.change(ctx, c, id, func(l *loaded) error {
		st := &l.state
		switch {
		case st.Status.Ended():
			return refused(id, RuleEnded, fmt.Sprintf("the run is %s", st.Status), "fork it, or start a new one")
		case st.Status != machineengine.StatusPaused:
			return nil // it goes on by itself
		case st.Unknown != nil && st.Pause.Code == machineengine.FaultUnknown:
			return refused(id, RuleOutcome, st.Pause.Message, st.Pause.Fix)
		case st.Pause.Code == machineengine.PausePermit:
			if why, err := s.forbids(ctx, l); err != nil || why != "" {
				return orRefused(err, refused(id, RulePermit, why, st.Pause.Fix))
			}
		}
		e := machineengine.Event{Kind: machineengine.KindResumed}
		if raised := merge(st.Limits, limits); raised != st.Limits {
			e.Limits = &raised
		}
		if p := st.Pause; p.Code == machineengine.PauseBudget && limitOf(merge(st.Limits, limits), p.Budget) <= p.Used {
			return refused(id, RuleBudget, p.Message, "raise it: guideway machine resume "+id+" --"+flagOf(p.Budget)+" N")
		}
		return l.add(e)
	})
}

// orRefused gives the error where there is one, or else the refusal.
func orRefused(err error, r *run.Refusal) error {
	if err != nil {
		return err
	}
	return r
}

// limitOf gives one budget of several, in the unit of a pause.
func limitOf(l machineengine.Limits, budget string) int64 {
	switch budget {
	case "states":
		return int64(l.States)
	case "calls":
		return int64(l.Calls)
	case "tokens":
		return int64(l.Tokens)
	case "cost":
		return l.Cost
	case "time":
		return l.Millis
	default:
		return int64(l.ToolCalls)
	}
}

// flagOf is the flag of the command line that raises a budget.
func flagOf(budget string) string {
	if budget == "toolCalls" {
		return "tool-calls"
	}
	return budget
}

// Cancel ends a run for good, and those within it. To cancel one that is cancelled
// changes nothing.
func (s *Service) Cancel(ctx context.Context, c run.Caller, id, reason string) (*Status, error) {
	var child string
	status, err := s.change(ctx, c, id, func(l *loaded) error {
		switch l.state.Status {
		case machineengine.StatusCancelled:
			return nil
		case machineengine.StatusCompleted:
			return refused(id, RuleEnded, "the run is completed", "there is nothing to cancel")
		}
		if p := l.state.Pending; p != nil && p.Kind == machineengine.KindSubIntent {
			child = p.Run
		}
		return l.add(machineengine.Event{Kind: machineengine.KindCancelled, Reason: cut(reason, 4<<10)})
	})
	if err == nil && child != "" {
		if _, err := s.Cancel(ctx, c, child, reason); err != nil && guideway.ErrorCode(err) != guideway.CodeRefused && guideway.ErrorCode(err) != guideway.CodeNotFound {
			return status, err
		}
	}
	return status, err
}

// Fork makes a new run that has had the same events up to one, and goes its own
// way from there: what models and tools have answered until then is not asked
// again. seq 0 is the last event of a run that can go on from it.
func (s *Service) Fork(ctx context.Context, c run.Caller, id string, seq int64) (*Status, error) {
	old, events, err := s.load(ctx, c.User, id, 0)
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		seq = lastOpen(old, events)
	}
	if seq < 2 || seq > old.rec.Seq {
		r := refused(id, run.RuleUnknownSeq, fmt.Sprintf("the run cannot be forked at event %d: it has events 2 to %d", seq, old.rec.Seq), "guideway machine show "+id+" lists them")
		return nil, r
	}
	created := old.created
	created.Parent, created.ParentSeq = id, seq
	l, err := s.create(newRunID(s.clock()), created, old.program, by(c))
	if err != nil {
		return nil, err
	}
	for _, e := range events[1:seq] {
		switch e.Kind {
		case KindLeaseTaken, KindLeaseKept, KindLeaseReleased:
			continue
		}
		fact, err := factOf(e)
		if err != nil {
			return nil, broken(id, e.Seq, err.Error())
		}
		if err := l.add(fact); err != nil {
			return nil, err
		}
		last := &l.buffer[len(l.buffer)-1]
		last.At, last.By = e.At, e.By
	}
	if l.state.Status.Ended() {
		return nil, refused(id, run.RuleUnknownSeq, "there is nothing to do behind that event", "fork at an earlier one")
	}
	if err := s.flush(ctx, l, by(c)); err != nil {
		return nil, err
	}
	return s.tell(ctx, l)
}

// lastOpen is the last event behind which there is something to do.
func lastOpen(l *loaded, events []run.Event) int64 {
	for i := len(events) - 1; i > 0; i-- {
		switch machineengine.Kind(events[i].Kind) {
		case machineengine.KindCompleted, machineengine.KindCancelled, KindLeaseReleased:
			continue
		}
		return events[i].Seq
	}
	return l.rec.Seq
}
