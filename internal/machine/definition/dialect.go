package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// parser collects the diagnostics of one document.
type parser struct{ shape.Report }

func newParser(file string) parser {
	return parser{Report: shape.Report{File: file, Dialect: shape.Dialect{Name: "machines", Aliases: otherNames, Sample: sampleValue}}}
}

// otherNames returns the dialect's names for a synonym.
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

// sampleValue returns an example value of a required member.
func sampleValue(key string) string {
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

// readName reads a name.
func (p *parser) readName(at shape.Place) string { return p.Text(at, 1, 128) }

// readOptionalName reads a name that may be missing or null, as in SynthDev's files.
func (p *parser) readOptionalName(at shape.Place) string {
	if at.Node == nil || at.Node.Kind == doc.Null {
		return ""
	}
	return p.readName(at)
}

// rawJSON returns a value as JSON, or nil if it is missing.
func (p *parser) rawJSON(at shape.Place) json.RawMessage {
	if at.Node == nil {
		return nil
	}
	return json.RawMessage(p.Source(at))
}

// readList reads a list of objects. Diagnostics name an object by its index and its name.
func readList[T any](p *parser, at shape.Place, noun, key string, read func(shape.Place) T) []T {
	return shape.Entries(&p.Report, at, noun+"s", func(item shape.Place, i int) string {
		name := ""
		if n := item.Node.Get(key); n != nil && n.Kind == doc.String {
			name = n.Text
		}
		return shape.Entry(noun, i, name)
	}, read)
}

// readInteger reads an integer of at least low; it returns other if the value is missing or
// invalid.
func (p *parser) readInteger(at shape.Place, low, other int) int {
	if at.Node == nil {
		return other
	}
	const most = 1 << 30
	switch n := at.Node; {
	case n.Kind != doc.Number:
		p.WrongType(at, "a whole number")
	case n.Num != float64(int64(n.Num)) || n.Num < float64(low) || n.Num > most:
		p.Errorf(at, shape.CodeRange, fmt.Sprintf("write a whole number from %d to %d", low, most),
			"Field '%s' %s has the value %s; it must be a whole number from %d to %d.", at.Name, at.Where, n.Text, low, most)
	default:
		return int(n.Num)
	}
	return other
}

// readPositive reads a positive number; it returns 0 if the value is missing or invalid.
func (p *parser) readPositive(at shape.Place) float64 {
	if at.Node == nil {
		return 0
	}
	const most = 1e9
	switch n := at.Node; {
	case n.Kind != doc.Number:
		p.WrongType(at, "a number")
	case n.Num <= 0 || n.Num > most:
		p.Errorf(at, shape.CodeRange, "write a number above 0 and at most 1000000000", "Field '%s' %s has the value %s; it must be a number above 0 and at most 1000000000.", at.Name, at.Where, n.Text)
	default:
		return n.Num
	}
	return 0
}

// readDuration reads a duration such as "90s" or "2h"; it returns 0 if the value is missing
// or invalid.
func (p *parser) readDuration(at shape.Place) time.Duration {
	text := p.Text(at, 1, 32)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.Errorf(at, CodeDuration, "write a number and a unit: 30s, 10m, 2h", "Field '%s' %s has the value %s, which is not a positive duration.", at.Name, at.Where, shape.Quote(text))
		return 0
	}
	return d
}

// dataPrefix is the prefix of paths into common_data.
const dataPrefix = "common_data."

// readPath reads a path into common_data, such as "common_data.order.total".
func (p *parser) readPath(at shape.Place) string {
	text := p.Text(at, 1, 256)
	if text != "" && !isPath(text) {
		p.Errorf(at, CodePath, "write a path such as common_data.NAME or common_data.NAME.MEMBER",
			"Field '%s' %s has the value %s, which is not a path into common_data.", at.Name, at.Where, shape.Quote(text))
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
