package window

import (
	"strings"
	"sync"
)

// A text is first cut by rules into pieces, words mostly, and each is then encoded for
// itself. So a piece that was counted once is known wherever it stands again, and only
// new ones go through the tokenizer, which takes some hundred times as long. Of what is
// not ASCII, marks such as dashes and the sign of a gap are cut here, too; the rest is
// left to the tokenizer between two seams, and known from then on where it is short.

const (
	// maxPieces bounds the counts that are kept, longestPiece their texts: some 2 MB
	// in all.
	maxPieces    = 1 << 15
	longestPiece = 32
)

// pieceCounts are the counts of pieces. It is safe for concurrent use.
type pieceCounts struct {
	mu    sync.RWMutex
	known map[string]int32
}

// count counts a text by its pieces; those that are not known by exact.
func (p *pieceCounts) count(text string, exact func(string) int) int {
	if isPlain(text) {
		return p.countPlain(text, exact)
	}
	n := 0
	for from := 0; from < len(text); {
		to := nextSeam(text, from)
		if part := text[from:to]; isPlain(part) {
			n += p.countPlain(part, exact)
		} else {
			n += p.countWhole(part, exact)
		}
		from = to
	}
	return n
}

// countWhole counts what cannot be cut here.
func (p *pieceCounts) countWhole(part string, exact func(string) int) int {
	p.mu.RLock()
	tokens, ok := p.known[part]
	p.mu.RUnlock()
	if ok {
		return int(tokens)
	}
	n := exact(part)
	p.learn(map[string]int{part: n})
	return n
}

// countPlain counts a plain text.
func (p *pieceCounts) countPlain(text string, exact func(string) int) int {
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
	p.learn(missing)
	return n
}

// learn keeps counts. Where there is no room it forgets all: words come back soon.
func (p *pieceCounts) learn(counts map[string]int) {
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

// isPlain tells a text whose pieces are found here: ASCII and dashes, quotes and the
// like. A delete mark is none: the tokenizer takes it out beforehand.
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

// wideMark is how long the marks are that isWideMark tells.
const wideMark = len("…")

// isWideMark tells a text that begins with one of the marks from U+2010 to U+2027, all
// of which are punctuation.
func isWideMark(text string) bool {
	return len(text) >= wideMark && text[0] == 0xe2 && text[1] == 0x80 && text[2] >= 0x90 && text[2] <= 0xa7
}

// nextSeam gives the next place where a piece ends whatever stands around it: no piece
// goes on with a space behind a letter or a digit.
func nextSeam(text string, from int) int {
	for i := from + 1; i < len(text); i++ {
		if text[i] == ' ' && (isLetter(text[i-1]) || isDigit(text[i-1])) {
			return i
		}
	}
	return len(text)
}

// pieceEnd gives the end of the piece of a plain text that begins at i, by the rules
// of o200k:
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
		return i + min(run(text[i:], isDigit), digits)
	}
	at := i
	if text[at] == ' ' {
		at++
	}
	if n := run(text[at:], isMark); n > 0 {
		at += n
		return at + run(text[at:], isLineEndOrSlash)
	}
	return spaceEnd(text, i)
}

// wordEnd gives the end of a word, with what is before it and a contraction behind it;
// 0 where there is none.
func wordEnd(text string, i int) int {
	at := i
	switch c := text[at]; {
	case c >= 0x80:
		at += wideMark
	case c != '\r' && c != '\n' && !isLetter(c) && !isDigit(c):
		at++
	}
	from := at
	at += run(text[at:], isUpper)
	at += run(text[at:], isLower)
	if at == from {
		return 0
	}
	return at + contraction(text[at:])
}

// contraction is how long the contraction is that a text begins with.
func contraction(text string) int {
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

// spaceEnd gives the end of a piece of white space: behind its last line end, else
// before the space that belongs to what follows.
func spaceEnd(text string, i int) int {
	n := run(text[i:], isSpace)
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
