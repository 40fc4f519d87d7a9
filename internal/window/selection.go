package window

import (
	"container/heap"
	"math"
)

// Weights of what makes a piece worth its tokens. docs/context.md says what they
// were tuned on. What a cue or a name tells is measured in bits (scorer.telling).
const (
	askedWeight    = 20.0 // the words of the current step's question
	failureWeight  = 1.3
	decisionWeight = 2.2
	demandWeight   = 0.7
	changeWeight   = 0.8
	nameWeight     = 1.7  // a name, path or number that nothing kept says yet
	wordWeight     = 2.3  // a word that nothing kept says yet
	maxNames       = 3.0  // bits; a list of numbers is not worth a decision
	repeatFactor   = 0.1  // a log's line whose message stands there already
	debugFactor    = 0.3  // a log's line of level debug
	usefulFactor   = 0.8  // the layer
	maskedFactor   = 0.8  // old and bulky
	agePerStep     = 0.05 // how much faster a thing is given up with each step
	noteShare      = 0.15 // of an item's note that its first piece must be worth
	recurFactor    = 0.2  // a name that stands in twice as many pieces
	costExponent   = 1.25 // above 1 favours short sentences
)

// chooser keeps the best pieces within a budget. It is maximal marginal
// relevance in the form of coverage: what the pieces kept say already adds
// nothing, and two sentences of one pattern with different names in them do not
// count as the same.
type chooser struct {
	scorer  *scorer
	factor  []float64 // by piece: layer, age
	cost    []float64 // by piece, in tokens
	covered []bool    // by term
	keep    []bool
	// order is the pieces in the order in which they were chosen.
	order []int
	spent float64
	// opened tells which items have a piece: the first one pays the note.
	opened []bool
	note   float64
	// weights are what weight has given: of pieces whose item has one already, and
	// of those that would be the first.
	weights [2][]float64
	// of lists the pieces of each item.
	of [][]int
}

// gain is what piece i adds to what is kept.
func (c *chooser) gain(i int) float64 {
	s := c.scorer
	if s.stale[i] {
		return 0
	}
	worth := askedWeight * s.relevance[i]
	worth += s.cueWorth[i]
	names, words := 0.0, 0.0
	for _, t := range s.pieces[i].terms {
		if c.covered[t.id] {
			continue
		}
		if t.kind == wordTerm {
			words += s.rarities[t.id]
		} else {
			names += s.nameWorth(t)
		}
	}
	worth += nameWeight*min(names, maxNames) + wordWeight*words
	if s.pieces[i].leader != i && s.pieces[i].level != "error" {
		worth *= repeatFactor
	}
	if s.pieces[i].level == "debug" {
		worth *= debugFactor
	}
	return worth * c.factor[i] / c.weight(i)
}

// weight is what the cost of a piece takes from its worth.
func (c *chooser) weight(i int) float64 {
	known, cost := &c.weights[0][i], c.cost[i]
	if !c.opened[c.scorer.pieces[i].item] {
		known, cost = &c.weights[1][i], cost+c.note*noteShare
	}
	if *known == 0 {
		*known = math.Pow(cost, costExponent)
	}
	return *known
}

// newChooser makes a chooser over the pieces of some items, each of whose costs
// is as estimated.
func newChooser(s *scorer, items int, note float64) *chooser {
	c := &chooser{
		scorer: s, factor: make([]float64, len(s.pieces)), cost: make([]float64, len(s.pieces)),
		covered: make([]bool, s.lexicon.size()), keep: make([]bool, len(s.pieces)), opened: make([]bool, items),
		note: note, of: make([][]int, items), weights: [2][]float64{make([]float64, len(s.pieces)), make([]float64, len(s.pieces))},
	}
	for i, p := range s.pieces {
		c.factor[i], c.cost[i] = 1, p.tokens
		c.of[p.item] = append(c.of[p.item], i)
	}
	return c
}

// restart forgets what was kept. Some tokens are spent from the beginning.
func (c *chooser) restart(spent float64) {
	clear(c.keep)
	clear(c.covered)
	clear(c.opened)
	c.order, c.spent = c.order[:0], spent
}

// take keeps pieces of the given ones until the limit of all that is spent.
func (c *chooser) take(candidates []int, limit float64) {
	asked := make([]bool, len(c.keep))
	queue := make(gains, 0, len(candidates))
	for _, i := range candidates {
		if !c.keep[i] && !c.scorer.stale[i] {
			queue = append(queue, gained{c.gain(i), i})
			asked[i] = true
		}
	}
	heap.Init(&queue)
	for len(queue) > 0 {
		best := queue[0]
		if c.keep[best.piece] {
			heap.Pop(&queue)
			continue
		}
		// What is kept since has made it worth less, as a rule.
		if now := c.gain(best.piece); now < best.gain-1e-12 {
			queue[0].gain = now
			heap.Fix(&queue, 0)
			continue
		}
		heap.Pop(&queue)
		item := c.scorer.pieces[best.piece].item
		cost := c.cost[best.piece]
		first := !c.opened[item]
		if first {
			cost += c.note
		}
		if c.spent+cost > limit {
			continue
		}
		c.keepPiece(best.piece, item, cost)
		if !first {
			continue
		}
		// The note is paid: the item's other pieces are cheaper now.
		for _, i := range c.of[item] {
			if asked[i] && !c.keep[i] {
				heap.Push(&queue, gained{c.gain(i), i})
			}
		}
	}
}

func (c *chooser) keepPiece(i, item int, cost float64) {
	c.keep[i] = true
	c.opened[item] = true
	c.spent += cost
	c.order = append(c.order, i)
	for _, t := range c.scorer.pieces[i].terms {
		c.covered[t.id] = true
	}
}

// gained is a piece and what it added when it was last asked.
type gained struct {
	gain  float64
	piece int
}

// gains is a heap, the greatest first; equals in the order of the pieces.
type gains []gained

func (g gains) Len() int { return len(g) }

func (g gains) Less(i, j int) bool {
	if g[i].gain != g[j].gain {
		return g[i].gain > g[j].gain
	}
	return g[i].piece < g[j].piece
}

func (g gains) Swap(i, j int) { g[i], g[j] = g[j], g[i] }

// Push implements heap.Interface.
func (g *gains) Push(x any) {
	if entry, ok := x.(gained); ok {
		*g = append(*g, entry)
	}
}

// Pop implements heap.Interface.
func (g *gains) Pop() any {
	last := (*g)[len(*g)-1]
	*g = (*g)[:len(*g)-1]
	return last
}
