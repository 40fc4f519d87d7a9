package engine

import (
	"slices"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Set is an immutable set of enabled graphs: the active ones, and those that cannot run. A
// nil Set is empty.
type Set struct {
	byType map[hookdef.Type][]member
}

// member is an active graph, or an enabled one that cannot run.
type member struct {
	id       string
	bindings []hookdef.Binding
	program  *Program
	blocked  *Blocked
}

// Blocked is an enabled graph that cannot run. Calls that it applies to are refused: a
// missing guard must not let everything pass.
type Blocked struct {
	ID       string
	Type     hookdef.Type
	Bindings []hookdef.Binding
	// Why is the reason why the graph cannot run, and Fix the next action.
	Why, Fix string
}

// NewSet returns a set.
func NewSet(programs []*Program, blocked []Blocked) *Set {
	s := &Set{byType: map[hookdef.Type][]member{}}
	for _, p := range programs {
		s.byType[p.graph.Type] = append(s.byType[p.graph.Type], member{id: p.graph.ID, bindings: p.graph.Bindings, program: p})
	}
	for i := range blocked {
		b := &blocked[i]
		s.byType[b.Type] = append(s.byType[b.Type], member{id: b.ID, bindings: b.Bindings, blocked: b})
	}
	return s
}

// Has reports whether the set has a graph of a type, including one that cannot run.
func (s *Set) Has(t hookdef.Type) bool { return s != nil && len(s.byType[t]) > 0 }

// For returns the program that applies to a request to an upstream; the tool is "" for
// tools/list. It returns nil if none applies, which costs one map lookup if no graph of the
// type is active. An error means that the request must not be sent: two graphs apply to it,
// or a graph that applies to it cannot run.
func (s *Set) For(t hookdef.Type, upstream, tool string) (*Program, error) {
	if s == nil || len(s.byType[t]) == 0 {
		return nil, nil
	}
	var found *member
	for i := range s.byType[t] {
		m := &s.byType[t][i]
		if !m.appliesTo(upstream, tool) {
			continue
		}
		if m.blocked != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "the hook graph %s applies to this request and cannot run: %s", m.id, m.blocked.Why).
				WithFix("%s", m.blocked.Fix)
		}
		if found != nil {
			return nil, guideway.Errorf(guideway.CodeConflict, "the hook graphs %s and %s both apply to this request", found.id, m.id).
				WithFix("guideway hooks disable %s", m.id)
		}
		found = m
	}
	if found == nil {
		return nil, nil
	}
	return found.program, nil
}

func (m *member) appliesTo(upstream, tool string) bool {
	return len(m.bindings) == 0 || slices.ContainsFunc(m.bindings, func(b hookdef.Binding) bool { return b.Has(upstream, tool) })
}

// Overlapping returns the IDs of the set's other graphs that apply to a request that the
// given graph also applies to.
func (s *Set) Overlapping(g *hookdef.Graph) []string {
	if s == nil {
		return nil
	}
	var ids []string
	for _, m := range s.byType[g.Type] {
		if m.id != g.ID && hookdef.Overlap(m.bindings, g.Bindings) {
			ids = append(ids, m.id)
		}
	}
	return ids
}
