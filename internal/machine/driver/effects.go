package driver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
)

// factOf decodes an engine event.
func factOf(e run.Event) (machineengine.Event, error) {
	var fact machineengine.Event
	err := json.Unmarshal(e.Data, &fact)
	return fact, err
}

// millisSince returns the elapsed time in milliseconds.
func (d *drive) millisSince(since time.Time) int64 { return d.s.clock().Sub(since).Milliseconds() }

// callHandler calls a function of the script. A handler has no external effects, so it
// needs no intent: after a crash it is called again.
func (d *drive) callHandler(ctx context.Context, h *machineengine.Handler) error {
	if err := d.flushResults(ctx); err != nil {
		return err
	}
	begun := d.s.clock()
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%s %d %s", d.l.rec.ID, len(d.l.state.Visited), h.Step)
	call := HandlerCall{
		Source: d.l.program.Script, File: d.l.program.ScriptFile, Function: h.Function, This: h.This, Now: begun, Seed: seed.Sum64(),
		WantsResult: h.Step == machineengine.StepTransition || h.Step == machineengine.StepError,
	}
	if err := d.confirmLease(ctx); err != nil {
		return err
	}
	result, failed := d.s.o.Handlers.Call(ctx, call)
	e := machineengine.Event{Kind: machineengine.KindHandlerResult, State: d.l.state.At, Step: h.Step, Function: h.Function, Took: d.millisSince(begun)}
	var wrong *HandlerError
	switch {
	case errors.As(failed, &wrong):
		e.Console = wrong.Console
		e.Error = &machineengine.RunError{
			Kind: machineengine.ErrorKindHandler, Message: fmt.Sprintf("the handler %s failed: %s", h.Function, wrong.Message),
			File: wrong.File, Line: wrong.Line, Column: wrong.Column, Fix: "fix the script, then start a new run: a fork uses the old script",
		}
		d.addSourcePlace(e.Error, h.Function)
		return d.addEvent(e)
	case failed != nil:
		if ctx.Err() != nil {
			return d.interruptedError(ctx.Err())
		}
		return guideway.Errorf(guideway.CodeUnavailable, "call the handler %s: %w", h.Function, failed).
			WithFix("guideway machine resume %s", d.l.rec.ID)
	}
	e.Console, e.Contexts = result.Console, result.Contexts
	e.Set, e.Unset = diffData(d.l.state.Data, result.Data)
	if h.Step == machineengine.StepTransition || h.Step == machineengine.StepError {
		if e.Next, e.Error = d.l.program.Transition(&d.l.state, h.Step, result.Value); e.Error != nil {
			e.Set, e.Unset, e.Contexts = nil, nil, nil
			d.addSourcePlace(e.Error, h.Function)
		}
	}
	return d.addEvent(e)
}

// addSourcePlace sets the place of an error that has none, such as a timeout or an invalid
// answer, to the place of the function in the script.
func (d *drive) addSourcePlace(f *machineengine.RunError, function string) {
	if f.Line > 0 {
		return
	}
	if f.File = d.l.program.ScriptFile; f.File == "" {
		f.File = "script.js"
	}
	f.Line, f.Column = machinedef.FunctionPlace(d.l.program.Script, function)
}

// diffData returns the changes between two versions of common_data.
func diffData(before, after map[string]json.RawMessage) (set map[string]json.RawMessage, unset []string) {
	for name, value := range after {
		if old, ok := before[name]; ok && bytes.Equal(old, value) {
			continue
		}
		if set == nil {
			set = map[string]json.RawMessage{}
		}
		set[name] = value
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			unset = append(unset, name)
		}
	}
	return set, unset
}

// callModel sends a request: it appends the intent before and the result after it.
func (d *drive) callModel(ctx context.Context, c *machineengine.ModelCall) error {
	chosen, err := d.s.o.Models.Model(d.l.runScope(), c.Level, c.Request.Model)
	if err != nil {
		return d.addEvent(machineengine.Event{Kind: machineengine.KindPaused, Pause: &machineengine.Pause{
			Code: machineengine.ErrorKindNoModel, Message: fmt.Sprintf("there is no model for the agent %s: %v", c.Agent, err), Fix: guideway.ErrorFix(err),
		}})
	}
	release, err := d.s.requests.acquire(ctx, chosen.Provider, func() error { return d.flushResults(ctx) })
	if err != nil {
		return d.interruptedError(err)
	}
	defer release()
	r := c.Request
	// The index does not count an attempt whose outcome is unknown.
	r.Model, r.Key = chosen.Name, fmt.Sprintf("%s-%d", d.l.rec.ID, d.l.state.Index)
	if r.MaxTokens == 0 {
		r.MaxTokens = chosen.MaxTokens
	}
	err = d.addEvent(machineengine.Event{
		Kind: machineengine.KindModelIntent, State: d.l.state.At, Call: c.Call, Attempt: c.Attempt, Agent: c.Agent, Model: r.Model, Hash: machineengine.RequestHash(r),
	})
	if err != nil {
		return err
	}
	if err := d.flushEvents(ctx); err != nil {
		return err
	}
	if !d.l.awaitsResult(machineengine.Event{Kind: machineengine.KindModelResult, Call: c.Call, Attempt: c.Attempt}) {
		return nil // a command of another process came in between: decide again
	}
	begun, state := d.s.clock(), d.l.state.At
	response, failed, err := d.sendRequest(ctx, c, r, &chosen)
	if err != nil {
		return err
	}
	if failed != nil && ctx.Err() != nil {
		return d.interruptedError(ctx.Err()) // the intent stays, because the outcome is unknown
	}
	e := machineengine.Event{Kind: machineengine.KindModelResult, State: state, Call: c.Call, Attempt: c.Attempt, Agent: c.Agent, Took: d.millisSince(begun)}
	if failed != nil {
		d.recordFailure(&e, llm.AsError(failed), &chosen)
	} else {
		e.Response, e.Cost = response, chosen.requestCost(response.Usage)
		if e.Error = d.l.program.CheckResponse(&d.l.state, response); e.Error != nil {
			d.scheduleRetry(&e, 0)
		}
	}
	return d.addResult(e)
}

// sendRequest calls the model. failed is the error of the request, err the error of the
// drive.
func (d *drive) sendRequest(ctx context.Context, c *machineengine.ModelCall, r llm.Request, chosen *SelectedModel) (response *llm.Response, failed, err error) {
	timeout := cmp.Or(chosen.Timeout, modelTimeout)
	state, id := d.l.state.At, d.l.rec.ID
	ctx, end := d.beginActivity(ctx, Activity{Kind: ActivityModel, Agent: c.Agent, Attempt: c.Attempt, Provider: chosen.Provider, Request: &r})
	defer func() { end(ActivityResult{Response: response, Err: errors.Join(err, failed)}) }()
	if err := d.confirmLease(ctx); err != nil {
		return nil, nil, err
	}
	limited, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	response, failed = chosen.Complete(limited, r, func(delta llm.Delta) {
		d.observe(Update{RunID: id, Delta: delta, Agent: c.Agent, State: state})
	})
	if failed != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		failed = &llm.Error{Kind: llm.Timeout, Message: fmt.Sprintf("the model %s did not complete its answer within %s, the time limit of a request (timeout of the model in guideway.json)", r.Model, timeout)}
	}
	return response, failed, nil
}

// recordFailure sets the error, the cost and the next attempt of a failed request.
func (d *drive) recordFailure(e *machineengine.Event, err *llm.Error, chosen *SelectedModel) {
	e.Error = &machineengine.RunError{Kind: string(err.Kind), Message: err.Error(), Fix: guideway.ErrorFix(err), Transient: err.Transient()}
	e.Cost = chosen.requestCost(err.Usage)
	if err.Usage != (llm.Usage{}) {
		e.Usage = &machineengine.Usage{Tokens: err.Usage}
	}
	d.scheduleRetry(e, err.RetryAfter)
}

// scheduleRetry sets the time of the next attempt, or makes the error permanent if the
// server asks for too long a wait.
func (d *drive) scheduleRetry(e *machineengine.Event, asked time.Duration) {
	if !e.Error.Transient {
		return
	}
	wait, ok := machineengine.Backoff(d.l.state.Attempts+1, asked)
	if !ok {
		e.Error.Transient = false
		e.Error.Message += fmt.Sprintf("; the server asks to wait %s, longer than the maximum of %s", asked, machineengine.LongestWait)
		return
	}
	until := d.s.clock().Add(wait)
	e.Until = &until
}

// addResult adds the result of an external call. It is appended before the next external
// call, in the same write as the next intent if one follows.
func (d *drive) addResult(e machineengine.Event) error {
	if err := d.addEvent(e); err != nil {
		return err
	}
	d.l.pending = len(d.l.buffer)
	return nil
}

// callTool calls a tool: it appends the intent before and the result after it.
func (d *drive) callTool(ctx context.Context, c machineengine.ToolCall) error {
	if c.Attempt <= 1 { // all attempts of a call have the same key
		c.Key = d.l.rec.ID + "-" + c.Key
	}
	err := d.addEvent(machineengine.Event{Kind: machineengine.KindToolIntent, State: d.l.state.At, Agent: agentOf(d.l), Tool: &c})
	if err != nil {
		return err
	}
	if err := d.flushEvents(ctx); err != nil {
		return err
	}
	if !d.l.awaitsResult(machineengine.Event{Kind: machineengine.KindToolResult, Tool: &c}) {
		return nil // a command of another process came in between: decide again
	}
	if err := d.confirmLease(ctx); err != nil {
		return err
	}
	begun := d.s.clock()
	inner, end := d.beginActivity(ctx, Activity{Kind: ActivityTool, Agent: agentOf(d.l), Attempt: c.Attempt, Tool: &c})
	inner, stop := context.WithTimeout(inner, cmp.Or(d.l.program.Policy(c.Name).Timeout, toolTimeout))
	defer stop()
	result, err := d.s.o.Tools.Call(inner, d.l.runScope(), c)
	end(ActivityResult{Result: &result, Err: err})
	e := machineengine.Event{Kind: machineengine.KindToolResult, State: d.l.state.At, Agent: agentOf(d.l), Tool: &c, Took: d.millisSince(begun)}
	switch {
	case err == nil:
		e.Result = &result
	case errors.Is(err, ErrNotCalled):
		e.Result = &machineengine.ToolResult{Content: err.Error(), Error: true}
	case ctx.Err() != nil:
		return d.interruptedError(ctx.Err())
	default:
		e.Unknown = true
		e.Error = &machineengine.RunError{Kind: machineengine.ErrorKindUnknownOutcome, Message: err.Error()}
	}
	return d.addResult(e)
}

// agentOf returns the agent of the current state.
func agentOf(l *loaded) string {
	if st := l.program.State(l.state.At); st != nil {
		return st.Agent
	}
	return ""
}

// resolveIntent handles an intent without a result, which remains if a process ended during
// the call. rest reports whether the run waits.
func (d *drive) resolveIntent(ctx context.Context, intent *machineengine.Event) (rest bool, err error) {
	switch intent.Kind {
	case machineengine.KindModelIntent:
		f := &machineengine.RunError{Kind: machineengine.ErrorKindUnknownOutcome, Message: "the process ended before the answer of the model arrived", Transient: true}
		return false, d.addEvent(machineengine.Event{
			Kind: machineengine.KindModelResult, State: intent.State, Call: intent.Call, Attempt: intent.Attempt, Agent: intent.Agent, Error: f, Unknown: true,
		})
	case machineengine.KindToolIntent:
		return false, d.addEvent(machineengine.Event{
			Kind: machineengine.KindToolResult, State: intent.State, Agent: intent.Agent, Tool: intent.Tool, Unknown: true,
			Error: &machineengine.RunError{Kind: machineengine.ErrorKindUnknownOutcome, Message: "the process ended before the result of the tool arrived"},
		})
	default:
		return d.driveSubMachine(ctx, intent)
	}
}

// maxDepth limits the nesting of machines.
const maxDepth = 5

// startSubMachine appends the intent of a sub-machine.
func (d *drive) startSubMachine(ctx context.Context, c *machineengine.SubCall) error {
	st := &d.l.state
	if st.Depth >= maxDepth {
		return d.addEvent(machineengine.Event{Kind: machineengine.KindPaused, Pause: &machineengine.Pause{
			Code: machineengine.ErrorKindSubMachine, Message: fmt.Sprintf("machines can be nested at most %d levels deep", maxDepth),
			Fix: "remove a level of sub_machine, then start a new run",
		}})
	}
	id := subRunID(d.l.rec.ID, d.l.seq+int64(len(d.l.buffer)))
	if err := d.addEvent(machineengine.Event{Kind: machineengine.KindSubIntent, State: st.At, Machine: c.Machine, Run: id, Inputs: c.Inputs}); err != nil {
		return err
	}
	return d.flushEvents(ctx)
}

// driveSubMachine drives the sub-machine of an intent and starts it if necessary.
func (d *drive) driveSubMachine(ctx context.Context, intent *machineengine.Event) (rest bool, err error) {
	l := d.l
	child, _, err := d.s.loadRun(ctx, l.rec.User, intent.Run, 0)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		child, err = d.s.createRun(ctx, newRun{
			id: intent.Run, machine: intent.Machine, inputs: intent.Inputs, by: d.s.serverBy(l), project: l.rec.Project,
			goal: l.rec.Goal, parent: l.rec.ID, parentSeq: l.seq, index: l.state.Index, depth: l.state.Depth + 1, most: remainingLimits(&l.state),
			demo: l.state.Demo, allow: l.state.Allow, guided: l.state.Guided,
		})
		if code := guideway.ErrorCode(err); code == guideway.CodeNotFound || code == guideway.CodeInvalid || code == guideway.CodeInvalidDefinition {
			return false, d.addResult(machineengine.Event{Kind: machineengine.KindSubResult, Run: intent.Run, Error: &machineengine.RunError{
				Kind: machineengine.ErrorKindSubMachine, Message: fmt.Sprintf("the machine %s cannot be started: %v", intent.Machine, err), Fix: guideway.ErrorFix(err),
			}})
		}
	}
	if err != nil {
		return false, err
	}
	if d.s.needsDrive(child) {
		// Jobs are for the outermost run, which drives the others.
		if d.wait, err = d.s.driveRun(ctx, l.rec.User, intent.Run, func(u Update) { u.Depth++; d.observe(u) }, false); err != nil {
			return false, err
		}
		if child, _, err = d.s.loadRun(ctx, l.rec.User, intent.Run, 0); err != nil {
			return false, err
		}
		if d.wait > 0 || ctx.Err() == nil && d.s.needsDrive(child) {
			return true, nil // the sub-machine waits, or another process drives it
		}
	}
	if child, err = d.endFailedChild(ctx, child, intent); err != nil {
		return false, err
	}
	e := machineengine.Event{Kind: machineengine.KindSubResult, State: l.state.At, Run: intent.Run, Usage: &child.state.Usage, Index: child.state.Index - l.state.Index, Guided: child.state.Guided}
	switch child.state.Status {
	case machineengine.StatusCompleted:
		e.Value = child.state.Output
		if st := l.program.State(l.state.At); st != nil && st.Sub != nil {
			e.Next = st.Sub.Output
		}
	case machineengine.StatusCancelled:
		e.Error = &machineengine.RunError{Kind: machineengine.ErrorKindSubMachine, Message: strings.TrimSuffix(fmt.Sprintf("the machine %s was cancelled: %s", intent.Machine, child.state.Reason), ": ")}
	default:
		return true, nil // the sub-machine waits or is paused
	}
	return false, d.addResult(e)
}

// endFailedChild cancels a sub-machine that failed permanently if the state has an error
// handler, which then gets the error as the reason. Without one, the run waits until a
// person resumes the sub-machine.
func (d *drive) endFailedChild(ctx context.Context, child *loaded, intent *machineengine.Event) (*loaded, error) {
	st := d.l.program.State(d.l.state.At)
	if st == nil || st.OnError == "" || child.state.Status.Ended() {
		return child, nil
	}
	user := d.l.rec.User
	caller := run.Caller{Principal: guideway.Principal{User: user, Client: d.s.serverBy(d.l).Client}, Via: run.ViaServer}
	inner, err := d.s.innermostRun(ctx, caller, intent.Run)
	if err != nil {
		return nil, err
	}
	failed, _, err := d.s.loadRun(ctx, user, inner, 0)
	if err != nil || failed.state.Pause == nil || failed.state.Pause.Error == nil {
		return child, err
	}
	if _, err := d.s.Cancel(ctx, caller, intent.Run, "the sub-machine failed: "+failed.state.Pause.Message); err != nil {
		return nil, err
	}
	child, _, err = d.s.loadRun(ctx, user, intent.Run, 0)
	return child, err
}
