// Package machines is the machines dialect: several agents with roles and shared
// conversations, led through states by functions of a script (seed 004). A machine
// is a configuration, its script and the roles of its agents; the seed's own files
// load unchanged, and what is ours beyond them stands in the published schema.
package machines

import (
	"encoding/json"
	"time"
)

// Machine is an agent machine that loads. It is immutable.
type Machine struct {
	Name, Description, Version string
	// Inputs are what a run begins with: the seed's one input, or several.
	Inputs []Input
	Output Output
	// Variables are put into common_data at the beginning, in the order of the
	// document.
	Variables []Variable
	Contexts  []Context
	Agents    []Agent
	States    []State
	Budgets   Budgets
	// Tools are the policies for tools, in the order of the document; the first
	// whose pattern fits a tool counts.
	Tools []ToolPolicy
	// Roles are those of the machine's agents, by name.
	Roles map[string]*Role
	// Script is the source of the handlers; "" where there is none.
	Script string
}

// The states with a meaning of their own.
const (
	StateStart = "start"
	StateStop  = "stop"
)

// Type is the type of an input or output.
type Type string

// The types.
const (
	TypeString  Type = "string"
	TypeNumber  Type = "number"
	TypeBoolean Type = "boolean"
	TypeObject  Type = "object"
	TypeArray   Type = "array"
)

// Input is a value that somebody gives: to the machine as a whole, or in a state
// that waits.
type Input struct {
	Name        string
	Type        Type
	Description string
	// Optional says that there need not be a value; Default is the one that
	// counts then, nil if there is none.
	Optional bool
	Default  json.RawMessage
	// Options are the values that are allowed; none means any.
	Options []string
	// Show is the path of what the person is shown, such as
	// "common_data.draft".
	Show string
	// Person says that only a person may give it.
	Person bool
}

// Output is the result of a run.
type Output struct {
	Name        string
	Type        Type
	Description string
}

// Variable is a value of common_data.
type Variable struct {
	Name  string
	Value json.RawMessage
}

// Context is a shared conversation.
type Context struct {
	Name string
	// Starting are the messages that it begins with, in the form of
	// chat-completions.
	Starting []json.RawMessage
	// MaxLength bounds what is sent of it, in characters; 0 where MaxTokens
	// does.
	MaxLength int
	// MaxTokens bounds what is sent of it, in tokens; 0 where MaxLength does.
	MaxTokens int
}

// DefaultMaxLength bounds a context that says nothing, in characters.
const DefaultMaxLength = 50_000

// Side is the side of a conversation that an agent takes.
type Side string

// The sides. The user's sees the conversation with both sides exchanged.
const (
	SideUser      Side = "user"
	SideAssistant Side = "assistant"
)

// Agent is a role in a conversation.
type Agent struct {
	// Role names it, and the role that it plays.
	Role    string
	Context string
	Side    Side
}

// State is one state of a machine.
type State struct {
	Name  string
	Agent string
	// Pre, Post and Transition name functions of the script: before and after
	// the agent's call, and the one that answers the next state.
	Pre, Post, Transition string
	// OnError names the function that answers the next state where the agent's
	// call failed for good.
	OnError string
	// MaxRetries is how often a failed call is repeated; DefaultRetries where
	// the state does not say.
	MaxRetries int
	// Next is the state that follows where Transition is empty or answers
	// nothing; "" is stop.
	Next string
	// Result is the path of the run's result, such as "common_data.summary"; in
	// the state stop alone.
	Result string
	// Ask makes the state wait for a value.
	Ask *Input
	// Sub makes the state run another machine.
	Sub *Sub
}

// DefaultRetries is how often a failed call of an agent is repeated where its
// state does not say.
const DefaultRetries = 3

// Sub is the run of another machine within a state.
type Sub struct {
	Machine string
	// Inputs are the paths of the other machine's inputs, in the order of the
	// document.
	Inputs []SubInput
	// Output is the key of common_data that takes the result; "" is none.
	Output string
}

// SubInput is one input of another machine.
type SubInput struct{ Name, Path string }

// Budgets bound a run. Zero is the default, where there is one.
type Budgets struct {
	// States counts the states that are entered, Calls the calls of models.
	States, Calls int
	// Tokens counts those of all calls, in and out; 0 is no bound.
	Tokens int
	// Cost is in millionths of the currency of the prices; 0 is no bound.
	Cost int64
	// Time is how long the run may be at work, without the time that it waits
	// for people; 0 is no bound.
	Time time.Duration
	// ToolCalls bounds the rounds of tools in one call of an agent.
	ToolCalls int
}

// The budgets where a machine does not say.
const (
	DefaultStates    = 200
	DefaultCalls     = 200
	DefaultToolCalls = 50
)

// Retry says what happens to a call of a tool whose outcome is not known.
type Retry string

// The ways. None is said by the tool itself: one that only reads, or says that
// it may be repeated, is retried; of others a person is asked.
const (
	RetrySafe Retry = "safe"
	RetryKey  Retry = "key"
	RetryAsk  Retry = "ask"
)

// ToolPolicy says how tools of a pattern are called.
type ToolPolicy struct {
	Pattern string
	Retry   Retry
	// Timeout bounds one call; 0 is the default.
	Timeout time.Duration
}

// Level is a class of models.
type Level string

// The levels.
const (
	LevelBase  Level = "base"
	LevelSmart Level = "smart"
	LevelFast  Level = "fast"
)

// Role is what an agent is told, and what it may use.
type Role struct {
	Name string
	// Level chooses the model where Model is empty.
	Level         Level
	Model         string
	SystemMessage string
	// Included and Excluded are patterns of tools; of the two at most one is
	// given. Without either there are no tools.
	Included, Excluded []string
	// HasExcluded tells an empty list of Excluded, which is all tools, from none.
	HasExcluded bool
	// Parsing are the tools whose call is the answer: they are never executed.
	Parsing []Tool
	// Reminder is told after every round of tools.
	Reminder string
	// Examples follow the system message, in the form of chat-completions.
	Examples []json.RawMessage
	// MaxTokens bounds an answer; 0 is the model's own bound.
	MaxTokens   int
	Temperature *float64
}

// Tool is a function that a model may call.
type Tool struct {
	Name, Description string
	// Parameters is a JSON Schema; nil is none.
	Parameters json.RawMessage
}

// State gives the state of a name, or nil.
func (m *Machine) State(name string) *State {
	for i := range m.States {
		if m.States[i].Name == name {
			return &m.States[i]
		}
	}
	return nil
}

// Agent gives the agent of a name, or nil.
func (m *Machine) Agent(name string) *Agent {
	for i := range m.Agents {
		if m.Agents[i].Role == name {
			return &m.Agents[i]
		}
	}
	return nil
}

// Context gives the context of a name, or nil.
func (m *Machine) Context(name string) *Context {
	for i := range m.Contexts {
		if m.Contexts[i].Name == name {
			return &m.Contexts[i]
		}
	}
	return nil
}

// Functions are the names of the functions that the states use, each once, in
// the order of the document.
func (m *Machine) Functions() []string {
	var names []string
	seen := map[string]bool{}
	for i := range m.States {
		s := &m.States[i]
		for _, name := range []string{s.Pre, s.Post, s.Transition, s.OnError} {
			if name != "" && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// After is the state that follows where no handler says: stop if nothing does.
func (s *State) After() string {
	if s.Next != "" {
		return s.Next
	}
	return StateStop
}
