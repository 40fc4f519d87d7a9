package compress

import (
	"math"
	"slices"
)

// Weights of the value of a piece. docs/context.md describes how they were tuned. Cues and
// names are measured in bits (scorer.informationBits).
const (
	askedWeight    = 20.0 // the words of the current step's question
	errorWeight    = 1.3
	decisionWeight = 2.2
	demandWeight   = 0.7
	changeWeight   = 0.8
	nameWeight     = 1.7  // a name, path or number that no kept piece contains
	wordWeight     = 2.3  // a word that no kept piece contains
	maxNames       = 3.0  // in bits; so a long list of numbers has a lower value than a decision
	repeatFactor   = 0.1  // a log line whose message is already kept
	debugFactor    = 0.3  // a log line of level debug
	usefulFactor   = 0.8  // an item of the layer useful
	maskedFactor   = 0.8  // an old and bulky item
	agePerStep     = 0.05 // loss of value per step of age
	noteShare      = 0.15 // share of the note's cost charged to the first piece of an item
	recurFactor    = 0.2  // increase of a name's value per doubling of its pieces
	costExponent   = 1.25 // above 1 favors short sentences
)

// chooser keeps the best pieces within a budget. It implements maximal marginal relevance
// as coverage: terms that kept pieces already contain add no value, but two sentences with
// the same pattern and different names both add value.
type chooser struct {
	scorer  *scorer
	factor  []float64 // indexed by piece: the factor for layer and age
	cost    []float64 // indexed by piece, in tokens
	covered []bool    // indexed by term
	keep    []bool
	// order lists the kept pieces in the order of choice.
	order []int
	spent float64
	// opened reports which items have a kept piece; the cost of the first piece includes
	// the note.
	opened []bool
	note   float64
	// weights caches the results of costWeight: first for pieces of items that already have
	// a kept piece, then for pieces of other items.
	weights [2][]float64
	// maxValues caches the value of each piece before any piece is kept; -1 means unknown.
	maxValues []float64
	// piecesOf lists the pieces of each item.
	piecesOf [][]int
	// candidate and queue are buffers that each call of keepBest reuses.
	candidate []bool
	queue     gainHeap
}

// pieceValue returns the value that piece i adds to the kept pieces, regardless of its cost.
func (c *chooser) pieceValue(i int) float64 {
	s := c.scorer
	if s.stale[i] {
		return 0
	}
	names, words := 0.0, 0.0
	p := &s.pieces[i]
	for _, t := range p.terms {
		switch {
		case c.covered[t.id]:
		case t.kind == wordTerm:
			words += s.termValues[t.id]
		default:
			names += s.termValues[t.id]
		}
	}
	worth := askedWeight*s.relevance[i] + s.cueValues[i] + (nameWeight*min(names, maxNames) + wordWeight*words)
	if p.leader != i && p.level != "error" {
		worth *= repeatFactor
	}
	if p.level == "debug" {
		worth *= debugFactor
	}
	return worth * c.factor[i]
}

// pieceGain returns the value of piece i divided by its weighted cost.
func (c *chooser) pieceGain(i int) float64 { return c.pieceValue(i) / c.costWeight(i) }

// maxGain returns an upper bound of the gain of piece i: other kept pieces only reduce the
// gain.
func (c *chooser) maxGain(i int) float64 {
	if c.maxValues[i] < 0 {
		c.maxValues[i] = c.pieceValue(i)
	}
	return c.maxValues[i] / c.costWeight(i)
}

// costWeight returns the divisor by which the value of piece i is weighted: its cost,
// including a share of the note's cost for the first piece of an item, raised to
// costExponent.
func (c *chooser) costWeight(i int) float64 {
	known, cost := &c.weights[0][i], c.cost[i]
	if !c.opened[c.scorer.pieces[i].item] {
		known, cost = &c.weights[1][i], cost+c.note*noteShare
	}
	if *known == 0 {
		*known = math.Pow(cost, costExponent)
	}
	return *known
}

// newChooser returns a chooser over the pieces of the items, with the estimated costs.
func newChooser(s *scorer, items int, note float64) *chooser {
	n := len(s.pieces)
	floats := make([]float64, 5*n)
	c := &chooser{
		scorer: s, factor: floats[:n:n], cost: floats[n : 2*n : 2*n], maxValues: floats[2*n : 3*n : 3*n],
		covered: make([]bool, len(s.frequency)), keep: make([]bool, n), opened: make([]bool, items),
		note: note, piecesOf: make([][]int, items), weights: [2][]float64{floats[3*n : 4*n : 4*n], floats[4*n:]},
		candidate: make([]bool, n), queue: make(gainHeap, 0, n),
	}
	for i := range s.pieces {
		p := &s.pieces[i]
		c.factor[i], c.cost[i], c.maxValues[i] = 1, p.tokens, -1
		c.piecesOf[p.item] = append(c.piecesOf[p.item], i)
	}
	return c
}

// resetChoice removes all pieces from the choice. spent tokens are already used of the
// limit.
func (c *chooser) resetChoice(spent float64) {
	clear(c.keep)
	clear(c.covered)
	clear(c.opened)
	c.order, c.spent = c.order[:0], spent
	for i := range c.maxValues {
		c.maxGain(i) // cache the value while no term is covered
	}
}

// keepBest keeps the best of the candidates until limit tokens are spent in total.
func (c *chooser) keepBest(candidates []int, limit float64) {
	clear(c.candidate)
	c.queue = c.queue[:0]
	for _, i := range candidates {
		if !c.keep[i] && !c.scorer.stale[i] {
			c.queue = append(c.queue, gainEntry{c.maxGain(i), i})
			c.candidate[i] = true
		}
	}
	c.queue.buildHeap()
	for len(c.queue) > 0 {
		best := c.queue[0]
		if c.keep[best.piece] {
			c.queue.removeFirst()
			continue
		}
		item := c.scorer.pieces[best.piece].item
		cost := c.costNow(best.piece)
		if c.spent+cost > limit {
			// Drop the pieces that do not fit. They do not fit later either, unless another
			// piece of their item is kept; then they are pushed again.
			c.queue = slices.DeleteFunc(c.queue, func(g gainEntry) bool { return c.spent+c.costNow(g.piece) > limit })
			c.queue.buildHeap()
			continue
		}
		// The gain may be lower because of pieces kept after it was computed.
		if now := c.pieceGain(best.piece); now < best.gain-1e-12 {
			c.queue[0].gain = now
			c.queue.siftDown(0)
			continue
		}
		c.queue.removeFirst()
		first := !c.opened[item]
		c.keepPiece(best.piece, item, cost)
		if !first {
			continue
		}
		// The cost of the note is now included, so the other pieces of the item are
		// cheaper.
		for _, i := range c.piecesOf[item] {
			if c.candidate[i] && !c.keep[i] {
				c.queue.addEntry(gainEntry{c.maxGain(i), i})
			}
		}
	}
}

// costNow returns the cost of a piece, including the note if it is the first of its item.
func (c *chooser) costNow(i int) float64 {
	if !c.opened[c.scorer.pieces[i].item] {
		return c.cost[i] + c.note
	}
	return c.cost[i]
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

// gainEntry is a piece and its last computed gain.
type gainEntry struct {
	gain  float64
	piece int
}

// gainHeap is a max-heap of pieces by their gain; equal gains keep the order of the pieces.
// It is used instead of container/heap, which calls each comparison through an interface
// and is too slow for thousands of pieces.
type gainHeap []gainEntry

func (g gainHeap) ranksBefore(i, j int) bool {
	if g[i].gain != g[j].gain {
		return g[i].gain > g[j].gain
	}
	return g[i].piece < g[j].piece
}

// buildHeap builds the heap.
func (g gainHeap) buildHeap() {
	for i := len(g)/2 - 1; i >= 0; i-- {
		g.siftDown(i)
	}
}

// siftDown moves an entry down to its position.
func (g gainHeap) siftDown(i int) {
	for {
		child := 2*i + 1
		if child >= len(g) {
			return
		}
		if child+1 < len(g) && g.ranksBefore(child+1, child) {
			child++
		}
		if !g.ranksBefore(child, i) {
			return
		}
		g[i], g[child] = g[child], g[i]
		i = child
	}
}

// removeFirst removes the first entry.
func (g *gainHeap) removeFirst() {
	last := len(*g) - 1
	(*g)[0] = (*g)[last]
	*g = (*g)[:last]
	g.siftDown(0)
}

func (g *gainHeap) addEntry(one gainEntry) {
	*g = append(*g, one)
	all := *g
	for i := len(all) - 1; i > 0 && all.ranksBefore(i, (i-1)/2); i = (i - 1) / 2 {
		all[i], all[(i-1)/2] = all[(i-1)/2], all[i]
	}
}
