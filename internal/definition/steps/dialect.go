package steps

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// parser collects the findings of one document.
type parser struct {
	shape.Report
	// judged are the criteria that were read.
	judged []judged
}

// newParser reads a document of a file.
func newParser(file string) parser {
	return parser{Report: shape.Report{File: file, Dialect: shape.Dialect{
		Name: "steps", Aliases: otherNames, Sample: sample, Empty: emptyFix, TooLong: tooLongFix,
	}}}
}

// sample is what a required member may look like.
func sample(key string) string {
	switch key {
	case "version":
		return `"0.1.0"`
	case "id":
		return `"an-id"`
	case "steps", "body":
		return "[...]"
	case "loop", "args":
		return "{...}"
	case "maxIterations":
		return "10"
	default:
		return ""
	}
}

// emptyFix says how to mend an empty text.
func emptyFix(name string) string {
	if name == "agentRole" {
		return "write it, or leave the field out"
	}
	return ""
}

// tooLongFix says how to mend a text that is too long.
func tooLongFix(name string) string {
	switch {
	case name == "prompt":
		return "split the step in two, or move what is not needed at once into another step"
	case strings.HasPrefix(name, "metaGuidance"):
		return "split it into several entries"
	default:
		return ""
	}
}

// id reads a member that is the id of a workflow or step.
func (p *parser) id(at shape.Place) string {
	text := p.Text(at, 3, 64)
	if at.Node != nil && at.Node.Kind == doc.String && text != "" && !isID(text) {
		fix := "use small letters, digits and hyphens only"
		if better := toID(text); len(better) >= 3 {
			fix = fmt.Sprintf("write it as '%s'", better)
		}
		p.Errorf(at, CodePattern, fix, "Field '%s' %s has the value %s; an id is made of small letters, digits and hyphens.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}

// identifier reads a member that names a variable or function.
func (p *parser) identifier(at shape.Place) string {
	if at.Node == nil {
		return ""
	}
	text := p.Text(at, 0, 0)
	if at.Node.Kind == doc.String && !isIdentifier(text) {
		p.Errorf(at, CodePattern, "use letters, digits and underscores, and do not begin with a digit", "Field '%s' %s has the value %s, which is not a name.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}
