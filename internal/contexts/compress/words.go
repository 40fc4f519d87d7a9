package compress

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// termKind separates plain words from names and numbers.
type termKind uint8

const (
	wordTerm   termKind = iota
	smallTerm           // a number of one or two digits
	numberTerm          // any other number, a version, a date
	mixedTerm           // letters and digits: a ticket, a hash, a code
	snakeTerm           // a name with an underscore, or a mark such as # or @
	camelTerm           // a name with an inner capital
	dottedTerm          // a file name or a qualified name
	pathTerm            // a name with slashes
	termKinds  = iota   // the number of kinds
)

// term is one word of a text. If it is a plain word, it is stemmed.
type term struct {
	id   int32
	kind termKind
}

// lexicon numbers the terms of one call and stems each word once. Its user must call
// unlockStems, since it holds a read lock on the shared stems.
type lexicon struct {
	shared *StemCache
	// local maps the number of a shared stem to 1 plus its term in this lexicon; 0 means
	// that the stem has no term yet.
	local []int32
	// names are all terms except plain words; fresh are the plain words that shared does
	// not contain; stems are the terms of the stems of these words; own are the cue words,
	// which are terms even if they are stop words.
	names, fresh, stems, own map[string]int32
	learned                  map[string]string
	kinds                    []termKind
}

func newLexicon(shared *StemCache) *lexicon {
	if shared == nil {
		shared = NewStemCache()
	}
	shared.mu.RLock()
	return &lexicon{
		shared: shared, local: make([]int32, len(shared.numbers)), names: map[string]int32{}, fresh: map[string]int32{},
		stems: map[string]int32{}, own: map[string]int32{}, learned: map[string]string{},
	}
}

// unlockStems unlocks the shared stems and stores the new ones.
func (x *lexicon) unlockStems() {
	x.shared.mu.RUnlock()
	x.shared.storeStems(x.learned)
}

func (x *lexicon) termCount() int { return len(x.kinds) }

// addTerm numbers a new term.
func (x *lexicon) addTerm(kind termKind) int32 {
	x.kinds = append(x.kinds, kind)
	return int32(len(x.kinds) - 1)
}

// addName returns the term of a name or number.
func (x *lexicon) addName(text string, kind termKind) int32 {
	id, ok := x.names[text]
	if !ok {
		id = x.addTerm(kind)
		x.names[text] = id
	}
	return id
}

// localStem returns the term of a shared stem.
func (x *lexicon) localStem(number int32) int32 {
	if x.local[number] == 0 {
		x.local[number] = x.addTerm(wordTerm) + 1
	}
	return x.local[number] - 1
}

// addStem returns the term of a stem.
func (x *lexicon) addStem(stem string) int32 {
	if number, ok := x.shared.numbers[stem]; ok {
		return x.localStem(number)
	}
	id, ok := x.stems[stem]
	if !ok {
		id = x.addTerm(wordTerm)
		x.stems[stem] = id
	}
	return id
}

// longestWord is the maximum length of a stemmed word in bytes; a longer run of letters is
// ignored.
const longestWord = 40

// addWord returns the term of a plain word, which is the term of its stem. It returns false
// for a stop word that is not a cue word.
func (x *lexicon) addWord(word string) (int32, bool) {
	number, ok := x.shared.known[word]
	if ok && number >= 0 {
		return x.localStem(number), true
	}
	if !ok {
		id, met := x.fresh[word]
		if !met {
			id = x.learnWord(word)
		}
		if id >= 0 {
			return id, true
		}
	}
	id, ok := x.own[word]
	return id, ok
}

// learnWord stems a new word.
func (x *lexicon) learnWord(word string) int32 {
	stem, id := stemOf(word), int32(noStem)
	if stem != "" {
		id = x.addStem(stem)
	}
	x.fresh[word], x.learned[word] = id, stem
	return id
}

// readTerms appends the terms of a text to out. The words within a name or a path are terms
// too, so that a question in plain words finds the name.
func (x *lexicon) readTerms(out []term, text string) []term {
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

// spaceAt returns the length of the white space at i, or 0.
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

// trimMarks removes punctuation that surrounds a word, and marks of omissions.
func trimMarks(field string) string {
	if n := len(field); n > 0 && isLetter(field[0]) && isLetter(field[n-1]) {
		return field
	}
	return strings.Trim(field, gapMark+".,;:!?()[]{}<>\"'`*=")
}

// readField appends the terms of a field, which is a part of a text between spaces.
func (x *lexicon) readField(out []term, field string) []term {
	if field == "" {
		return out
	}
	kind := kindOf(field)
	if kind == wordTerm {
		return x.readWords(out, field)
	}
	out = append(out, term{x.addName(field, kind), kind})
	if kind > numberTerm && len(field) <= 200 {
		out = x.readWords(out, field)
	}
	return out
}

// readWords appends the runs of letters in a field, with camel case split.
func (x *lexicon) readWords(out []term, field string) []term {
	from := -1
	end := func(i int) {
		if from >= 0 && i-from <= longestWord {
			if id, ok := x.addWord(field[from:i]); ok {
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

// letterCounts counts the characters of a field by kind.
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

// kindOf returns the kind of the term that a field is.
func kindOf(field string) termKind {
	n := countLetters(field)
	alpha := n.lower + n.upper
	if n.slash > 0 && alpha > 0 && (n.slash > 1 || n.dot+n.digit+n.mark > 0) {
		return pathTerm
	}
	if n.digit > 0 {
		return n.kindWithDigits(field)
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

// kindWithDigits separates numbers from names that contain digits.
func (n letterCounts) kindWithDigits(field string) termKind {
	alpha := n.lower + n.upper
	switch {
	case alpha == 0 && n.digit <= 2 && n.dot == 0:
		return smallTerm
	case n.digit >= alpha && !isMixedName(field):
		return numberTerm
	case alpha > 0:
		return mixedTerm
	default:
		return numberTerm
	}
}

// isMixedName reports whether a field is a hash or a ticket, not a number with a unit.
func isMixedName(field string) bool {
	unit := strings.TrimLeft(field, "0123456789.,:-+%")
	return strings.ContainsAny(unit, "0123456789")
}
