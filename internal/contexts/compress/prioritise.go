package compress

import (
	"cmp"
	"slices"
)

// RankedItem is one item of a Priority.
type RankedItem struct {
	Key    string `json:"key"`
	Layer  Layer  `json:"layer"`
	Tokens int    `json:"tokens"`
	Kept   bool   `json:"kept"`
	Why    string `json:"why"`
	// Ref is the reference of an item that was not kept.
	Ref string `json:"ref,omitempty"`
}

// Priority is a context that was fitted into a budget by keeping or dropping whole items.
type Priority struct {
	// Result.Omitted is empty, because Items contains the items that are not kept.
	Result
	// Items are all items, the most important first.
	Items []RankedItem
}

// Prioritise fits the items into a token budget by keeping or dropping whole items.
// Critical items are always kept; OverReason is set if the critical items alone exceed the
// budget. Ephemeral items are dropped, since Prioritise is called between two steps. The
// other items are ranked by layer, relevance to the question of the current step, and age.
// Important and useful items may use the shares of their layers, and the unused share of
// the other layer. Without a budget and with a ratio below 1, only ephemeral items are
// dropped. With NoBlobs all items are kept.
func Prioritise(items []Item, options Options) Priority {
	before := totalTokens(items)
	if options.Budget <= 0 && options.Ratio < 1 {
		options.Budget = max(before, 1)
	}
	o := options.withDefaults(before)
	p := Priority{Result: newResult(items, before, o.Budget)}
	order := rankItems(items, o.Question, o.Stems)
	// The first list shows what the answer costs besides the items.
	for room := o.Budget; ; room = o.Budget - o.Overhead(nil, p.Items, o.Budget) {
		repeated := p.Items != nil
		p.Context, p.TokensAfter, p.Items = Context{}, 0, nil
		kept := fitItems(items, order, o, room-p.CriticalTokens)
		for _, i := range order {
			p.addItem(items[i], kept[i], o)
		}
		if repeated || o.Overhead == nil {
			break
		}
	}
	if o.Overhead != nil {
		p.TokensAfter += o.Overhead(nil, p.Items, o.Budget)
	}
	if p.TokensAfter > o.Budget && o.NoBlobs {
		p.OverReason = noBlobsReason
	}
	p.explainExcess()
	return p
}

// addItem adds an item to the result, and to the context if it is kept.
func (p *Priority) addItem(item Item, kept bool, o Options) {
	placed := RankedItem{Key: item.Key, Layer: item.Layer, Tokens: item.Tokens, Kept: kept, Why: item.Why}
	switch {
	case kept:
		p.Context[item.Key] = item.Value
		p.TokensAfter += item.Tokens
	case item.Layer == Ephemeral:
		placed.Why += "; dropped between steps"
	case p.CriticalTokens > 0 && p.CriticalTokens >= o.Budget:
		placed.Why += "; dropped: the critical items use the whole budget"
	default:
		placed.Why += "; dropped: the budget is used up"
	}
	if !kept {
		placed.Ref = o.Ref(item.Key, item.Value)
	}
	p.Items = append(p.Items, placed)
}

// rankItems returns the indexes of the items, sorted by layer, then by relevance and age,
// then by key.
func rankItems(items []Item, question string, stems *StemCache) []int {
	pieces := make([]piece, len(items))
	x := newLexicon(stems)
	defer x.unlockStems()
	for i, item := range items {
		pieces[i] = piece{terms: x.readTerms(x.readTerms(nil, item.Key), textOf(item.Value))}
	}
	asked := x.readTerms(nil, question)
	relevance := rankBM25(pieces, asked, countFrequencies(pieces, x.termCount()))
	order := make([]int, len(items))
	worth := make([]float64, len(items))
	for i, item := range items {
		order[i] = i
		worth[i] = 2*relevance[i] + 1/(1+0.25*float64(item.Age))
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(items[a].Layer.layerIndex(), items[b].Layer.layerIndex()),
			cmp.Compare(worth[b], worth[a]), cmp.Compare(items[a].Key, items[b].Key))
	})
	return order
}

// fitItems reports for each item whether it is kept. room is left for items that are not
// critical.
func fitItems(items []Item, order []int, o Options, room int) []bool {
	kept := make([]bool, len(items))
	if o.NoBlobs {
		for i := range kept {
			kept[i] = true
		}
		return kept
	}
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
	take(Important, int(float64(room)*importantShare()))
	take(Useful, min(spent+int(float64(room)*(1-importantShare())), room))
	take(Important, room)
	take(Useful, room)
	return kept
}
