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

// Has reports whether the binding selects a request to an upstream; the tool is "" for
// requests other than tools/call. A binding to a tool selects only calls of tools.
func (b Binding) Has(upstream, tool string) bool {
	return Match(b.Upstream, upstream) && Match(b.Tool, tool)
}
