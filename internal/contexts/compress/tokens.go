package compress

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Counter counts the tokens of a text.
type Counter interface {
	Count(text string) int
}

// Tokenizer counts tokens with the vocabulary o200k_base. The count is exact for models
// with that encoding and approximate for others, because not all tokenizers are public. The
// vocabulary is loaded at the first count, which takes about 40 ms and 20 MB. A Tokenizer
// is safe for concurrent use. The codec's own constructor is used so that other
// vocabularies are not linked in: the garbage collector scans them even if they are not
// used.
type Tokenizer struct {
	load   func() *codec.Codec
	pieces pieceCache
}

// NewTokenizer returns a counter for o200k_base.
func NewTokenizer() *Tokenizer {
	return &Tokenizer{load: sync.OnceValue(codec.NewO200kBase)}
}

// Count implements Counter. If the tokenizer fails, the count is estimated.
func (t *Tokenizer) Count(text string) int { return t.pieces.countText(text, t.countExact) }

// countExact counts with the tokenizer, without the cache.
func (t *Tokenizer) countExact(text string) int {
	if n, err := t.load().Count(text); err == nil {
		return n
	}
	return Estimate(text)
}

// Estimator is a Counter that uses Estimate.
type Estimator struct{}

// Count implements Counter.
func (Estimator) Count(text string) int { return Estimate(text) }

// Average tokens per kind of character, in hundredths. They are fitted to the counts of
// o200k for Go source, prose, logs and JSON; docs/context.md lists the error.
const (
	wordCost  = 105 // a run of letters up to its usual length
	longWord  = 12  // in letters; a longer word is several tokens
	digits    = 3   // o200k cuts numbers into threes
	punctCost = 62  // marks form tokens with other marks and with words
	lineCost  = 55  // line ends form tokens with the marks before them
	rareCost  = 70  // a letter beyond ASCII
)

// Estimate estimates the tokens of a text from its characters. It is several hundred times
// faster than a tokenizer, but not exact.
func Estimate(text string) int { return (estimateHundredths(text) + 99) / 100 }

// estimateHundredths returns the estimate in hundredths of a token.
func estimateHundredths(text string) int {
	cost := 0
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case isLetter(c):
			n := countLeading(text[i:], isLetter)
			cost += wordCost * (1 + (n-1)/longWord)
			i += n
		case isDigit(c):
			n := countLeading(text[i:], isDigit)
			cost += 100 * ((n + digits - 1) / digits)
			i += n
		case c == ' ':
			i++ // a space is part of the token of the next word
		case isBlank(c):
			cost += lineCost
			i += countLeading(text[i:], isBlank)
		case c >= 0x80:
			cost += rareCost
			i += 1 + countLeading(text[i+1:], isContinuation)
		default:
			cost += punctCost
			i++
		}
	}
	return cost
}

// countLeading returns the number of leading bytes for which is returns true.
func countLeading(text string, is func(c byte) bool) int {
	n := 0
	for n < len(text) && is(text[n]) {
		n++
	}
	return n
}

func isBlank(c byte) bool { return c == '\n' || c == '\t' || c == '\r' || c == ' ' }

// isContinuation reports whether c is a continuation byte of UTF-8.
func isContinuation(c byte) bool { return c&0xC0 == 0x80 }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

var (
	_ Counter = (*Tokenizer)(nil)
	_ Counter = Estimator{}
)
