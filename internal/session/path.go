package session

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
)

// A docPath leads to a place in a document. Its text form is the one that agents
// know from the seed:
//
//	dashboard.progress              a member of a member
//	hypotheses[0].status            a member of an item
//	hypotheses[-1]                  the last item
//	hypotheses[?status=='active']   the items with that text in that member
//	hypotheses[*].id                the members of all items
//	files['src/a.go'].lines         a member with a dot in its name
//
// A name without quotes has any characters but dots, brackets, quotes and
// control characters, and no blank at its ends.
type docPath []pathPart

// pathPart is one step of a path.
type pathPart struct {
	kind partKind
	// name is the member's, for partName.
	name string
	// index counts from the end if it is negative, for partIndex.
	index int
	// field and value are the filter's, for partFilter.
	field docPath
	value string
}

type partKind int

const (
	partName partKind = iota
	partIndex
	partEach
	partFilter
)

// Bounds of a path.
const (
	maxPathBytes = 1000
	maxPathParts = MaxDepth
)

// pathFix says what paths look like.
const pathFix = "write dashboard.progress, hypotheses[0].status, hypotheses[?status=='active'] or files['a.go'].lines"

// String gives the path in its text form; it parses to the same path. A name
// that begins with $ gets quotes, since $ makes a path JSONPath.
func (p docPath) String() string {
	var text strings.Builder
	for i, part := range p {
		switch part.kind {
		case partName:
			switch {
			case !plainName(part.name) || strings.HasPrefix(part.name, "$"):
				text.WriteString("[" + quoteName(part.name) + "]")
			case i > 0:
				text.WriteString("." + part.name)
			default:
				text.WriteString(part.name)
			}
		case partIndex:
			text.WriteString("[" + strconv.Itoa(part.index) + "]")
		case partEach:
			text.WriteString("[*]")
		case partFilter:
			text.WriteString("[?" + part.field.String() + "==" + quoteName(part.value) + "]")
		}
	}
	return text.String()
}

// quoteName puts a name between quotes.
func quoteName(name string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "'"
}

// plainName tells whether a name needs no quotes.
func plainName(name string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, endsName)
}

// endsName tells whether a character cannot be in a name without quotes.
func endsName(r rune) bool {
	return strings.ContainsRune(`.[]'"`, r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// parsePath reads a path. Errors have CodeInvalid and say where.
func parsePath(text string) (docPath, error) {
	p := pathParser{text: text}
	if len(text) > maxPathBytes {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the path has %d bytes, more than %d", len(text), maxPathBytes).WithFix(pathFix)
	}
	path, problem := p.parse()
	if problem == "" && len(path) > maxPathParts {
		problem = fmt.Sprintf("it has more than %d parts", maxPathParts)
	}
	if problem != "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the path %q does not parse: %s at character %d", clip(text), problem, p.at+1).
			WithFix("%s", pathFix)
	}
	return path, nil
}

// pathParser reads a path from left to right.
type pathParser struct {
	text string
	at   int
}

// parse reads the whole text. problem says what is wrong at p.at.
func (p *pathParser) parse() (path docPath, problem string) {
	for p.at < len(p.text) || len(path) == 0 {
		var part pathPart
		switch {
		case p.take("["):
			part, problem = p.bracket()
		case len(path) == 0 || p.take("."):
			part, problem = p.bareName()
		default:
			problem = "a dot or a bracket is missing"
		}
		if problem != "" {
			return nil, problem
		}
		path = append(path, part)
	}
	return path, ""
}

// take goes over a prefix of what is left, if it is there.
func (p *pathParser) take(prefix string) bool {
	if !strings.HasPrefix(p.text[p.at:], prefix) {
		return false
	}
	p.at += len(prefix)
	return true
}

// bareName reads a name without quotes.
func (p *pathParser) bareName() (pathPart, string) {
	rest := p.text[p.at:]
	if end := strings.IndexFunc(rest, endsName); end >= 0 {
		rest = rest[:end]
	}
	if !plainName(rest) {
		return pathPart{}, "a name is missing or begins or ends with a blank"
	}
	p.at += len(rest)
	return pathPart{kind: partName, name: rest}, ""
}

// bracket reads what stands between brackets, behind the opening one.
func (p *pathParser) bracket() (part pathPart, problem string) {
	switch {
	case p.take("*"):
		part.kind = partEach
	case p.take("?"):
		part, problem = p.filter()
	case strings.HasPrefix(p.text[p.at:], "'") || strings.HasPrefix(p.text[p.at:], `"`):
		part.name, problem = p.quoted()
	default:
		part, problem = p.number()
	}
	if problem == "" && !p.take("]") {
		problem = "a closing bracket is missing"
	}
	return part, problem
}

// number reads an index.
func (p *pathParser) number() (pathPart, string) {
	rest := p.text[p.at:]
	end := 0
	for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && rest[end] == '-') {
		end++
	}
	index, err := strconv.Atoi(rest[:end])
	if err != nil {
		return pathPart{}, "brackets want a number, a name in quotes, * or ?field=='value'"
	}
	p.at += end
	return pathPart{kind: partIndex, index: index}, ""
}

// quoted reads a text between quotes. A backslash stands before a quote or
// another backslash.
func (p *pathParser) quoted() (text, problem string) {
	quote := p.text[p.at]
	p.at++
	var read strings.Builder
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == quote:
			p.at++
			return read.String(), ""
		case c == '\\' && p.at+1 < len(p.text) && strings.IndexByte(`\'"`, p.text[p.at+1]) >= 0:
			p.at++
			read.WriteByte(p.text[p.at])
		default:
			read.WriteByte(c)
		}
	}
	return "", "a closing quote is missing"
}

// filter reads field=='value' behind the question mark. The value may stand
// without quotes.
func (p *pathParser) filter() (part pathPart, problem string) {
	part.kind = partFilter
	field, _, ok := strings.Cut(p.text[p.at:], "==")
	if !ok {
		return part, "a filter is ?field=='value'"
	}
	inner := pathParser{text: strings.TrimSpace(field)}
	if part.field, problem = inner.parse(); problem != "" || !part.field.namesOnly() {
		return part, "a filter is ?field=='value', where the field is a name or names with dots"
	}
	p.at += len(field) + len("==")
	for p.take(" ") {
		continue
	}
	if strings.HasPrefix(p.text[p.at:], "'") || strings.HasPrefix(p.text[p.at:], `"`) {
		part.value, problem = p.quoted()
		return part, problem
	}
	value, _, _ := strings.Cut(p.text[p.at:], "]")
	if part.value = strings.TrimSpace(value); part.value == "" {
		return part, "a filter wants a value"
	}
	p.at += len(value)
	return part, ""
}

// namesOnly tells whether a path has nothing but names.
func (p docPath) namesOnly() bool {
	for _, part := range p {
		if part.kind != partName {
			return false
		}
	}
	return true
}
