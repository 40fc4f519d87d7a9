package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/run"
)

// StartRequest begins a run.
type StartRequest struct {
	Machine string
	// Definition is run in the place of the one that Machine names, if it is set.
	Definition *machinedef.Definition
	Inputs     map[string]json.RawMessage
	Goal       string
	Project    run.Project
	// Limits replace the definition's where they are not zero.
	Limits machineengine.Limits
	// Demo has the recording that is shipped with the machine answer in the
	// place of models.
	Demo bool
	// Allow bounds what the agents of the run may use, by words of who offers
	// tools; nil is everything. It holds for the run's whole life.
	Allow json.RawMessage
	// RequestID makes the request repeatable. Empty makes a new run every time.
	RequestID string
}

// Status is where a run stands, for its owner.
type Status struct {
	RunID   string `json:"runId"`
	Machine string `json:"machine"`
	// Source and Revision say where the machine came from, as far as that is known;
	// Hash is what it is pinned by.
	Source   string               `json:"source,omitempty"`
	Revision string               `json:"revision,omitempty"`
	Hash     string               `json:"hash"`
	Status   machineengine.Status `json:"status"`
	// State and Agent are where it is at work.
	State string `json:"state,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Asks is what it waits for.
	Asks *Asked `json:"asks,omitempty"`
	// Pause is why it rests.
	Pause *machineengine.Pause `json:"pause,omitempty"`
	// Unknown is a call whose outcome nobody knows: its process has ended, or it
	// is under way.
	Unknown string `json:"unknown,omitempty"`
	// Output is the result, once it is completed.
	Output json.RawMessage `json:"output,omitempty"`
	// States are those that were entered, in order.
	States []string `json:"states"`
	Usage  Usage    `json:"usage"`
	// Cost is in the currency of the prices; 0 if there are none.
	Cost float64 `json:"cost"`
	// Child is a machine within it that is at work, or waits.
	Child *Status `json:"child,omitempty"`
	// Driver is who drives it.
	Driver  string    `json:"driver,omitempty"`
	Parent  string    `json:"parent,omitempty"`
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
	Seq     int64     `json:"seq"`
	// Next is a call that is legal now.
	Next *run.Call `json:"next,omitempty"`
	// Allow is what its agents may use, as StartRequest gave it; nil is everything.
	Allow json.RawMessage `json:"-"`
}

// Usage is what a run has used.
type Usage struct {
	States    int     `json:"states"`
	Calls     int     `json:"calls"`
	ToolCalls int     `json:"toolCalls"`
	Input     int     `json:"inputTokens"`
	Output    int     `json:"outputTokens"`
	Seconds   float64 `json:"seconds"`
}

// Asked is what a run waits for.
type Asked struct {
	Name        string          `json:"name"`
	Type        machinedef.Type `json:"type"`
	Description string          `json:"description"`
	Options     []string        `json:"options,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	// Show is what the person should see before they answer.
	Show json.RawMessage `json:"show,omitempty"`
	// Person says that only a person may answer.
	Person bool `json:"person,omitempty"`
}

// beginning is a run that is to be begun.
type beginning struct {
	id, machine string
	definition  *machinedef.Definition
	inputs      map[string]json.RawMessage
	limits      machineengine.Limits
	// most bounds the limits: what is left of those of the run around it.
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
}

func by(c run.Caller) run.By {
	via := c.Via
	if via == "" {
		via = run.ViaAgent
	}
	return run.By{User: c.User, Client: cut(c.Client, 128), Via: via}
}

// Start begins a run and gives where it stands. It does not drive it.
func (s *Service) Start(ctx context.Context, c run.Caller, r StartRequest) (*Status, error) {
	if r.RequestID != "" {
		if h, err := s.o.Journal.Outcome(ctx, "", c.User, r.RequestID); err == nil {
			return s.Status(ctx, c, h.Run)
		}
	}
	demo := ""
	if r.Demo {
		demo = r.Machine
	}
	l, err := s.begin(ctx, beginning{
		demo: demo, allow: r.Allow, id: newRunID(s.clock()), machine: r.Machine, definition: r.Definition, inputs: r.Inputs, limits: r.Limits, by: by(c), project: r.Project,
		goal: cut(strings.ToValidUTF8(strings.TrimSpace(r.Goal), "\uFFFD"), 4<<10), request: r.RequestID,
	})
	if err != nil {
		return nil, err
	}
	return s.tell(ctx, l)
}

// begin stores a new run.
func (s *Service) begin(ctx context.Context, b beginning) (*loaded, error) {
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
	l, err := s.create(b.id, created, machineengine.Compile(d), b.by)
	if err != nil {
		return nil, err
	}
	l.request = b.request
	started := machineengine.Event{Kind: machineengine.KindStarted, Inputs: inputs, Index: b.index, Depth: b.depth, Demo: b.demo, Allow: b.allow}
	limits := within(merge(l.program.LimitsOf(), b.limits), b.most)
	if limits != l.program.LimitsOf() {
		started.Limits = &limits
	}
	if err := l.add(started); err != nil {
		return nil, err
	}
	return l, s.flush(ctx, l, b.by)
}

// create makes a run that is not yet stored, with its first event.
func (s *Service) create(id string, created run.Created, p *machineengine.Program, by run.By) (*loaded, error) {
	now := s.clock()
	l := &loaded{created: created, program: p, head: s.o.Key.Root(id), rec: run.Record{
		ID: id, User: by.User, Client: by.Client, Workflow: created.Workflow, Name: created.Name, Version: created.Version, Hash: created.Hash,
		Goal: created.Goal, Project: created.Project, Parent: created.Parent, ParentSeq: created.ParentSeq,
		Created: now, Updated: now, Handle: shortid.Token("h_"),
	}}
	first, err := newEvent(run.KindCreated, created)
	if err != nil {
		return nil, err
	}
	first.At, first.By = now, by
	l.buffer = append(l.buffer, first)
	return l, nil
}

// merge puts the limits that are set over others.
func merge(base, over machineengine.Limits) machineengine.Limits {
	set := func(to *int, from int) {
		if from != 0 {
			*to = from
		}
	}
	set(&base.States, over.States)
	set(&base.Calls, over.Calls)
	set(&base.Tokens, over.Tokens)
	set(&base.ToolCalls, over.ToolCalls)
	if over.Cost != 0 {
		base.Cost = over.Cost
	}
	if over.Millis != 0 {
		base.Millis = over.Millis
	}
	return base
}

// left is what a run may still use of calls, tokens, cost and time; 0 is no bound.
// What is used up leaves 1, which is used up by the first use.
func left(st *machineengine.State) machineengine.Limits {
	of := func(limit, used int64) int64 {
		if limit == 0 {
			return 0
		}
		return max(limit-used, 1)
	}
	l, spent := st.Limits, st.Spent
	return machineengine.Limits{
		Calls: int(of(int64(l.Calls), int64(spent.Calls))), Tokens: int(of(int64(l.Tokens), int64(spent.Usage.Input+spent.Usage.Output))),
		Cost: of(l.Cost, spent.Cost), Millis: of(l.Millis, spent.Millis),
	}
}

// within bounds limits by others.
func within(l, most machineengine.Limits) machineengine.Limits {
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

// checkInputs checks what a run begins with, and fills in defaults.
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
				WithFix("give %q, a %s", in.Name, in.Type)
		}
	}
	for name := range given {
		if _, ok := out[name]; !ok {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the machine %s has no input %q", d.Name, name).
				WithFix("its inputs: %s", strings.Join(names, ", "))
		}
	}
	return out, nil
}

// checkValue checks a value against its type and its options. A text that stands
// for a value of another type, as a command line gives it, becomes that value.
func checkValue(in *machinedef.Input, value json.RawMessage) (json.RawMessage, error) {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the value of %q is no JSON: %w", in.Name, err)
	}
	if text, ok := v.(string); ok && in.Type != machinedef.TypeString {
		if json.Unmarshal([]byte(text), &v) == nil {
			value = json.RawMessage(text)
		}
	}
	fits := false
	switch v.(type) {
	case string:
		fits = in.Type == machinedef.TypeString
	case float64:
		fits = in.Type == machinedef.TypeNumber
	case bool:
		fits = in.Type == machinedef.TypeBoolean
	case map[string]any:
		fits = in.Type == machinedef.TypeObject
	case []any:
		fits = in.Type == machinedef.TypeArray
	}
	if !fits {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the value of %q must be a %s, but it is %s", in.Name, in.Type, cut(string(value), 80)).
			WithFix("%s", in.Description)
	}
	if len(in.Options) == 0 {
		return value, nil
	}
	for _, option := range in.Options {
		if fmt.Sprint(v) == option {
			return value, nil
		}
	}
	return nil, guideway.Errorf(guideway.CodeInvalid, "the value of %q must be one of %s", in.Name, strings.Join(in.Options, ", ")).
		WithFix("give %q", in.Options[0])
}

// Status says where a run of the caller's stands.
func (s *Service) Status(ctx context.Context, c run.Caller, id string) (*Status, error) {
	l, _, err := s.load(ctx, c.User, id, 0)
	if err != nil {
		return nil, err
	}
	return s.tell(ctx, l)
}

// tell says where a run stands.
func (s *Service) tell(ctx context.Context, l *loaded) (*Status, error) {
	st := &l.state
	const millionths, millis = 1e6, 1e3
	out := &Status{
		RunID: l.rec.ID, Machine: l.rec.Workflow, Source: l.created.Source, Revision: l.created.Revision, Hash: l.rec.Hash, Status: st.Status, State: st.At, Agent: agentOf(l), Pause: st.Pause, Output: st.Output,
		States: append([]string{}, st.Visited...), Cost: float64(st.Spent.Cost) / millionths,
		Usage: Usage{
			States: st.Spent.States, Calls: st.Spent.Calls, ToolCalls: st.Spent.Tools,
			Input: st.Spent.Usage.Input, Output: st.Spent.Usage.Output, Seconds: float64(st.Spent.Millis) / millis,
		},
		Parent: l.rec.Parent, Created: l.rec.Created, Updated: l.rec.Updated, Seq: l.rec.Seq, Allow: st.Allow,
	}
	if l.lease != nil {
		out.Driver = l.lease.Owner
	}
	if in := l.asks(); in != nil {
		out.Asks = &Asked{
			Name: in.Name, Type: in.Type, Description: in.Description, Options: in.Options, Default: in.Default, Person: in.Person,
		}
		if in.Show != "" {
			out.Asks.Show = machineengine.Lookup(st.Data, in.Show)
		}
	}
	if p := st.Pending; p != nil {
		switch p.Kind {
		case machineengine.KindSubIntent:
			child, _, err := s.load(ctx, l.rec.User, p.Run, 0)
			if err == nil {
				if out.Child, err = s.tell(ctx, child); err != nil {
					return nil, err
				}
				if out.Child.Status == machineengine.StatusWaiting || out.Child.Status == machineengine.StatusPaused {
					out.Status = machineengine.StatusWaiting
				}
			}
		case machineengine.KindToolIntent:
			out.Unknown = "a call of the tool " + p.Tool.Name + " has begun, and its result has not come"
		default:
			out.Unknown = fmt.Sprintf("request %d to the model %s has begun, and its answer has not come", p.Call, p.Model)
		}
	}
	out.Next = next(out)
	return out, nil
}

// next is a call that is legal, or nil at the end.
func next(s *Status) *run.Call {
	args := map[string]any{"runId": s.RunID}
	switch {
	case s.Status.Ended():
		return nil
	case s.Asks != nil && !s.Asks.Person:
		args["value"] = "..."
		if len(s.Asks.Options) > 0 {
			args["value"] = s.Asks.Options[0]
		}
		return &run.Call{Tool: "machine_input", Arguments: args}
	case s.Pause != nil && s.Pause.Code == machineengine.FaultUnknown:
		args["outcome"] = "failed"
		return &run.Call{Tool: "machine_input", Arguments: args}
	case s.Child != nil && s.Child.Next != nil:
		return s.Child.Next
	}
	return &run.Call{Tool: "machine_status", Arguments: args}
}

// asks is what the run waits for, or nil.
func (l *loaded) asks() *machinedef.Input {
	if l.state.Status != machineengine.StatusWaiting {
		return nil
	}
	st := l.program.State(l.state.At)
	if st == nil {
		return nil
	}
	return st.Ask
}

// List lists the caller's runs of machines, the last changed first.
func (s *Service) List(ctx context.Context, c run.Caller, f run.Filter) ([]run.Record, error) {
	f.User = c.User
	return s.o.Journal.Runs(ctx, f)
}

// Events gives a run's events, each checked.
func (s *Service) Events(ctx context.Context, c run.Caller, id string) ([]run.Event, error) {
	_, events, err := s.load(ctx, c.User, id, 0)
	return events, err
}
