package window

import (
	"cmp"
	"fmt"
	"slices"
)

// Placed is what Prioritise says of one item.
type Placed struct {
	Key    string `json:"key"`
	Layer  Layer  `json:"layer"`
	Tokens int    `json:"tokens"`
	Kept   bool   `json:"kept"`
	Why    string `json:"why"`
	// Ref reads an item back that was not kept.
	Ref string `json:"ref,omitempty"`
}

// Priority is a context fitted into a budget by whole items.
type Priority struct {
	Context Context
	// Items are all items, the dearest first.
	Items                     []Placed
	TokensBefore, TokensAfter int
	Budget, CriticalTokens    int
	// Over is why the budget was not kept; empty if it was.
	Over string
	// Blobs are the values of the items that were not kept.
	Blobs []Blob
}

// Prioritise fits the items into a budget of tokens by keeping or dropping
// whole ones. Critical items are always kept; if they alone are over the budget
// the result says so. Ephemeral items are always dropped: it is called between
// two steps. The rest is ranked by its layer, by how well it fits the question
// of the current step, and by its age. Important items may take their share of
// the budget, useful ones theirs; what a layer leaves falls to the other. A
// budget of zero or less is the whole context's size, so that only ephemeral
// items go.
func Prioritise(items []Item, options Options) Priority {
	before := totalTokens(items)
	if options.Budget <= 0 && options.Ratio < 1 {
		options.Budget = max(before, 1)
	}
	o := options.withDefaults(before)
	p := Priority{Context: make(Context, len(items)), TokensBefore: before, Budget: o.Budget}
	for _, item := range items {
		if item.Layer == Critical {
			p.CriticalTokens += item.Tokens
		}
	}
	order, relevance := rank(items, o.Question, o.Stems)
	kept := fitItems(items, order, o, p.CriticalTokens)
	for _, i := range order {
		p.add(items[i], kept[i], relevance[i], o)
	}
	if p.TokensAfter > o.Budget {
		if o.NoBlobs {
			p.Over = "nothing is left out, as nothing could be stored here"
		} else {
			p.Over = fmt.Sprintf("the critical items alone cost %d tokens, %d over the budget; none of them was cut",
				p.CriticalTokens, p.CriticalTokens-o.Budget)
		}
	}
	return p
}

// add says what became of an item.
func (p *Priority) add(item Item, kept bool, relevance float64, o Options) {
	placed := Placed{Key: item.Key, Layer: item.Layer, Tokens: item.Tokens, Kept: kept, Why: item.Why}
	if relevance > 0 {
		placed.Why += fmt.Sprintf("; fits the question (%.2f of 1)", relevance)
	}
	if item.Age > 0 {
		placed.Why += fmt.Sprintf("; unchanged for %d steps", item.Age)
	}
	switch {
	case kept:
		p.Context[item.Key] = item.Value
		p.TokensAfter += item.Tokens
	case item.Layer == Ephemeral:
		placed.Why += "; dropped between steps"
	case p.CriticalTokens >= o.Budget:
		placed.Why += "; dropped, the critical items leave no room"
	default:
		placed.Why += "; dropped, no room in the budget"
	}
	if !kept {
		placed.Ref = o.Ref(item.Key, item.Value)
		p.Blobs = append(p.Blobs, Blob{Ref: placed.Ref, Key: item.Key, Bytes: item.Value})
	}
	p.Items = append(p.Items, placed)
}

// rank orders the items: by layer, then by what they are worth to the question
// and for their age, then by key. Relevance is 0 to 1.
func rank(items []Item, question string, stems *Stems) (order []int, relevance []float64) {
	pieces := make([]piece, len(items))
	x := newLexicon(stems)
	defer x.close()
	for i, item := range items {
		pieces[i] = piece{terms: x.read(x.read(nil, item.Key), textOf(item.Value))}
	}
	asked := x.read(nil, question)
	relevance = bm25(pieces, asked, frequencies(pieces, x.size()))
	order = make([]int, len(items))
	worth := make([]float64, len(items))
	for i, item := range items {
		order[i] = i
		worth[i] = 2*relevance[i] + 1/(1+0.25*float64(item.Age))
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(items[a].Layer.rank(), items[b].Layer.rank()),
			cmp.Compare(worth[b], worth[a]), cmp.Compare(items[a].Key, items[b].Key))
	})
	return order, relevance
}

// fitItems says which items are kept.
func fitItems(items []Item, order []int, o Options, critical int) []bool {
	kept := make([]bool, len(items))
	if o.NoBlobs {
		for i := range kept {
			kept[i] = true
		}
		return kept
	}
	room := o.Budget - critical
	spent := 0
	take := func(layer Layer, limit int) {
		for _, i := range order {
			if items[i].Layer == layer && !kept[i] && spent+items[i].Tokens <= limit {
				kept[i] = true
				spent += items[i].Tokens
			}
		}
	}
	for i := range items {
		kept[i] = items[i].Layer == Critical
	}
	if room <= 0 {
		return kept
	}
	important, useful := o.Shares[Important], o.Shares[Useful]
	both := max(important+useful, 1e-9)
	take(Important, int(float64(room)*important/both))
	take(Useful, min(spent+int(float64(room)*useful/both), room))
	take(Important, room)
	take(Useful, room)
	return kept
}
