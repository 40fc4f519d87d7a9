package compress

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// contentKind is the kind of a value, detected from its content.
type contentKind int

const (
	plainContent contentKind = iota
	timeContent
	errorContent
	decisionContent
	demandContent
	locatorContent
	logContent
	longTextContent
)

// maxRead is the maximum number of bytes of a value that the heuristics read. shortNote is
// the maximum length of a short text, longValue the minimum length of a long one, in bytes.
const (
	maxRead   = 8 << 10
	shortNote = 600
	longValue = 1500
)

// contentRules are the compiled patterns for values.
type contentRules struct {
	moment, decision, demand, path, id, date *regexp.Regexp
}

func compileContentRules() contentRules {
	return contentRules{
		date:     datePattern(),
		moment:   regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?$`),
		decision: regexp.MustCompile(`(?i)\b(we|i|they|team|it was|was) (have |had )?(decided|agreed|chose|chosen)\b|^(decision|decided|agreed): `),
		demand: regexp.MustCompile(`(?i)\b(user|customer|client|owner|stakeholder|product owner)s? ` +
			`(said|say|requires?|required|insists?|wants?|wanted|asks?|asked|demands?|needs|forbids?|forbade)\b|^(you |it |they |we )?must (not|never)\b|^you must\b`),
		path: regexp.MustCompile(`^((\.{0,2}/|[A-Za-z]:\\)[\w.@-]+([/\\][\w.@-]+)*/?|[\w.@-]+([/\\][\w.@-]+){2,}/?|[\w.@-]+[/\\][\w@-]+\.[a-z]{1,5})(:\d+)*$`),
		id:   regexp.MustCompile(`^([0-9a-f]{7,64}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[a-z]{1,4}_[A-Za-z0-9]{12,40}|[A-Z]{2,10}-\d+)$`),
	}
}

// detectKind returns the kind of the value. It reads only the beginning and the end of a long
// value.
func (r *contentRules) detectKind(value []byte) contentKind {
	text := textOf(value)
	isText := len(value) > 0 && value[0] == '"'
	switch {
	case isText && len(text) < 40 && r.moment.MatchString(text):
		return timeContent
	case isText && looksLikeCode(text):
		return plainContent
	case reportsError(text):
		return errorContent
	}
	if len(text) <= shortNote {
		if n := r.detectShortKind(text, isText); n != plainContent {
			return n
		}
	}
	switch {
	case len(value) > longValue && logLines(text) > 0.5:
		return logContent
	case len(value) > longValue:
		return longTextContent
	}
	return plainContent
}

// detectShortKind detects the kinds that only a short value can have.
func (r *contentRules) detectShortKind(text string, isText bool) contentKind {
	lower := strings.ToLower(text)
	switch {
	case containsAny(lower, "decid", "decision", "agreed", "chose") && r.decision.MatchString(text):
		return decisionContent
	case containsAny(lower, "user", "customer", "client", "owner", "stakeholder", "must") && r.demand.MatchString(text):
		return demandContent
	case isText && len(text) < 300 && (strings.ContainsAny(text, `/\`) && r.path.MatchString(text) || r.isID(text)):
		return locatorContent
	}
	return plainContent
}

// containsAny reports whether the text contains one of the words. It is a cheap test before a
// regular expression.
func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// reportsError reports whether the text reports an error. A long text must be a log or
// report the error near its beginning, since prose also mentions errors.
func reportsError(text string) bool {
	switch {
	case len(text) <= 4*shortNote:
		return hasErrorSignal(text)
	case hasErrorSignal(text[:shortNote]):
		return true
	default:
		return hasErrorSignal(text) && logLines(text) > 0.5
	}
}

func (r *contentRules) isID(text string) bool {
	return strings.ContainsAny(text, "0123456789") && r.id.MatchString(text)
}

// textOf returns the readable text of a value: a string unquoted, any other value as JSON.
// A long value is cut to maxRead bytes, half from each end.
func textOf(value []byte) string {
	cut := value
	if len(value) > maxRead {
		cut = append(append([]byte{}, value[:maxRead/2]...), value[len(value)-maxRead/2:]...)
	}
	if len(value) == 0 || value[0] != '"' {
		return string(cut)
	}
	if len(value) <= maxRead {
		var text string
		if err := json.Unmarshal(value, &text); err == nil {
			return text
		}
	}
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(strings.Trim(string(cut), `"`))
}

// looksLikeCode reports whether the text is source code or a patch. An error that code handles
// is not an error that happened.
func looksLikeCode(text string) bool {
	marks := 0
	for _, mark := range [...]string{"\nfunc ", "func ", "package ", "import ", "\nreturn", "() {", "=> ", "\ndiff --git", "@@ -", ");\n", "const ", "#include", "def ", "class "} {
		if strings.HasPrefix(text, mark) || strings.Contains(text, "\n"+mark) || (strings.HasPrefix(mark, "()") && strings.Contains(text, mark)) {
			marks++
		}
	}
	return marks >= 2
}

// logLines returns the share of lines that look like log lines. It returns 0 for fewer than
// 5 lines.
func logLines(text string) float64 {
	lines, logs := 0, 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" || isTraceLine(line) {
			continue // a trace belongs to the line above it
		}
		lines++
		if isLogLine(line) {
			logs++
		}
	}
	if lines < 5 {
		return 0
	}
	return float64(logs) / float64(lines)
}
