package phases

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/rules"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// parser collects the diagnostics of one document.
type parser struct {
	shape.Report
	criteria rules.Reader
}

// newParser returns a parser for a document of a file.
func newParser(file string) parser {
	return parser{Report: shape.Report{File: file, Dialect: shape.Dialect{
		Name: "phases", Aliases: otherNames, Sample: sampleValue,
	}}}
}

// otherNames returns the names of the dialect that a wrong name, such as a name of the
// steps dialect, may mean.
func otherNames(name string) []string {
	var names []string
	for _, alias := range aliasTable() {
		if slices.Contains(strings.Fields(alias.others), strings.ToLower(name)) {
			names = append(names, alias.name)
		}
	}
	return names
}

// alias is a name of the dialect and other names for it, in lower case.
type alias struct{ name, others string }

func aliasTable() []alias {
	return []alias{
		{"title", "name"},
		{"name", "title"},
		{"label", "title"},
		{"description", "prompt details text"},
		{"message", "prompt details text question"},
		{"transitionTo", "goto target next nextphase transition"},
		{"to", "goto target next nextphase transition"},
		{"validationCriteria", "validation criteria"},
		{"isDefault", "default fallback"},
		{"defaultValue", "default"},
		{"condition", "runcondition when if"},
		{"setVariable", "set setvariables variables"},
		{"skipPhases", "skip skips skipphase"},
		{"variable", "var itemvar item as"},
		{"operator", "op"},
		{"over", "items list collection"},
		{"breakCondition", "breakif until break"},
		{"maxIterations", "max maxiteration limit"},
		{"initialPhase", "start first initial startphase"},
		{"estimatedTime", "time duration estimate"},
		{"options", "choices answers"},
		{"approval", "approver approvedby"},
		{"==", "= === eq equals is"},
		{"!=", "<> !== ne neq not_equals notequals"},
		{">", "gt"},
		{"<", "lt"},
		{">=", "gte ge =>"},
		{"<=", "lte le =<"},
		{"notExists", "not_exists missing unset"},
		{"forEach", "for each foreach"},
	}
}

// sampleValue returns an example value of a required member.
func sampleValue(key string) string {
	switch key {
	case "id", "transitionTo", "to", "workflowId":
		return `"an-id"`
	case "version", "workflowVersion":
		return `"1.0.0"`
	case "phases", "options", "branches", "conditions", "recognition", "outcome", "flow":
		return "[...]"
	case "argv", "paths":
		return `["..."]`
	case "skills", "condition":
		return "{...}"
	case "currentPhase", "phaseIndex", "loopIndex", "transitionedTo":
		return "1"
	case "currentIteration":
		return "0"
	case "startedAt", "updatedAt", "respondedAt", "decidedAt", "timestamp":
		return `"2026-01-22T10:00:00Z"`
	default:
		return ""
	}
}

// readList parses a list of objects; noun names one of them.
func readList[T any](p *parser, at shape.Place, noun string, read func(shape.Place) T) []T {
	return shape.Entries(&p.Report, at, pluralOf(noun), func(item shape.Place, i int) string { return entryLocation(item, noun, i) }, read)
}

// entryLocation returns the location of an entry of a list: "in checkpoint 1 ('ask') of
// phase 2 ('plan')".
func entryLocation(item shape.Place, noun string, i int) string {
	where := shape.Entry(noun, i, idOf(item.Node))
	if outer, ok := strings.CutPrefix(item.Where, "in "); ok {
		where += " of " + outer
	}
	return where
}

// openNested checks an object member with known members and sets the location of
// diagnostics inside it. It returns false if there is nothing to read.
func (p *parser) openNested(at shape.Place, known ...string) (shape.Place, bool) {
	if !p.Open(at) {
		return at, false
	}
	at = at.In(nestedLocation(at))
	p.Closed(at, "", known)
	return at, true
}

// nestedLocation returns the location of an object member.
func nestedLocation(at shape.Place) string {
	if outer, ok := strings.CutPrefix(at.Where, "in "); ok {
		return "in " + at.Name + " of " + outer
	}
	return "in " + at.Name
}

// pluralOf returns the plural of a noun.
func pluralOf(noun string) string {
	if strings.HasSuffix(noun, "ch") {
		return noun + "es"
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		return stem + "ries"
	}
	return noun + "s"
}

// idOf returns the id of an object, or else its name.
func idOf(n *doc.Node) string {
	for _, key := range []string{"id", "name"} {
		if id := n.Get(key); id != nil && id.Kind == doc.String {
			return id.Text
		}
	}
	return ""
}

// readCriteria reads the criteria of a step.
func (p *parser) readCriteria(at shape.Place) *criteria.Criterion {
	p.criteria.Report, p.criteria.CheckCondition = &p.Report, func(when shape.Place) { p.checkCondition(when) }
	return p.criteria.Read(at)
}

// readID reads a text that must not be empty.
func (p *parser) readID(at shape.Place) string { return p.Text(at, 1, 0) }

// readText reads a text.
func (p *parser) readText(at shape.Place) string { return p.Text(at, 0, 0) }

// readFlag reads a boolean; missing is the default.
func (p *parser) readFlag(at shape.Place, missing bool) bool {
	if at.Node == nil {
		return missing
	}
	return p.Flag(at)
}

// checkInteger checks an integer of at least low.
func (p *parser) checkInteger(at shape.Place, low float64) {
	switch {
	case at.Node == nil:
	case at.Node.Kind != doc.Number:
		p.WrongType(at, "a number")
	case at.Node.Num < low || at.Node.Num != math.Trunc(at.Node.Num):
		p.Errorf(at, shape.CodeRange, fmt.Sprintf("write a whole number, %.0f or more", low),
			"Field '%s' %s must be a whole number of at least %.0f, but it is %s.", at.Name, at.Where, low, at.Node.Text)
	}
}

// checkIntegers checks a list of integers from 1.
func (p *parser) checkIntegers(at shape.Place) {
	if !p.Array(at, "a list of numbers") {
		return
	}
	for i := range at.Node.Items {
		p.checkInteger(at.Index(i), 1)
	}
}

// checkTime checks an RFC 3339 time.
func (p *parser) checkTime(at shape.Place) {
	text := p.readText(at)
	if at.Node == nil || at.Node.Kind != doc.String || isTime(text) {
		return
	}
	fix := "write date, time and offset: 2026-01-22T10:00:00Z"
	for _, better := range []string{text + "Z", text + "T00:00:00Z", strings.Replace(text, " ", "T", 1), strings.Replace(text, " ", "T", 1) + "Z"} {
		if isTime(better) {
			fix = "write '" + better + "'"
			break
		}
	}
	p.Errorf(at, CodeTime, fix, "Field '%s' %s has the value %s, which is not an RFC 3339 time.", at.Name, at.Where, shape.Quote(text))
}

// isTime reports whether the text is an RFC 3339 time.
func isTime(text string) bool {
	// time.Parse is less strict: it accepts a comma as the decimal point, and hours of one
	// digit.
	if len(text) < len("2006-01-02T15:04:05Z") || strings.Contains(text, ",") || text[13] != ':' {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// readVersion reads a version that consists of three numbers.
func (p *parser) readVersion(at shape.Place) string {
	text := p.readText(at)
	if at.Node != nil && at.Node.Kind == doc.String && !isVersion(text) {
		fix := "write three numbers: X.Y.Z, such as 1.0.0"
		if better := shape.SimilarVersion(text, isVersion); better != "" {
			fix = "write '" + better + "'"
		}
		if core, _, cut := strings.Cut(text, "-"); cut && isVersion(core) {
			fix = "write '" + core + "': this dialect does not support pre-releases"
		}
		p.Errorf(at, CodeVersion, fix, "Field '%s' %s has the value %s, which is not a version of the form X.Y.Z.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}

// isVersion reports whether the text is three numbers separated by dots.
func isVersion(text string) bool {
	parts := strings.Split(text, ".")
	return len(parts) == 3 && !slices.ContainsFunc(parts, func(part string) bool { return !isDigits(part) })
}

// isDigits reports whether the text consists of digits.
func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
