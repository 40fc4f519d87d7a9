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

// Effect is the next action of a run. At most one field is set; none if the run waits or
// has ended.
type Effect struct {
	// Event is an event that follows from the state alone.
	Event *Event
	// Handler is the script function to call.
	Handler *Handler
	// Model is a request to a model.
	Model *ModelCall
	// Tool is a call of a tool.
	Tool *ToolCall
	// Sub is a machine to run.
	Sub *SubCall
	// Unresolved is an intent without a result: its outcome is unknown, or the sub-machine
	// is still running.
	Unresolved *Event
	// Wait is the time of the next attempt.
	Wait *time.Time
}

// Handler is a call of a script function.
type Handler struct {
	Step     Step
	Function string
	This     This
}

// This is the value of "this" in a handler: the state that it may read and change.
type This struct {
	Data     map[string]json.RawMessage `json:"common_data"`
	Contexts map[string][]llm.Message   `json:"contexts"`
	// Last is a chat.completion object or null.
	Last json.RawMessage `json:"last_response"`
	// Input is the run's input: the value if the machine has one input, otherwise all
	// inputs by name.
	Input any    `json:"input"`
	State string `json:"state"`
	// Agents maps the agents to their sides.
	Agents map[string]machinedef.Side `json:"agents"`
	// Error is the error that an error handler handles.
	Error *RunError `json:"error,omitempty"`
}

// ModelCall is a request to a model. The caller sets the model for the level.
type ModelCall struct {
	Agent string
	Level machinedef.Level
	// Call and Attempt are the numbers that the events of the call contain.
	Call, Attempt int
	Request       llm.Request
}

// SubCall is a machine to run.
type SubCall struct {
	Machine string
	Inputs  map[string]json.RawMessage
}

// ToolInfo describes an available tool.
type ToolInfo struct {
	llm.Definition
	// Repeatable is set if the tool declares that it may be called again: it is read-only
	// or idempotent.
	Repeatable bool
	// Hash is the hash of the definition, and Hooks are those of the hook graphs that apply to
	// calls of the tool, by their ids. A run pins them. A tool of this program has none.
	Hash  string
	Hooks map[string]string
}

// Env is the input of a decision besides the state.
type Env struct {
	// Tools are the available tools.
	Tools   []ToolInfo
	Counter Counter
}

// The limits of retries, which definitions cannot change.
const (
	maxToolAttempts = 5
	maxShrink       = 3
	firstBackoff    = time.Second
	longestBackoff  = time.Minute
	// LongestWait is the longest wait that a server may request. A longer wait pauses the
	// run, so that a person can decide.
	LongestWait = 15 * time.Minute
)

// Next returns the next effect of a run.
func (p *Program) Next(s *State, env Env) Effect {
	switch {
	case s.Status.Ended() || s.Status == StatusPaused:
		return Effect{}
	case s.Pending != nil:
		return Effect{Unresolved: s.Pending}
	case s.Status == StatusWaiting:
		return Effect{}
	case s.At == "":
		return p.enterState(s, machinedef.StateStart)
	case s.Step == stepDone:
		return p.enterState(s, s.Goto)
	}
	st := p.State(s.At)
	if st == nil {
		return pauseEffect(&RunError{Kind: ErrorKindTransition, Message: fmt.Sprintf("the machine has no state %q", s.At)})
	}
	if s.LastError != nil {
		if e, done := p.afterError(s, st); done {
			return e
		}
	}
	return p.nextStepEffect(s, st, env)
}

// nextStepEffect returns the effect of the next step of a state.
func (p *Program) nextStepEffect(s *State, st *machinedef.State, env Env) Effect {
	if s.Step == StepPre {
		if st.Pre != "" {
			return p.handlerEffect(s, StepPre, st.Pre)
		}
		s.Step = StepAct
	}
	if s.Step == StepAct {
		switch {
		case st.Agent != "":
			return p.nextAgentEffect(s, st, env)
		case st.Ask != nil:
			return eventEffect(Event{Kind: KindInputRequested, State: s.At})
		case st.Sub != nil:
			return p.subEffect(s, st.Sub)
		}
		s.Step = StepPost
	}
	if s.Step == StepPost {
		if st.Post != "" {
			return p.handlerEffect(s, StepPost, st.Post)
		}
		s.Step = StepTransition
	}
	if st.Transition != "" {
		return p.handlerEffect(s, StepTransition, st.Transition)
	}
	return p.enterState(s, st.After())
}

func eventEffect(e Event) Effect { return Effect{Event: &e} }

// pauseEffect pauses the run because of an error.
func pauseEffect(f *RunError) Effect {
	return eventEffect(Event{Kind: KindPaused, Pause: &Pause{Code: f.Kind, Message: f.Message, Fix: f.Fix, Error: f}})
}

// enterState enters a state or ends the run.
func (p *Program) enterState(s *State, name string) Effect {
	if name == machinedef.StateStop {
		return eventEffect(Event{Kind: KindCompleted, Value: p.runOutput(s)})
	}
	if p.State(name) == nil {
		return pauseEffect(&RunError{Kind: ErrorKindTransition, Message: fmt.Sprintf("the machine has no state %q", name)})
	}
	if b := checkBudget("states", int64(s.Usage.States), int64(s.Limits.States)); b != nil {
		return eventEffect(Event{Kind: KindPaused, Pause: b})
	}
	return eventEffect(Event{Kind: KindStateEntered, State: name})
}

// handlerEffect calls a function of the script.
func (p *Program) handlerEffect(s *State, step Step, function string) Effect {
	if b := checkBudget("time", s.Usage.Millis, s.Limits.Millis); b != nil {
		return eventEffect(Event{Kind: KindPaused, Pause: b})
	}
	h := &Handler{Step: step, Function: function, This: This{
		Data: s.Data, Contexts: s.Conversations, Last: json.RawMessage("null"), Input: p.handlerInput(s), State: s.At,
		Agents: map[string]machinedef.Side{},
	}}
	for i := range p.Agents {
		h.This.Agents[p.Agents[i].Role] = p.Agents[i].Side
	}
	if s.Last != nil {
		h.This.Last = s.Last.Completion()
	}
	if step == StepError {
		h.This.Error = s.LastError
	}
	return Effect{Handler: h}
}

// handlerInput returns the run's input as handlers see it.
func (p *Program) handlerInput(s *State) any {
	if len(p.Inputs) == 1 {
		return s.Inputs[p.Inputs[0].Name]
	}
	return s.Inputs
}

// checkBudget returns a pause if a budget is exhausted.
func checkBudget(name string, used, limit int64) *Pause {
	if limit == 0 || used < limit {
		return nil
	}
	return &Pause{
		Code: PauseBudget, Budget: name, Used: used, Limit: limit,
		Message: "the budget of " + describeBudget(name, used, limit),
		Fix:     "raise the budget with guideway machine resume; the run keeps its state",
	}
}

// describeBudget describes an exhausted budget in the units of the definition: a cost in the
// currency of the prices, a time as a duration.
func describeBudget(name string, used, limit int64) string {
	const millionths = 1e6
	switch name {
	case "cost":
		return fmt.Sprintf("cost is used up: %g of %g, in the currency of the model prices", float64(used)/millionths, float64(limit)/millionths)
	case "time":
		return fmt.Sprintf("time is used up: %s of %s", time.Duration(used)*time.Millisecond, time.Duration(limit)*time.Millisecond)
	case "toolCalls":
		name = "tool calls in one agent call"
	}
	return fmt.Sprintf("%s is used up: %d of %d", name, used, limit)
}

// afterError returns the effect that follows an error: another attempt, the error handler,
// or a pause. done is false if the step is repeated immediately.
func (p *Program) afterError(s *State, st *machinedef.State) (e Effect, done bool) {
	f := s.LastError
	again := f.Transient && s.Attempts <= st.MaxRetries
	if f.Kind == string(llm.ContextLength) {
		again = s.Shrink <= maxShrink
	}
	switch {
	case again && s.Until.IsZero():
		return Effect{}, false
	case again:
		return Effect{Wait: &s.Until}, true
	case st.OnError != "" && !s.ErrorHandlerFailed:
		return p.handlerEffect(s, StepError, st.OnError), true
	}
	return pauseEffect(f), true
}

// Backoff returns the wait after a number of consecutive errors. asked is the wait that the
// server requests; if it is longer than LongestWait, ok is false.
func Backoff(attempts int, asked time.Duration) (wait time.Duration, ok bool) {
	if asked > LongestWait {
		return 0, false
	}
	wait = firstBackoff << min(max(attempts-1, 0), 10)
	return max(min(wait, longestBackoff), asked), true
}

// ClearWait removes the wait for the next attempt.
func (s *State) ClearWait() { s.Until = time.Time{} }

// subEffect runs another machine.
func (p *Program) subEffect(s *State, sub *machinedef.Sub) Effect {
	c := &SubCall{Machine: sub.Machine, Inputs: map[string]json.RawMessage{}}
	for _, in := range sub.Inputs {
		value := Lookup(s.Data, in.Path)
		if value == nil {
			return pauseEffect(&RunError{Kind: ErrorKindSubMachine, Message: fmt.Sprintf("the input %q of the machine %q is read from %s, which is not set", in.Name, sub.Machine, in.Path), Fix: fmt.Sprintf("set %s in a handler of an earlier state, then start a new run", in.Path)})
		}
		c.Inputs[in.Name] = value
	}
	return Effect{Sub: c}
}

// runOutput returns the output of the run: the result of the state stop, the output
// variable, or SynthDev's default text.
func (p *Program) runOutput(s *State) json.RawMessage {
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

// Lookup returns the value at a path in common_data, or nil.
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

// Transition validates the answer of a transition handler: the name of a state, or an empty
// value for the state's default transition. An error handler must return a state.
func (p *Program) Transition(s *State, step Step, value json.RawMessage) (string, *RunError) {
	st := p.State(s.At)
	var name string
	switch text := string(bytes.TrimSpace(value)); text {
	case "", "null", "false", "0", `""`:
		if step == StepError {
			return "", &RunError{Kind: ErrorKindTransition, Message: fmt.Sprintf("the error handler of the state %q returned no state after the error: %s", s.At, errorText(s.LastError)), Fix: p.stateNames()}
		}
		return st.After(), nil
	default:
		if json.Unmarshal(value, &name) != nil {
			if len(text) > 80 {
				text = strings.ToValidUTF8(text[:80], "") + "…"
			}
			return "", &RunError{Kind: ErrorKindTransition, Message: fmt.Sprintf("the handler of the state %q returned %s, which is not the name of a state", s.At, text), Fix: p.stateNames()}
		}
	}
	if name != machinedef.StateStop && p.State(name) == nil {
		return "", &RunError{Kind: ErrorKindTransition, Message: fmt.Sprintf("the handler of the state %q returned the state %q, which does not exist", s.At, name), Fix: p.stateNames()}
	}
	return name, nil
}

func errorText(f *RunError) string {
	if f == nil {
		return ""
	}
	return f.Message
}

// stateNames returns a fix that lists the states.
func (p *Program) stateNames() string {
	list := make([]string, 0, len(p.States)+1)
	for i := range p.States {
		if name := p.States[i].Name; name != machinedef.StateStop {
			list = append(list, name)
		}
	}
	return "return one of: " + strings.Join(append(list, machinedef.StateStop), ", ")
}
