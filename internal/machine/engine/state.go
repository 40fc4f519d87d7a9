package engine

import (
	"encoding/json"
	"maps"
	"time"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Status says how a run is.
type Status string

// The statuses.
const (
	StatusRunning Status = "running"
	// StatusWaiting waits for an input, or for a machine within that does.
	StatusWaiting Status = "waiting"
	// StatusPaused keeps everything and goes on when somebody says so.
	StatusPaused    Status = "paused"
	StatusCompleted Status = "completed"
	StatusCancelled Status = "cancelled"
)

// Ended says whether a run takes no more events.
func (s Status) Ended() bool { return s == StatusCompleted || s == StatusCancelled }

// Step is a part of a state.
type Step string

// The steps, in their order; StepError is in the place of the others where a call
// failed for good.
const (
	StepPre        Step = "pre_handler"
	StepAct        Step = "act"
	StepPost       Step = "post_handler"
	StepTransition Step = "transition_handler"
	StepError      Step = "error_handler"
	stepDone       Step = "done"
)

// State is where a run stands: what its events fold to. It is changed by
// Program.Apply alone.
type State struct {
	Status Status
	Inputs map[string]json.RawMessage
	// Data is common_data.
	Data map[string]json.RawMessage
	// Conversations are the contexts, by name.
	Conversations map[string][]llm.Message
	// Last is the last answer of an agent's call; nil before the first, and after
	// a call that failed.
	Last *llm.Response
	// At is the state, Step what comes next in it; "" before the first state.
	At   string
	Step Step
	// Goto is the state that a handler has answered.
	Goto string
	// Visited are the names of the states that were entered.
	Visited []string
	// Turn is the agent's call that is under way.
	Turn *Turn
	// Pending is an intent without a result.
	Pending *Event
	// Unknown is a call of a tool whose outcome is not known, and Again says that
	// somebody wants it repeated, for this once.
	Unknown *ToolCall
	Again   bool
	// Asked says that the input of the state was asked for.
	Asked bool
	// Fault is what failed last, Attempts how often in a row, Until when the next
	// attempt is due, and Shrink how often the conversation was too long.
	Fault    *Fault
	Attempts int
	Until    time.Time
	Shrink   int
	// GaveUp says that the error handler failed, too.
	GaveUp bool
	// Pause is why the run rests.
	Pause *Pause
	// Output is the result.
	Output json.RawMessage
	// Reason is why it was cancelled.
	Reason string
	Spent  Spent
	Limits Limits
	// Index counts the answers and errors of models that are known.
	Index int
	Depth int
	// Demo is the machine whose recording answers in the place of models; "" is
	// none.
	Demo string
	// Allow is what the agents may use; nil is everything.
	Allow json.RawMessage
}

// Turn is a call of an agent: requests to its model with rounds of tools between.
type Turn struct {
	// Messages follow the conversation: what the model called, and the results.
	Messages []llm.Message
	// Queue are the calls that are to be made, Done how many of them are.
	Queue []llm.ToolCall
	Done  int
	// Calls counts the calls of tools.
	Calls int
}

// Program is a machine that is ready to run.
type Program struct {
	*machinedef.Definition
}

// Compile makes a program of a machine.
func Compile(d *machinedef.Definition) *Program { return &Program{d} }

// LimitsOf are the budgets of a definition.
func (p *Program) LimitsOf() Limits {
	b := p.Budgets
	return Limits{States: b.States, Calls: b.Calls, Tokens: b.Tokens, Cost: b.Cost, Millis: b.Time.Milliseconds(), ToolCalls: b.ToolCalls}
}

// Apply folds an event into the state. Events are those of the program's own runs;
// what does not fit changes nothing.
func (p *Program) Apply(s *State, e Event) {
	s.Spent.Millis += e.Took
	switch e.Kind {
	case KindStarted:
		p.start(s, e)
	case KindStateEntered:
		s.At, s.Step, s.Goto = e.State, StepPre, ""
		s.Turn, s.Asked = nil, false
		s.settle()
		s.Visited = append(s.Visited, e.State)
		s.Spent.States++
	case KindHandlerResult:
		s.handled(e)
	case KindModelIntent, KindToolIntent, KindSubIntent:
		s.intend(e)
	case KindModelResult:
		p.answered(s, e)
	case KindToolResult:
		p.returned(s, e)
	case KindToolDecided:
		p.decided(s, e)
	case KindSubResult:
		s.subDone(e)
	case KindCompleted:
		s.Status, s.Output = StatusCompleted, e.Value
	default:
		p.steer(s, e)
	}
}

// steer folds what people, or the lack of something, make of a run.
func (p *Program) steer(s *State, e Event) {
	switch e.Kind {
	case KindInputRequested:
		s.Asked, s.Status = true, StatusWaiting
	case KindInputGiven:
		if st := p.State(s.At); st != nil && st.Ask != nil {
			s.Data[st.Ask.Name] = e.Value
		}
		s.Status, s.Step = StatusRunning, StepPost
	case KindPaused:
		s.Pause, s.Status = e.Pause, StatusPaused
	case KindResumed:
		s.Pause, s.Status = nil, StatusRunning
		if e.Limits != nil {
			s.Limits = *e.Limits
		}
		s.settle()
	case KindCancelled:
		s.Status, s.Reason, s.Pause = StatusCancelled, e.Reason, nil
	}
}

// intend notes what is about to be done.
func (s *State) intend(e Event) {
	s.Pending, s.Status, s.Unknown, s.Again = &e, StatusRunning, nil, false
	switch e.Kind {
	case KindModelIntent:
		if s.Turn == nil {
			s.Turn = &Turn{}
		}
	case KindToolIntent:
		s.Spent.Tools++
		if s.Turn != nil {
			s.Turn.Calls++
		}
	}
}

// decided is what somebody says of a call whose outcome is not known.
func (p *Program) decided(s *State, e Event) {
	s.Pause, s.Status = nil, StatusRunning
	switch call := s.Unknown; {
	case call == nil:
	case e.Decision == DecideRetry:
		s.Again = true
	default:
		p.result(s, call.ID, e.Result)
	}
}

// settle forgets what failed.
func (s *State) settle() {
	s.Fault, s.Attempts, s.Until, s.Shrink, s.GaveUp = nil, 0, time.Time{}, 0, false
}

// start is the first event: the inputs go into common_data, and then the
// variables, as in the seed's system.
func (p *Program) start(s *State, e Event) {
	*s = State{
		Status: StatusRunning, Inputs: e.Inputs, Data: map[string]json.RawMessage{}, Conversations: map[string][]llm.Message{},
		Limits: p.LimitsOf(), Index: e.Index, Depth: e.Depth, Demo: e.Demo, Allow: e.Allow,
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

// handled is the outcome of a handler. One that failed has changed nothing.
func (s *State) handled(e Event) {
	if e.Fault != nil {
		s.Fault, s.GaveUp = e.Fault, e.Step == StepError
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
		s.Step, s.Goto, s.Turn = stepDone, e.Next, nil
		s.settle()
	}
}

// answered is the outcome of a call of a model.
func (p *Program) answered(s *State, e Event) {
	s.Pending = nil
	s.Spent.Cost += e.Cost
	if e.Response != nil {
		s.Spent.Usage = s.Spent.Usage.Add(e.Response.Usage)
	}
	if e.Spent != nil { // of an answer that was no answer
		s.Spent.Usage = s.Spent.Usage.Add(e.Spent.Usage)
	}
	s.Spent.Calls++
	if !e.Unknown {
		s.Index++
	}
	if e.Fault != nil {
		s.Fault, s.Last = e.Fault, nil
		s.Attempts++
		s.Until = time.Time{}
		if e.Until != nil {
			s.Until = *e.Until
		}
		if e.Fault.Kind == string(llm.ContextLength) {
			s.Shrink++
		}
		return
	}
	s.settle()
	if s.Turn == nil {
		s.Turn = &Turn{}
	}
	if ordinary(p.roleAt(s), e.Response) {
		s.Turn.Messages = append(s.Turn.Messages, e.Response.Message)
		s.Turn.Queue, s.Turn.Done = e.Response.Message.ToolCalls, 0
		return
	}
	s.Last, s.Turn, s.Step = e.Response, nil, StepPost
}

// returned is the outcome of a call of a tool.
func (p *Program) returned(s *State, e Event) {
	pending := s.Pending
	s.Pending = nil
	if e.Unknown && pending != nil {
		s.Unknown = pending.Tool
		return
	}
	if pending == nil && s.Turn != nil { // it was refused and not made, and is one of the budget all the same
		s.Turn.Calls++
	}
	p.result(s, e.Tool.ID, e.Result)
}

// result tells the agent what a tool answered. Behind the last one of a round
// comes the reminder.
func (p *Program) result(s *State, id string, r *ToolResult) {
	s.Unknown = nil
	t := s.Turn
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

// subDone is the outcome of a machine within.
func (s *State) subDone(e Event) {
	s.Pending, s.Status = nil, StatusRunning
	if e.Spent != nil {
		s.Spent.add(*e.Spent)
	}
	s.Index += e.Index
	if e.Fault != nil {
		s.Fault = e.Fault
		s.Attempts++
		return
	}
	s.settle()
	if e.Next != "" { // the key that takes the output
		s.Data[e.Next] = e.Value
	}
	s.Step = StepPost
}

// roleAt is the role of the agent of the state, or nil.
func (p *Program) roleAt(s *State) *machinedef.Role {
	st := p.State(s.At)
	if st == nil {
		return nil
	}
	return p.Roles[st.Agent]
}
