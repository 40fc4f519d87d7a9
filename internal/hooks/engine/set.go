package engine

import (
	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Set is the graphs that are active. It never changes. The nil Set is empty.
type Set struct {
	byType map[hookdef.Type][]member
}

// member is a graph that is active, or one that should be and cannot.
type member struct {
	id       string
	bindings []hookdef.Binding
	program  *Program
	blocked  *Blocked
}

// Blocked is a graph that is enabled and cannot run. What it stands around is
// refused: a guard that is missing must not let everything pass.
type Blocked struct {
	ID       string
	Type     hookdef.Type
	Bindings []hookdef.Binding
	// Why says why it cannot run, and Fix what to do.
	Why, Fix string
}

// NewSet makes a set.
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

// Has tells whether any graph of a type is in the set, one that cannot run
// included.
func (s *Set) Has(t hookdef.Type) bool { return s != nil && len(s.byType[t]) > 0 }

// For gives the program that stands around a request to an upstream; the tool is
// "" for tools/list. It is nil where none does, which costs one look into a map
// where no graph of the type is active. An error means that the request must not
// be sent: two graphs claim it, or one that should stand around it cannot run.
func (s *Set) For(t hookdef.Type, upstream, tool string) (*Program, error) {
	if s == nil || len(s.byType[t]) == 0 {
		return nil, nil
	}
	var found *member
	for i := range s.byType[t] {
		m := &s.byType[t][i]
		if !m.has(upstream, tool) {
			continue
		}
		if m.blocked != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "the hook graph %s stands around this request and cannot run: %s", m.id, m.blocked.Why).
				WithFix("%s", m.blocked.Fix)
		}
		if found != nil {
			return nil, guideway.Errorf(guideway.CodeConflict, "the hook graphs %s and %s both stand around this request", found.id, m.id).
				WithFix("guideway hooks disable %s", m.id)
		}
		found = m
	}
	if found == nil {
		return nil, nil
	}
	return found.program, nil
}

func (m *member) has(upstream, tool string) bool {
	if len(m.bindings) == 0 {
		return true
	}
	for _, b := range m.bindings {
		if b.Has(upstream, tool) {
			return true
		}
	}
	return false
}

// Overlapping names the graphs of the set that stand around a request that
// another one would, too.
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
