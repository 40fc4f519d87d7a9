package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/run"
)

// StartRequest is a request to start a run.
type StartRequest struct {
	Machine string
	// Definition, if set, is run instead of the machine with the name Machine.
	Definition *machinedef.Definition
	Inputs     map[string]json.RawMessage
	Goal       string
	Project    run.Project
	// Limits replace the definition's limits if they are not zero.
	Limits machineengine.Limits
	// Demo answers from the machine's bundled recording instead of models.
	Demo bool
	// Allow restricts the models and tools of the run permanently, in the format of the
	// Models and Tools implementation; nil allows all.
	Allow json.RawMessage
	// Guided are the open guided runs of the client, whose steps restrict the tools of the
	// run as long as they are open.
	Guided []string
	// RequestID makes the request idempotent. If it is empty, every request starts a run.
	RequestID string
}

// Status is the status of a run as shown to its owner.
type Status struct {
	RunID   string `json:"runId"`
	Machine string `json:"machine"`
	// Source and Revision are the origin of the machine, if known. Hash is its pinned hash.
	Source   string               `json:"source,omitempty"`
	Revision string               `json:"revision,omitempty"`
	Hash     string               `json:"hash"`
	Status   machineengine.Status `json:"status"`
	// State and Agent are the current state and its agent.
	State string `json:"state,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Asks is the requested input.
	Asks *InputRequest `json:"asks,omitempty"`
	// Question identifies the requested input, or the call whose outcome a person must
	// decide. It differs for every question of every run.
	Question string `json:"question,omitempty"`
	// Pause is the reason for a pause.
	Pause *machineengine.Pause `json:"pause,omitempty"`
	// Reason is why the run was cancelled, or why its sub-machine does not continue.
	Reason string `json:"reason,omitempty"`
	// Unknown describes a call whose outcome is unknown: it is in progress, or its process
	// ended.
	Unknown string `json:"unknown,omitempty"`
	// Output is the output of a completed run.
	Output json.RawMessage `json:"output,omitempty"`
	// States are the entered states in order.
	States []string `json:"states"`
	// Usage and Cost include the sub-machine in progress.
	Usage Usage `json:"usage"`
	// Cost is in the currency of the prices; 0 without prices.
	Cost float64 `json:"cost"`
	// Child is the sub-machine in progress.
	Child *Status `json:"child,omitempty"`
	// Driver is the process that drives the run.
	Driver  string    `json:"driver,omitempty"`
	Parent  string    `json:"parent,omitempty"`
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
	Seq     int64     `json:"seq"`
	// Next is a permitted next call.
	Next *run.Call `json:"next,omitempty"`
	// Allow is StartRequest.Allow; nil allows all.
	Allow json.RawMessage `json:"-"`
}

// Usage is the resource usage of a run.
type Usage struct {
	States    int     `json:"states"`
	Calls     int     `json:"calls"`
	ToolCalls int     `json:"toolCalls"`
	Input     int     `json:"inputTokens"`
	Output    int     `json:"outputTokens"`
	Seconds   float64 `json:"seconds"`
}

// InputRequest is an input that a run waits for.
type InputRequest struct {
	Name        string          `json:"name"`
	Type        machinedef.Type `json:"type"`
	Description string          `json:"description"`
	Options     []string        `json:"options,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	// Show is the value that the person should see before answering.
	Show json.RawMessage `json:"show,omitempty"`
	// Person is set if only a person may answer.
	Person bool `json:"person,omitempty"`
}

// newRun holds the parameters of a run to create.
type newRun struct {
	id, machine string
	definition  *machinedef.Definition
	inputs      map[string]json.RawMessage
	limits      machineengine.Limits
	// most are the remaining limits of the parent run, which cap the limits.
	most      machineengine.Limits
	by        run.By
	project   run.Project
	goal      string
	request   string
	parent    string
	parentSeq int64
	index     int
	depth     int
	demo      string
	allow     json.RawMessage
	guided    []string
}

// Start starts a run and returns its status. It does not drive the run.
func (s *Service) Start(ctx context.Context, c run.Caller, r StartRequest) (*Status, error) {
	if s, err := s.replayStart(ctx, c, r); s != nil || err != nil {
		return s, err
	}
	demo := ""
	if r.Demo {
		demo = r.Machine
	}
	l, err := s.createRun(ctx, newRun{
		demo: demo, allow: r.Allow, guided: r.Guided, id: newRunID(s.clock()), machine: r.Machine, definition: r.Definition, inputs: r.Inputs, limits: r.Limits, by: run.ByCaller(c), project: s.o.Shares.AllowedProject(c, r.Project),
		goal: run.Truncate(strings.ToValidUTF8(strings.TrimSpace(r.Goal), "\uFFFD"), 4<<10), request: r.RequestID,
	})
	if guideway.ErrorCode(err) == guideway.CodeConflict { // a repeat of the request may have created its run first
		if first, again := s.replayStart(ctx, c, r); first != nil || again != nil {
			return first, again
		}
	}
	if err != nil {
		return nil, err
	}
	return s.buildStatus(ctx, l)
}

// replayStart returns the status of the run that a request started before, or nil.
func (s *Service) replayStart(ctx context.Context, c run.Caller, r StartRequest) (*Status, error) {
	if r.RequestID == "" {
		return nil, nil
	}
	h, err := s.o.Journal.Outcome(ctx, "", c.User, r.RequestID)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.Status(ctx, c, h.Run)
}

// createRun stores a new run.
func (s *Service) createRun(ctx context.Context, b newRun) (*loaded, error) {
	d := b.definition
	if d == nil {
		var err error
		if d, err = s.o.Machines.Machine(ctx, b.machine); err != nil {
			return nil, err
		}
	}
	inputs, err := checkInputs(d, b.inputs)
	if err != nil {
		return nil, err
	}
	created := run.Created{
		Workflow: d.Name, Name: d.Name, Version: d.Version, Hash: d.Hash, Source: d.Source, Revision: d.Revision, Goal: b.goal, Project: b.project, Parent: b.parent, ParentSeq: b.parentSeq,
	}
	l, err := s.newLoaded(b.id, created, machineengine.Compile(d), b.by)
	if err != nil {
		return nil, err
	}
	l.request = b.request
	if s.o.Schedule && b.depth == 0 {
		l.job = &run.Job{User: b.by.User, Run: b.id}
	}
	tools, err := s.listTools(ctx, l.program, RunScope{User: b.by.User, Run: b.id, Machine: d.Name, Demo: b.demo, Allow: b.allow, Guided: b.guided})
	if err != nil {
		return nil, err
	}
	started := machineengine.Event{
		Kind: machineengine.KindStarted, Inputs: inputs, Index: b.index, Depth: b.depth, Demo: b.demo, Allow: b.allow, Guided: b.guided, Pins: pinTools(l.program, tools),
	}
	limits := capLimits(mergeLimits(l.program.DefaultLimits(), b.limits), b.most)
	if limits != l.program.DefaultLimits() {
		started.Limits = &limits
	}
	if err := l.addEvent(started); err != nil {
		return nil, err
	}
	return l, s.flushEvents(ctx, l, b.by)
}

// newLoaded returns a run with its first event, not yet stored.
func (s *Service) newLoaded(id string, created run.Created, p *machineengine.Program, by run.By) (*loaded, error) {
	first, err := newEvent(run.KindCreated, created)
	if err != nil {
		return nil, err
	}
	first.At, first.By = s.clock(), by
	l := &loaded{created: created, program: p, head: s.o.Key.Root(id), rec: run.InitialRecord(id, created, first)}
	l.rec.Handle = shortid.Token("h_")
	l.buffer = append(l.buffer, first)
	return l, nil
}

// mergeLimits replaces the limits of base by the nonzero ones of over.
func mergeLimits(base, over machineengine.Limits) machineengine.Limits {
	return machineengine.Limits{
		States: cmp.Or(over.States, base.States), Calls: cmp.Or(over.Calls, base.Calls), Tokens: cmp.Or(over.Tokens, base.Tokens),
		Cost: cmp.Or(over.Cost, base.Cost), Millis: cmp.Or(over.Millis, base.Millis), ToolCalls: cmp.Or(over.ToolCalls, base.ToolCalls),
	}
}

// remainingLimits returns the remaining calls, tokens, cost and time of a run; 0 means no
// limit. An exhausted limit is returned as 1, because 0 would mean no limit.
func remainingLimits(st *machineengine.State) machineengine.Limits {
	of := func(limit, used int64) int64 {
		if limit == 0 {
			return 0
		}
		return max(limit-used, 1)
	}
	l, spent := st.Limits, st.Usage
	return machineengine.Limits{
		Calls: int(of(int64(l.Calls), int64(spent.Calls))), Tokens: int(of(int64(l.Tokens), int64(spent.Tokens.Input+spent.Tokens.Output))),
		Cost: of(l.Cost, spent.Cost), Millis: of(l.Millis, spent.Millis),
	}
}

// capLimits caps the calls, tokens, cost and time of l by those of most.
func capLimits(l, most machineengine.Limits) machineengine.Limits {
	less := func(a, b int64) int64 {
		if b != 0 && (a == 0 || b < a) {
			return b
		}
		return a
	}
	l.Calls, l.Tokens = int(less(int64(l.Calls), int64(most.Calls))), int(less(int64(l.Tokens), int64(most.Tokens)))
	l.Cost, l.Millis = less(l.Cost, most.Cost), less(l.Millis, most.Millis)
	return l
}

// checkInputs validates the inputs of a run and adds defaults.
func checkInputs(d *machinedef.Definition, given map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(d.Inputs))
	var names []string
	for i := range d.Inputs {
		in := &d.Inputs[i]
		names = append(names, in.Name)
		value, ok := given[in.Name]
		switch {
		case ok:
			checked, err := checkValue(in, value)
			if err != nil {
				return nil, err
			}
			out[in.Name] = checked
		case in.Default != nil:
			out[in.Name] = in.Default
		case !in.Optional:
			return nil, guideway.Errorf(guideway.CodeInvalid, "the machine %s needs the input %q: %s", d.Name, in.Name, in.Description).
				WithFix("add %q to the inputs, with a value of the type %s", in.Name, in.Type)
		}
	}
	for name := range given {
		if _, ok := out[name]; !ok {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the machine %s has no input %q", d.Name, name).
				WithFix("%s", inputsFix(names))
		}
	}
	return out, nil
}

// inputsFix returns the fix for an unknown input: the names of the inputs.
func inputsFix(names []string) string {
	if len(names) == 0 {
		return "pass no inputs: the machine has none"
	}
	return "use one of the inputs of the machine: " + strings.Join(names, ", ")
}

// checkValue checks a value against its type and options. A text, as given on a command
// line, is parsed if the type is not a text.
func checkValue(in *machinedef.Input, value json.RawMessage) (json.RawMessage, error) {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the value of the input %q is not JSON: %w", in.Name, err).
			WithFix("write a JSON value of the type %s: %s", in.Type, in.Description)
	}
	if text, ok := v.(string); ok && in.Type != machinedef.TypeString {
		if json.Unmarshal([]byte(text), &v) == nil {
			value = json.RawMessage(text)
		}
	}
	if string(in.Type) != jsontext.TypeName(v) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the value of the input %q must be of the type %s, but it is %s", in.Name, in.Type, run.Truncate(string(value), 80)).
			WithFix("enter a value of the type %s: %s", in.Type, in.Description)
	}
	if len(in.Options) == 0 || slices.Contains(in.Options, fmt.Sprint(v)) {
		return value, nil
	}
	return nil, guideway.Errorf(guideway.CodeInvalid, "the value of the input %q must be one of %s, but it is %s", in.Name, strings.Join(in.Options, ", "), run.Truncate(string(value), 80)).
		WithFix("enter one of: %s", strings.Join(in.Options, ", "))
}

// Status returns the status of a run of the caller.
func (s *Service) Status(ctx context.Context, c run.Caller, id string) (*Status, error) {
	l, _, err := s.loadRun(ctx, c.User, id, 0)
	if err != nil {
		return nil, err
	}
	return s.buildStatus(ctx, l)
}

// buildStatus returns the status of a loaded run.
func (s *Service) buildStatus(ctx context.Context, l *loaded) (*Status, error) {
	st := &l.state
	const millionths, millis = 1e6, 1e3
	out := &Status{
		RunID: l.rec.ID, Machine: l.rec.Workflow, Source: l.created.Source, Revision: l.created.Revision, Hash: l.rec.Hash, Status: st.Status, State: st.At, Agent: agentOf(l), Pause: st.Pause, Reason: st.Reason, Output: st.Output,
		States: append([]string{}, st.Visited...), Cost: float64(st.Usage.Cost) / millionths,
		Usage: Usage{
			States: st.Usage.States, Calls: st.Usage.Calls, ToolCalls: st.Usage.Tools,
			Input: st.Usage.Tokens.Input, Output: st.Usage.Tokens.Output, Seconds: float64(st.Usage.Millis) / millis,
		},
		Parent: l.rec.Parent, Created: l.rec.Created, Updated: l.rec.Updated, Seq: l.rec.Seq, Allow: st.Allow,
		Question: l.question(),
	}
	if l.lease != nil {
		out.Driver = l.lease.Owner
	}
	if in := l.requestedInput(); in != nil {
		out.Asks = &InputRequest{
			Name: in.Name, Type: in.Type, Description: in.Description, Options: in.Options, Default: in.Default, Person: in.Person,
		}
		if in.Show != "" {
			out.Asks.Show = machineengine.Lookup(st.Data, in.Show)
		}
	}
	if p := st.Pending; p != nil {
		switch p.Kind {
		case machineengine.KindSubIntent:
			child, _, err := s.loadRun(ctx, l.rec.User, p.Run, 0)
			if err == nil {
				if out.Child, err = s.buildStatus(ctx, child); err != nil {
					return nil, err
				}
				out.includeChild()
			}
		case machineengine.KindToolIntent:
			out.Unknown = "a call of the tool " + p.Tool.Name + " has no result yet"
		default:
			out.Unknown = fmt.Sprintf("request %d to the model %s has no answer yet", p.Call, p.Model)
		}
	}
	out.Next = nextCall(out)
	return out, nil
}

// includeChild adds the usage of the sub-machine in progress, and the reason why it does not
// continue.
func (s *Status) includeChild() {
	c := s.Child
	s.Cost += c.Cost
	s.Usage.Calls += c.Usage.Calls
	s.Usage.ToolCalls += c.Usage.ToolCalls
	s.Usage.Input += c.Usage.Input
	s.Usage.Output += c.Usage.Output
	s.Usage.Seconds += c.Usage.Seconds
	if c.Status == machineengine.StatusWaiting || c.Status == machineengine.StatusPaused {
		s.Status = machineengine.StatusWaiting
	}
	switch {
	case c.Pause != nil:
		s.Reason = fmt.Sprintf("the sub-machine %s (%s) is paused: %s", c.Machine, c.RunID, c.Pause.Message)
	case !c.Status.Ended():
		s.Reason = c.Reason
	}
}

// nextCall returns a permitted next call, or nil if the run has ended or waits for a person.
func nextCall(s *Status) *run.Call {
	args := map[string]any{"runId": s.RunID}
	switch {
	case s.Status.Ended():
		return nil
	case s.Asks != nil && s.Asks.Person, s.Child != nil && s.Child.Next == nil && !s.Child.Status.Ended():
		return nil // only a person continues the run
	case s.Asks != nil:
		field := engine.Field{Name: "value", Description: "the user's input"}
		for _, option := range s.Asks.Options {
			field.Choices = append(field.Choices, option)
		}
		return &run.Call{Tool: "machine_input", Arguments: args, Fields: []engine.Field{field}}
	case s.Pause != nil && s.Pause.Code == machineengine.ErrorKindUnknownOutcome:
		return &run.Call{Tool: "machine_input", Arguments: args, Fields: []engine.Field{{
			Name: "outcome", Description: "whether to retry the call, or to report it as done or failed", Choices: []any{"retry", "done", "failed"},
		}}}
	case s.Child != nil && s.Child.Next != nil: // the nested run is found by the id of its parent
		next := *s.Child.Next
		next.Arguments = maps.Clone(next.Arguments)
		next.Arguments["runId"] = s.RunID
		return &next
	}
	return &run.Call{Tool: "machine_status", Arguments: args}
}

// requestedInput returns the input that the run waits for, or nil.
func (l *loaded) requestedInput() *machinedef.Input {
	if l.state.Status != machineengine.StatusWaiting {
		return nil
	}
	st := l.program.State(l.state.At)
	if st == nil {
		return nil
	}
	return st.Ask
}

// question returns the id of the question that the run waits for an answer to, or "". A run
// requests an input at most once after it enters a state, and asks at most once for the
// outcome of an attempt of a tool call.
func (l *loaded) question() string {
	st := &l.state
	switch {
	case l.requestedInput() != nil:
		return fmt.Sprintf("%s.input.%d", l.rec.ID, st.Usage.States)
	case st.Status == machineengine.StatusPaused && st.Unknown != nil:
		return fmt.Sprintf("%s.outcome.%d", l.rec.ID, st.Usage.Tools)
	default:
		return ""
	}
}

// List returns the machine runs that the caller may use, most recently changed first.
func (s *Service) List(ctx context.Context, c run.Caller, f run.Filter) ([]run.Record, error) {
	return s.o.Shares.VisibleRuns(ctx, s.o.Journal, c, f, func(r run.Record) bool {
		_, _, err := s.loadRun(ctx, c.User, r.ID, 1)
		return err == nil
	})
}

// Events returns the verified events of a run.
func (s *Service) Events(ctx context.Context, c run.Caller, id string) ([]run.Event, error) {
	_, events, err := s.loadRun(ctx, c.User, id, 0)
	return events, err
}
