package requestlog

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/checkpoint/secret"
	"github.com/guideway-dev/guideway/internal/hookgraph"
	"github.com/guideway-dev/guideway/internal/jsontext"
)

// Redactor makes what is kept of an entry: without what it held, unless that is
// wanted, and without likely secrets, by key and by shape.
type Redactor struct {
	scanner *secret.Scanner
	most    int
}

// The bounds of what an entry keeps besides bodies.
const (
	maxError   = 2 << 10
	maxConsole = 100
	maxLine    = 1 << 10
	// maxScanned bounds what of a body is looked at: it is decoded for that.
	maxScanned = 1 << 20
)

// NewRedactor makes a redactor that keeps so many bytes of arguments and of
// results; 0 keeps none.
func NewRedactor(most int) *Redactor {
	return &Redactor{scanner: secret.NewScanner(), most: most}
}

func (r *Redactor) bodies() bool { return r.most > 0 }

// entry takes out of an entry what is not to be kept.
func (r *Redactor) entry(e *Entry) {
	e.Error = r.text(e.Error, maxError)
	e.Tool, _ = r.scanner.Redact(e.Tool) // addresses carry secrets, too
	r.graphs(e.Graphs)
	if r.bodies() {
		e.Request, e.Response = r.body(e.Arguments), r.body(e.Result)
	}
	e.Arguments, e.Result = nil, nil
}

// text takes likely secrets out of a text, and cuts it.
func (r *Redactor) text(text string, most int) string {
	text, _ = r.scanner.Redact(text)
	if len(text) > most {
		text = cut(text, most) + "…"
	}
	return text
}

func cut(text string, most int) string {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// graphs does the same for what hooks did. The values that a hook changed are
// parts of bodies, and kept as those are.
func (r *Redactor) graphs(graphs []Graph) {
	for g := range graphs {
		for n := range graphs[g].Nodes {
			node := &graphs[g].Nodes[n]
			node.Console = r.console(node.Console)
			if node.Error != nil {
				failure := *node.Error
				failure.Message = r.text(failure.Message, maxError)
				node.Error = &failure
			}
			changes := make([]hookgraph.Change, len(node.Changes))
			for i, c := range node.Changes {
				changes[i] = hookgraph.Change{Op: c.Op, Pointer: c.Pointer}
				if r.bodies() {
					changes[i].Before, changes[i].After = r.value(c.Pointer, c.Before), r.value(c.Pointer, c.After)
				}
			}
			node.Changes = changes
		}
	}
}

func (r *Redactor) console(lines []hookgraph.Line) []hookgraph.Line {
	out := make([]hookgraph.Line, 0, min(len(lines), maxConsole))
	for _, line := range lines[:min(len(lines), maxConsole)] {
		out = append(out, hookgraph.Line{Level: line.Level, Text: r.text(line.Text, maxLine)})
	}
	return out
}

// value is a part of a body as it is kept; pointer says where it was, and so its
// key.
func (r *Redactor) value(pointer string, raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	tree, err := decode(raw)
	if err != nil {
		return nil
	}
	tree, _ = r.walk(lastKey(pointer), tree)
	text, err := jsontext.Marshal(tree)
	if err != nil {
		return nil
	}
	return text
}

// body is what of arguments or a result is kept.
func (r *Redactor) body(raw json.RawMessage) *Body {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxScanned {
		return &Body{Text: `"too large to be kept"`, Cut: true}
	}
	tree, err := decode(raw)
	if err != nil {
		return nil
	}
	tree, redacted := r.walk("", tree)
	text, err := jsontext.Marshal(tree)
	if err != nil {
		return nil
	}
	b := &Body{Text: string(text), Redacted: redacted}
	if len(b.Text) > r.most {
		b.Text, b.Cut = cut(b.Text, r.most), true
	}
	return b
}

// redacted stands where a secret was.
const redacted = "[redacted]"

// walk gives a tree without likely secrets, and whether there were any. A text
// that is JSON itself is looked into: results carry it.
func (r *Redactor) walk(key string, value any) (any, bool) {
	if secret.NamesSecret(key) && value != nil {
		return redacted, true
	}
	found := false
	switch v := value.(type) {
	case map[string]any:
		for k, inner := range v {
			changed, hit := r.walk(k, inner)
			if hit {
				v[k], found = changed, true
			}
			if name, hit := r.scanner.Redact(k); hit {
				delete(v, k)
				v[name], found = changed, true
			}
		}
	case []any:
		for i, inner := range v {
			changed, hit := r.walk("", inner)
			if hit {
				v[i], found = changed, true
			}
		}
	case string:
		if inner, ok := nested(v); ok {
			if changed, hit := r.walk("", inner); hit {
				if text, err := jsontext.Marshal(changed); err == nil {
					return string(text), true
				}
			}
		}
		return r.scanner.Redact(v)
	}
	return value, found
}

// nested reads a text that is an object or a list.
func nested(text string) (any, bool) {
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) < 2 || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil, false
	}
	tree, err := decode(trimmed)
	return tree, err == nil
}

func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	err := dec.Decode(&tree)
	return tree, err
}

// lastKey is the last part of a JSON pointer.
func lastKey(pointer string) string {
	for i := len(pointer) - 1; i >= 0; i-- {
		if pointer[i] == '/' {
			return pointer[i+1:]
		}
	}
	return pointer
}
