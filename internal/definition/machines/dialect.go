package machines

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// parser collects the findings of one document.
type parser struct{ shape.Report }

func newParser(file string) parser {
	return parser{Report: shape.Report{File: file, Dialect: shape.Dialect{Name: "machines", Aliases: otherNames, Sample: sample}}}
}

// otherNames gives the dialect's names of what people call otherwise.
func otherNames(name string) []string {
	switch name {
	case "name", "id", "workflowName":
		return []string{"workflow_name", "name"}
	case "agent", "role_name":
		return []string{"agent_role"}
	case "next", "nextState", "target":
		return []string{"next_state"}
	case "onError", "errorHandler":
		return []string{"error_handler"}
	case "retries", "maxRetries":
		return []string{"max_retries"}
	case "subMachine", "sub_workflow", "machine":
		return []string{"sub_machine"}
	case "maxTokens":
		return []string{"max_tokens", "maxTokens"}
	default:
		return nil
	}
}

// sample is what a required member may look like.
func sample(key string) string {
	switch key {
	case "input", "output":
		return `{"name": "...", "type": "string", "description": "..."}`
	case "contexts", "agents", "states", "starting_messages":
		return "[...]"
	case "type":
		return `"string"`
	case "role":
		return `"assistant"`
	default:
		return ""
	}
}

// name reads a member that names something.
func (p *parser) name(at shape.Place) string { return p.Text(at, 1, 128) }

// optional reads a name that may be missing or null, as the seed's own files
// write it.
func (p *parser) optional(at shape.Place) string {
	if at.Node == nil || at.Node.Kind == doc.Null {
		return ""
	}
	return p.name(at)
}

// raw is a value as JSON, or nil where it is missing.
func (p *parser) raw(at shape.Place) json.RawMessage {
	if at.Node == nil {
		return nil
	}
	return json.RawMessage(p.Source(at))
}

// list reads the objects of a list, each told by its place and its name.
func list[T any](p *parser, at shape.Place, noun, key string, read func(shape.Place) T) []T {
	return shape.Entries(&p.Report, at, noun+"s", func(item shape.Place, i int) string {
		name := ""
		if n := item.Node.Get(key); n != nil && n.Kind == doc.String {
			name = n.Text
		}
		return shape.Entry(noun, i, name)
	}, read)
}

// filled reports a list without elements.
func (p *parser) filled(at shape.Place, fix string) {
	if at.Node != nil && at.Node.Kind == doc.Array && len(at.Node.Items) == 0 {
		p.Errorf(at, CodeEmptyList, fix, "Field '%s' %s is empty.", at.Name, at.Where)
	}
}

// whole reads a whole number of at least low; other where it is missing.
func (p *parser) whole(at shape.Place, low, other int) int {
	if at.Node == nil {
		return other
	}
	const most = 1 << 30
	switch n := at.Node; {
	case n.Kind != doc.Number:
		p.WrongType(at, "a whole number")
	case n.Num != float64(int64(n.Num)) || n.Num < float64(low) || n.Num > most:
		p.Errorf(at, CodeRange, fmt.Sprintf("write a whole number from %d", low),
			"Field '%s' %s has the value %s; it is a whole number from %d to %d.", at.Name, at.Where, n.Text, low, most)
	default:
		return int(n.Num)
	}
	return other
}

// positive reads a number above zero; 0 where it is missing.
func (p *parser) positive(at shape.Place) float64 {
	if at.Node == nil {
		return 0
	}
	const most = 1e9
	switch n := at.Node; {
	case n.Kind != doc.Number:
		p.WrongType(at, "a number")
	case n.Num <= 0 || n.Num > most:
		p.Errorf(at, CodeRange, "write a number above 0", "Field '%s' %s has the value %s; it is a number above 0, and at most 1000000000.", at.Name, at.Where, n.Text)
	default:
		return n.Num
	}
	return 0
}

// duration reads a time such as "90s" or "2h"; 0 where it is missing.
func (p *parser) duration(at shape.Place) time.Duration {
	text := p.Text(at, 1, 32)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.Errorf(at, CodeDuration, "write a number and a unit: 30s, 10m, 2h", "Field '%s' %s has the value %s, which is no time.", at.Name, at.Where, shape.Quote(text))
		return 0
	}
	return d
}

// dataPrefix begins the paths into common_data.
const dataPrefix = "common_data."

// path reads a path into common_data, such as "common_data.order.total".
func (p *parser) path(at shape.Place) string {
	text := p.Text(at, 1, 256)
	if text != "" && !isPath(text) {
		p.Errorf(at, CodePath, "write it as common_data.NAME, or common_data.NAME.MEMBER",
			"Field '%s' %s has the value %s, which is no path into common_data.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}

func isPath(text string) bool {
	rest, ok := strings.CutPrefix(text, dataPrefix)
	if !ok {
		return false
	}
	for _, part := range strings.Split(rest, ".") {
		if part == "" || strings.ContainsAny(part, " \t\n[](){}'\"=!&|") {
			return false
		}
	}
	return true
}
