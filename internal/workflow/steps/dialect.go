package steps

import (
	"fmt"
	"strings"

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
		Name: "steps", Aliases: otherNames, Sample: sampleValue, Empty: emptyFix, TooLong: tooLongFix,
	}}}
}

// sampleValue returns an example value of a required member.
func sampleValue(key string) string {
	switch key {
	case "version":
		return `"0.1.0"`
	case "id":
		return `"an-id"`
	case "steps", "body":
		return "[...]"
	case "argv", "paths":
		return `["..."]`
	case "loop", "args":
		return "{...}"
	case "maxIterations":
		return "10"
	default:
		return ""
	}
}

// emptyFix returns the fix for an empty text.
func emptyFix(name string) string {
	if name == "agentRole" {
		return "enter a value, or remove the field"
	}
	return ""
}

// tooLongFix returns the fix for a text that is too long.
func tooLongFix(name string) string {
	switch {
	case name == "prompt":
		return "split the step in two, or move text that is not needed immediately into another step"
	case strings.HasPrefix(name, "metaGuidance"):
		return "split the text into several entries"
	default:
		return ""
	}
}

// readCriteria reads the criteria of a step.
func (p *parser) readCriteria(at shape.Place) *criteria.Criterion {
	p.criteria.Report, p.criteria.CheckCondition = &p.Report, func(when shape.Place) { p.checkCondition(when) }
	return p.criteria.Read(at)
}

// readID reads a member that is the ID of a workflow or step.
func (p *parser) readID(at shape.Place) string {
	text := p.Text(at, 3, 64)
	if at.Node != nil && at.Node.Kind == doc.String && text != "" && !isID(text) {
		fix := "use only lower-case letters, digits and hyphens"
		if better := toID(text); len(better) >= 3 {
			fix = fmt.Sprintf("write '%s'", better)
		}
		p.Errorf(at, shape.CodePattern, fix, "Field '%s' %s has the value %s; an id consists of lower-case letters, digits and hyphens.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}

// readIdentifier reads a member that names a variable or function.
func (p *parser) readIdentifier(at shape.Place) string {
	if at.Node == nil {
		return ""
	}
	text := p.Text(at, 0, 0)
	if at.Node.Kind == doc.String && !shape.IsIdentifier(text) {
		p.Errorf(at, shape.CodePattern, "use letters, digits and underscores, and do not start with a digit", "Field '%s' %s has the value %s, which is not a valid name.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}
