package compress

import (
	"strings"
	"sync"
	"unicode"
)

// The tokenizer first splits a text into pieces, mostly words, and then encodes each piece
// separately. Therefore the count of a piece can be cached, and only new pieces need the
// tokenizer, which is about a hundred times slower. This file splits ASCII and common wide
// punctuation marks. Other text goes to the tokenizer as a whole between two safe
// boundaries, and is cached if it is short.

const (
	// maxPieces bounds the number of cached counts, longestPiece the length of a cached
	// text, so that the cache takes about 3 MB.
	maxPieces    = 1 << 15
	longestPiece = 64
)

// pieceCache caches the token counts of pieces. It is safe for concurrent use.
type pieceCache struct {
	mu    sync.RWMutex
	known map[string]int32
}

// countText counts the tokens of a text by its pieces. It calls exact for unknown pieces.
func (p *pieceCache) countText(text string, exact func(string) int) int {
	if isPlain(text) {
		return p.countPlain(text, exact)
	}
	n := 0
	for from := 0; from < len(text); {
		to := nextBoundary(text, from)
		if part := text[from:to]; isPlain(part) {
			n += p.countPlain(part, exact)
		} else {
			n += p.countWhole(part, exact)
		}
		from = to
	}
	return n
}

// countWhole counts text that this file cannot split.
func (p *pieceCache) countWhole(part string, exact func(string) int) int {
	p.mu.RLock()
	tokens, ok := p.known[part]
	p.mu.RUnlock()
	if ok {
		return int(tokens)
	}
	n := exact(part)
	p.storeCounts(map[string]int{part: n})
	return n
}

// countPlain counts a text for which isPlain is true.
func (p *pieceCache) countPlain(text string, exact func(string) int) int {
	n := 0
	var missing map[string]int
	p.mu.RLock()
	for from := 0; from < len(text); {
		to := pieceEnd(text, from)
		piece := text[from:to]
		from = to
		if len(piece) == 1 && piece[0] >= ' ' && piece[0] <= '~' {
			n++
			continue
		}
		if tokens, ok := p.known[piece]; ok {
			n += int(tokens)
			continue
		}
		if missing == nil {
			missing = make(map[string]int)
		}
		missing[piece]++
	}
	p.mu.RUnlock()
	for piece, times := range missing {
		tokens := exact(piece)
		n += times * tokens
		missing[piece] = tokens
	}
	p.storeCounts(missing)
	return n
}

// storeCounts stores counts. If the cache is full it is cleared first, because common words
// are soon stored again.
func (p *pieceCache) storeCounts(counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known)+len(counts) > maxPieces {
		p.known = make(map[string]int32)
	}
	for piece, tokens := range counts {
		if len(piece) <= longestPiece && len(p.known) < maxPieces {
			p.known[strings.Clone(piece)] = int32(tokens)
		}
	}
}

// isPlain reports whether pieceEnd can split the text: ASCII, dashes, quotes and similar
// marks. DEL is excluded, since the tokenizer removes it first.
func isPlain(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < 0x7f {
			continue
		}
		if !isWideMark(text[i:]) {
			return false
		}
		i += wideMark - 1
	}
	return true
}

// wideMark is the length in bytes of the marks that isWideMark accepts.
const wideMark = len("…")

// isWideMark reports whether the text begins with a mark from U+2010 to U+2027, which are
// all punctuation.
func isWideMark(text string) bool {
	return len(text) >= wideMark && text[0] == 0xe2 && text[1] == 0x80 && text[2] >= 0x90 && text[2] <= 0xa7
}

// nextBoundary returns the next index at which a piece ends in any context: only letters,
// combining marks and an apostrophe continue a piece after a letter.
func nextBoundary(text string, from int) int {
	inWord := false
	for i, char := range text[from:] {
		isWord := unicode.IsLetter(char) || unicode.IsNumber(char)
		if inWord && !isWord && !unicode.IsMark(char) && char != '\'' {
			return from + i
		}
		inWord = isWord
	}
	return len(text)
}

// pieceEnd returns the end of the piece of a plain text that begins at i, by the rules of
// o200k:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}…]*[\p{Ll}…]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}…]+[\p{Ll}…]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func pieceEnd(text string, i int) int {
	if end := wordEnd(text, i); end > 0 {
		return end
	}
	if isDigit(text[i]) {
		return i + min(countLeading(text[i:], isDigit), digits)
	}
	at := i
	if text[at] == ' ' {
		at++
	}
	if n := countLeading(text[at:], isMark); n > 0 {
		at += n
		return at + countLeading(text[at:], isLineEndOrSlash)
	}
	return spaceEnd(text, i)
}

// wordEnd returns the end of a word with the mark before it and a trailing contraction, or
// 0 if no word begins at i.
func wordEnd(text string, i int) int {
	at := i
	switch c := text[at]; {
	case c >= 0x80:
		at += wideMark
	case c != '\r' && c != '\n' && !isLetter(c) && !isDigit(c):
		at++
	}
	from := at
	at += countLeading(text[at:], isUpper)
	at += countLeading(text[at:], isLower)
	if at == from {
		return 0
	}
	return at + contractionLen(text[at:])
}

// contractionLen returns the length of the contraction at the beginning of the text.
func contractionLen(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch strings.ToLower(text[1:3]) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

// spaceEnd returns the end of a piece of white space: after the last line end, or if there
// is no line end, before the space that belongs to the next word.
func spaceEnd(text string, i int) int {
	n := countLeading(text[i:], isSpace)
	if last := strings.LastIndexAny(text[i:i+n], "\r\n"); last >= 0 {
		return i + last + 1
	}
	if i+n < len(text) && n > 1 {
		return i + n - 1
	}
	return i + max(n, 1)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isMark(c byte) bool { return !isSpace(c) && !isLetter(c) && !isDigit(c) }

func isLineEndOrSlash(c byte) bool { return c == '\r' || c == '\n' || c == '/' }
