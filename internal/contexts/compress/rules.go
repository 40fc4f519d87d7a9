package compress

import "strings"

// Rule is one entry of a definition's contextRules.
type Rule struct {
	// Keys are names of variables; a * matches any number of characters. They are
	// case-sensitive.
	Keys []string `json:"keys"`
	// Layer is the layer of the items with these keys.
	Layer Layer `json:"layer"`
	// Why is the author's reason; it may be empty.
	Why string `json:"why,omitempty"`
}

// Rules are the contextRules of a definition; the first match decides.
type Rules []Rule

// findRule returns the first rule for key.
func (r Rules) findRule(key string) (rule Rule, pattern string, ok bool) {
	for _, rule := range r {
		for _, pattern := range rule.Keys {
			if matchPattern(pattern, key) {
				return rule, pattern, true
			}
		}
	}
	return Rule{}, "", false
}

// matchPattern reports whether the pattern matches the whole key. Each part between two stars is
// matched at its first position, so the time is bounded by the product of the lengths.
func matchPattern(pattern, key string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == key
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(key, first) {
		return false
	}
	key = key[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(key, part)
		if i < 0 {
			return false
		}
		key = key[i+len(part):]
	}
	return strings.HasSuffix(key, last)
}
