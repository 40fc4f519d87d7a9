package hooks

// Match says whether a name is one of a pattern's: * is any text, ? any one
// character. The empty pattern is any name.
func Match(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	p, n := []rune(pattern), []rune(name)
	// Where the last star stands, and how far it reached: all that has to be
	// tried again.
	star, from, i, j := -1, 0, 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// Meet says whether there is a name that both patterns have.
func Meet(a, b string) bool {
	if a == "" || b == "" {
		return true
	}
	x, y := []rune(a), []rune(b)
	// meets[j] says, for the part of x that was looked at and y[:j], whether
	// there is a text that both have.
	meets := make([]bool, len(y)+1)
	meets[0] = true
	for j := range y {
		meets[j+1] = meets[j] && y[j] == '*'
	}
	for i := range x {
		diagonal := meets[0]
		meets[0] = meets[0] && x[i] == '*'
		for j := range y {
			above := meets[j+1]
			if x[i] == '*' || y[j] == '*' {
				meets[j+1] = above || meets[j] // the star ends here, or goes on over the other's character
			} else {
				meets[j+1] = diagonal && (x[i] == '?' || y[j] == '?' || x[i] == y[j])
			}
			diagonal = above
		}
	}
	return meets[len(y)]
}

// Has says whether a binding is of a request to an upstream; the tool is "" for a
// list of tools.
func (b Binding) Has(upstream, tool string) bool {
	return Match(b.Upstream, upstream) && (tool == "" || Match(b.Tool, tool))
}

// Meets says whether there is a request that both bindings have.
func (b Binding) Meets(other Binding) bool {
	return Meet(b.Upstream, other.Upstream) && Meet(b.Tool, other.Tool)
}

// Binds says whether the graph stands around a request.
func (g *Graph) Binds(t Type, upstream, tool string) bool {
	if g.Type != t {
		return false
	}
	if len(g.Bindings) == 0 {
		return true
	}
	for _, b := range g.Bindings {
		if b.Has(upstream, tool) {
			return true
		}
	}
	return false
}

// Overlaps says whether there is a request that both graphs stand around.
func (g *Graph) Overlaps(other *Graph) bool {
	return g.Type == other.Type && Overlap(g.Bindings, other.Bindings)
}

// Overlap says whether there is a request that both lists of bindings have; an
// empty list is all requests.
func Overlap(a, b []Binding) bool {
	if len(a) == 0 {
		a = []Binding{{}}
	}
	if len(b) == 0 {
		b = []Binding{{}}
	}
	for _, x := range a {
		for _, y := range b {
			if x.Meets(y) {
				return true
			}
		}
	}
	return false
}
