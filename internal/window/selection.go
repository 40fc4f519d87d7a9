package window

import (
	"math"
	"slices"
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
	// most is what each piece is worth where nothing is kept yet; -1 is not known.
	most []float64
	// of lists the pieces of each item.
	of [][]int
	// asked and queue are those of the last take, to be used again.
	asked []bool
	queue gains
}

// worth is what piece i adds to what is kept, whatever it costs.
func (c *chooser) worth(i int) float64 {
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
			words += s.worth[t.id]
		default:
			names += s.worth[t.id]
		}
	}
	worth := askedWeight*s.relevance[i] + s.cueWorth[i] + (nameWeight*min(names, maxNames) + wordWeight*words)
	if p.leader != i && p.level != "error" {
		worth *= repeatFactor
	}
	if p.level == "debug" {
		worth *= debugFactor
	}
	return worth * c.factor[i]
}

// gain is what piece i adds for what it costs.
func (c *chooser) gain(i int) float64 { return c.worth(i) / c.weight(i) }

// bound is what piece i can gain at most: what is kept makes it worth less, never
// more.
func (c *chooser) bound(i int) float64 {
	if c.most[i] < 0 {
		c.most[i] = c.worth(i)
	}
	return c.most[i] / c.weight(i)
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
	n := len(s.pieces)
	floats := make([]float64, 5*n)
	c := &chooser{
		scorer: s, factor: floats[:n:n], cost: floats[n : 2*n : 2*n], most: floats[2*n : 3*n : 3*n],
		covered: make([]bool, len(s.frequency)), keep: make([]bool, n), opened: make([]bool, items),
		note: note, of: make([][]int, items), weights: [2][]float64{floats[3*n : 4*n : 4*n], floats[4*n:]},
		asked: make([]bool, n), queue: make(gains, 0, n),
	}
	for i := range s.pieces {
		p := &s.pieces[i]
		c.factor[i], c.cost[i], c.most[i] = 1, p.tokens, -1
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
	for i := range c.most {
		c.bound(i) // while nothing is covered
	}
}

// take keeps pieces of the given ones until the limit of all that is spent.
func (c *chooser) take(candidates []int, limit float64) {
	clear(c.asked)
	c.queue = c.queue[:0]
	for _, i := range candidates {
		if !c.keep[i] && !c.scorer.stale[i] {
			c.queue = append(c.queue, gained{c.bound(i), i})
			c.asked[i] = true
		}
	}
	c.queue.order()
	for len(c.queue) > 0 {
		best := c.queue[0]
		if c.keep[best.piece] {
			c.queue.drop()
			continue
		}
		item := c.scorer.pieces[best.piece].item
		cost := c.costNow(best.piece)
		if c.spent+cost > limit {
			// What does not fit now never will, unless its item is opened, and then
			// it comes anew.
			c.queue = slices.DeleteFunc(c.queue, func(g gained) bool { return c.spent+c.costNow(g.piece) > limit })
			c.queue.order()
			continue
		}
		// What is kept since has made it worth less, as a rule.
		if now := c.gain(best.piece); now < best.gain-1e-12 {
			c.queue[0].gain = now
			c.queue.sink(0)
			continue
		}
		c.queue.drop()
		first := !c.opened[item]
		c.keepPiece(best.piece, item, cost)
		if !first {
			continue
		}
		// The note is paid: the item's other pieces are cheaper now.
		for _, i := range c.of[item] {
			if c.asked[i] && !c.keep[i] {
				c.queue.push(gained{c.bound(i), i})
			}
		}
	}
}

// costNow is what a piece costs, with the note where it is the first of its item.
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

// gained is a piece and what it added when it was last asked.
type gained struct {
	gain  float64
	piece int
}

// gains is a heap, the greatest first; equals in the order of the pieces. It is one of
// its own, since a context has thousands of pieces: that of the library calls each
// comparison through an interface.
type gains []gained

func (g gains) before(i, j int) bool {
	if g[i].gain != g[j].gain {
		return g[i].gain > g[j].gain
	}
	return g[i].piece < g[j].piece
}

// order makes a heap of what is in any order.
func (g gains) order() {
	for i := len(g)/2 - 1; i >= 0; i-- {
		g.sink(i)
	}
}

// sink puts what has become less where it belongs.
func (g gains) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(g) {
			return
		}
		if child+1 < len(g) && g.before(child+1, child) {
			child++
		}
		if !g.before(child, i) {
			return
		}
		g[i], g[child] = g[child], g[i]
		i = child
	}
}

// drop takes the greatest out.
func (g *gains) drop() {
	last := len(*g) - 1
	(*g)[0] = (*g)[last]
	*g = (*g)[:last]
	g.sink(0)
}

func (g *gains) push(one gained) {
	*g = append(*g, one)
	all := *g
	for i := len(all) - 1; i > 0 && all.before(i, (i-1)/2); i = (i - 1) / 2 {
		all[i], all[(i-1)/2] = all[(i-1)/2], all[i]
	}
}
