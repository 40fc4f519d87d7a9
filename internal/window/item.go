// Package window decides what of a context an agent needs to see: it splits a
// context into items, says which layer each belongs to and why, fits them into
// a budget of tokens, and reduces what is bulky in a way that can be undone.
//
// Everything here is pure: no clock, no I/O, no state of the package. What is
// left out of a context is handed to the caller as Blobs, each under a reference
// that stands in the reduced context; the caller keeps the bytes and gives them
// back when the reference is read.
package window

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// Context is the variables of a run, or a context that a caller keeps itself.
// The values are kept as bytes, so that what comes back is what was given.
type Context map[string]json.RawMessage

// Layer says how dear an item is. The four are those of the context's design,
// from what is never touched to what is dropped between two steps.
type Layer string

// The layers.
const (
	Critical  Layer = "critical"
	Important Layer = "important"
	Useful    Layer = "useful"
	Ephemeral Layer = "ephemeral"
)

// Layers gives all layers, the dearest first.
func Layers() []Layer { return []Layer{Critical, Important, Useful, Ephemeral} }

// rank is the place of a layer in Layers; an unknown one comes last.
func (l Layer) rank() int {
	if i := slices.Index(Layers(), l); i >= 0 {
		return i
	}
	return len(Layers())
}

// Shares are the parts of a token budget that the layers may count on. What one
// does not use falls to the others.
type Shares map[Layer]float64

// DefaultShares are 30, 40, 20 and 10 percent.
func DefaultShares() Shares {
	return Shares{Critical: 0.30, Important: 0.40, Useful: 0.20, Ephemeral: 0.10}
}

// Verdict is the layer of an item and the reason for it.
type Verdict struct {
	Layer Layer `json:"layer"`
	// Why is for a person or an agent to read.
	Why string `json:"why"`
	// Rule names what decided: engine, mark, hint, variable, key, content or
	// default.
	Rule Source `json:"rule"`
}

// Source names a kind of rule.
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
	// Tokens is what the key and the value cost together.
	Tokens int
	Verdict
	// Age is for how many steps the value has not changed.
	Age int
	// Origin is who or what gave the value, if the history knows.
	Origin string
}

// Seen is what a history knows of one key.
type Seen struct {
	// Hash is that of the value, to tell a change.
	Hash string `json:"hash"`
	// Step is the one at which the value was last changed.
	Step int `json:"step"`
	// Origin is who or what gave the value.
	Origin string `json:"origin,omitempty"`
}

// History tells how old the items of a context are. The caller keeps it between
// two calls; the zero value knows nothing, and then every item is new.
type History struct {
	// Step counts the steps that the history has seen.
	Step int             `json:"step"`
	Keys map[string]Seen `json:"keys,omitempty"`
}

// age is for how many steps the value of key has been what it is.
func (h History) age(key string, value []byte) (steps int, origin string) {
	seen, ok := h.Keys[key]
	if !ok || seen.Hash != hashOf(value) {
		return 0, ""
	}
	return max(h.Step-seen.Step, 0), seen.Origin
}

// hashOf identifies a value in a history; 96 bits tell two values of one key
// apart.
func hashOf(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:12])
}

// Items splits a context into its items, in the order of their keys.
func Items(c Context, classifier *Classifier, counter Counter, history History) []Item {
	items := make([]Item, 0, len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		item := Item{Key: key, Value: c[key], Verdict: classifier.Classify(key, c[key])}
		item.Tokens = itemTokens(counter, key, c[key])
		item.Age, item.Origin = history.age(key, c[key])
		items = append(items, item)
	}
	return items
}

// perItem is what the quotes, the colon and the comma around an item cost.
const perItem = 3

// itemTokens counts the key and the value apart: values are counted once, and
// then found in the cache whatever stands beside them.
func itemTokens(counter Counter, key string, value []byte) int {
	if cache, ok := counter.(*Cache); ok {
		return cache.Count(key) + cache.countBytes(value) + perItem
	}
	return counter.Count(key) + counter.Count(string(value)) + perItem
}

// totalTokens is what a whole context costs.
func totalTokens(items []Item) int {
	n := 0
	for _, item := range items {
		n += item.Tokens
	}
	return n
}
