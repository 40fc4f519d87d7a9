// Package words turns texts into the terms of a search index, and queries into expressions
// over these terms. All searches use it, so that checkpoints and runs in all stores match in
// the same way; a store only indexes terms as they are.
//
// The terms of a word are its lower-case form without accents and its English stem. An
// identifier (validateJWT, rate_limit) has the terms of its parts, too. A text in a script
// without spaces between words has the pairs of its characters as terms.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// maxWord is the maximum size of an indexed word in bytes. Longer words are encoded data.
const maxWord = 64

// Terms collects the distinct terms of texts. The zero value is empty.
type Terms struct {
	list []string
	seen map[string]bool
	size int
}

// Of returns the terms of texts.
func Of(texts ...string) []string {
	var t Terms
	for _, text := range texts {
		t.Add(text)
	}
	return t.List()
}

// List returns the terms in the order of the texts. Terms consist of letters, digits and marks.
func (t *Terms) List() []string { return t.list }

// Size returns the size of the terms in bytes, with a separator after each.
func (t *Terms) Size() int { return t.size }

// Add adds the terms of a text.
func (t *Terms) Add(text string) {
	eachWord(text, func(w word) {
		if w.pairs != nil {
			t.addTerms(append(w.pairs, w.last)...)
			return
		}
		for _, part := range append(w.parts, w.lower) {
			if !t.seen[part] { // stemming takes most of the time
				t.addTerms(part, Stem(part))
			}
		}
	})
}

func (t *Terms) addTerms(list ...string) {
	for _, term := range list {
		if term == "" || t.seen[term] {
			continue
		}
		if t.seen == nil {
			t.seen = map[string]bool{}
		}
		t.seen[term] = true
		t.list = append(t.list, term)
		t.size += len(term) + 1
	}
}

// word is a word of a text.
type word struct {
	// lower is the word in lower case, parts are those of an identifier.
	lower string
	parts []string
	// pairs and last are the pairs of characters and the last character of a text in a
	// script without spaces.
	pairs []string
	last  string
}

// eachWord visits the words of a text.
func eachWord(text string, visit func(word)) {
	text = foldText(text)
	notInWord := func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}
	for part := range strings.FieldsFuncSeq(text, notInWord) {
		for part != "" {
			spaced := strings.IndexFunc(part, isSpaceless)
			if spaced < 0 {
				spaced = len(part)
			}
			if w := newWord(part[:spaced]); w.lower != "" && len(w.lower) <= maxWord {
				visit(w)
			}
			rest := strings.TrimLeftFunc(part[spaced:], isSpaceless)
			if pairs := part[spaced : len(part)-len(rest)]; pairs != "" {
				visit(newPairs(pairs))
			}
			part = rest
		}
	}
}

// isSpaceless reports whether r belongs to a script without spaces between words.
func isSpaceless(r rune) bool {
	return r == 'ー' || r >= 0xE00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// foldText removes accents and differences of width and form.
func foldText(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return text
	}
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		if 0x300 <= r && r <= 0x36F {
			return -1
		}
		return r
	}, norm.NFKD.String(text)))
}

func newPairs(text string) word {
	runes := []rune(text)
	w := word{lower: text, pairs: []string{}, last: string(runes[len(runes)-1])}
	for i := range len(runes) - 1 {
		w.pairs = append(w.pairs, string(runes[i:i+2]))
	}
	return w
}

// newWord splits an identifier where its case changes, at underscores and at digits. A part
// of one character is not significant.
func newWord(text string) word {
	w := word{lower: strings.ToLower(strings.ReplaceAll(text, "_", ""))}
	if w.lower == text && !strings.ContainsFunc(text, unicode.IsDigit) {
		return w
	}
	runes, start := []rune(text), 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !startsPart(runes, i) {
			continue
		}
		if part := strings.ToLower(strings.Trim(string(runes[start:i]), "_")); utf8.RuneCountInString(part) > 1 && part != w.lower {
			w.parts = append(w.parts, part)
		}
		start = i
	}
	return w
}

// startsPart reports whether a part of an identifier starts at i.
func startsPart(runes []rune, i int) bool {
	before, r := runes[i-1], runes[i]
	switch {
	case r == '_' || unicode.IsDigit(before) != unicode.IsDigit(r):
		return true
	case !unicode.IsUpper(r):
		return false
	}
	return !unicode.IsUpper(before) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) // as at the second T of JWTToken
}

// Stem returns the English stem of a word in lower case.
func Stem(lower string) string { return english.Stem(lower, true) }
