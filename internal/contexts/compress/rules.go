package compress

import "github.com/guideway-dev/guideway/internal/platform/wildcard"

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

// Rules are the contextRules of a definition; the first rule that matches decides.
type Rules []Rule

// findRule returns the first rule for key.
func (r Rules) findRule(key string) (rule Rule, pattern string, ok bool) {
	for _, rule := range r {
		for _, pattern := range rule.Keys {
			if wildcard.Match(pattern, key) {
				return rule, pattern, true
			}
		}
	}
	return Rule{}, "", false
}
