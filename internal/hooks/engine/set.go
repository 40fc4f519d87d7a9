package engine

import (
	"cmp"
	"slices"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

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

func (l *Link) appliesTo(upstream, tool string) bool {
	return len(l.Bindings) == 0 || slices.ContainsFunc(l.Bindings, func(b hookdef.Binding) bool { return b.Has(upstream, tool) })
}
