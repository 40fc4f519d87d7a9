package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Effect is what comes next in a run. Exactly one of its fields is set; none where
// the run rests.
type Effect struct {
	// Event is a fact that follows from the state alone.
	Event *Event
	// Handler is a function of the script that is to be called.
	Handler *Handler
	// Model is a request to a model.
	Model *ModelCall
	// Tool is a call of a tool.
	Tool *ToolCall
	// Sub is a machine that is to be run.
	Sub *SubCall
	// Unresolved is an intent whose result is missing: nobody knows what came of
	// it, or the machine within is still at work.
	Unresolved *Event
	// Wait says when the next attempt is due.
	Wait *time.Time
}

// Handler is a call of a function of the script.
type Handler struct {
	Step     Step
	Function string
	This     This
}

// This is what a handler sees, and what it may change.
type This struct {
	Data     map[string]json.RawMessage `json:"common_data"`
	Contexts map[string][]llm.Message   `json:"contexts"`
	// Last is a chat.completion object, or null.
	Last json.RawMessage `json:"last_response"`
	// Input is the run's input: the value where the machine has one, else all by
	// name.
	Input any    `json:"input"`
	State string `json:"state"`
	// Agents are the sides that they take, by name.
	Agents map[string]machinedef.Side `json:"agents"`
	// Error is what failed, for error handlers.
	Error *Fault `json:"error,omitempty"`
}

// ModelCall is a request to a model. Who carries it out fills in the model of the
// level.
type ModelCall struct {
	Agent string
	Level machinedef.Level
	// Call and Attempt are those of the events.
	Call, Attempt int
	Request       llm.Request
}

// SubCall is a machine that is to be run.
type SubCall struct {
	Machine string
	Inputs  map[string]json.RawMessage
}

// ToolInfo is a tool that there is.
type ToolInfo struct {
	llm.Definition
	// Repeatable says that the tool itself says that it may be called again: it
	// only reads, or the same call has the same effect.
	Repeatable bool
}

// Env is what a decision needs besides the state.
type Env struct {
	// Tools are those that there are.
	Tools []ToolInfo
	// Counter counts tokens.
	Counter Counter
}

// The bounds of repetition that no definition changes.
const (
	maxToolAttempts = 5
	maxShrink       = 3
	firstBackoff    = time.Second
	longestBackoff  = time.Minute
	// longestWait is the longest that a run waits for a server; longer ones are
	// for a person to know of.
	longestWait = 15 * time.Minute
)

// Next says what comes next.
func (p *Program) Next(s *State, env Env) Effect {
	switch {
	case s.Status.Ended() || s.Status == StatusPaused:
		return Effect{}
	case s.Pending != nil:
		return Effect{Unresolved: s.Pending}
	case s.Status == StatusWaiting:
		return Effect{}
	case s.At == "":
		return p.enter(s, machinedef.StateStart)
	case s.Step == stepDone:
		return p.enter(s, s.Goto)
	}
	st := p.State(s.At)
	if st == nil {
		return pause(&Fault{Kind: FaultTransition, Message: fmt.Sprintf("there is no state %q", s.At)})
	}
	if s.Fault != nil {
		if e, done := p.mend(s, st); done {
			return e
		}
	}
	return p.step(s, st, env)
}

// step is the next part of a state.
func (p *Program) step(s *State, st *machinedef.State, env Env) Effect {
	if s.Step == StepPre {
		if st.Pre != "" {
			return p.handler(s, StepPre, st.Pre)
		}
		s.Step = StepAct
	}
	if s.Step == StepAct {
		switch {
		case st.Agent != "":
			return p.agent(s, st, env)
		case st.Ask != nil:
			return event(Event{Kind: KindInputRequested, State: s.At})
		case st.Sub != nil:
			return p.sub(s, st.Sub)
		}
		s.Step = StepPost
	}
	if s.Step == StepPost {
		if st.Post != "" {
			return p.handler(s, StepPost, st.Post)
		}
		s.Step = StepTransition
	}
	if st.Transition != "" {
		return p.handler(s, StepTransition, st.Transition)
	}
	return p.enter(s, st.After())
}

func event(e Event) Effect { return Effect{Event: &e} }

// pause has the run rest because of what failed.
func pause(f *Fault) Effect {
	return event(Event{Kind: KindPaused, Pause: &Pause{Code: f.Kind, Message: f.Message, Fix: f.Fix, Fault: f}})
}

// enter goes to a state, or ends the run.
func (p *Program) enter(s *State, name string) Effect {
	if name == machinedef.StateStop {
		return event(Event{Kind: KindCompleted, Value: p.output(s)})
	}
	if p.State(name) == nil {
		return pause(&Fault{Kind: FaultTransition, Message: fmt.Sprintf("there is no state %q", name)})
	}
	if b := over("states", int64(s.Spent.States), int64(s.Limits.States)); b != nil {
		return event(Event{Kind: KindPaused, Pause: b})
	}
	return event(Event{Kind: KindStateEntered, State: name})
}

// handler calls a function of the script.
func (p *Program) handler(s *State, step Step, function string) Effect {
	if b := over("time", s.Spent.Millis, s.Limits.Millis); b != nil {
		return event(Event{Kind: KindPaused, Pause: b})
	}
	h := &Handler{Step: step, Function: function, This: This{
		Data: s.Data, Contexts: s.Conversations, Last: json.RawMessage("null"), Input: p.input(s), State: s.At,
		Agents: map[string]machinedef.Side{},
	}}
	for i := range p.Agents {
		h.This.Agents[p.Agents[i].Role] = p.Agents[i].Side
	}
	if s.Last != nil {
		h.This.Last = s.Last.Completion()
	}
	if step == StepError {
		h.This.Error = s.Fault
	}
	return Effect{Handler: h}
}

// input is the run's input as handlers know it.
func (p *Program) input(s *State) any {
	if len(p.Inputs) == 1 {
		return s.Inputs[p.Inputs[0].Name]
	}
	return s.Inputs
}

// over tells a budget that is used up.
func over(name string, used, limit int64) *Pause {
	if limit == 0 || used < limit {
		return nil
	}
	return &Pause{
		Code: PauseBudget, Budget: name, Used: used, Limit: limit,
		Message: fmt.Sprintf("the budget of %s is used up: %d of %d", budgetWords(name), used, limit),
		Fix:     "raise it to go on: everything is kept",
	}
}

// budgetWords names a budget with its unit.
func budgetWords(name string) string {
	switch name {
	case "cost":
		return "cost (in millionths)"
	case "time":
		return "time (in milliseconds)"
	case "toolCalls":
		return "tool calls in one call of an agent"
	default:
		return name
	}
}

// mend says what follows a failure: another attempt, the error handler, or a
// pause. done is false where the step is simply to be tried again.
func (p *Program) mend(s *State, st *machinedef.State) (e Effect, done bool) {
	f := s.Fault
	again := f.Transient && s.Attempts <= st.MaxRetries
	if f.Kind == string(llm.ContextLength) {
		again = s.Shrink <= maxShrink
	}
	switch {
	case again && s.Until.IsZero():
		return Effect{}, false
	case again:
		return Effect{Wait: &s.Until}, true
	case st.OnError != "" && !s.GaveUp:
		return p.handler(s, StepError, st.OnError), true
	}
	return pause(f), true
}

// Backoff is how long to wait after so many failures in a row. asked is how long
// the server wants; more than longestWait is not waited for, and ok is false.
func Backoff(attempts int, asked time.Duration) (wait time.Duration, ok bool) {
	if asked > longestWait {
		return 0, false
	}
	wait = firstBackoff << min(max(attempts-1, 0), 10)
	return max(min(wait, longestBackoff), asked), true
}

// Waited tells the state that the time of the next attempt has come.
func (s *State) Waited() { s.Until = time.Time{} }

// sub runs another machine.
func (p *Program) sub(s *State, sub *machinedef.Sub) Effect {
	c := &SubCall{Machine: sub.Machine, Inputs: map[string]json.RawMessage{}}
	for _, in := range sub.Inputs {
		value := Lookup(s.Data, in.Path)
		if value == nil {
			return pause(&Fault{Kind: FaultSub, Message: fmt.Sprintf("the input %q of the machine %q is %s, which has no value", in.Name, sub.Machine, in.Path)})
		}
		c.Inputs[in.Name] = value
	}
	return Effect{Sub: c}
}

// output is the result of the run: that of the state stop, or the output's
// variable, or the text of the seed's system.
func (p *Program) output(s *State) json.RawMessage {
	null := func(v json.RawMessage) bool { return len(v) == 0 || bytes.Equal(v, []byte("null")) }
	if st := p.State(machinedef.StateStop); st != nil && st.Result != "" {
		if v := Lookup(s.Data, st.Result); !null(v) {
			return v
		}
	}
	if v := s.Data[p.Output.Name]; !null(v) {
		return v
	}
	return json.RawMessage(`"Workflow completed successfully"`)
}

// Lookup gives the value of a path into common_data, or nil.
func Lookup(data map[string]json.RawMessage, path string) json.RawMessage {
	parts := strings.Split(strings.TrimPrefix(path, "common_data."), ".")
	value := data[parts[0]]
	for _, part := range parts[1:] {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return nil
		}
		value = members[part]
	}
	return value
}

// Transition judges what a transition handler has answered: the name of a state,
// or nothing for the state's own way on. A fault says what it answered instead.
// The error handler must answer a state.
func (p *Program) Transition(s *State, step Step, value json.RawMessage) (string, *Fault) {
	st := p.State(s.At)
	var name string
	switch text := string(bytes.TrimSpace(value)); text {
	case "", "null", "false", "0", `""`:
		if step == StepError {
			return "", &Fault{Kind: FaultTransition, Message: fmt.Sprintf("the error handler of %q answered no state: %s", s.At, faultText(s.Fault))}
		}
		return st.After(), nil
	default:
		if json.Unmarshal(value, &name) != nil {
			if len(text) > 80 {
				text = strings.ToValidUTF8(text[:80], "") + "…"
			}
			return "", &Fault{Kind: FaultTransition, Message: fmt.Sprintf("the handler answered %s, which is not the name of a state", text), Fix: p.stateNames()}
		}
	}
	if name != machinedef.StateStop && p.State(name) == nil {
		return "", &Fault{Kind: FaultTransition, Message: fmt.Sprintf("the handler answered the state %q, which is not there", name), Fix: p.stateNames()}
	}
	return name, nil
}

func faultText(f *Fault) string {
	if f == nil {
		return ""
	}
	return f.Message
}

// stateNames is a fix that names the states.
func (p *Program) stateNames() string {
	list := make([]string, 0, len(p.States)+1)
	for i := range p.States {
		if name := p.States[i].Name; name != machinedef.StateStop {
			list = append(list, name)
		}
	}
	return "answer one of: " + strings.Join(append(list, machinedef.StateStop), ", ")
}
