// Package definition implements the dialect of agent machines: several agents with roles
// and shared conversations, whose states and transitions are controlled by script
// functions. A machine consists of a configuration, a script and the roles of its agents.
// SynthDev's files load unchanged; the published schema describes the extensions.
package definition

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Machine is a valid agent machine. It is immutable.
type Machine struct {
	Name, Description, Version string
	// Inputs are the inputs of a run: SynthDev's single input, or several.
	Inputs []Input
	Output Output
	// Variables are the initial values of common_data, in document order.
	Variables []Variable
	Contexts  []Context
	Agents    []Agent
	States    []State
	Budgets   Budgets
	// Tools are the tool policies in document order; the first one that matches a tool
	// applies.
	Tools []ToolPolicy
	// Roles are the roles of the machine's agents by name.
	Roles map[string]*Role
	// Script is the source of the handlers, or "".
	Script string
}

// The states with a special meaning.
const (
	StateStart = "start"
	StateStop  = "stop"
)

// Type is the type of an input or output.
type Type string

// The types of inputs and outputs.
const (
	TypeString  Type = "string"
	TypeNumber  Type = "number"
	TypeBoolean Type = "boolean"
	TypeObject  Type = "object"
	TypeArray   Type = "array"
)

// Input is an input of the machine, or of a state that waits.
type Input struct {
	Name        string
	Type        Type
	Description string
	// Optional is set if the value may be missing. Default is the default value, or nil.
	Optional bool
	Default  json.RawMessage
	// Options are the allowed values; empty if any value is allowed.
	Options []string
	// Show is the path of the value to show to the person, such as "common_data.draft".
	Show string
	// Person is set if the input requires human approval.
	Person bool
}

// Output is the result of a run.
type Output struct {
	Name        string
	Type        Type
	Description string
}

// Variable is an initial value of common_data.
type Variable struct {
	Name  string
	Value json.RawMessage
}

// Context is a shared conversation.
type Context struct {
	Name string
	// Starting are the initial messages in the chat-completions format.
	Starting []json.RawMessage
	// MaxLength limits the sent part of the conversation in characters. It has no effect if
	// MaxTokens is set, and is DefaultMaxLength if the machine sets neither.
	MaxLength int
	// MaxTokens limits the sent part of the conversation in tokens; 0 means that MaxLength
	// applies.
	MaxTokens int
}

// DefaultMaxLength is the default limit of a context in characters.
const DefaultMaxLength = 50_000

// Side is the side of a conversation that an agent takes.
type Side string

// The sides. An agent on the user's side gets the conversation with the roles user and
// assistant exchanged.
const (
	SideUser      Side = "user"
	SideAssistant Side = "assistant"
)

// Agent is a role in a conversation.
type Agent struct {
	// Role is the name of the agent and of its role.
	Role    string
	Context string
	Side    Side
}

// State is one state of a machine.
type State struct {
	Name  string
	Agent string
	// Pre, Post and Transition are script functions: before and after the agent's call, and
	// the one that returns the next state.
	Pre, Post, Transition string
	// OnError is the function that returns the next state after a permanent error of the
	// state: of a handler, the agent's call or the sub-machine.
	OnError string
	// MaxRetries is the maximum number of retries of a failed call; the default is
	// DefaultRetries.
	MaxRetries int
	// Next is the next state if Transition is empty or returns nothing; "" means stop.
	Next string
	// Result is the path of the run's result, such as "common_data.summary"; only for the
	// state stop.
	Result string
	// Ask is the value that the state waits for, or nil.
	Ask *Input
	// Sub is the other machine that the state runs, or nil.
	Sub *Sub
	// Tools restricts the tools of the state's agent, in addition to its role; nil adds no
	// restriction.
	Tools *toolpolicy.Policy
}

// DefaultRetries is the default number of retries of an agent's call.
const DefaultRetries = 3

// Sub is the run of another machine within a state.
type Sub struct {
	Machine string
	// Inputs are the paths of the other machine's inputs, in document order.
	Inputs []SubInput
	// Output is the key of common_data for the result; "" discards it.
	Output string
}

// SubInput is one input of another machine.
type SubInput struct{ Name, Path string }

// Budgets are the limits of a run. Zero means the default, if there is one.
type Budgets struct {
	// States limits the entered states, Calls the model calls.
	States, Calls int
	// Tokens limits the input and output tokens of all calls; 0 means no limit.
	Tokens int
	// Cost is in millionths of the currency of the prices; 0 means no limit.
	Cost int64
	// Time limits the working time of the run, without the time that it waits for people; 0
	// means no limit.
	Time time.Duration
	// ToolCalls limits the tool calls in one call of an agent.
	ToolCalls int
}

// The default budgets.
const (
	DefaultStates    = 200
	DefaultCalls     = 200
	DefaultToolCalls = 50
)

// Retry is the action for a tool call with an unknown outcome.
type Retry string

// The retry actions. If no policy applies, the tool's annotations decide: a read-only or
// idempotent tool is retried; for all others the run asks a person.
const (
	RetrySafe Retry = "safe"
	RetryKey  Retry = "key"
	RetryAsk  Retry = "ask"
)

// ToolPolicy is the policy for calls of the tools that match a pattern.
type ToolPolicy struct {
	Pattern string
	Retry   Retry
	// Timeout limits one call; 0 means the default.
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

// Role contains the instructions and the tools of an agent.
type Role struct {
	Name string
	// Level selects the model if Model is empty.
	Level         Level
	Model         string
	SystemMessage string
	// Included and Excluded are patterns of tools; at most one is set. Without either the
	// role has no tools.
	Included, Excluded []string
	// HasExcluded is set if Excluded is set: an empty list allows all tools.
	HasExcluded bool
	// Parsing lists the parsing tools: a call of one is the agent's answer, and the tool is
	// never executed.
	Parsing []Tool
	// Reminder is sent after every round of tools.
	Reminder string
	// Examples follow the system message, in the chat-completions format.
	Examples []json.RawMessage
	// MaxTokens limits an answer; 0 means the model's limit.
	MaxTokens   int
	Temperature *float64
}

// Tool is a function that a model may call.
type Tool struct {
	Name, Description string
	// Parameters is a JSON Schema, or nil.
	Parameters json.RawMessage
}

// State returns the state with a name, or nil.
func (m *Machine) State(name string) *State {
	return lists.Find(m.States, func(s *State) bool { return s.Name == name })
}

// Agent returns the agent with a name, or nil.
func (m *Machine) Agent(name string) *Agent {
	return lists.Find(m.Agents, func(a *Agent) bool { return a.Role == name })
}

// Context returns the context with a name, or nil.
func (m *Machine) Context(name string) *Context {
	return lists.Find(m.Contexts, func(c *Context) bool { return c.Name == name })
}

// Functions returns the unique names of the functions that the states use, in document
// order.
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

// After returns the next state if no handler chooses one; the default is stop.
func (s *State) After() string { return cmp.Or(s.Next, StateStop) }
