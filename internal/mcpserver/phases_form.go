package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// worded is an answer in the form of the original (facts/phases.md 1.3): its text
// is indented JSON or a file as it is, and its structure wraps what is no object.
type worded struct {
	// text is the answer of the original; "" means structure, indented, unless
	// it is verbatim: a file may be empty.
	text     string
	verbatim bool
	// structure is the structured content, an object.
	structure any
	// note is a second text, for what the form of the original cannot say.
	note string
}

// result writes the answer.
func (w worded) result() (*mcp.CallToolResult, error) {
	structure, err := jsontext.Marshal(w.structure)
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	if w.text == "" && !w.verbatim {
		if w.text, err = indented(w.structure); err != nil {
			return nil, fmt.Errorf("write the answer: %w", err)
		}
	}
	res := &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: w.text}},
		StructuredContent: json.RawMessage(structure),
	}
	if w.note != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: w.note})
	}
	return res, nil
}

// itemList is a list as the original writes it, and as an object.
func itemList[T any](items []T, note string) (any, error) {
	if items == nil {
		items = []T{}
	}
	text, err := indented(items)
	return worded{text: text, structure: map[string]any{"items": items}, note: note}, err
}

// rawText is a file as it is.
func rawText(content, format string) worded {
	return worded{text: content, verbatim: true, structure: map[string]any{"content": content, "format": format}}
}

// indented is JSON with two spaces, as JavaScript writes it.
func indented(v any) (string, error) {
	text, err := jsontext.Indent(v)
	return string(text), err
}

// reading is the order in which people read the members of a document; others
// follow in the order of the alphabet.
func reading() []string {
	return strings.Fields("$schema id version title name label type path section problem capability description author tags precedence priority " +
		"message action target variable operator value over to condition conditions transitionTo isDefault recognition skills primary supporting " +
		"outcome architecture execution_pattern tools when params returns flow context_to_preserve usage notes matching state interpretation " +
		"rules sections variables defaultValue required blocking approval initialPhase phases estimatedTime guide entryActions steps loops " +
		"checkpoints options effect setVariable skipPhases decisions branches transitions exitActions actions breakCondition maxIterations errors")
}

// document decodes canonical JSON of an object for an answer.
func document(canonical string) (map[string]any, error) {
	dec := json.NewDecoder(strings.NewReader(canonical))
	dec.UseNumber()
	var members map[string]any
	if err := dec.Decode(&members); err != nil {
		return nil, fmt.Errorf("read a document: %w", err)
	}
	return members, nil
}

// readable writes a document in the order in which people read it.
func readable(members map[string]any) (json.RawMessage, error) {
	ranks := map[string]int{}
	for i, name := range reading() {
		ranks[name] = i - len(reading()) // below 0, the rank of all others
	}
	var b bytes.Buffer
	err := writeReadable(&b, members, ranks)
	return b.Bytes(), err
}

func writeReadable(b *bytes.Buffer, v any, ranks map[string]int) error {
	switch v := v.(type) {
	case map[string]any:
		names := slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(v))), func(a, b string) int { return ranks[a] - ranks[b] })
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeReadable(b, name, ranks); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeReadable(b, v[name], ranks); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeReadable(b, item, ranks); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		text, err := jsontext.Marshal(v)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	return nil
}

// wholeDocument is a document with more members behind its own.
func wholeDocument(canonical string, more map[string]any) (any, error) {
	members, err := document(canonical)
	if err != nil {
		return nil, err
	}
	maps.Copy(members, more)
	text, err := readable(members)
	return worded{structure: text}, err
}

// withDefaults fills in what a phase workflow leaves out, as the original answers
// it.
func withDefaults(workflow map[string]any) {
	each(workflow["variables"], func(v map[string]any) { setDefault(v, "required", false) })
	each(workflow["phases"], phaseDefaults)
}

func phaseDefaults(phase map[string]any) {
	steps := func(step map[string]any) { setDefault(step, "required", true) }
	setDefault(phase, "required", true)
	each(phase["steps"], steps)
	each(phase["checkpoints"], checkpointDefaults)
	each(phase["loops"], func(loop map[string]any) {
		setDefault(loop, "maxIterations", 100)
		each(loop["steps"], steps)
	})
	ways := func(way map[string]any) { setDefault(way, "isDefault", false) }
	each(phase["decisions"], func(decision map[string]any) { each(decision["branches"], ways) })
	each(phase["transitions"], ways)
}

func checkpointDefaults(checkpoint map[string]any) {
	setDefault(checkpoint, "required", true)
	setDefault(checkpoint, "blocking", true)
}

func each(list any, f func(map[string]any)) {
	items, _ := list.([]any)
	for _, item := range items {
		if members, ok := item.(map[string]any); ok {
			f(members)
		}
	}
}

func setDefault(members map[string]any, name string, value any) {
	if _, ok := members[name]; !ok {
		members[name] = value
	}
}
