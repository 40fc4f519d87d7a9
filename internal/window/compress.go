package window

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"slices"

	"github.com/guideway-dev/guideway/internal/jsontext"
)

// Options say how far a context is to shrink.
type Options struct {
	// Budget is the most tokens that the context may have. Where it is zero,
	// the context is reduced by Ratio.
	Budget int
	// Ratio is how many times smaller the context is to be; below 1 means 2.
	Ratio float64
	// Question is what the current step wants to know: its prompt. What bears
	// on it is kept first.
	Question string
	// Counter counts tokens; nil is Estimator.
	Counter Counter
	// Stems remembers what words come from; nil begins anew with each call.
	Stems *Stems
	// Shares are the parts of the budget that the layers may count on; nil is
	// DefaultShares.
	Shares Shares
	// MaskAge and MaskTokens say what is an old, bulky value: a useful item
	// that has not changed for so many steps and costs so much. It gives way
	// first. Zero is 4 steps and 400 tokens.
	MaskAge, MaskTokens int
	// Ref names what is left out of an item, for whoever keeps values under names
	// of their own; nil is RefOf. The passages of Fold have no key.
	Ref func(key string, value []byte) string
	// NoBlobs says that nothing left out could be stored. Then nothing is left
	// out.
	NoBlobs bool
}

func (o Options) withDefaults(before int) Options {
	if o.Counter == nil {
		o.Counter = Estimator{}
	}
	if o.Shares == nil {
		o.Shares = DefaultShares()
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
	if o.MaskAge <= 0 {
		o.MaskAge = 4
	}
	if o.MaskTokens <= 0 {
		o.MaskTokens = 400
	}
	return o
}

// Omission tells what was left out of a context and how to get it back.
type Omission struct {
	Key string `json:"key"`
	// Reason says what was left out and why, in words.
	Reason string `json:"reason"`
	// Ref reads the whole value back, byte for byte.
	Ref string `json:"ref"`
	// Tokens is how many fewer there are.
	Tokens int `json:"tokens"`
}

// Blob is a value that was given in part or not at all. The caller keeps it
// under its reference before it hands the reduced context on. Its bytes are those of
// the item, not a copy of them.
type Blob struct {
	Ref   string
	Key   string
	Bytes []byte
}

// RefOf gives the reference of a value: a hash, so that equal values are kept
// once and a wrong one is noticed.
func RefOf(value []byte) string {
	sum := sha256.Sum256(value)
	return "ref_" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// Result is a context that was made smaller.
type Result struct {
	Context                   Context
	TokensBefore, TokensAfter int
	// Budget is the one that was wanted.
	Budget int
	// CriticalTokens is what the critical items cost, which are never reduced.
	CriticalTokens int
	// Over is why the budget was not kept; empty if it was.
	Over string
	// Omitted are the items that are not whole, in the order of their keys.
	Omitted []Omission
	// Blobs are the values of these items.
	Blobs []Blob
}

// Compress makes the context of the items as small as the options say. Critical
// items come out as they went in. Of the others the ephemeral ones go first;
// then parts are left out: the parts that are kept are those that bear on the
// question, tell of errors, decisions, demands and changes, or name something
// that nothing else names; newer and more important items before others. Each
// item that is not whole says so where it stands, and its bytes are among the
// blobs. The same call gives the same result.
func Compress(items []Item, options Options) Result {
	before := totalTokens(items)
	o := options.withDefaults(before)
	c := newCompression(items, o)
	result := Result{Context: make(Context, len(items)), TokensBefore: before, Budget: o.Budget}
	for _, item := range items {
		if item.Layer == Critical {
			result.CriticalTokens += item.Tokens
		}
	}
	switch {
	case before <= o.Budget:
		c.wholeAll(nil)
	case o.NoBlobs:
		c.wholeAll(nil)
		result.Over = "nothing is left out, as nothing could be stored here"
	default:
		c.reduce(result.CriticalTokens)
	}
	c.fill(&result)
	if result.TokensAfter > o.Budget && result.Over == "" {
		result.Over = fmt.Sprintf("the critical items alone cost %d tokens, %d over the budget; none of them was cut",
			result.CriticalTokens, result.CriticalTokens-o.Budget)
	}
	return result
}

// compression is one call of Compress.
type compression struct {
	options Options
	items   []Item
	// values are what comes out, by item; nil is left out altogether.
	values [][]byte
	tokens []int
	reason []string
	// refs are the references of items, written those that were last written in part,
	// masks the notes that stand in the place of items.
	refs    []string
	written []outcome
	masks   []outcome
}

// outcome is an item that was written in part, or the note in its place.
type outcome struct {
	value  []byte
	tokens int
	reason string
	// kept are the pieces that it has, where it was written.
	kept []bool
}

func newCompression(items []Item, o Options) *compression {
	n := len(items)
	return &compression{
		options: o, items: items, values: make([][]byte, n), tokens: make([]int, n), reason: make([]string, n),
		refs: make([]string, n), written: make([]outcome, n), masks: make([]outcome, n),
	}
}

// ref is the reference of an item.
func (c *compression) ref(i int) string {
	if c.refs[i] == "" {
		c.refs[i] = c.options.Ref(c.items[i].Key, c.items[i].Value)
	}
	return c.refs[i]
}

// wholeAll keeps every item but those of the given layers.
func (c *compression) wholeAll(without []Layer) {
	for i, item := range c.items {
		if slices.Contains(without, item.Layer) {
			c.values[i], c.tokens[i], c.reason[i] = nil, 0, "dropped: "+item.Why
			continue
		}
		c.values[i], c.tokens[i], c.reason[i] = item.Value, item.Tokens, ""
	}
}

func (c *compression) total() int {
	n := 0
	for _, tokens := range c.tokens {
		n += tokens
	}
	return n
}

// reduce leaves out what the budget has no room for.
func (c *compression) reduce(critical int) {
	c.wholeAll([]Layer{Ephemeral})
	if c.total() <= c.options.Budget {
		return
	}
	room := c.options.Budget - critical
	if room <= 0 {
		c.wholeAll([]Layer{Important, Useful, Ephemeral})
		for i := range c.reason {
			if c.reason[i] != "" {
				c.reason[i] = "dropped: the critical items leave no room"
			}
		}
		return
	}
	s := newSelection(c)
	for _, limit := range [...]float64{1, 0} {
		if limit == 0 {
			limit = s.corrected(float64(room), float64(c.total()-critical))
		}
		if limit <= 0 {
			break
		}
		s.choose(float64(room) * limit)
		c.apply(s, room)
	}
	c.trim(s, room, critical)
}

// minimalSlack is the part of the budget that may stay unused before the choice
// is made again with a better estimate.
const minimalSlack = 0.04

// corrected gives the factor that a second choice takes: the first one shows
// how far the estimates are off. It is 0 where a second one is not worth it.
func (s *selection) corrected(room, used float64) float64 {
	off := used / room
	if off >= 1-minimalSlack && off <= 1 || used <= 0 {
		return 0
	}
	return min(max(1/off, 0.5), 2) * 0.995
}

// trim takes back the last choices until the budget holds.
func (c *compression) trim(s *selection, room, critical int) {
	for over := c.total() - critical - room; over > 0 && len(s.chooser.order) > 0; over = c.total() - critical - room {
		freed := 0.0
		for freed < float64(over)*1.1+1 && len(s.chooser.order) > 0 {
			last := s.chooser.order[len(s.chooser.order)-1]
			s.chooser.order = s.chooser.order[:len(s.chooser.order)-1]
			s.chooser.keep[last] = false
			freed += s.chooser.cost[last]
		}
		c.apply(s, room)
	}
	// What is left are notes of masked items, the largest number last.
	for i := len(c.items) - 1; i >= 0 && c.total()-critical > room; i-- {
		if c.items[i].Layer != Critical && c.reason[i] != "" {
			c.values[i], c.tokens[i] = nil, 0
			c.reason[i] = "dropped: no room even for a note"
		}
	}
}

// selection holds the pieces of the items that may be reduced.
type selection struct {
	trees   []*node // by item; nil if it is not reduced
	builder builder
	chooser *chooser
	byLayer map[Layer][]int
	shares  Shares
}

// noteTokens is about what a note costs.
const noteTokens = 26

// noteWorth is from how many tokens on an item of which nothing is kept leaves
// a note behind; a smaller one is dropped.
const noteWorth = 3 * noteTokens

// usualPiece is about how long a piece is, in bytes; for up to mostPieces of them room
// is made at once.
const (
	usualPiece = 50
	mostPieces = 1 << 14
)

func newSelection(c *compression) *selection {
	s := &selection{trees: make([]*node, len(c.items)), byLayer: make(map[Layer][]int), shares: c.options.Shares}
	// The oldest first, so that "later" is newer among the pieces.
	order, bytes := make([]int, 0, len(c.items)), 0
	for i, item := range c.items {
		if item.Layer == Important || item.Layer == Useful {
			order = append(order, i)
			bytes += len(item.Value)
		}
	}
	s.builder.pieces = make([]piece, 0, min(bytes/usualPiece, mostPieces)+len(order))
	slices.SortStableFunc(order, func(a, b int) int { return c.items[b].Age - c.items[a].Age })
	for _, i := range order {
		s.trees[i] = s.builder.build(i, c.items[i].Value)
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
		ch.factor[i] = c.factor(item)
		s.byLayer[item.Layer] = append(s.byLayer[item.Layer], i)
	}
	s.chooser = ch
	return s
}

// factor is what the pieces of an item are worth for its layer and its age.
func (c *compression) factor(item Item) float64 {
	f := 1 / (1 + agePerStep*float64(min(item.Age, 50)))
	if item.Layer == Useful {
		f *= usefulFactor * math.Sqrt(f)
		if item.Age >= c.options.MaskAge && item.Tokens >= c.options.MaskTokens {
			f *= maskedFactor
		}
	}
	return f
}

// choose begins anew and keeps the best pieces for the tokens in room: each
// layer up to its share first, then what is left for all.
func (s *selection) choose(room float64) {
	ch := s.chooser
	ch.restart(0)
	important, useful := s.shares[Important], s.shares[Useful]
	both := max(important+useful, 1e-9)
	ch.take(s.byLayer[Important], room*important/both)
	ch.take(s.byLayer[Useful], ch.spent+room*useful/both)
	ch.take(slices.Concat(s.byLayer[Important], s.byLayer[Useful]), room)
}

// notesShare is the part of the room that notes of masked items may take. What
// has no note is told among the omitted alone.
const notesShare = 0.05

// apply writes what is kept.
func (c *compression) apply(s *selection, room int) {
	notes := int(notesShare * float64(room))
	r := &renderer{pieces: s.builder.pieces, keep: s.chooser.keep}
	for i, item := range c.items {
		n := s.trees[i]
		if n == nil {
			continue
		}
		kept := r.kept(n)
		if kept == n.count {
			c.values[i], c.tokens[i], c.reason[i] = item.Value, item.Tokens, ""
			continue
		}
		if kept == 0 {
			notes -= c.mask(i, n, notes)
			continue
		}
		w := c.write(i, n, r, n.count-kept)
		if w.tokens >= item.Tokens {
			c.values[i], c.tokens[i], c.reason[i] = item.Value, item.Tokens, ""
			continue
		}
		c.values[i], c.tokens[i], c.reason[i] = w.value, w.tokens, w.reason
	}
}

// write writes an item of which so many pieces are left out, unless it has just been
// written so: to count what was written takes longer than all else.
func (c *compression) write(i int, n *node, r *renderer, left int) *outcome {
	w, keep := &c.written[i], r.keep[n.first:n.first+n.count]
	if w.value != nil && slices.Equal(w.kept, keep) {
		return w
	}
	note := fmt.Sprintf("[%s %d of %d %s left out; %s]", gap, left, n.count, n.noun(), c.ref(i))
	value := r.value(make([]byte, 0, min(len(n.raw), 4<<10)), n, note)
	*w = outcome{
		value: value, tokens: itemTokens(c.options.Counter, c.items[i].Key, value), kept: append(w.kept[:0], keep...),
		reason: fmt.Sprintf("reduced: %d of %d %s left out", left, n.count, n.noun()),
	}
	return w
}

// mask leaves a note in place of a value, or nothing in place of a small one or
// where there is no room for notes. It gives what the note costs.
func (c *compression) mask(i int, n *node, room int) int {
	item := c.items[i]
	c.values[i], c.tokens[i] = nil, 0
	c.reason[i] = fmt.Sprintf("dropped: %s, and no room", item.Layer)
	if item.Tokens < noteWorth {
		return 0
	}
	m := &c.masks[i]
	if m.value == nil {
		what := fmt.Sprintf("%d %s", n.count, n.noun())
		if item.Age > 0 {
			what += fmt.Sprintf(", unchanged for %d steps", item.Age)
		}
		m.reason = "masked: " + what
		m.value = jsontext.AppendString(nil, fmt.Sprintf("[%s masked: %s; %s]", gap, what, c.ref(i)))
		m.tokens = itemTokens(c.options.Counter, item.Key, m.value)
	}
	c.reason[i] = m.reason
	if m.tokens > room {
		return 0
	}
	c.values[i], c.tokens[i] = m.value, m.tokens
	return m.tokens
}

// fill writes the result.
func (c *compression) fill(result *Result) {
	for i, item := range c.items {
		if c.values[i] != nil {
			result.Context[item.Key] = c.values[i]
			result.TokensAfter += c.tokens[i]
		}
		if c.reason[i] == "" {
			continue
		}
		result.Omitted = append(result.Omitted, Omission{
			Key: item.Key, Reason: c.reason[i], Ref: c.ref(i), Tokens: item.Tokens - c.tokens[i],
		})
		result.Blobs = append(result.Blobs, Blob{Ref: c.ref(i), Key: item.Key, Bytes: item.Value})
	}
}
