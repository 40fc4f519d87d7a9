package compress

import (
	"slices"
	"testing"
)

// TestKeyRules checks that the rules of key_rules.json are complete, and that no phrase can
// fail to match because of its spelling.
func TestKeyRules(t *testing.T) {
	t.Parallel()
	table, err := keyTable(keyRulesJSON)
	if err != nil || len(table) == 0 {
		t.Fatalf("%d rules: %v", len(table), err)
	}
	for _, rule := range compileKeyTable() {
		if len(rule.phrases) == 0 || rule.Why == "" || !slices.Contains(Layers(), rule.Layer) ||
			!slices.Contains([]keyPosition{wholeKey, keyStart, keyEnd, anyWords}, rule.At) {
			t.Errorf("the rule is incomplete: %+v", rule)
		}
		for phrase := range rule.phrases {
			if form := formOf(keyWords(phrase)); form.text != phrase {
				t.Errorf("%q cannot match: the words of a key are lower-case letters, such as %q", phrase, form.text)
			}
		}
	}
}
