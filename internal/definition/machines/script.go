package machines

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A script is not run to be checked. It is cut into words instead, so that names
// in comments and texts are told from names in the code.

// wordKind says what a word of a script is.
type wordKind uint8

const (
	wordName  wordKind = iota // a name or a keyword
	wordText                  // a text, without its quotes
	wordOther                 // a sign, a number or a regular expression
)

// word is a piece of a script.
type word struct {
	kind wordKind
	text string
	// at is where it begins, from 0; -1 in what is put into a template.
	at int
}

// is says whether it is a certain one, wherever it stands.
func (w word) is(kind wordKind, text string) bool { return w.kind == kind && w.text == text }

// words cuts a script. What is not JavaScript gives words that mean nothing, and
// no error: that is for who compiles it.
func words(source string) []word { return wordsIn(source, 0) }

// maxNested bounds how deep templates in templates are read.
const maxNested = 8

// wordsIn cuts a script, or what is put into a template that is so deep in others.
func wordsIn(source string, depth int) []word {
	var out []word
	for i := 0; i < len(source); {
		c := source[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case strings.HasPrefix(source[i:], "//"):
			i = after(source, i, "\n")
		case strings.HasPrefix(source[i:], "/*"):
			i = after(source, i+2, "*/")
		case c == '"' || c == '\'':
			text, next := quoted(source, i)
			out, i = append(out, word{wordText, text, place(i, depth)}), next
		case c == '`':
			parts, next := template(source, i, depth)
			out, i = append(out, parts...), next
		case c == '/' && beginsValue(out):
			i = expression(source, i)
			out = append(out, word{wordOther, "/", -1})
		default:
			r, size := utf8.DecodeRuneInString(source[i:])
			if !isNameRune(r) {
				out, i = append(out, word{wordOther, source[i : i+size], place(i, depth)}), i+size
				continue
			}
			end := i
			for end < len(source) {
				if r, size = utf8.DecodeRuneInString(source[end:]); !isNameRune(r) {
					break
				}
				end += size
			}
			kind := wordName
			if c >= '0' && c <= '9' {
				kind = wordOther
			}
			out, i = append(out, word{kind, source[i:end], place(i, depth)}), end
		}
	}
	return out
}

// place is where a word begins, as far as that is known.
func place(at, depth int) int {
	if depth > 0 {
		return -1
	}
	return at
}

func isNameRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// after gives the place behind the next occurrence of an end.
func after(source string, from int, end string) int {
	if from < len(source) {
		if at := strings.Index(source[from:], end); at >= 0 {
			return from + at + len(end)
		}
	}
	return len(source)
}

// quoted reads a text in quotes, and gives it with the place behind it.
func quoted(source string, from int) (text string, next int) {
	var b strings.Builder
	for i := from + 1; i < len(source); i++ {
		switch c := source[i]; {
		case c == source[from]:
			return b.String(), i + 1
		case c == '\n':
			return b.String(), i
		case c == '\\' && i+1 < len(source):
			i++
			b.WriteByte(source[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), len(source)
}

// template reads a template: its texts, and the words of what is put in.
func template(source string, from, nested int) (parts []word, next int) {
	start := from + 1
	for i := start; i < len(source); i++ {
		switch {
		case source[i] == '\\':
			i++
		case source[i] == '`':
			return append(parts, word{wordText, source[start:i], -1}), i + 1
		case strings.HasPrefix(source[i:], "${"):
			parts = append(parts, word{wordText, source[start:i], -1})
			depth, end := 1, i+2
			for end < len(source) && depth > 0 {
				switch source[end] {
				case '{':
					depth++
				case '}':
					depth--
				}
				end++
			}
			if nested < maxNested {
				parts = append(parts, wordsIn(source[i+2:max(end-1, i+2)], nested+1)...)
			}
			start, i = end, end-1
		}
	}
	return parts, len(source)
}

// beginsValue says whether a slash behind these words begins a regular
// expression: a division follows a value.
func beginsValue(before []word) bool {
	if len(before) == 0 {
		return true
	}
	switch last := before[len(before)-1]; last.kind {
	case wordText:
		return false
	case wordName:
		switch last.text {
		case "return", "typeof", "case", "in", "of", "delete", "void", "await", "yield":
			return true
		}
		return false
	default:
		return last.text != ")" && last.text != "]" && last.text != "}" && (last.text[0] < '0' || last.text[0] > '9')
	}
}

// expression gives the place behind a regular expression.
func expression(source string, from int) int {
	class := false
	for i := from + 1; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\':
			i++
		case c == '\n':
			return i
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1
		}
	}
	return len(source)
}

// script is a script in words.
type script struct {
	words []word
	// free are the names, in quotes or not, that occur not only as members of
	// something, with where they first do; texts are what occurs in quotes.
	free  map[string][]int
	texts map[string]bool
}

// maxPlaces bounds how many places of one name are looked at.
const maxPlaces = 16

func newScript(source string) script {
	s := script{words: words(source), free: map[string][]int{}, texts: map[string]bool{}}
	for i, w := range s.words {
		if w.kind == wordText {
			s.texts[w.text] = true
		}
		member := i > 0 && s.words[i-1].is(wordOther, ".")
		if w.kind != wordOther && !member && len(s.free[w.text]) < maxPlaces {
			s.free[w.text] = append(s.free[w.text], i)
		}
	}
	return s
}

// defines says whether the script has a function of a name, as far as can be told
// without running it: the name occurs, and not only as a member of something.
func (s script) defines(name string) bool { return len(s.free[name]) > 0 }

// mentions says whether a text occurs in the script, in quotes or as the whole of
// a template.
func (s script) mentions(text string) bool { return s.texts[text] }

// answers gives the texts that a function returns by a return of a text alone,
// and whether it was found.
func (s script) answers(name string) (texts []string, found bool) {
	for _, i := range s.free[name] {
		from, to := s.body(i + 1)
		if to <= from {
			continue
		}
		for j := from; j+2 < to; j++ {
			if s.words[j].is(wordName, "return") && s.words[j+1].kind == wordText && (s.words[j+2].text == ";" || s.words[j+2].text == "}") {
				texts = append(texts, s.words[j+1].text)
			}
		}
		return texts, true
	}
	return nil, false
}

// body gives the words of the body of a function whose name stands before the
// word at i; nothing where none follows.
func (s script) body(i int) (from, to int) {
	const most = 6 // : async function NAME (
	for n := 0; n < most && i < len(s.words) && s.words[i].text != "("; n++ {
		i++
	}
	i = s.closing(i, "(", ")")
	for n := 0; n < 3 && i < len(s.words) && s.words[i].text != "{"; n++ { // =>
		i++
	}
	if i >= len(s.words) || s.words[i].text != "{" {
		return 0, 0
	}
	return i + 1, s.closing(i, "{", "}")
}

// closing gives the place behind what closes the sign at i.
func (s script) closing(i int, open, closed string) int {
	depth := 0
	for ; i < len(s.words); i++ {
		if s.words[i].kind != wordOther {
			continue
		}
		switch s.words[i].text {
		case open:
			depth++
		case closed:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s.words)
}
