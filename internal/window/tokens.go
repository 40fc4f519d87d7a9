package window

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Counter says how many tokens a text has.
type Counter interface {
	Count(text string) int
}

// Tokenizer counts exactly by the vocabulary o200k_base. No exact tokenizer of
// every model is public: a count is exact for models of that encoding and near for
// others. The vocabulary is loaded at the first count: about 40 ms once, and 20 MB
// as long as it lives. It is safe for concurrent use. The codec is made by its own
// function, so that the vocabularies of other encodings are not linked in: the
// collector reads each as a root, counted with or not.
type Tokenizer struct {
	load   func() *codec.Codec
	pieces pieceCounts
}

// NewTokenizer makes a counter.
func NewTokenizer() *Tokenizer {
	return &Tokenizer{load: sync.OnceValue(codec.NewO200kBase)}
}

// Count implements Counter. A text that the tokenizer fails on is estimated;
// none is known.
func (t *Tokenizer) Count(text string) int { return t.pieces.count(text, t.encode) }

// encode counts without what is known.
func (t *Tokenizer) encode(text string) int {
	if n, err := t.load().Count(text); err == nil {
		return n
	}
	return Estimate(text)
}

// Estimator counts by Estimate.
type Estimator struct{}

// Count implements Counter.
func (Estimator) Count(text string) int { return Estimate(text) }

// What a token holds on average, by the kind of its characters, in hundredths.
// Fitted to o200k over Go source, prose, logs and JSON; docs/context.md has the
// error.
const (
	wordCost  = 105 // a run of letters up to its usual length
	longWord  = 12  // letters; a longer word is several tokens
	digits    = 3   // o200k cuts numbers into threes
	punctCost = 62  // marks join with each other and with words
	lineCost  = 55  // line ends join with the marks before them
	rareCost  = 70  // a letter beyond ASCII
)

// Estimate guesses the tokens of a text from its characters, some hundred times
// faster than a tokenizer. It is meant for choices, not for promises.
func Estimate(text string) int { return (estimated(text) + 99) / 100 }

// estimated is so in hundredths.
func estimated(text string) int {
	cost := 0
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case isLetter(c):
			n := run(text[i:], isLetter)
			cost += wordCost * (1 + (n-1)/longWord)
			i += n
		case isDigit(c):
			n := run(text[i:], isDigit)
			cost += 100 * ((n + digits - 1) / digits)
			i += n
		case c == ' ':
			i++ // a space belongs to the word behind it
		case isBlank(c):
			cost += lineCost
			i += run(text[i:], isBlank)
		case c >= 0x80:
			cost += rareCost
			i += 1 + run(text[i+1:], isContinued)
		default:
			cost += punctCost
			i++
		}
	}
	return cost
}

// run is how many of the first bytes are of a kind.
func run(text string, is func(c byte) bool) int {
	n := 0
	for n < len(text) && is(text[n]) {
		n++
	}
	return n
}

func isBlank(c byte) bool { return c == '\n' || c == '\t' || c == '\r' || c == ' ' }

// isContinued tells the second and later bytes of a character.
func isContinued(c byte) bool { return c&0xC0 == 0x80 }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// DefaultCacheEntries bounds a Cache whose size is not given: some 100 contexts
// of 100 items, in about 1 MB.
const DefaultCacheEntries = 10_000

// shortText is what is counted faster than it is hashed and looked up.
const shortText = 16

// Cache counts with another counter and keeps what it has counted, by the hash
// of the text, so that an item that has not changed costs nothing. It holds no
// text. The caller owns it; it is safe for concurrent use.
type Cache struct {
	counter Counter
	size    int

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*list.Element
	recent *list.List // of counted, the last used first
}

type counted struct {
	hash   [sha256.Size]byte
	tokens int
}

// NewCache makes a cache of at most entries counts over a counter; zero or less
// means DefaultCacheEntries.
func NewCache(counter Counter, entries int) *Cache {
	if entries <= 0 {
		entries = DefaultCacheEntries
	}
	return &Cache{counter: counter, size: entries, byHash: make(map[[sha256.Size]byte]*list.Element), recent: list.New()}
}

// Count implements Counter.
func (c *Cache) Count(text string) int {
	if len(text) < shortText {
		return c.counter.Count(text)
	}
	return c.count(sha256.Sum256([]byte(text)), func() string { return text })
}

// countBytes counts a text without a copy of it where it is known.
func (c *Cache) countBytes(text []byte) int {
	if len(text) < shortText {
		return c.counter.Count(string(text))
	}
	return c.count(sha256.Sum256(text), func() string { return string(text) })
}

func (c *Cache) count(hash [sha256.Size]byte, text func() string) int {
	if n, ok := c.find(hash); ok {
		return n
	}
	n := c.counter.Count(text())
	c.keep(hash, n)
	return n
}

func (c *Cache) find(hash [sha256.Size]byte) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.byHash[hash]
	if !ok {
		return 0, false
	}
	c.recent.MoveToFront(entry)
	known, ok := entry.Value.(counted)
	return known.tokens, ok
}

func (c *Cache) keep(hash [sha256.Size]byte, tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byHash[hash]; ok {
		return
	}
	c.byHash[hash] = c.recent.PushFront(counted{hash: hash, tokens: tokens})
	if c.recent.Len() <= c.size {
		return
	}
	oldest := c.recent.Back()
	if known, ok := c.recent.Remove(oldest).(counted); ok {
		delete(c.byHash, known.hash)
	}
}

// Len is how many counts the cache holds.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

var (
	_ Counter = (*Tokenizer)(nil)
	_ Counter = (*Cache)(nil)
	_ Counter = Estimator{}
)
