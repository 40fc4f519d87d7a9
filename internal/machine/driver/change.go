package driver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// The rules of this package's refusals.
const (
	// RuleNotWaiting refuses an input that the run does not request.
	RuleNotWaiting = "machine-not-waiting"
	// RulePerson refuses an input that only a person may enter.
	RulePerson = "machine-person"
	// RuleQuestion refuses an answer to another question than the one that the run asks now.
	RuleQuestion = "machine-question"
	// RuleEnded refuses a command on a run that has ended.
	RuleEnded = "machine-ended"
	// RuleBudget refuses to resume a run whose budget is exhausted.
	RuleBudget = "machine-budget"
	// RulePermit refuses to resume a run whose user lost the permission to continue it.
	RulePermit = "machine-permit"
	// RuleTools refuses to continue a run whose tools or hook graphs changed.
	RuleTools = "machine-tools"
	// RuleOutcome refuses a decision on a call that needs none.
	RuleOutcome = "machine-outcome"
)

const (
	// attempts limits the retries of a command after a conflict.
	attempts = 20
	// maxRefusedInputs bounds the refusals that are recorded per input request,
	// maxRefusedBytes the recorded value.
	maxRefusedInputs = 20
	maxRefusedBytes  = 16 << 10
)

// changeRun applies a command to a run and appends the resulting events, with a job for the
// outermost run that waits for it. It retries on a conflict.
func (s *Service) changeRun(ctx context.Context, c run.Caller, id string, decide func(*loaded) error) (*Status, error) {
	var job *run.Job
	if s.o.Schedule {
		l, _, err := s.loadRun(ctx, c.User, id, 0)
		if err != nil {
			return nil, err
		}
		outermost, err := s.OutermostRun(ctx, l.rec.User, id)
		if err != nil {
			return nil, err
		}
		job = &run.Job{User: l.rec.User, Run: outermost}
	}
	for n := 1; ; n++ {
		l, _, err := s.loadRun(ctx, c.User, id, 0)
		if err != nil {
			return nil, err
		}
		if err := decide(l); err != nil {
			return nil, err
		}
		if l.job = job; job != nil && len(l.buffer) == 0 {
			err = s.o.Store.Schedule(ctx, *job)
		} else {
			err = s.flushEvents(ctx, l, run.ByCaller(c))
		}
		if err == nil {
			return s.buildStatus(ctx, l)
		}
		if guideway.ErrorCode(err) != guideway.CodeConflict || n == attempts || ctx.Err() != nil {
			return nil, err
		}
	}
}

// newRefusal returns a refusal that leaves the run unchanged.
func newRefusal(id, rule, message, fix string) *run.Refusal {
	return &run.Refusal{
		Code: guideway.CodeRefused, Rule: rule, Message: message, Fix: fix, RunID: id,
		Next: &run.Call{Tool: "machine_status", Arguments: map[string]any{"runId": id}},
	}
}

// InputAnswer is the answer to an input request.
type InputAnswer struct {
	// Question is the Status.Question that the answer belongs to. An answer that only a
	// person may give must have it: the person approves what was shown, and not a question
	// that the run has asked since.
	Question string
	// Value is the input; empty means the default.
	Value json.RawMessage
	// Guided is like StartRequest.Guided, for the client that answers.
	Guided []string
}

// Input answers the input request of a run, or of the sub-machine that the run waits for.
// It does not drive the run.
func (s *Service) Input(ctx context.Context, c run.Caller, id string, answer InputAnswer) (*Status, error) {
	if inner, err := s.innermostRun(ctx, c, id); err == nil {
		id = inner
	}
	value := answer.Value
	return s.changeRun(ctx, c, id, func(l *loaded) error {
		in := l.requestedInput()
		if in == nil {
			return newRefusal(id, RuleNotWaiting, fmt.Sprintf("the run is not waiting for an input: it is %s", l.state.Status), "check the status of the run: guideway machine status "+id)
		}
		if in.Person && !c.Approves() {
			r := newRefusal(id, RulePerson, fmt.Sprintf("only a person may give the input %q", in.Name),
				"ask the person to enter the input in the dashboard, on the page of the run, or at a terminal: guideway machine input "+id)
			r.Next = nil // no call of an agent continues the run
			s.recordRefusedInput(ctx, c, l, RulePerson, value)
			return r
		}
		if answer.Question != "" || in.Person {
			if err := l.checkQuestion(answer.Question); err != nil {
				return err
			}
		}
		checked := in.Default
		if len(value) > 0 || checked == nil {
			var err error
			if checked, err = checkValue(in, orNull(value)); err != nil {
				return err
			}
		}
		return l.addEvent(machineengine.Event{Kind: machineengine.KindInputGiven, State: l.state.At, Value: checked, Guided: answer.Guided})
	})
}

// checkQuestion refuses an answer to another question than the one that the run asks.
func (l *loaded) checkQuestion(answered string) error {
	if answered == l.question() {
		return nil
	}
	r := newRefusal(l.rec.ID, RuleQuestion, "the answer does not have the id of the current question of the run", "read the current question of the run, and send the id of that question with the answer")
	r.Given, r.Allowed = answered, l.question()
	return r
}

// recordRefusedInput records a refused input for observers. The refusal is valid even if it
// cannot be recorded.
func (s *Service) recordRefusedInput(ctx context.Context, c run.Caller, l *loaded, rule string, value json.RawMessage) {
	if l.state.RefusedInputs >= maxRefusedInputs {
		return
	}
	if len(value) > maxRefusedBytes {
		value, _ = json.Marshal(run.Truncate(string(value), maxRefusedBytes)) // a string always has a JSON form
	}
	err := l.addEvent(machineengine.Event{Kind: machineengine.KindInputRefused, State: l.state.At, Reason: rule, Value: value})
	if err == nil {
		err = s.flushEvents(ctx, l, run.ByCaller(c))
	}
	if err != nil && guideway.ErrorCode(err) != guideway.CodeConflict {
		s.o.Logger.WarnContext(ctx, "cannot record a refused input", "run", l.rec.ID, "error", err)
	}
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

// innermostRun returns the id of the most deeply nested run that a run waits for. A nested
// run that has ended is not waited for: its parent continues.
func (s *Service) innermostRun(ctx context.Context, c run.Caller, id string) (string, error) {
	for range maxDepth + 1 {
		l, _, err := s.loadRun(ctx, c.User, id, 0)
		if err != nil {
			return "", err
		}
		p := l.state.Pending
		if p == nil || p.Kind != machineengine.KindSubIntent {
			return id, nil
		}
		if child, _, err := s.loadRun(ctx, c.User, p.Run, 0); err != nil || child.state.Status.Ended() {
			return id, nil // not started yet, or ended
		}
		id = p.Run
	}
	return id, nil
}

// OutermostRun returns the id of the run that waits, directly or through other runs, for the
// end of a run; that is the run itself if no run waits for it. To drive the outermost run
// drives all of them.
func (s *Service) OutermostRun(ctx context.Context, user, id string) (string, error) {
	for range maxDepth + 1 {
		rec, err := s.o.Journal.Run(ctx, id)
		if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && (rec.Parent == "" || rec.User != user) {
			return id, nil // a command on a run that does not exist returns the error
		}
		if err != nil {
			return "", err
		}
		parent, _, err := s.loadRun(ctx, user, rec.Parent, 0)
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			return id, nil
		}
		if err != nil {
			return "", err
		}
		// A fork has a parent, too, which does not wait for the fork.
		if p := parent.state.Pending; p == nil || p.Run != id {
			return id, nil
		}
		id = parent.rec.ID
	}
	return id, nil
}

// OutcomeAnswer is the decision on a call whose outcome is unknown.
type OutcomeAnswer struct {
	// Question is the Status.Question that the decision belongs to. If it is empty, the
	// decision is about the call that the run asks about now.
	Question string
	Decision machineengine.Decision
	// Result is the result of the call, or its error.
	Result string
	// Guided is like StartRequest.Guided, for the client that decides.
	Guided []string
}

// Decide sets the outcome of a tool call whose outcome is unknown.
func (s *Service) Decide(ctx context.Context, c run.Caller, id string, answer OutcomeAnswer) (*Status, error) {
	decision, result := answer.Decision, answer.Result
	inner, err := s.innermostRun(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.changeRun(ctx, c, inner, func(l *loaded) error {
		if l.state.Status != machineengine.StatusPaused || l.state.Unknown == nil {
			return newRefusal(inner, RuleOutcome, "no call of this run has an unknown outcome", "check the status of the run: guideway machine status "+inner)
		}
		if answer.Question != "" {
			if err := l.checkQuestion(answer.Question); err != nil {
				return err
			}
		}
		e := machineengine.Event{Kind: machineengine.KindToolDecided, State: l.state.At, Tool: l.state.Unknown, Decision: decision, Guided: answer.Guided}
		switch decision {
		case machineengine.DecideRetry:
		case machineengine.DecideDone:
			e.Result = &machineengine.ToolResult{Content: result}
		case machineengine.DecideFailed:
			if result == "" {
				result = "The tool failed, possibly after completing part of its work."
			}
			e.Result = &machineengine.ToolResult{Content: result, Error: true}
		default:
			return guideway.Errorf(guideway.CodeInvalid, "there is no outcome %q", decision).WithFix("use retry, done or failed")
		}
		return l.addEvent(e)
	})
}

// Resume continues a paused run, or the paused run nested in it. Limits that are not zero
// replace the limits of the continued run. A run with an exhausted budget resumes only with
// a limit above its usage.
func (s *Service) Resume(ctx context.Context, c run.Caller, id string, limits machineengine.Limits) (*Status, error) {
	asked := id
	if inner, err := s.innermostRun(ctx, c, id); err == nil {
		id = inner
	}
	return s.changeRun(ctx, c, id, func(l *loaded) error {
		st := &l.state
		switch {
		case st.Status.Ended():
			return newRefusal(id, RuleEnded, fmt.Sprintf("the run is %s and cannot be resumed", st.Status), "fork the run: guideway machine fork "+id+"; or start a new run")
		case st.Status != machineengine.StatusPaused:
			return nil // a run that is not paused continues without a command
		case st.Unknown != nil && st.Pause.Code == machineengine.ErrorKindUnknownOutcome:
			return newRefusal(id, RuleOutcome, st.Pause.Message, st.Pause.Fix)
		case st.Pause.Code == machineengine.PausePermit:
			if why, err := s.permitReason(ctx, l); err != nil || why != "" {
				return orRefused(err, newRefusal(id, RulePermit, why, st.Pause.Fix))
			}
		case st.Pause.Code == machineengine.PauseTools:
			if _, _, err := s.pinnedTools(ctx, l); err != nil {
				return err
			}
		}
		e := machineengine.Event{Kind: machineengine.KindResumed}
		if raised := mergeLimits(st.Limits, limits); raised != st.Limits {
			e.Limits = &raised
		}
		if p := st.Pause; p.Code == machineengine.PauseBudget && limitOf(mergeLimits(st.Limits, limits), p.Budget) <= p.Used {
			return newRefusal(id, RuleBudget, p.Message, "raise the budget: guideway machine resume "+asked+" --"+flagOf(p.Budget)+" N")
		}
		return l.addEvent(e)
	})
}

// orRefused returns err if it is not nil, and the refusal otherwise.
func orRefused(err error, r *run.Refusal) error {
	if err != nil {
		return err
	}
	return r
}

// limitOf returns the limit of one budget, in the unit of machineengine.Pause.
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

// flagOf returns the command-line flag that raises a budget.
func flagOf(budget string) string {
	if budget == "toolCalls" {
		return "tool-calls"
	}
	return budget
}

// Cancel ends a run and the runs nested in it. If the run is already cancelled, it only
// records the first cancellation by a person.
func (s *Service) Cancel(ctx context.Context, c run.Caller, id, reason string) (*Status, error) {
	var child string
	status, err := s.changeRun(ctx, c, id, func(l *loaded) error {
		if p := l.state.Pending; p != nil && p.Kind == machineengine.KindSubIntent {
			child = p.Run
		}
		switch l.state.Status {
		case machineengine.StatusCancelled:
			_, events, err := s.loadRun(ctx, c.User, id, 0)
			if err != nil || !c.Via.Person() || isCancelledByPerson(events) {
				return err
			}
		case machineengine.StatusCompleted:
			return newRefusal(id, RuleEnded, "the run is completed and cannot be cancelled", "read its result: guideway machine status "+id)
		}
		l.drive = &run.DriveChange{Kind: run.DriveCancelled}
		return l.addEvent(machineengine.Event{Kind: machineengine.KindCancelled, Reason: run.Truncate(reason, 4<<10)})
	})
	if err == nil {
		s.instance.Interrupt(id)
	}
	if err == nil && child != "" {
		if _, err := s.Cancel(ctx, c, child, reason); err != nil && guideway.ErrorCode(err) != guideway.CodeRefused && guideway.ErrorCode(err) != guideway.CodeNotFound {
			return status, err
		}
	}
	return status, err
}
