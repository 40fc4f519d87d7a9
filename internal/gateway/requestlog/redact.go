package requestlog

import (
	"encoding/json"
	"strings"

	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/secret"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// Redactor redacts entries: it removes the bodies unless they are enabled, and likely
// secrets, recognized by key or by shape.
type Redactor struct {
	most     int
	detector secret.Detector
}

// Limits of the parts of an entry.
const (
	maxError   = 2 << 10
	maxConsole = 100
	maxLine    = 1 << 10
	// maxScanned limits the size of a body that is decoded and scanned.
	maxScanned = 1 << 20
)

// NewRedactor returns a redactor that keeps at most the given number of bytes of arguments
// and of results; 0 removes them.
func NewRedactor(most int, d secret.Detector) *Redactor {
	return &Redactor{most: most, detector: d}
}

func (r *Redactor) keepsBodies() bool { return r.most > 0 }

// redactEntry redacts an entry.
func (r *Redactor) redactEntry(e *Entry) {
	e.Error = r.redactText(e.Error, maxError)
	e.Tool, _ = r.detector.Redact(e.Tool, "") // URIs may contain secrets, too
	r.redactGraphs(e.Graphs)
	if r.keepsBodies() {
		e.Request, e.Response = r.redactBody(e.Arguments), r.redactBody(e.Result)
	}
	e.Arguments, e.Result = nil, nil
}

// redactText removes likely secrets from a text, and shortens it.
func (r *Redactor) redactText(text string, most int) string {
	text, _ = r.detector.Redact(text, "")
	if len(text) > most {
		text = textpart.Clip(text, most) + "…"
	}
	return text
}

// redactGraphs redacts the effects of hooks. The values that a hook changed are parts of
// bodies and are redacted in the same way.
func (r *Redactor) redactGraphs(graphs []Graph) {
	for g := range graphs {
		for n := range graphs[g].Nodes {
			node := &graphs[g].Nodes[n]
			node.Console = r.redactLines(node.Console)
			if node.Error != nil {
				failure := *node.Error
				failure.Message = r.redactText(failure.Message, maxError)
				node.Error = &failure
			}
			changes := make([]hookengine.Change, len(node.Changes))
			for i, c := range node.Changes {
				changes[i] = hookengine.Change{Op: c.Op, Pointer: c.Pointer}
				if r.keepsBodies() {
					changes[i].Before, changes[i].After = r.redactValue(c.Pointer, c.Before), r.redactValue(c.Pointer, c.After)
				}
			}
			node.Changes = changes
		}
	}
}

func (r *Redactor) redactLines(lines []hookengine.Line) []hookengine.Line {
	out := make([]hookengine.Line, 0, min(len(lines), maxConsole))
	for _, line := range lines[:min(len(lines), maxConsole)] {
		out = append(out, hookengine.Line{Level: line.Level, Text: r.redactText(line.Text, maxLine)})
	}
	return out
}

// redactValue redacts a part of a body. pointer is the JSON pointer of the part, and ends
// with the part's key.
func (r *Redactor) redactValue(pointer string, raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	tree, err := decodeJSON(raw)
	if err != nil {
		return nil
	}
	tree, _ = r.detector.RedactTree(pointer[strings.LastIndexByte(pointer, '/')+1:], tree, "")
	text, err := jsontext.Marshal(tree)
	if err != nil {
		return nil
	}
	return text
}

// redactBody returns the stored form of arguments or a result.
func (r *Redactor) redactBody(raw json.RawMessage) *Body {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxScanned {
		return &Body{Text: `"too large to record"`, Cut: true}
	}
	tree, err := decodeJSON(raw)
	if err != nil {
		return nil
	}
	tree, redacted := r.detector.RedactTree("", tree, "")
	text, err := jsontext.Marshal(tree)
	if err != nil {
		return nil
	}
	b := &Body{Text: string(text), Redacted: redacted}
	if len(b.Text) > r.most {
		b.Text, b.Cut = textpart.Clip(b.Text, r.most), true
	}
	return b
}

// maxPreview is the maximum size of a preview.
const maxPreview = 200

// PreviewArguments returns a short form of arguments without likely secrets.
func PreviewArguments(raw json.RawMessage) string {
	if b := NewRedactor(maxPreview, secret.Detector{}).redactBody(raw); b != nil {
		return b.Text
	}
	return ""
}

func decodeJSON(raw []byte) (any, error) {
	var tree any
	err := jsontext.Decode(raw, &tree)
	return tree, err
}
