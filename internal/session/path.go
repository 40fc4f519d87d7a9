package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
)

// A docPath selects values of a document. Its text form is:
//
//	dashboard.progress              a member of a member
//	hypotheses[0].status            a member of an item
//	hypotheses[-1]                  the last item
//	hypotheses[?status=='active']   the items whose member status has that value
//	hypotheses[*].id                the member id of all items
//	files['src/a.go'].lines         a member with a dot in its name
//
// A name without quotes may contain any characters except dots, brackets, quotes and
// control characters, and does not start or end with a blank.
type docPath []pathPart

// pathPart is one step of a path.
type pathPart struct {
	kind partKind
	// name is the name of a member, for partName.
	name string
	// index counts from the end if it is negative, for partIndex.
	index int
	// field and value are the filter, for partFilter.
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

// Limits of a path.
const (
	maxPathBytes = 1000
	maxPathParts = MaxDepth
)

// pathFix shows the forms of a path.
const pathFix = "write a path such as dashboard.progress, hypotheses[0].status, hypotheses[?status=='active'] or files['a.go'].lines"

// updatePathFix shows the forms of the path of an update, which selects a single value.
const updatePathFix = "write a path such as dashboard.progress, hypotheses[0].status or files['a.go'].lines"

// String returns the text form of the path, which parses to the same path. A name that
// starts with $ is quoted, because a path that starts with $ is JSONPath.
func (p docPath) String() string {
	var text strings.Builder
	for i, part := range p {
		switch part.kind {
		case partName:
			switch {
			case !isPlainName(part.name) || strings.HasPrefix(part.name, "$"):
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

// quoteName returns a name in quotes.
func quoteName(name string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "'"
}

// isPlainName reports whether a name needs no quotes.
func isPlainName(name string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, endsName)
}

// endsName reports whether a character ends a name without quotes.
func endsName(r rune) bool {
	return strings.ContainsRune(`.[]'"`, r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// parsePath parses a path. Errors have CodeInvalid and name the position.
func parsePath(text string) (docPath, error) {
	p := pathParser{text: text}
	if len(text) > maxPathBytes {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the path has %d bytes, more than the maximum of %d", len(text), maxPathBytes).WithFix("use a shorter path")
	}
	path, problem := p.parsePath()
	if problem == "" && len(path) > maxPathParts {
		problem = fmt.Sprintf("it has more than %d parts", maxPathParts)
	}
	if problem != "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the path %q does not parse at character %d: %s", clipText(text), utf8.RuneCountInString(text[:p.at])+1, problem).
			WithFix("%s", pathFix)
	}
	return path, nil
}

// pathParser parses a path from left to right.
type pathParser struct {
	text string
	at   int
}

// parsePath parses the whole text. problem describes the error at p.at, or is empty.
func (p *pathParser) parsePath() (path docPath, problem string) {
	for p.at < len(p.text) || len(path) == 0 {
		var part pathPart
		switch {
		case p.skipPrefix("["):
			part, problem = p.parseBracket()
		case len(path) == 0 || p.skipPrefix("."):
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

// skipPrefix skips a prefix of the remaining text, if it is there.
func (p *pathParser) skipPrefix(prefix string) bool {
	if !strings.HasPrefix(p.text[p.at:], prefix) {
		return false
	}
	p.at += len(prefix)
	return true
}

// bareName parses a name without quotes.
func (p *pathParser) bareName() (pathPart, string) {
	rest := p.text[p.at:]
	if end := strings.IndexFunc(rest, endsName); end >= 0 {
		rest = rest[:end]
	}
	if !isPlainName(rest) {
		return pathPart{}, "a name is missing, or starts or ends with a space"
	}
	p.at += len(rest)
	return pathPart{kind: partName, name: rest}, ""
}

// parseBracket parses the text after an opening bracket.
func (p *pathParser) parseBracket() (part pathPart, problem string) {
	switch {
	case p.skipPrefix("*"):
		part.kind = partEach
	case p.skipPrefix("?"):
		part, problem = p.parseFilter()
	case strings.HasPrefix(p.text[p.at:], "'") || strings.HasPrefix(p.text[p.at:], `"`):
		part.name, problem = p.parseQuoted()
	default:
		part, problem = p.parseIndex()
	}
	if problem == "" && !p.skipPrefix("]") {
		problem = "a closing bracket is missing"
	}
	return part, problem
}

// parseIndex parses an index.
func (p *pathParser) parseIndex() (pathPart, string) {
	rest := p.text[p.at:]
	end := 0
	for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && rest[end] == '-') {
		end++
	}
	index, err := strconv.Atoi(rest[:end])
	if err != nil {
		return pathPart{}, "brackets must contain a number, a name in quotes, * or ?field=='value'"
	}
	p.at += end
	return pathPart{kind: partIndex, index: index}, ""
}

// parseQuoted parses a string in quotes. A backslash escapes a quote or another backslash.
func (p *pathParser) parseQuoted() (text, problem string) {
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

// parseFilter parses field=='value' after the question mark. The value may have no quotes.
func (p *pathParser) parseFilter() (part pathPart, problem string) {
	part.kind = partFilter
	field, _, ok := strings.Cut(p.text[p.at:], "==")
	if !ok {
		return part, "a filter must have the form ?field=='value'"
	}
	inner := pathParser{text: strings.TrimSpace(field)}
	if part.field, problem = inner.parsePath(); problem != "" || !part.field.namesOnly() {
		return part, "a filter must have the form ?field=='value', where the field is a name or several names joined by dots"
	}
	p.at += len(field) + len("==")
	for p.skipPrefix(" ") {
		continue
	}
	if strings.HasPrefix(p.text[p.at:], "'") || strings.HasPrefix(p.text[p.at:], `"`) {
		part.value, problem = p.parseQuoted()
		return part, problem
	}
	value, _, _ := strings.Cut(p.text[p.at:], "]")
	if part.value = strings.TrimSpace(value); part.value == "" {
		return part, "a filter needs a value"
	}
	p.at += len(value)
	return part, ""
}

// namesOnly reports whether a path consists only of names.
func (p docPath) namesOnly() bool {
	return !slices.ContainsFunc(p, func(part pathPart) bool { return part.kind != partName })
}
