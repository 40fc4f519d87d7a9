package window

import (
	"strings"
)

// termKind tells a plain word from what names or measures one thing.
type termKind uint8

const (
	wordTerm   termKind = iota
	smallTerm           // a number of one or two digits
	numberTerm          // any other number, a version, a date
	mixedTerm           // letters and digits: a ticket, a hash, a code
	snakeTerm           // an underscore in it, or a mark such as # or @
	camelTerm           // a capital inside of it
	dottedTerm          // a file or a qualified name
	pathTerm            // slashes in it
	termKinds  = iota   // how many kinds there are
)

// term is one word of a text, stemmed if it is a plain one.
type term struct {
	id   int32
	kind termKind
}

// lexicon numbers the terms of one call, and stems each word once.
type lexicon struct {
	ids    map[string]int32
	kinds  []termKind
	stems  map[string]int32
	shared *Stems
}

func newLexicon(shared *Stems) *lexicon {
	if shared == nil {
		shared = NewStems()
	}
	return &lexicon{ids: make(map[string]int32, 1024), stems: make(map[string]int32, 1024), shared: shared}
}

func (x *lexicon) size() int { return len(x.kinds) }

func (x *lexicon) id(text string, kind termKind) int32 {
	if id, ok := x.ids[text]; ok {
		return id
	}
	id := int32(len(x.kinds))
	x.ids[strings.Clone(text)] = id
	x.kinds = append(x.kinds, kind)
	return id
}

// longestWord bounds what is stemmed; anything longer is a name.
const longestWord = 40

// stem numbers a plain word by its stem; false for words that say nothing.
func (x *lexicon) stem(word string) (int32, bool) {
	if id, ok := x.stems[word]; ok {
		return id, id >= 0
	}
	id := int32(-1)
	if stem := x.shared.find(word); stem != "" {
		id = x.id(stem, wordTerm)
	}
	x.stems[strings.Clone(word)] = id
	return id, id >= 0
}

// read appends the terms of a text to out. A name or a path is a term, and its
// words are terms too, so that a question in plain words finds it.
func (x *lexicon) read(out []term, text string) []term {
	for field := range strings.FieldsSeq(text) {
		field = strings.Trim(field, ".,;:!?()[]{}<>\"'`*=…")
		if field == "" {
			continue
		}
		kind := kindOf(field)
		if kind == wordTerm {
			out = x.readWords(out, field)
			continue
		}
		out = append(out, term{x.id(field, kind), kind})
		if kind > numberTerm && len(field) <= 200 {
			out = x.readWords(out, field)
		}
	}
	return out
}

// readWords appends the runs of letters in a field, camel case taken apart.
func (x *lexicon) readWords(out []term, field string) []term {
	from := -1
	end := func(i int) {
		if from >= 0 && i-from <= longestWord {
			if id, ok := x.stem(field[from:i]); ok {
				out = append(out, term{id, wordTerm})
			}
		}
		from = -1
	}
	for i := range len(field) {
		c := field[i]
		if !isLetter(c) && c < 0x80 && c != '\'' {
			end(i)
			continue
		}
		if from >= 0 && isUpper(c) && isLower(field[i-1]) {
			end(i)
		}
		if from < 0 {
			from = i
		}
	}
	end(len(field))
	return out
}

// letterCounts is what a field is made of.
type letterCounts struct {
	lower, upper, digit, slash, dot, mark, inner, other int
}

func countLetters(field string) letterCounts {
	var n letterCounts
	for i := range len(field) {
		switch c := field[i]; {
		case isLower(c):
			n.lower++
		case isUpper(c):
			n.upper++
			if i > 0 && isLower(field[i-1]) {
				n.inner++
			}
		case isDigit(c):
			n.digit++
		default:
			n.countMark(c)
		}
	}
	return n
}

func (n *letterCounts) countMark(c byte) {
	switch c {
	case '/', '\\':
		n.slash++
	case '.':
		n.dot++
	case '_', '#', '@', '$':
		n.mark++
	default:
		n.other++
	}
}

// kindOf tells what a field between two spaces is.
func kindOf(field string) termKind {
	n := countLetters(field)
	alpha := n.lower + n.upper
	if n.slash > 0 && alpha > 0 && (n.slash > 1 || n.dot+n.digit+n.mark > 0) {
		return pathTerm
	}
	if n.digit > 0 {
		return n.withDigits(field)
	}
	switch {
	case n.mark > 0 && alpha > 1:
		return snakeTerm
	case n.dot > 0 && alpha > 2 && n.lower > 0:
		return dottedTerm
	case n.inner > 0, n.upper > 2 && n.lower == 0 && n.other > 0:
		return camelTerm
	default:
		return wordTerm
	}
}

// withDigits tells numbers from names that have digits in them.
func (n letterCounts) withDigits(field string) termKind {
	alpha := n.lower + n.upper
	switch {
	case alpha == 0 && n.digit <= 2 && n.dot == 0:
		return smallTerm
	case n.digit >= alpha && !mixed(field):
		return numberTerm
	case alpha > 0:
		return mixedTerm
	default:
		return numberTerm
	}
}

// mixed tells a hash or a ticket from a number with a unit behind it.
func mixed(field string) bool {
	unit := strings.TrimLeft(field, "0123456789.,:-+%")
	return strings.ContainsAny(unit, "0123456789")
}
