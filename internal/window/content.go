package window

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// nature is what the content of a value looks like.
type nature int

const (
	plain nature = iota
	moment
	failure
	decision
	demand
	locator
	longLog
	longText
)

// How much of a value the heuristics read, and from where on a text is long.
const (
	maxRead   = 8 << 10
	shortNote = 600
	longValue = 1500
)

// contentRules are the patterns for values; made once per Classifier.
type contentRules struct {
	moment, decision, demand, path, id, date *regexp.Regexp
}

func compileContentRules() contentRules {
	return contentRules{
		date:     dated(),
		moment:   regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?$`),
		decision: regexp.MustCompile(`(?i)\b(we|i|they|team|it was|was) (have |had )?(decided|agreed|chose|chosen)\b|^(decision|decided|agreed): `),
		demand: regexp.MustCompile(`(?i)\b(user|customer|client|owner|stakeholder|product owner)s? ` +
			`(said|say|requires?|required|insists?|wants?|wanted|asks?|asked|demands?|needs|forbids?|forbade)\b|^(you |it |they |we )?must (not|never)\b|^you must\b`),
		path: regexp.MustCompile(`^((\.{0,2}/|[A-Za-z]:\\)[\w.@-]+([/\\][\w.@-]+)*/?|[\w.@-]+([/\\][\w.@-]+){2,}/?|[\w.@-]+[/\\][\w@-]+\.[a-z]{1,5})(:\d+)*$`),
		id:   regexp.MustCompile(`^([0-9a-f]{7,64}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[a-z]{1,4}_[A-Za-z0-9]{12,40}|[A-Z]{2,10}-\d+)$`),
	}
}

// look tells the nature of a value. Only its beginning and end are read.
func (r *contentRules) look(value []byte) nature {
	text := textOf(value)
	isText := len(value) > 0 && value[0] == '"'
	switch {
	case isText && len(text) < 40 && r.moment.MatchString(text):
		return moment
	case isText && looksCode(text):
		return plain
	case failed(text):
		return failure
	}
	if len(text) <= shortNote {
		if n := r.lookShort(text, isText); n != plain {
			return n
		}
	}
	switch {
	case len(value) > longValue && logLines(text) > 0.5:
		return longLog
	case len(value) > longValue:
		return longText
	}
	return plain
}

// lookShort looks for what only a short value can be as a whole.
func (r *contentRules) lookShort(text string, isText bool) nature {
	lower := strings.ToLower(text)
	switch {
	case hasOneOf(lower, "decid", "decision", "agreed", "chose") && r.decision.MatchString(text):
		return decision
	case hasOneOf(lower, "user", "customer", "client", "owner", "stakeholder", "must") && r.demand.MatchString(text):
		return demand
	case isText && len(text) < 300 && (strings.ContainsAny(text, `/\`) && r.path.MatchString(text) || r.isID(text)):
		return locator
	}
	return plain
}

// hasOneOf is a cheap test before an expression: one of its words is there.
func hasOneOf(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// failed tells whether the text tells of an error. In a long text an error is a
// matter of a line, unless it is a stack trace that begins it.
func failed(text string) bool {
	switch {
	case len(text) <= 4*shortNote:
		return failsIn(text)
	case failsIn(text[:shortNote]):
		return true
	default:
		return failsIn(text) && logLines(text) > 0.5
	}
}

func (r *contentRules) isID(text string) bool {
	return strings.ContainsAny(text, "0123456789") && r.id.MatchString(text)
}

// textOf is what there is to read in a value: a text unquoted, the texts of
// anything else one to a line; both cut to maxRead, half from each end.
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

// looksCode tells source text and patches from prose, so that an error that a
// program handles is not one that happened.
func looksCode(text string) bool {
	marks := 0
	for _, mark := range [...]string{"\nfunc ", "func ", "package ", "import ", "\nreturn", "() {", "=> ", "\ndiff --git", "@@ -", ");\n", "const ", "#include", "def ", "class "} {
		if strings.HasPrefix(text, mark) || strings.Contains(text, "\n"+mark) || (strings.HasPrefix(mark, "()") && strings.Contains(text, mark)) {
			marks++
		}
	}
	return marks >= 2
}

// logLines is the share of lines that look like those of a log.
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
