package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Candidate is a graph that may become active.
type Candidate struct {
	// ID is the ID of the graph, and Source its source, as in approvals.
	ID, Source string
	// Own reports whether this user owns the source. A changed graph of such a source needs
	// no new approval, unlike a changed graph of any other source.
	Own bool
	// Graph is nil if the graph does not load or link; Problem is the reason.
	Graph   *hookdef.Linked
	Problem string
}

// Key returns the key of the graph's approval.
func (c *Candidate) Key() approval.Key {
	return approval.Key{Kind: approval.KindHookGraph, Source: c.Source, Subject: c.ID}
}

// State is the activation state of a graph.
type State string

// The activation states.
const (
	// StateOff means that the graph is not enabled.
	StateOff State = "off"
	// StateActive means that the graph runs.
	StateActive State = "active"
	// StateChanged means that the graph differs from its approval, StateBroken that it does
	// not load or compile, and StateTemplate that it is a template, which is never active.
	StateChanged  State = "changed"
	StateBroken   State = "broken"
	StateTemplate State = "template"
)

// scope is the approved scope of a graph.
type scope struct {
	Type     hookdef.Type      `json:"type"`
	Also     []hookdef.Type    `json:"also,omitempty"`
	Bindings []hookdef.Binding `json:"bindings,omitempty"`
	// Order replaces the graph's own order, if set.
	Order *int `json:"order,omitempty"`
}

// Approval returns the record that makes a graph active. A template cannot be activated.
// order replaces the graph's own order; nil keeps it.
func (c *Candidate) Approval(who string, order *int) (approval.Record, error) {
	switch {
	case c.Graph == nil:
		return approval.Record{}, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s cannot be enabled: %s", c.ID, c.Problem).
			WithFix("fix the graph; list its errors with: guideway hooks validate %s", c.ID)
	case c.Graph.Template:
		return approval.Record{}, guideway.Errorf(guideway.CodeInvalid, "the hook graph %s is a template, which is never active", c.ID).
			WithFix("guideway hooks import --template %s --id my-%s", c.ID, c.ID)
	}
	if order != nil && (*order < 0 || *order > hookdef.MaxOrder) {
		return approval.Record{}, guideway.Errorf(guideway.CodeInvalid, "the order %d of the hook graph %s is out of range", *order, c.ID).
			WithFix("use a number from 0 to %d, or none for the graph's own order, %d", hookdef.MaxOrder, c.Graph.Order)
	}
	text, err := json.Marshal(scope{Type: c.Graph.Type, Also: c.Graph.Also, Bindings: c.Graph.Bindings, Order: order})
	if err != nil {
		return approval.Record{}, guideway.Errorf(guideway.CodeInternal, "write the scope of %s: %w", c.ID, err)
	}
	return approval.Record{
		Kind: approval.KindHookGraph, Source: c.Source, Subject: c.ID, Hash: c.Graph.Pin, Who: who, Scope: text,
	}, nil
}

// Activation is the result of Activate for one set of approvals.
type Activation struct {
	Set *Set
	// States maps each candidate to its state.
	States map[approval.Key]State
	// Missing are the approvals of graphs that no longer exist.
	Missing approval.Records
}

// Activate returns the set of approved graphs. An approved graph that cannot run blocks the
// calls that it applied to when it was approved. Such a graph does not load, has become a
// template, differs from its approval, or is missing from a present source. present reports
// whether a source is present; a project's source is present only if its directory is in
// use.
func Activate(candidates []Candidate, records approval.Records, present func(source string) bool) *Activation {
	a := &Activation{States: map[approval.Key]State{}}
	known := map[approval.Key]bool{}
	var programs []*Program
	var blocked []Blocked
	for i := range candidates {
		c := &candidates[i]
		known[c.Key()] = true
		program, state, why := c.evaluate(records.Find(c.Key()))
		a.States[c.Key()] = state
		switch {
		case program != nil:
			programs = append(programs, program)
		case why != "":
			blocked = append(blocked, c.newBlocked(records.Find(c.Key()), state, why))
		}
	}
	for _, r := range records.Of(approval.KindHookGraph) {
		if known[r.Key()] || !present(r.Source) {
			continue
		}
		a.Missing = append(a.Missing, r)
		c := Candidate{ID: r.Subject, Source: r.Source}
		blocked = append(blocked, c.newBlocked(&r, "", "enabled, but missing from the source "+r.Source))
	}
	a.Set = NewSet(programs, blocked)
	return a
}

// evaluate returns the state of a candidate, given its approval record, if any. program is
// set if the graph runs. why is set if the graph cannot run and blocks its calls.
func (c *Candidate) evaluate(r *approval.Record) (program *Program, state State, why string) {
	switch {
	case c.Graph == nil:
		if r == nil {
			return nil, StateBroken, ""
		}
		return nil, StateBroken, "the file cannot be loaded: " + c.Problem
	case c.Graph.Template:
		if r == nil {
			return nil, StateTemplate, ""
		}
		return nil, StateTemplate, "changed into a template after it was enabled"
	case r == nil:
		return nil, StateOff, ""
	case r.Hash != c.Graph.Pin && !c.Own:
		return nil, StateChanged, "changed since its approval"
	}
	graph := *c.Graph
	if was, ok := scopeOf(r); ok && was.Order != nil {
		copied := *c.Graph.Graph
		copied.Order, graph.Graph = *was.Order, &copied
	}
	program, err := Compile(&graph)
	if err != nil {
		return nil, StateBroken, err.Error()
	}
	return program, StateActive, ""
}

// newBlocked returns the calls that a graph blocks if it cannot run: those that it applied
// to when it was approved. The state of a missing graph is "".
func (c *Candidate) newBlocked(r *approval.Record, state State, why string) Blocked {
	fix := "restore the file of the graph, or "
	switch state {
	case StateChanged:
		fix = fmt.Sprintf("guideway hooks enable %s after a review, or ", c.ID)
	case StateBroken:
		fix = fmt.Sprintf("fix the graph (guideway hooks validate %s lists its errors), or ", c.ID)
	case StateTemplate:
		fix = `set "template" to false in the file of the graph, or `
	default:
	}
	b := Blocked{ID: c.ID, Types: hookdef.Types(), Order: hookdef.DefaultOrder, Why: why, Fix: fix + "guideway hooks disable " + c.ID}
	was, ok := scopeOf(r)
	if !ok {
		return b // an unreadable scope applies to all requests
	}
	b.Types, b.Bindings = append([]hookdef.Type{was.Type}, was.Also...), was.Bindings
	if was.Order != nil {
		b.Order = *was.Order
	}
	return b
}

// scopeOf returns the approved scope of a graph; ok reports whether it is readable.
func scopeOf(r *approval.Record) (was scope, ok bool) {
	ok = json.Unmarshal(r.Scope, &was) == nil && was.Type != ""
	return was, ok
}

// Set is an immutable set of enabled graphs: the active ones, and those that cannot run. A
// nil Set is empty.
type Set struct {
	// byType has the graphs of each request type in the order of the chain.
	byType map[hookdef.Type][]Link
}

// Link is a graph of a chain: an active graph, or an enabled one that cannot run.
type Link struct {
	ID       string
	Order    int
	Bindings []hookdef.Binding
	program  *Program
	blocked  *Blocked
}

// Blocked is an enabled graph that cannot run. Calls that it applies to are refused: a
// missing guard must not let everything pass.
type Blocked struct {
	ID       string
	Types    []hookdef.Type
	Order    int
	Bindings []hookdef.Binding
	// Why is the reason why the graph cannot run, and Fix the next action.
	Why, Fix string
}

// NewSet returns a set.
func NewSet(programs []*Program, blocked []Blocked) *Set {
	s := &Set{byType: map[hookdef.Type][]Link{}}
	add := func(types []hookdef.Type, l Link) {
		for _, t := range types {
			s.byType[t] = append(s.byType[t], l)
		}
	}
	for _, p := range programs {
		add(p.graph.AllTypes(), Link{ID: p.graph.ID, Order: p.graph.Order, Bindings: p.graph.Bindings, program: p})
	}
	for i := range blocked {
		b := &blocked[i]
		add(b.Types, Link{ID: b.ID, Order: b.Order, Bindings: b.Bindings, blocked: b})
	}
	for _, links := range s.byType {
		slices.SortStableFunc(links, func(a, b Link) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID)) })
	}
	return s
}

// Links returns the enabled graphs of a request type in the order of the chain, the outermost
// first. The result must not be changed.
func (s *Set) Links(t hookdef.Type) []Link {
	if s == nil {
		return nil
	}
	return s.byType[t]
}

// Applies reports whether a graph applies to a request to an upstream, including one that
// cannot run; the tool is "" for requests other than tools/call.
func (s *Set) Applies(t hookdef.Type, upstream, tool string) bool {
	return slices.ContainsFunc(s.Links(t), func(l Link) bool { return l.appliesTo(upstream, tool) })
}

// Chain returns the programs that apply to a request, the outermost first. An error means
// that the request must not be sent, because a graph that applies to it cannot run.
func (s *Set) Chain(t hookdef.Type, upstream, tool string) ([]*Program, error) {
	var chain []*Program
	for _, l := range s.Links(t) {
		switch {
		case !l.appliesTo(upstream, tool):
		case l.blocked != nil:
			return nil, guideway.Errorf(guideway.CodeUnavailable, "the hook graph %s applies to this request and cannot run: %s", l.ID, l.blocked.Why).
				WithFix("%s", l.blocked.Fix)
		default:
			chain = append(chain, l.program)
		}
	}
	return chain, nil
}

// Versions returns the hashes of the active graphs that apply to calls of a tool or to the
// list of tools of its upstream, by their ids.
func (s *Set) Versions(upstream, tool string) map[string]string {
	versions := map[string]string{}
	add := func(t hookdef.Type, tool string) {
		for _, l := range s.Links(t) {
			if l.program != nil && l.appliesTo(upstream, tool) {
				versions[l.ID] = l.program.graph.Pin
			}
		}
	}
	add(hookdef.ToolsCall, tool)
	add(hookdef.ToolsList, "")
	return versions
}

func (l *Link) appliesTo(upstream, tool string) bool {
	return len(l.Bindings) == 0 || slices.ContainsFunc(l.Bindings, func(b hookdef.Binding) bool { return b.Has(upstream, tool) })
}
