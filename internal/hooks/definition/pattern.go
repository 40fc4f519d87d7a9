package definition

// Match reports whether a name matches a pattern: * matches any text, ? any single
// character. The empty pattern matches all names.
func Match(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	p, n := []rune(pattern), []rune(name)
	// The position of the last star and the end of its match, for backtracking.
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

// PatternsOverlap reports whether a name can match both patterns.
func PatternsOverlap(a, b string) bool {
	if a == "" || b == "" {
		return true
	}
	x, y := []rune(a), []rune(b)
	// meets[j] is set if a text can match both the part of x read so far and y[:j].
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
				meets[j+1] = above || meets[j] // the star matches nothing, or one more character
			} else {
				meets[j+1] = diagonal && (x[i] == '?' || y[j] == '?' || x[i] == y[j])
			}
			diagonal = above
		}
	}
	return meets[len(y)]
}

// Has reports whether the binding selects a request to an upstream; the tool is "" for a
// list of tools.
func (b Binding) Has(upstream, tool string) bool {
	return Match(b.Upstream, upstream) && (tool == "" || Match(b.Tool, tool))
}

// Meets reports whether both bindings can select the same request.
func (b Binding) Meets(other Binding) bool {
	return PatternsOverlap(b.Upstream, other.Upstream) && PatternsOverlap(b.Tool, other.Tool)
}

// Overlap reports whether both lists of bindings can select the same request; an empty list
// selects all requests.
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
