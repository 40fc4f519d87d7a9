package definition

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The checks do not run a script. They tokenize it, so that names in comments and strings
// are distinguished from names in the code.

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenName  tokenKind = iota // a name or a keyword
	tokenText                   // a string, without its quotes
	tokenOther                  // a punctuator, a number or a regular expression
)

// token is a token of a script.
type token struct {
	kind tokenKind
	text string
	// at is the offset in the script; -1 inside a template literal, and for a regular
	// expression.
	at int
}

// matches reports whether the token has the kind and text.
func (w token) matches(kind tokenKind, text string) bool { return w.kind == kind && w.text == text }

// tokenize splits a script into tokens. Invalid JavaScript results in meaningless tokens,
// not in an error: the compiler reports it.
func tokenize(source string) []token { return tokenizeNested(source, 0) }

// maxNested limits the depth of nested template literals.
const maxNested = 8

// tokenizeNested splits a script, or an expression inside depth template literals.
func tokenizeNested(source string, depth int) []token {
	var out []token
	for i := 0; i < len(source); {
		c := source[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case strings.HasPrefix(source[i:], "//"):
			i = endAfter(source, i, "\n")
		case strings.HasPrefix(source[i:], "/*"):
			i = endAfter(source, i+2, "*/")
		case c == '"' || c == '\'':
			text, next := readQuoted(source, i)
			out, i = append(out, token{tokenText, text, tokenOffset(i, depth)}), next
		case c == '`':
			parts, next := readTemplate(source, i, depth)
			out, i = append(out, parts...), next
		case c == '/' && startsRegexp(out):
			i = skipRegexp(source, i)
			out = append(out, token{tokenOther, "/", -1})
		default:
			r, size := utf8.DecodeRuneInString(source[i:])
			if !isNameRune(r) {
				out, i = append(out, token{tokenOther, source[i : i+size], tokenOffset(i, depth)}), i+size
				continue
			}
			end := i
			for end < len(source) {
				if r, size = utf8.DecodeRuneInString(source[end:]); !isNameRune(r) {
					break
				}
				end += size
			}
			kind := tokenName
			if c >= '0' && c <= '9' {
				kind = tokenOther
			}
			out, i = append(out, token{kind, source[i:end], tokenOffset(i, depth)}), end
		}
	}
	return out
}

// tokenOffset returns the offset of a token, or -1 inside a template literal.
func tokenOffset(at, depth int) int {
	if depth > 0 {
		return -1
	}
	return at
}

func isNameRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// endAfter returns the offset after the next occurrence of end.
func endAfter(source string, from int, end string) int {
	if from < len(source) {
		if at := strings.Index(source[from:], end); at >= 0 {
			return from + at + len(end)
		}
	}
	return len(source)
}

// readQuoted reads a string in quotes, and returns it with the offset after it.
func readQuoted(source string, from int) (text string, next int) {
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

// readTemplate reads a template literal: its strings, and the tokens of its expressions.
func readTemplate(source string, from, nested int) (parts []token, next int) {
	start := from + 1
	for i := start; i < len(source); i++ {
		switch {
		case source[i] == '\\':
			i++
		case source[i] == '`':
			return append(parts, token{tokenText, source[start:i], -1}), i + 1
		case strings.HasPrefix(source[i:], "${"):
			parts = append(parts, token{tokenText, source[start:i], -1})
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
				parts = append(parts, tokenizeNested(source[i+2:max(end-1, i+2)], nested+1)...)
			}
			start, i = end, end-1
		}
	}
	return parts, len(source)
}

// startsRegexp reports whether a slash after these tokens starts a regular expression:
// after a value, a slash is a division.
func startsRegexp(before []token) bool {
	if len(before) == 0 {
		return true
	}
	switch last := before[len(before)-1]; last.kind {
	case tokenText:
		return false
	case tokenName:
		switch last.text {
		case "return", "typeof", "case", "in", "of", "delete", "void", "await", "yield":
			return true
		}
		return false
	default:
		return last.text != ")" && last.text != "]" && last.text != "}" && (last.text[0] < '0' || last.text[0] > '9')
	}
}

// skipRegexp returns the offset after a regular expression.
func skipRegexp(source string, from int) int {
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

// scriptIndex is an index of a script's tokens.
type scriptIndex struct {
	tokens []token
	// free maps names and strings that occur outside member accesses to their first token
	// indices; texts contains all strings.
	free  map[string][]int
	texts map[string]bool
}

// maxPlaces limits the indices of one name.
const maxPlaces = 16

func newScriptIndex(source string) scriptIndex {
	s := scriptIndex{tokens: tokenize(source), free: map[string][]int{}, texts: map[string]bool{}}
	for i, w := range s.tokens {
		if w.kind == tokenText {
			s.texts[w.text] = true
		}
		member := i > 0 && s.tokens[i-1].matches(tokenOther, ".")
		if w.kind != tokenOther && !member && len(s.free[w.text]) < maxPlaces {
			s.free[w.text] = append(s.free[w.text], i)
		}
	}
	return s
}

// definesFunction reports whether the script may define a function: the name occurs outside
// a member access.
func (s scriptIndex) definesFunction(name string) bool { return len(s.free[name]) > 0 }

// mentionsText reports whether the script contains a string or a whole template literal
// with the text.
func (s scriptIndex) mentionsText(text string) bool { return s.texts[text] }

// returnedTexts returns the string literals that a function returns, and whether the
// function was found.
func (s scriptIndex) returnedTexts(name string) (texts []string, found bool) {
	for _, i := range s.free[name] {
		from, to := s.functionBody(i + 1)
		if to <= from {
			continue
		}
		for j := from; j+2 < to; j++ {
			if s.tokens[j].matches(tokenName, "return") && s.tokens[j+1].kind == tokenText && (s.tokens[j+2].text == ";" || s.tokens[j+2].text == "}") {
				texts = append(texts, s.tokens[j+1].text)
			}
		}
		return texts, true
	}
	return nil, false
}

// functionBody returns the token range of the body of the function whose name precedes
// token i; it is empty if no body follows.
func (s scriptIndex) functionBody(i int) (from, to int) {
	const most = 6 // enough for the longest form, NAME: async function* NAME(
	for n := 0; n < most && i < len(s.tokens) && s.tokens[i].text != "("; n++ {
		i++
	}
	i = s.closingIndex(i, "(", ")")
	for n := 0; n < 3 && i < len(s.tokens) && s.tokens[i].text != "{"; n++ { // an arrow function has => before its body
		i++
	}
	if i >= len(s.tokens) || s.tokens[i].text != "{" {
		return 0, 0
	}
	return i + 1, s.closingIndex(i, "{", "}")
}

// closingIndex returns the index after the token that closes the one at i.
func (s scriptIndex) closingIndex(i int, open, closed string) int {
	depth := 0
	for ; i < len(s.tokens); i++ {
		if s.tokens[i].kind != tokenOther {
			continue
		}
		switch s.tokens[i].text {
		case open:
			depth++
		case closed:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s.tokens)
}

// FunctionPlace returns the 1-based line and column of the definition of a script function,
// for diagnostics without their own position. Both are 0 if it is not found.
func FunctionPlace(source, name string) (line, column int) {
	list := tokenize(source)
	for i, w := range list {
		if w.text != name || w.kind == tokenOther || w.at < 0 || !isDefinition(list, i) {
			continue
		}
		before := source[:w.at]
		begin := strings.LastIndexByte(before, '\n') + 1
		return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[begin:]) + 1
	}
	return 0, 0
}

// isDefinition reports whether the name at i is the name of a function definition: a
// method, a declaration, or a member or variable with a value. A call has arguments, but no
// body.
func isDefinition(list []token, i int) bool {
	if i > 0 && list[i-1].text == "." || i+1 >= len(list) {
		return false
	}
	switch list[i+1].text {
	case ":", "=":
		return true
	case "(":
	default:
		return false
	}
	depth := 0
	for j := i + 1; j < len(list); j++ {
		if list[j].kind != tokenOther {
			continue
		}
		switch list[j].text {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 {
			return j+1 < len(list) && list[j+1].text == "{"
		}
	}
	return false
}
