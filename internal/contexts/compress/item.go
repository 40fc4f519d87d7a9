// Package compress fits a context into a token budget. It splits a context into items,
// classifies each into a layer with a reason, and reduces bulky items reversibly.
//
// The package is pure: it has no clock, no I/O and no global state. The reduced context
// contains references to omitted values. The caller stores the values and returns a value
// when its reference is loaded.
package compress

import (
	"encoding/json"
	"maps"
	"slices"
)

// Context is the set of variables of a run or of a caller. Values are kept as bytes, so
// that they round-trip exactly.
type Context map[string]json.RawMessage

// Layer is the importance of an item: the most important items are never reduced, the least
// important ones are dropped first.
type Layer string

// The layers.
const (
	Critical  Layer = "critical"
	Important Layer = "important"
	Useful    Layer = "useful"
	Ephemeral Layer = "ephemeral"
)

// Layers returns all layers, the most important first.
func Layers() []Layer { return []Layer{Critical, Important, Useful, Ephemeral} }

// layerIndex returns the index of the layer in Layers; an unknown layer comes last.
func (l Layer) layerIndex() int {
	if i := slices.Index(Layers(), l); i >= 0 {
		return i
	}
	return len(Layers())
}

// Shares are the shares of a token budget per layer. A reduction uses only the ratio of the
// shares of important and useful items: critical items are always kept, and ephemeral items
// are dropped first.
type Shares map[Layer]float64

// DefaultShares returns 30, 40, 20 and 10 percent, for the layers from Critical to
// Ephemeral.
func DefaultShares() Shares {
	return Shares{Critical: 0.30, Important: 0.40, Useful: 0.20, Ephemeral: 0.10}
}

// importantShare returns the share of important items in the budget for important and
// useful items.
func importantShare() float64 {
	shares := DefaultShares()
	return shares[Important] / (shares[Important] + shares[Useful])
}

// Verdict is the layer of an item and its reason.
type Verdict struct {
	Layer Layer `json:"layer"`
	// Why is the reason, for people and agents.
	Why string `json:"why"`
	// Rule is the kind of rule that matched: engine, mark, hint, variable, key, content or
	// default.
	Rule Source `json:"rule"`
}

// Source is a kind of rule.
type Source string

// The kinds of rules, in their order of precedence.
const (
	FromEngine   Source = "engine"
	FromMark     Source = "mark"
	FromHint     Source = "hint"
	FromVariable Source = "variable"
	FromKey      Source = "key"
	FromContent  Source = "content"
	FromDefault  Source = "default"
)

// Item is one unit of a context.
type Item struct {
	Key   string
	Value json.RawMessage
	// Tokens is the cost of the key and the value together.
	Tokens int
	Verdict
	// Age is the number of steps since the value last changed. The caller sets it.
	Age int
}

// Items splits a context into its items, in key order.
func Items(c Context, classifier *Classifier, counter Counter) []Item {
	items := make([]Item, 0, len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		item := Item{Key: key, Value: c[key], Verdict: classifier.Classify(key, c[key])}
		item.Tokens = itemTokens(counter, key, c[key])
		items = append(items, item)
	}
	return items
}

// itemOverhead is the cost of the quotes, the colon and the comma of an item.
const itemOverhead = 3

// itemTokens returns the tokens of an item, whose key and value are counted separately.
func itemTokens(counter Counter, key string, value []byte) int {
	return counter.Count(key) + counter.Count(string(value)) + itemOverhead
}

// totalTokens returns the sum of the items' tokens.
func totalTokens(items []Item) int {
	n := 0
	for _, item := range items {
		n += item.Tokens
	}
	return n
}
