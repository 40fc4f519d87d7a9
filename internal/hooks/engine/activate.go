package engine

import (
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Candidate is a graph that could be active.
type Candidate struct {
	// ID is the graph's, and Source says where it comes from, as approvals do.
	ID, Source string
	// Own says that this user answers for the source: what changes there needs
	// no new approval. Elsewhere it does.
	Own bool
	// Graph is nil where the graph does not load or link; Problem says why.
	Graph   *hookdef.Linked
	Problem string
}

// Key is what an approval of the graph is of.
func (c *Candidate) Key() approval.Key {
	return approval.Key{Kind: approval.KindHookGraph, Source: c.Source, Subject: c.ID}
}

// State says how a graph stands.
type State string

// The states.
const (
	// StateOff is a graph that is not enabled.
	StateOff State = "off"
	// StateActive is one that runs.
	StateActive State = "active"
	// StateChanged is one that is not what was approved, StateBroken one that
	// does not load; StateTemplate is one that is there to be copied.
	StateChanged  State = "changed"
	StateBroken   State = "broken"
	StateTemplate State = "template"
)

// scope is what an approval of a graph is about.
type scope struct {
	Type     hookdef.Type      `json:"type"`
	Bindings []hookdef.Binding `json:"bindings,omitempty"`
}

// Approval is the record that makes a graph active. A template cannot be.
func (c *Candidate) Approval(who string) (approval.Record, error) {
	switch {
	case c.Graph == nil:
		return approval.Record{}, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s cannot be enabled: %s", c.ID, c.Problem).
			WithFix("mend it; 'guideway hooks validate %s' says more", c.ID)
	case c.Graph.Template:
		return approval.Record{}, guideway.Errorf(guideway.CodeInvalid, "the hook graph %s is a template, which is never active", c.ID).
			WithFix("guideway hooks import --template %s --id my-%s", c.ID, c.ID)
	}
	text, err := json.Marshal(scope{Type: c.Graph.Type, Bindings: c.Graph.Bindings})
	if err != nil {
		return approval.Record{}, guideway.Errorf(guideway.CodeInternal, "write the scope of %s: %w", c.ID, err)
	}
	return approval.Record{
		Kind: approval.KindHookGraph, Source: c.Source, Subject: c.ID, Hash: c.Graph.Pin, Who: who, Scope: text,
	}, nil
}

// Activation is which graphs are active, by the approvals of one moment.
type Activation struct {
	Set *Set
	// States says how each candidate stands.
	States map[approval.Key]State
	// Missing are the approvals of graphs that are not there any more.
	Missing approval.Records
}

// Activate makes the set of the graphs that are approved. What is approved and
// cannot run blocks what it stands around: one that does not load, one that is not
// what was approved, and one that is gone from a source that is there. Present
// says whether a source is; a project's is only where its directory is at work.
func Activate(candidates []Candidate, records approval.Records, present func(source string) bool) *Activation {
	a := &Activation{States: map[approval.Key]State{}}
	known := map[approval.Key]bool{}
	var programs []*Program
	var blocked []Blocked
	for i := range candidates {
		c := &candidates[i]
		known[c.Key()] = true
		program, state, why := c.judge(records.Find(c.Key()))
		a.States[c.Key()] = state
		switch {
		case program != nil:
			programs = append(programs, program)
		case why != "":
			blocked = append(blocked, c.block(records.Find(c.Key()), why))
		}
	}
	for _, r := range records.Of(approval.KindHookGraph) {
		if known[r.Key()] || !present(r.Source) {
			continue
		}
		a.Missing = append(a.Missing, r)
		c := Candidate{ID: r.Subject, Source: r.Source}
		blocked = append(blocked, c.block(&r, "it is enabled, and gone from "+r.Source))
	}
	a.Set = NewSet(programs, blocked)
	return a
}

// judge says how a candidate stands, with its record if there is one; why is empty
// where nothing is blocked.
func (c *Candidate) judge(r *approval.Record) (program *Program, state State, why string) {
	switch {
	case c.Graph == nil:
		if r == nil {
			return nil, StateBroken, ""
		}
		return nil, StateBroken, "it does not load: " + c.Problem
	case c.Graph.Template:
		if r == nil {
			return nil, StateTemplate, ""
		}
		return nil, StateTemplate, "it was enabled, and became a template"
	case r == nil:
		return nil, StateOff, ""
	case r.Hash != c.Graph.Pin && !c.Own:
		return nil, StateChanged, "it is not what was approved any more"
	}
	program, err := Compile(c.Graph)
	if err != nil {
		return nil, StateBroken, err.Error()
	}
	return program, StateActive, ""
}

// block is what a graph that cannot run keeps from passing: what it stood around
// when it was approved.
func (c *Candidate) block(r *approval.Record, why string) Blocked {
	b := Blocked{ID: c.ID, Why: why, Fix: fmt.Sprintf("guideway hooks enable %s, once it is as it should be, or guideway hooks disable %s", c.ID, c.ID)}
	var was scope
	if json.Unmarshal(r.Scope, &was) != nil {
		was = scope{} // all calls
	}
	if b.Type, b.Bindings = was.Type, was.Bindings; b.Type == "" {
		b.Type = hookdef.ToolsCall
	}
	return b
}
