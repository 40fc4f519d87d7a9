package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
)

// factOf reads an event of the engine.
func factOf(e run.Event) (machineengine.Event, error) {
	var fact machineengine.Event
	err := json.Unmarshal(e.Data, &fact)
	return fact, err
}

// millis is how long something took.
func (d *drive) millis(since time.Time) int64 { return d.s.clock().Sub(since).Milliseconds() }

// handler calls a function of the script. Nothing outside changes by it, so that
// it needs no intent: after a crash it is called again.
func (d *drive) handler(ctx context.Context, h *machineengine.Handler) error {
	if err := d.pay(ctx); err != nil {
		return err
	}
	begun := d.s.clock()
	type outcome struct {
		result *HandlerResult
		err    error
	}
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%s %d %s", d.l.rec.ID, len(d.l.state.Visited), h.Step)
	call := HandlerCall{
		Source: d.l.program.Script, File: d.l.program.ScriptFile, Function: h.Function, This: h.This, Now: begun, Seed: seed.Sum64(),
		Wants: h.Step == machineengine.StepTransition || h.Step == machineengine.StepError,
	}
	out, err := during(ctx, d, func(ctx context.Context) outcome {
		r, err := d.s.o.Handlers.Call(ctx, call)
		return outcome{r, err}
	})
	if err != nil {
		return err
	}
	e := machineengine.Event{Kind: machineengine.KindHandlerResult, State: d.l.state.At, Step: h.Step, Function: h.Function, Took: d.millis(begun)}
	var wrong *HandlerError
	switch {
	case errors.As(out.err, &wrong):
		e.Console = wrong.Console
		e.Fault = &machineengine.Fault{
			Kind: machineengine.FaultHandler, Message: fmt.Sprintf("the handler %s failed: %s", h.Function, wrong.Message),
			File: wrong.File, Line: wrong.Line, Column: wrong.Column, Fix: "mend the script and start a new run, or fork this one",
		}
		d.placed(e.Fault, h.Function)
		return d.add(e)
	case out.err != nil:
		if ctx.Err() != nil {
			return d.interrupted(ctx.Err())
		}
		return guideway.Errorf(guideway.CodeUnavailable, "call the handler %s: %w", h.Function, out.err)
	}
	e.Console, e.Contexts = out.result.Console, out.result.Contexts
	e.Set, e.Unset = changes(d.l.state.Data, out.result.Data)
	if h.Step == machineengine.StepTransition || h.Step == machineengine.StepError {
		if e.Next, e.Fault = d.l.program.Transition(&d.l.state, h.Step, out.result.Value); e.Fault != nil {
			e.Set, e.Unset, e.Contexts = nil, nil, nil
			d.placed(e.Fault, h.Function)
		}
	}
	return d.add(e)
}

// placed gives a fault that has no place of its own that of the function: one that
// never ends fails nowhere in particular, and one that answers nonsense not at all.
func (d *drive) placed(f *machineengine.Fault, function string) {
	if f.Line > 0 {
		return
	}
	if f.File = d.l.program.ScriptFile; f.File == "" {
		f.File = "script.js"
	}
	f.Line, f.Column = machinedef.FunctionPlace(d.l.program.Script, function)
}

// changes tells two states of common_data apart.
func changes(before, after map[string]json.RawMessage) (set map[string]json.RawMessage, unset []string) {
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

// model sends a request: the intent before it, the result after it.
func (d *drive) model(ctx context.Context, c *machineengine.ModelCall) error {
	chosen, err := d.s.o.Models.Model(d.l.purpose(), c.Level, c.Request.Model)
	if err != nil {
		return d.add(machineengine.Event{Kind: machineengine.KindPaused, Pause: &machineengine.Pause{
			Code: machineengine.FaultModel, Message: fmt.Sprintf("there is no model for the agent %s: %v", c.Agent, err), Fix: guideway.ErrorFix(err),
		}})
	}
	r := c.Request
	r.Model = chosen.Name
	if r.MaxTokens == 0 {
		r.MaxTokens = chosen.MaxTokens
	}
	err = d.add(machineengine.Event{
		Kind: machineengine.KindModelIntent, State: d.l.state.At, Call: c.Call, Attempt: c.Attempt, Agent: c.Agent, Model: r.Model, Hash: machineengine.Hash(r),
	})
	if err != nil {
		return err
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	if !d.l.awaits(machineengine.Event{Kind: machineengine.KindModelResult, Call: c.Call, Attempt: c.Attempt}) {
		return nil // another command came in between: it is decided anew
	}
	begun, state := d.s.clock(), d.l.state.At
	response, failed, err := d.ask(ctx, c, r, &chosen)
	if err != nil {
		return err
	}
	if failed != nil && ctx.Err() != nil {
		return d.interrupted(ctx.Err()) // the intent stays: nobody knows what came of it
	}
	e := machineengine.Event{Kind: machineengine.KindModelResult, State: state, Call: c.Call, Attempt: c.Attempt, Agent: c.Agent, Took: d.millis(begun)}
	if failed != nil {
		d.failed(&e, llm.AsError(failed), &chosen)
	} else {
		e.Response, e.Cost = response, chosen.cost(response.Usage)
		if e.Fault = d.l.program.Judge(&d.l.state, response); e.Fault != nil {
			d.due(&e, 0)
		}
	}
	return d.settle(e)
}

// ask has a model answer. failed is what the request came to, err what became of the
// drive meanwhile.
func (d *drive) ask(ctx context.Context, c *machineengine.ModelCall, r llm.Request, chosen *Chosen) (response *llm.Response, failed, err error) {
	type outcome struct {
		response *llm.Response
		err      error
	}
	timeout := chosen.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	state, id := d.l.state.At, d.l.rec.ID
	ctx, end := d.begin(ctx, Activity{Kind: ActivityModel, Agent: c.Agent, Attempt: c.Attempt, Provider: chosen.Provider, Request: &r})
	out, err := during(ctx, d, func(ctx context.Context) outcome {
		ctx, stop := context.WithTimeout(ctx, timeout)
		defer stop()
		response, err := chosen.Complete(ctx, r, func(delta llm.Delta) {
			d.observe(Update{RunID: id, Delta: delta, Agent: c.Agent, State: state})
		})
		return outcome{response, err}
	})
	end(Ending{Response: out.response, Err: errors.Join(err, out.err)})
	return out.response, out.err, err
}

// failed tells a request that failed.
func (d *drive) failed(e *machineengine.Event, err *llm.Error, chosen *Chosen) {
	e.Fault = &machineengine.Fault{Kind: string(err.Kind), Message: err.Error(), Fix: guideway.ErrorFix(err), Transient: err.Transient()}
	e.Cost = chosen.cost(err.Usage)
	if err.Usage != (llm.Usage{}) {
		e.Spent = &machineengine.Spent{Usage: err.Usage}
	}
	d.due(e, err.RetryAfter)
}

// due says when the next attempt is.
func (d *drive) due(e *machineengine.Event, asked time.Duration) {
	if !e.Fault.Transient {
		return
	}
	wait, ok := machineengine.Backoff(d.l.state.Attempts+1, asked)
	if !ok {
		e.Fault.Transient = false
		e.Fault.Message += fmt.Sprintf(" (the server asks to wait %s)", asked)
		return
	}
	until := d.s.clock().Add(wait)
	e.Until = &until
}

// settle takes a result, which was paid for: it is kept before anything else is
// done outside, together with the next intent where that follows.
func (d *drive) settle(e machineengine.Event) error {
	if err := d.add(e); err != nil {
		return err
	}
	d.l.owed = len(d.l.buffer)
	return nil
}

// tool calls a tool: the intent before it, the result after it.
func (d *drive) tool(ctx context.Context, c machineengine.ToolCall) error {
	if c.Attempt <= 1 { // the key holds for all attempts
		c.Key = d.l.rec.ID + "-" + c.Key
	}
	err := d.add(machineengine.Event{Kind: machineengine.KindToolIntent, State: d.l.state.At, Agent: agentOf(d.l), Tool: &c})
	if err != nil {
		return err
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	if !d.l.awaits(machineengine.Event{Kind: machineengine.KindToolResult, Tool: &c}) {
		return nil // another command came in between: it is decided anew
	}
	type outcome struct {
		result machineengine.ToolResult
		err    error
	}
	begun, timeout := d.s.clock(), d.l.program.Policy(c.Name).Timeout
	if timeout == 0 {
		timeout = toolTimeout
	}
	purpose := d.l.purpose()
	inner, end := d.begin(ctx, Activity{Kind: ActivityTool, Agent: agentOf(d.l), Attempt: c.Attempt, Tool: &c})
	out, err := during(inner, d, func(ctx context.Context) outcome {
		ctx, stop := context.WithTimeout(ctx, timeout)
		defer stop()
		r, err := d.s.o.Tools.Call(ctx, purpose, c)
		return outcome{r, err}
	})
	end(Ending{Result: &out.result, Err: errors.Join(err, out.err)})
	if err != nil {
		return err
	}
	e := machineengine.Event{Kind: machineengine.KindToolResult, State: d.l.state.At, Agent: agentOf(d.l), Tool: &c, Took: d.millis(begun)}
	switch {
	case out.err == nil:
		e.Result = &out.result
	case errors.Is(out.err, ErrNotCalled):
		e.Result = &machineengine.ToolResult{Content: out.err.Error(), Error: true}
	case ctx.Err() != nil:
		return d.interrupted(ctx.Err())
	default:
		e.Unknown = true
		e.Fault = &machineengine.Fault{Kind: machineengine.FaultUnknown, Message: out.err.Error()}
	}
	return d.settle(e)
}

// agentOf is the agent of the state.
func agentOf(l *loaded) string {
	if st := l.program.State(l.state.At); st != nil {
		return st.Agent
	}
	return ""
}

// unresolved deals with an intent without a result: its process has ended in
// between. rest says that the run waits.
func (d *drive) unresolved(ctx context.Context, intent *machineengine.Event) (rest bool, err error) {
	switch intent.Kind {
	case machineengine.KindModelIntent:
		f := &machineengine.Fault{Kind: machineengine.FaultUnknown, Message: "the process ended before the answer came", Transient: true}
		return false, d.add(machineengine.Event{
			Kind: machineengine.KindModelResult, State: intent.State, Call: intent.Call, Attempt: intent.Attempt, Agent: intent.Agent, Fault: f, Unknown: true,
		})
	case machineengine.KindToolIntent:
		return false, d.add(machineengine.Event{
			Kind: machineengine.KindToolResult, State: intent.State, Agent: intent.Agent, Tool: intent.Tool, Unknown: true,
			Fault: &machineengine.Fault{Kind: machineengine.FaultUnknown, Message: "the process ended before the result came"},
		})
	default:
		return d.child(ctx, intent)
	}
}

// maxDepth bounds how deep machines run within each other.
const maxDepth = 5

// sub begins a machine within the run.
func (d *drive) sub(ctx context.Context, c *machineengine.SubCall) error {
	st := &d.l.state
	if st.Depth >= maxDepth {
		return d.add(machineengine.Event{Kind: machineengine.KindPaused, Pause: &machineengine.Pause{
			Code: machineengine.FaultSub, Message: fmt.Sprintf("machines run %d deep within each other, and no deeper", maxDepth),
		}})
	}
	id := subRunID(d.l.rec.ID, d.l.seq+int64(len(d.l.buffer)))
	if err := d.add(machineengine.Event{Kind: machineengine.KindSubIntent, State: st.At, Machine: c.Machine, Run: id, Inputs: c.Inputs}); err != nil {
		return err
	}
	return d.flush(ctx)
}

// child goes on with the machine of an intent, which is begun where it was not.
func (d *drive) child(ctx context.Context, intent *machineengine.Event) (rest bool, err error) {
	l := d.l
	child, _, err := d.s.load(ctx, l.rec.User, intent.Run, 0)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		child, err = d.s.begin(ctx, beginning{
			id: intent.Run, machine: intent.Machine, inputs: intent.Inputs, by: d.s.server(l), project: l.rec.Project,
			goal: l.rec.Goal, parent: l.rec.ID, parentSeq: l.seq, index: l.state.Index, depth: l.state.Depth + 1, most: left(&l.state),
			demo: l.state.Demo, allow: l.state.Allow,
		})
		if code := guideway.ErrorCode(err); code == guideway.CodeNotFound || code == guideway.CodeInvalid || code == guideway.CodeInvalidDefinition {
			return false, d.settle(machineengine.Event{Kind: machineengine.KindSubResult, Run: intent.Run, Fault: &machineengine.Fault{
				Kind: machineengine.FaultSub, Message: fmt.Sprintf("the machine %s cannot be begun: %v", intent.Machine, err), Fix: guideway.ErrorFix(err),
			}})
		}
	}
	if err != nil {
		return false, err
	}
	if d.s.due(child) {
		user := l.rec.User
		failed, err := during(ctx, d, func(ctx context.Context) error {
			return d.s.Drive(ctx, user, intent.Run, func(u Update) { u.Depth++; d.observe(u) })
		})
		if err := errors.Join(err, failed); err != nil {
			return false, err
		}
		l = d.l // it may have been loaded anew
		if child, _, err = d.s.load(ctx, l.rec.User, intent.Run, 0); err != nil {
			return false, err
		}
		if ctx.Err() == nil && d.s.due(child) {
			return true, nil // somebody else drives it
		}
	}
	e := machineengine.Event{Kind: machineengine.KindSubResult, State: l.state.At, Run: intent.Run, Spent: &child.state.Spent, Index: child.state.Index - l.state.Index}
	switch child.state.Status {
	case machineengine.StatusCompleted:
		e.Value = child.state.Output
		if st := l.program.State(l.state.At); st != nil && st.Sub != nil {
			e.Next = st.Sub.Output
		}
	case machineengine.StatusCancelled:
		e.Fault = &machineengine.Fault{Kind: machineengine.FaultSub, Message: fmt.Sprintf("the machine %s was cancelled: %s", intent.Machine, child.state.Reason)}
	default:
		return true, nil // it waits, or is paused
	}
	return false, d.settle(e)
}
