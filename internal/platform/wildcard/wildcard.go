// Package wildcard matches patterns in which * matches any text.
package wildcard

import "strings"

// Match reports whether the pattern matches the whole text. Each part between two stars is
// matched at its first position, so the time is bounded by the product of the lengths.
func Match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}
