package engine

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Status is the status of a run.
type Status string

// The statuses of a run.
const (
	StatusRunning Status = "running"
	// StatusWaiting waits for an input, or for a sub-machine that waits for one.
	StatusWaiting Status = "waiting"
	// StatusPaused keeps the run's state; the run continues after it is resumed.
	StatusPaused    Status = "paused"
	StatusCompleted Status = "completed"
	StatusCancelled Status = "cancelled"
)

// Ended reports whether the run is completed or cancelled.
func (s Status) Ended() bool { return s == StatusCompleted || s == StatusCancelled }

// LacksTools reports whether the run is paused because its tools or hook graphs changed.
func (s *State) LacksTools() bool {
	return s.Status == StatusPaused && s.Pause != nil && s.Pause.Code == PauseTools
}

// Step is a part of a state.
type Step string

// The steps in order. StepError replaces the others after a call failed permanently.
const (
	StepPre        Step = "pre_handler"
	StepAct        Step = "act"
	StepPost       Step = "post_handler"
	StepTransition Step = "transition_handler"
	StepError      Step = "error_handler"
	stepDone       Step = "done"
)

// State is the state of a run: the fold of its events. Only the methods of this package
// change it.
type State struct {
	Status Status
	Inputs map[string]json.RawMessage
	// Data is common_data.
	Data map[string]json.RawMessage
	// Conversations are the contexts, by name.
	Conversations map[string][]llm.Message
	// Last is the last answer of an agent's call; nil before the first answer and after a
	// failed call.
	Last *llm.Response
	// At is the name of the current state, "" before the first one. Step is the next step
	// in it.
	At   string
	Step Step
	// Goto is the state that a handler returned.
	Goto string
	// Visited lists the states that were entered, in order.
	Visited []string
	// AgentCall is the agent's call in progress.
	AgentCall *AgentCall
	// Pending is an intent without a result.
	Pending *Event
	// Unknown is a tool call whose outcome is unknown. RetryRequested is set if a person
	// decided to repeat it once.
	Unknown        *ToolCall
	RetryRequested bool
	// InputRequested is set if the state's input was requested.
	InputRequested bool
	// RefusedInputs counts the recorded refusals of an input since the state was entered.
	RefusedInputs int
	// LastError is the last error, Attempts the number of consecutive errors, Until the
	// time of the next attempt, and Shrink the number of times that the conversation was
	// too long.
	LastError *RunError
	Attempts  int
	Until     time.Time
	Shrink    int
	// ErrorHandlerFailed is set if the error handler failed too.
	ErrorHandlerFailed bool
	// Pause is the reason for a pause.
	Pause *Pause
	// Output is the output of the run.
	Output json.RawMessage
	// Reason is the reason for a cancellation.
	Reason string
	Usage  Usage
	Limits Limits
	// Index counts the answers and errors of models.
	Index int
	Depth int
	// Demo is the machine whose recording answers instead of models, or "".
	Demo string
	// Allow restricts the tools and models of the agents; nil allows all.
	Allow json.RawMessage
	// Guided are the guided runs whose steps restrict the tools of the agents.
	Guided []string
	// Pins are the hashes of the run's tools and hook graphs.
	Pins map[string]string
}

// AgentCall is a call of an agent: requests to its model, and the rounds of tool calls
// between them.
type AgentCall struct {
	// Messages follow the conversation: the model's calls and their results.
	Messages []llm.Message
	// Queue are the tool calls of this round, Done the number of completed tool calls.
	Queue []llm.ToolCall
	Done  int
	// Calls counts the tool calls.
	Calls int
}

// Program is a definition that is ready to run.
type Program struct {
	*machinedef.Definition
}

// Compile returns the program of a definition.
func Compile(d *machinedef.Definition) *Program { return &Program{d} }

// DefaultLimits returns the budgets of the definition.
func (p *Program) DefaultLimits() Limits {
	b := p.Budgets
	return Limits{States: b.States, Calls: b.Calls, Tokens: b.Tokens, Cost: b.Cost, Millis: b.Time.Milliseconds(), ToolCalls: b.ToolCalls}
}

// Apply folds an event into the state.
func (p *Program) Apply(s *State, e Event) {
	s.Usage.Millis += e.Took
	switch e.Kind {
	case KindStarted:
		p.applyStart(s, e)
	case KindStateEntered:
		s.At, s.Step, s.Goto = e.State, StepPre, ""
		s.AgentCall, s.InputRequested, s.RefusedInputs = nil, false, 0
		s.clearError()
		s.Visited = append(s.Visited, e.State)
		s.Usage.States++
	case KindHandlerResult:
		s.applyHandlerResult(e)
	case KindModelIntent, KindToolIntent, KindSubIntent:
		s.applyIntent(e)
	case KindModelResult:
		p.applyModelResult(s, e)
	case KindToolResult:
		p.applyToolResult(s, e)
	case KindToolDecided:
		p.applyDecision(s, e)
	case KindSubResult:
		s.applySubResult(e)
	case KindCompleted:
		s.Status, s.Output = StatusCompleted, e.Value
	default:
		p.applyControl(s, e)
	}
	for _, id := range e.Guided {
		if !slices.Contains(s.Guided, id) {
			s.Guided = append(s.Guided, id)
		}
	}
}

// applyControl folds the events of people (input, resume, cancel), of refused inputs and of
// pauses.
func (p *Program) applyControl(s *State, e Event) {
	switch e.Kind {
	case KindInputRequested:
		s.InputRequested, s.Status = true, StatusWaiting
	case KindInputGiven:
		if st := p.State(s.At); st != nil && st.Ask != nil {
			s.Data[st.Ask.Name] = e.Value
		}
		s.Status, s.Step = StatusRunning, StepPost
	case KindInputRefused:
		s.RefusedInputs++
	case KindPaused:
		s.Pause, s.Status = e.Pause, StatusPaused
	case KindResumed:
		s.Pause, s.Status = nil, StatusRunning
		if e.Limits != nil {
			s.Limits = *e.Limits
		}
		s.clearError()
	case KindToolsAccepted:
		if s.Pins = e.Pins; s.LacksTools() {
			s.Pause, s.Status = nil, StatusRunning
		}
	case KindCancelled:
		s.Status, s.Reason, s.Pause = StatusCancelled, e.Reason, nil
	}
}

// applyIntent records an intent as pending.
func (s *State) applyIntent(e Event) {
	s.Pending, s.Status, s.Unknown, s.RetryRequested = &e, StatusRunning, nil, false
	switch e.Kind {
	case KindModelIntent:
		if s.AgentCall == nil {
			s.AgentCall = &AgentCall{}
		}
	case KindToolIntent:
		s.Usage.Tools++
		if s.AgentCall != nil {
			s.AgentCall.Calls++
		}
	}
}

// applyDecision applies a person's decision on a call whose outcome is unknown.
func (p *Program) applyDecision(s *State, e Event) {
	s.Pause, s.Status = nil, StatusRunning
	switch call := s.Unknown; {
	case call == nil:
	case e.Decision == DecideRetry:
		s.RetryRequested = true
	default:
		p.addToolResult(s, call.ID, e.Result)
	}
}

// clearError resets the last error and the retry counters.
func (s *State) clearError() {
	s.LastError, s.Attempts, s.Until, s.Shrink, s.ErrorHandlerFailed = nil, 0, time.Time{}, 0, false
}

// applyStart folds the first event: it copies the inputs and then the variables into
// common_data, like SynthDev.
func (p *Program) applyStart(s *State, e Event) {
	*s = State{
		Status: StatusRunning, Inputs: e.Inputs, Data: map[string]json.RawMessage{}, Conversations: map[string][]llm.Message{},
		Limits: p.DefaultLimits(), Index: e.Index, Depth: e.Depth, Demo: e.Demo, Allow: e.Allow, Pins: e.Pins,
	}
	if e.Limits != nil {
		s.Limits = *e.Limits
	}
	maps.Copy(s.Data, e.Inputs)
	for _, v := range p.Variables {
		s.Data[v.Name] = v.Value
	}
	for i := range p.Contexts {
		c := &p.Contexts[i]
		list := make([]llm.Message, 0, len(c.Starting))
		for _, raw := range c.Starting {
			var m llm.Message
			if json.Unmarshal(raw, &m) == nil {
				list = append(list, m)
			}
		}
		s.Conversations[c.Name] = list
	}
}

// applyHandlerResult folds the result of a handler. A failed handler changes only the
// error.
func (s *State) applyHandlerResult(e Event) {
	if e.Error != nil {
		s.LastError, s.ErrorHandlerFailed = e.Error, e.Step == StepError
		return
	}
	maps.Copy(s.Data, e.Set)
	for _, name := range e.Unset {
		delete(s.Data, name)
	}
	for _, c := range e.Contexts {
		old := s.Conversations[c.Name]
		s.Conversations[c.Name] = append(old[:min(c.Keep, len(old)):min(c.Keep, len(old))], c.Add...)
	}
	switch e.Step {
	case StepPre:
		s.Step = StepAct
	case StepPost:
		s.Step = StepTransition
	case StepTransition:
		s.Step, s.Goto = stepDone, e.Next
	case StepError:
		s.Step, s.Goto, s.AgentCall = stepDone, e.Next, nil
		s.clearError()
	}
}

// applyModelResult folds the result of a model call.
func (p *Program) applyModelResult(s *State, e Event) {
	s.Pending = nil
	s.Usage.Cost += e.Cost
	if e.Response != nil {
		s.Usage.Tokens = s.Usage.Tokens.Add(e.Response.Usage)
	}
	if e.Usage != nil { // a failed request may have usage, too
		s.Usage.Tokens = s.Usage.Tokens.Add(e.Usage.Tokens)
	}
	s.Usage.Calls++
	if !e.Unknown {
		s.Index++
	}
	if e.Error != nil {
		s.LastError, s.Last = e.Error, nil
		s.Attempts++
		s.Until = time.Time{}
		if e.Until != nil {
			s.Until = *e.Until
		}
		if e.Error.Kind == string(llm.ContextLength) {
			s.Shrink++
		}
		return
	}
	s.clearError()
	if s.AgentCall == nil {
		s.AgentCall = &AgentCall{}
	}
	if hasToolCalls(p.roleAt(s), e.Response) {
		s.AgentCall.Messages = append(s.AgentCall.Messages, e.Response.Message)
		s.AgentCall.Queue, s.AgentCall.Done = e.Response.Message.ToolCalls, 0
		return
	}
	s.Last, s.AgentCall, s.Step = e.Response, nil, StepPost
}

// applyToolResult folds the result of a tool call.
func (p *Program) applyToolResult(s *State, e Event) {
	pending := s.Pending
	s.Pending = nil
	if e.Unknown && pending != nil {
		s.Unknown = pending.Tool
		return
	}
	if pending == nil && s.AgentCall != nil { // a refused call counts towards the budget
		s.AgentCall.Calls++
	}
	p.addToolResult(s, e.Tool.ID, e.Result)
}

// addToolResult adds a tool result to the agent's messages, and the reminder after the last
// result of a round.
func (p *Program) addToolResult(s *State, id string, r *ToolResult) {
	s.Unknown = nil
	t := s.AgentCall
	if t == nil || r == nil || t.Done >= len(t.Queue) {
		return
	}
	t.Messages = append(t.Messages, llm.Message{Role: llm.Tool, ToolCallID: id, Content: r.Content})
	if t.Done++; t.Done < len(t.Queue) {
		return
	}
	t.Queue, t.Done = nil, 0
	if role := p.roleAt(s); role != nil && role.Reminder != "" {
		t.Messages = append(t.Messages, llm.Message{Role: llm.User, Content: role.Reminder})
	}
}

// applySubResult folds the result of a sub-machine.
func (s *State) applySubResult(e Event) {
	s.Pending, s.Status = nil, StatusRunning
	if e.Usage != nil {
		s.Usage.addUsage(*e.Usage)
	}
	s.Index += e.Index
	if e.Error != nil {
		s.LastError = e.Error
		s.Attempts++
		return
	}
	s.clearError()
	if e.Next != "" { // Next is the key in common_data that receives the output
		s.Data[e.Next] = e.Value
	}
	s.Step = StepPost
}

// roleAt returns the role of the current state's agent, or nil.
func (p *Program) roleAt(s *State) *machinedef.Role {
	st := p.State(s.At)
	if st == nil {
		return nil
	}
	return p.Roles[st.Agent]
}
