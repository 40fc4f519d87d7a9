package words

import (
	"strings"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

const (
	// maxQuery is the maximum number of words of a query; more are ignored.
	maxQuery = 32
	// minPrefix and maxPrefix are the lengths of the beginnings of words, in characters.
	// Longer beginnings are not found in hashed terms.
	minPrefix, maxPrefix = 3, 6
)

// Query is the words of a query.
type Query []Word

// Word is one word of a query. A text matches it if it has all terms of one of the
// alternatives. A term that ends with "*" stands for all terms that begin with it.
type Word struct {
	// Whole are the alternatives for the word itself, Partial those for words that begin
	// with it.
	Whole, Partial [][]string
	// Text is the word in lower case.
	Text string
}

// Parse returns the words of a query. Words that do not help to find anything ("find",
// "about") are left out, unless there are no others.
func Parse(text string) Query {
	var all, significant Query
	seen := map[string]bool{}
	eachWord(text, func(w word) {
		q := newQueryWord(w)
		if seen[q.Text] || len(all) == maxQuery {
			return
		}
		seen[q.Text] = true
		all = append(all, q)
		if !IsStopWord(q.Text) {
			significant = append(significant, q)
		}
	})
	if len(significant) > 0 {
		return significant
	}
	return all
}

func newQueryWord(w word) Word {
	if w.pairs != nil {
		if len(w.pairs) == 0 {
			return Word{Whole: [][]string{{w.last}, {w.last + "*"}}, Text: w.lower}
		}
		return Word{Whole: [][]string{w.pairs}, Text: w.lower}
	}
	q := Word{Whole: [][]string{{Stem(w.lower)}}, Text: w.lower}
	if len(w.parts) > 1 {
		q.Whole = append(q.Whole, lists.Map(w.parts, Stem))
	}
	if utf8.RuneCountInString(w.lower) >= minPrefix {
		q.Partial = [][]string{{w.lower + "*"}}
	}
	return q
}

// IsStopWord reports whether a word in lower case is so common in requests to find something
// that it does not help to find it.
func IsStopWord(word string) bool {
	switch word {
	case "us", "please", "let", "lets", "could", "would", "tell", "give", "show", "find", "list", "search", "look", "looking",
		"resume", "continue", "go", "back", "pick", "get", "finish", "keep", "going", "work", "working",
		"run", "runs", "workflow", "task", "checkpoint", "checkpoints", "last", "left", "leave", "started":
		return true
	default:
		return english.IsStopWord(word)
	}
}

// Any returns the alternatives of Whole and Partial.
func (w Word) Any() [][]string { return append(w.Whole[:len(w.Whole):len(w.Whole)], w.Partial...) }

// Render returns alternatives as an expression of a query language. term returns the
// expression of a term, or of the terms that begin with it.
func Render(alternatives [][]string, and, or string, term func(text string, prefix bool) string) string {
	var list []string
	for _, terms := range alternatives {
		all := lists.Map(terms, func(text string) string {
			text, prefix := strings.CutSuffix(text, "*")
			return term(text, prefix)
		})
		list = append(list, "("+strings.Join(all, and)+")")
	}
	return "(" + strings.Join(list, or) + ")"
}

// Hash is a keyed hash.
type Hash func(text []byte) []byte

// Terms returns the hashes of terms and of their prefixes. Without the key, the terms
// cannot be read or tested.
func (h Hash) Terms(terms []string) []string {
	var t Terms
	for _, term := range terms {
		t.addTerms(h.term(term))
		runes := []rune(term)
		n := minPrefix
		if isSpaceless(runes[0]) {
			n = 1
		}
		for ; n < min(len(runes), maxPrefix+1); n++ {
			t.addTerms(h.prefix(string(runes[:n])))
		}
	}
	return t.List()
}

// Query returns a query that also finds texts with hashed terms.
func (h Hash) Query(q Query) Query {
	return lists.Map(q, func(w Word) Word { return Word{Whole: h.add(w.Whole), Partial: h.add(w.Partial), Text: w.Text} })
}

// add adds the hashed alternatives, except for beginnings that are too long.
func (h Hash) add(alternatives [][]string) [][]string {
	out := alternatives[:len(alternatives):len(alternatives)]
	for _, terms := range alternatives {
		var list []string
		for _, text := range terms {
			beginning, prefix := strings.CutSuffix(text, "*")
			switch {
			case !prefix:
				list = append(list, h.term(text))
			case utf8.RuneCountInString(beginning) <= maxPrefix:
				list = append(list, h.prefix(beginning))
			}
		}
		if len(list) == len(terms) {
			out = append(out, list)
		}
	}
	return out
}

func (h Hash) term(text string) string   { return spell(h([]byte(text))[:8]) }
func (h Hash) prefix(text string) string { return spell(h([]byte(text + "*"))[:6]) }

// spell writes a hash in letters that form a single term, which stemming does not change.
func spell(hash []byte) string {
	const letters = "bcdfghjkmnpqrvwx"
	text := make([]byte, 0, 2*len(hash))
	for _, b := range hash {
		text = append(text, letters[b>>4], letters[b&15])
	}
	return string(text)
}

// Excerpt returns a part of a text with one of the words of a query, or "" if none is found.
func Excerpt(text string, q Query) string {
	const before, size = 60, 240
	for _, text := range []string{text, foldText(text)} {
		lower := strings.ToLower(text)
		if len(lower) != len(text) {
			text = lower
		}
		for _, w := range q {
			at := strings.Index(lower, w.Text)
			if at < 0 {
				at = strings.Index(lower, strings.TrimSuffix(w.Whole[0][0], "*"))
			}
			if at < 0 {
				continue
			}
			start := max(at-before, 0)
			if start > 0 {
				start += strings.IndexByte(text[start:at], ' ') + 1
			}
			return strings.Join(strings.Fields(strings.ToValidUTF8(text[start:min(start+size, len(text))], "")), " ")
		}
	}
	return ""
}
