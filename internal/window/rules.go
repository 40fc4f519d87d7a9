package window

import "strings"

// Rule is one entry of a definition's contextRules: what its author knows of
// the workflow's variables.
type Rule struct {
	// Keys are names of variables; a * stands for any run of characters. Case
	// counts.
	Keys []string `json:"keys"`
	// Layer is where items of these keys belong.
	Layer Layer `json:"layer"`
	// Why is the author's reason, if one was given.
	Why string `json:"why,omitempty"`
}

// Rules are the contextRules of a definition; the first that matches a key
// decides.
type Rules []Rule

// find gives the first rule for key.
func (r Rules) find(key string) (rule Rule, pattern string, ok bool) {
	for _, rule := range r {
		for _, pattern := range rule.Keys {
			if matches(pattern, key) {
				return rule, pattern, true
			}
		}
	}
	return Rule{}, "", false
}

// matches tells whether the whole key is what the pattern says. Each part
// between two stars is taken at its first place, so the time is bounded by the
// product of the lengths.
func matches(pattern, key string) bool {
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
