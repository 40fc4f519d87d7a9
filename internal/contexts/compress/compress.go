package compress

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"slices"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Options set how far Compress, Prioritise and Summarize shrink a context.
type Options struct {
	// Budget is the maximum number of tokens. If it is zero or less, Ratio applies.
	Budget int
	// Ratio is the factor by which the context shrinks. A value below 1 is replaced by 2,
	// except in Prioritise.
	Ratio float64
	// Question is the prompt of the current step. Pieces that match the question are kept
	// first.
	Question string
	// Counter counts tokens; the default is Estimator.
	Counter Counter
	// Stems caches word stems between calls; it may be nil.
	Stems *StemCache
	// Ref returns the reference of an omitted value; the default is RefOf. For the passages
	// of Summarize the key is empty.
	Ref func(key string, value []byte) string
	// Overhead returns the number of tokens of an answer besides its context: with the
	// omissions of Compress, or with the items of Prioritise. It may be nil.
	Overhead func(omitted []Omission, items []RankedItem, budget int) int
	// NoBlobs reports that the caller cannot store omitted values. Then Compress and
	// Prioritise omit nothing.
	NoBlobs bool
}

func (o Options) withDefaults(before int) Options {
	if o.Counter == nil {
		o.Counter = Estimator{}
	}
	if o.Ref == nil {
		o.Ref = func(_ string, value []byte) string { return RefOf(value) }
	}
	if o.Budget <= 0 {
		if o.Ratio < 1 {
			o.Ratio = 2
		}
		o.Budget = int(float64(before) / o.Ratio)
	}
	return o
}

// Omission describes a part of a context that was left out.
type Omission struct {
	Key string `json:"key"`
	// Reason describes the omitted part and the reason, for people and agents.
	Reason string `json:"reason"`
	// Ref is the reference under which the whole value is stored.
	Ref string `json:"ref"`
	// Tokens is the number of tokens saved.
	Tokens int `json:"tokens"`
}

// RefOf returns the reference of a value: a hash, so that equal values are stored once and
// wrong bytes are detected.
func RefOf(value []byte) string {
	sum := sha256.Sum256(value)
	return "ref_" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// Result is a reduced context.
type Result struct {
	Context                   Context
	TokensBefore, TokensAfter int
	// Budget is the requested budget.
	Budget int
	// CriticalTokens is the number of tokens of the critical items, which are never
	// reduced.
	CriticalTokens int
	// OverReason is the reason why the result exceeds the budget; it is empty if the result
	// fits.
	OverReason string
	// Omitted lists the items that were shortened or dropped, in key order. The caller must
	// store their values before it passes on the context.
	Omitted []Omission
}

// Compress reduces the items to the budget of the options. Critical items stay unchanged.
// Ephemeral items are dropped first; then parts of important and useful items are omitted.
// Compress prefers to keep parts that match the question, that report errors, decisions,
// demands or changes, or that contain a name that no other kept part contains; newer and
// more important items come first. A reduced item contains a note with the reference of the
// whole value, which the caller stores. The result is deterministic.
func Compress(items []Item, options Options) Result {
	before := totalTokens(items)
	o := options.withDefaults(before)
	c := newCompression(items, o)
	result := newResult(items, before, o.Budget)
	switch {
	case before+c.overhead() <= o.Budget:
		c.keepWhole(nil)
	case o.NoBlobs:
		c.keepWhole(nil)
		result.OverReason = noBlobsReason
	default:
		c.reduceItems(result.CriticalTokens)
	}
	c.fillResult(&result)
	result.TokensAfter += c.overhead()
	result.explainExcess()
	return result
}

const noBlobsReason = "nothing was omitted because omitted values cannot be stored"

// newResult returns an empty result for items of before tokens.
func newResult(items []Item, before, budget int) Result {
	r := Result{Context: make(Context, len(items)), TokensBefore: before, Budget: budget}
	for _, item := range items {
		if item.Layer == Critical {
			r.CriticalTokens += item.Tokens
		}
	}
	return r
}

// explainExcess sets OverReason if the result exceeds the budget and OverReason is empty.
func (r *Result) explainExcess() {
	switch {
	case r.TokensAfter <= r.Budget || r.OverReason != "":
	case r.CriticalTokens == 0:
		r.OverReason = "the budget is smaller than the answer without its context"
	default:
		r.OverReason = fmt.Sprintf("the critical items cost %d tokens, so the answer is %d over the budget; none of them was cut",
			r.CriticalTokens, r.TokensAfter-r.Budget)
	}
}

// compression is the state of one call of Compress.
type compression struct {
	options Options
	items   []Item
	// values are the resulting values by item; the value of a dropped item is nil.
	values [][]byte
	tokens []int
	reason []string
	// refs, reduced and masks are caches by item: of the reference, of the rendering of a
	// reduced item, and of the note that replaces a whole item.
	refs    []string
	reduced []renderedItem
	masks   []renderedItem
}

// renderedItem is the rendering of a reduced item, or the note that replaces an item.
type renderedItem struct {
	value  []byte
	tokens int
	reason string
	// kept is the selection of pieces that was rendered.
	kept []bool
}

func newCompression(items []Item, o Options) *compression {
	n := len(items)
	return &compression{
		options: o, items: items, values: make([][]byte, n), tokens: make([]int, n), reason: make([]string, n),
		refs: make([]string, n), reduced: make([]renderedItem, n), masks: make([]renderedItem, n),
	}
}

// itemRef returns the reference of an item.
func (c *compression) itemRef(i int) string {
	if c.refs[i] == "" {
		c.refs[i] = c.options.Ref(c.items[i].Key, c.items[i].Value)
	}
	return c.refs[i]
}

// keepWhole keeps every item whole except the items of the given layers, which it drops.
func (c *compression) keepWhole(without []Layer) {
	for i, item := range c.items {
		if slices.Contains(without, item.Layer) {
			c.values[i], c.tokens[i], c.reason[i] = nil, 0, "dropped: "+item.Why
			continue
		}
		c.values[i], c.tokens[i], c.reason[i] = item.Value, item.Tokens, ""
	}
}

// overhead returns the tokens of the answer besides its context.
func (c *compression) overhead() int {
	if c.options.Overhead == nil {
		return 0
	}
	return c.options.Overhead(c.omissions(), nil, c.options.Budget)
}

func (c *compression) countTokens() int {
	n := 0
	for _, tokens := range c.tokens {
		n += tokens
	}
	return n
}

// reduceItems omits items and pieces until the result fits the budget.
func (c *compression) reduceItems(critical int) {
	c.keepWhole([]Layer{Ephemeral})
	room := c.options.Budget - critical - c.overhead()
	if c.countTokens()-critical <= room {
		return
	}
	if room <= 0 {
		c.keepWhole([]Layer{Important, Useful, Ephemeral})
		for i := range c.reason {
			if c.reason[i] != "" && critical > 0 {
				c.reason[i] = "dropped: the critical items use the whole budget"
			} else if c.reason[i] != "" {
				c.reason[i] = "dropped: the budget is too small"
			}
		}
		return
	}
	s := newSelection(c)
	target := float64(room)
	for range maxChoices {
		s.choosePieces(target)
		c.applyChoice(s, room)
		room = max(c.options.Budget-critical-c.overhead(), 1) // The omissions are known now.
		factor := s.correctionFactor(float64(room), float64(c.countTokens()-critical))
		if factor <= 0 {
			break
		}
		target *= factor
	}
	c.trimToBudget(s, room, critical)
}

// maxChoices is the maximum number of times that the pieces are chosen.
const maxChoices = 3

// minimalSlack is the share of the budget that may stay unused. If more is unused, or the
// budget is exceeded, the pieces are chosen again with a corrected limit.
const minimalSlack = 0.04

// correctionFactor returns the factor by which to correct the limit for a second choice,
// computed from the size after the first choice. It returns 0 if a second choice is not
// needed.
func (s *selection) correctionFactor(room, used float64) float64 {
	off := used / room
	if off >= 1-minimalSlack && off <= 1 || used <= 0 {
		return 0
	}
	return min(max(1/off, 0.5), 2) * 0.995
}

// trimToBudget drops the pieces that were chosen last, and then notes, until the result
// fits the budget.
func (c *compression) trimToBudget(s *selection, room, critical int) {
	for over := c.countTokens() - critical - room; over > 0 && len(s.chooser.order) > 0; over = c.countTokens() - critical - room {
		freed := 0.0
		for freed < float64(over)*1.1+1 && len(s.chooser.order) > 0 {
			last := s.chooser.order[len(s.chooser.order)-1]
			s.chooser.order = s.chooser.order[:len(s.chooser.order)-1]
			s.chooser.keep[last] = false
			freed += s.chooser.cost[last]
		}
		c.applyChoice(s, room)
	}
	// Now only the notes that replace whole items can still be dropped, the notes of the
	// last items first.
	for i := len(c.items) - 1; i >= 0 && c.countTokens()-critical > room; i-- {
		if c.items[i].Layer != Critical && c.reason[i] != "" {
			c.values[i], c.tokens[i] = nil, 0
			c.reason[i] = "dropped: the budget is too small for a note"
		}
	}
}

// selection holds the pieces of the items that can be reduced.
type selection struct {
	trees   []*node // indexed by item; nil if the item is never reduced
	builder treeBuilder
	chooser *chooser
	byLayer map[Layer][]int
}

// noteTokens is the approximate cost of a note.
const noteTokens = 26

// minMaskedTokens is the minimum size of an item that is replaced by a note if none of its pieces
// is kept; a smaller item is dropped.
const minMaskedTokens = 3 * noteTokens

// typicalPieceBytes is the typical length of a piece in bytes. The slice of pieces is
// allocated for at most maxPreallocated pieces.
const (
	typicalPieceBytes = 50
	maxPreallocated   = 1 << 14
)

func newSelection(c *compression) *selection {
	s := &selection{trees: make([]*node, len(c.items)), byLayer: make(map[Layer][]int)}
	// Sort the oldest items first, so that a later piece is newer.
	order, bytes := make([]int, 0, len(c.items)), 0
	for i, item := range c.items {
		if item.Layer == Important || item.Layer == Useful {
			order = append(order, i)
			bytes += len(item.Value)
		}
	}
	s.builder.pieces = make([]piece, 0, min(bytes/typicalPieceBytes, maxPreallocated)+len(order))
	slices.SortStableFunc(order, func(a, b int) int { return c.items[b].Age - c.items[a].Age })
	for _, i := range order {
		s.trees[i] = s.builder.buildTree(i, c.items[i].Value)
	}
	pieces := s.builder.pieces
	scorer := newScorer(pieces, c.options.Question, c.options.Stems)
	estimated := make([]float64, len(c.items))
	for i := range pieces {
		estimated[pieces[i].item] += pieces[i].tokens
	}
	ch := newChooser(scorer, len(c.items), noteTokens)
	for i := range pieces {
		item := c.items[pieces[i].item]
		ch.cost[i] = max(pieces[i].tokens*float64(item.Tokens)/max(estimated[pieces[i].item], 1), 1)
		ch.factor[i] = c.itemFactor(item)
		s.byLayer[item.Layer] = append(s.byLayer[item.Layer], i)
	}
	s.chooser = ch
	return s
}

// A useful item that has not changed for maskAge steps and has at least maskTokens tokens
// is old and bulky, and is reduced before others.
const (
	maskAge    = 4
	maskTokens = 400
)

// itemFactor returns the factor for the value of an item's pieces, from its layer, age and
// size.
func (c *compression) itemFactor(item Item) float64 {
	f := 1 / (1 + agePerStep*float64(min(item.Age, 50)))
	if item.Layer == Useful {
		f *= usefulFactor * math.Sqrt(f)
		if item.Age >= maskAge && item.Tokens >= maskTokens {
			f *= maskedFactor
		}
	}
	return f
}

// choosePieces resets the choice and keeps the best pieces for room tokens: first the
// pieces of each layer up to the layer's share, then pieces of all layers until room is
// used up.
func (s *selection) choosePieces(room float64) {
	ch := s.chooser
	ch.resetChoice(0)
	ch.keepBest(s.byLayer[Important], room*importantShare())
	ch.keepBest(s.byLayer[Useful], ch.spent+room*(1-importantShare()))
	ch.keepBest(slices.Concat(s.byLayer[Important], s.byLayer[Useful]), room)
}

// notesShare is the share of the room for notes that replace whole items. Without a note an
// item appears only in Result.Omitted.
const notesShare = 0.05

// applyChoice renders the items with the chosen pieces.
func (c *compression) applyChoice(s *selection, room int) {
	notes := int(notesShare * float64(room))
	r := &renderer{pieces: s.builder.pieces, keep: s.chooser.keep}
	for i, item := range c.items {
		n := s.trees[i]
		if n == nil {
			continue
		}
		kept := r.countKept(n)
		if kept == n.count {
			c.values[i], c.tokens[i], c.reason[i] = item.Value, item.Tokens, ""
			continue
		}
		if kept == 0 {
			notes -= c.maskItem(i, n, notes)
			continue
		}
		w := c.renderReduced(i, n, r, n.count-kept)
		if w.tokens >= item.Tokens {
			c.values[i], c.tokens[i], c.reason[i] = item.Value, item.Tokens, ""
			continue
		}
		c.values[i], c.tokens[i], c.reason[i] = w.value, w.tokens, w.reason
	}
}

// renderReduced renders an item with left pieces omitted. It reuses the last rendering if the
// choice is the same, because counting the tokens of a rendering is the most expensive part
// of Compress.
func (c *compression) renderReduced(i int, n *node, r *renderer, left int) *renderedItem {
	w, keep := &c.reduced[i], r.keep[n.first:n.first+n.count]
	if w.value != nil && slices.Equal(w.kept, keep) {
		return w
	}
	note := fmt.Sprintf("[%s %d of %d %s omitted; %s]", gapMark, left, n.count, n.pieceNoun(), c.itemRef(i))
	value := r.appendValue(make([]byte, 0, min(len(n.raw), 4<<10)), n, note)
	*w = renderedItem{
		value: value, tokens: itemTokens(c.options.Counter, c.items[i].Key, value), kept: append(w.kept[:0], keep...),
		reason: fmt.Sprintf("reduced: %d of %d %s omitted", left, n.count, n.pieceNoun()),
	}
	return w
}

// maskItem replaces the value of an item by a note and returns the cost of the note. A
// small item, or an item whose note does not fit into room, is dropped without a note.
func (c *compression) maskItem(i int, n *node, room int) int {
	item := c.items[i]
	c.values[i], c.tokens[i] = nil, 0
	c.reason[i] = "dropped: the budget is used up"
	if item.Tokens < minMaskedTokens {
		return 0
	}
	m := &c.masks[i]
	if m.value == nil {
		what := fmt.Sprintf("%d %s", n.count, n.pieceNoun())
		if item.Age > 0 {
			what += ", " + describeAge(item.Age)
		}
		m.reason = "masked: " + what
		m.value = jsontext.AppendString(nil, fmt.Sprintf("[%s masked: %s; %s]", gapMark, what, c.itemRef(i)))
		m.tokens = itemTokens(c.options.Counter, item.Key, m.value)
	}
	c.reason[i] = m.reason
	if m.tokens > room {
		return 0
	}
	c.values[i], c.tokens[i] = m.value, m.tokens
	return m.tokens
}

// fillResult sets the context, the token count and the omissions of the result.
func (c *compression) fillResult(result *Result) {
	for i, item := range c.items {
		if c.values[i] != nil {
			result.Context[item.Key] = c.values[i]
		}
	}
	result.TokensAfter, result.Omitted = c.countTokens(), c.omissions()
}

// omissions returns the items that are not whole, in key order.
func (c *compression) omissions() []Omission {
	var list []Omission
	for i, item := range c.items {
		if c.reason[i] != "" {
			list = append(list, Omission{Key: item.Key, Reason: c.reason[i], Ref: c.itemRef(i), Tokens: item.Tokens - c.tokens[i]})
		}
	}
	return list
}
