package window

import (
	"strings"
	"unicode"
	"unicode/utf8"
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

// lexicon numbers the terms of one call, and stems each word once. It must be closed:
// until then it holds what it knows of stems.
type lexicon struct {
	shared *Stems
	// local has the numbers here of the stems that shared numbers, and 1 more: 0 is none.
	local []int32
	// names are all terms but plain words, fresh the words that shared does not know,
	// and stems theirs. own are words that are terms here though they say nothing.
	names, fresh, stems, own map[string]int32
	learned                  map[string]string
	kinds                    []termKind
}

func newLexicon(shared *Stems) *lexicon {
	if shared == nil {
		shared = NewStems()
	}
	shared.mu.RLock()
	return &lexicon{
		shared: shared, local: make([]int32, len(shared.numbers)), names: map[string]int32{}, fresh: map[string]int32{},
		stems: map[string]int32{}, own: map[string]int32{}, learned: map[string]string{},
	}
}

// close hands what was learned on.
func (x *lexicon) close() {
	x.shared.mu.RUnlock()
	x.shared.learn(x.learned)
}

func (x *lexicon) size() int { return len(x.kinds) }

// add numbers a new term.
func (x *lexicon) add(kind termKind) int32 {
	x.kinds = append(x.kinds, kind)
	return int32(len(x.kinds) - 1)
}

// name numbers what is no plain word.
func (x *lexicon) name(text string, kind termKind) int32 {
	id, ok := x.names[text]
	if !ok {
		id = x.add(kind)
		x.names[text] = id
	}
	return id
}

// numbered gives the number here of a stem that shared numbers.
func (x *lexicon) numbered(number int32) int32 {
	if x.local[number] == 0 {
		x.local[number] = x.add(wordTerm) + 1
	}
	return x.local[number] - 1
}

// stem numbers a stem.
func (x *lexicon) stem(stem string) int32 {
	if number, ok := x.shared.numbers[stem]; ok {
		return x.numbered(number)
	}
	id, ok := x.stems[stem]
	if !ok {
		id = x.add(wordTerm)
		x.stems[stem] = id
	}
	return id
}

// longestWord bounds what is stemmed; anything longer is a name.
const longestWord = 40

// word numbers a plain word by its stem; false for words that say nothing.
func (x *lexicon) word(word string) (int32, bool) {
	number, ok := x.shared.known[word]
	if ok && number >= 0 {
		return x.numbered(number), true
	}
	if !ok {
		id, met := x.fresh[word]
		if !met {
			id = x.meet(word)
		}
		if id >= 0 {
			return id, true
		}
	}
	id, ok := x.own[word]
	return id, ok
}

// meet learns a word.
func (x *lexicon) meet(word string) int32 {
	stem, id := stemOf(word), int32(noStem)
	if stem != "" {
		id = x.stem(stem)
	}
	x.fresh[word], x.learned[word] = id, stem
	return id
}

// read appends the terms of a text to out. A name or a path is a term, and its
// words are terms too, so that a question in plain words finds it.
func (x *lexicon) read(out []term, text string) []term {
	for i := 0; i < len(text); {
		if n := spaceAt(text, i); n > 0 {
			i += n
			continue
		}
		from := i
		for i < len(text) && spaceAt(text, i) == 0 {
			i++
		}
		out = x.readField(out, trimMarks(text[from:i]))
	}
	return out
}

// spaceAt is how long the white space is that stands at i; 0 where none begins there.
func spaceAt(text string, i int) int {
	if c := text[i]; c < utf8.RuneSelf {
		if isSpace(c) {
			return 1
		}
		return 0
	}
	if r, n := utf8.DecodeRuneInString(text[i:]); unicode.IsSpace(r) {
		return n
	}
	return 0
}

// trimMarks takes the punctuation around a field away.
func trimMarks(field string) string {
	for field != "" {
		if n := len(field) - len(strings.TrimPrefix(field, gap)); n > 0 {
			field = field[n:]
		} else if isAround(field[0]) {
			field = field[1:]
		} else {
			break
		}
	}
	for field != "" {
		if n := len(field) - len(strings.TrimSuffix(field, gap)); n > 0 {
			field = field[:len(field)-n]
		} else if isAround(field[len(field)-1]) {
			field = field[:len(field)-1]
		} else {
			break
		}
	}
	return field
}

// isAround tells the marks that stand around a word and do not belong to it.
func isAround(c byte) bool {
	switch c {
	case '.', ',', ';', ':', '!', '?', '(', ')', '[', ']', '{', '}', '<', '>', '"', '\'', '`', '*', '=':
		return true
	}
	return false
}

// readField appends the terms of what stands between two spaces.
func (x *lexicon) readField(out []term, field string) []term {
	if field == "" {
		return out
	}
	kind := kindOf(field)
	if kind == wordTerm {
		return x.readWords(out, field)
	}
	out = append(out, term{x.name(field, kind), kind})
	if kind > numberTerm && len(field) <= 200 {
		out = x.readWords(out, field)
	}
	return out
}

// readWords appends the runs of letters in a field, camel case taken apart.
func (x *lexicon) readWords(out []term, field string) []term {
	from := -1
	end := func(i int) {
		if from >= 0 && i-from <= longestWord {
			if id, ok := x.word(field[from:i]); ok {
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
