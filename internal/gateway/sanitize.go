package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// sanitize returns an object with all its descriptions and titles safe to show to a person.
// These include the descriptions of schema properties, because a model reads them as well.
// The tool's own description is checked elsewhere. Other texts stay unchanged, because
// programs depend on them; hidden characters in them are only reported. If nothing has to
// change, sanitize returns the same bytes.
func sanitize(value json.RawMessage) (json.RawMessage, []string) {
	c := &sanitizer{}
	out := c.sanitizeValue(value)
	if c.cut > 0 {
		c.found = append(c.found, fmt.Sprintf("%d of its descriptions were cut to %d bytes", c.cut, maxDescription))
	}
	if c.taken > 0 {
		c.found = append(c.found, fmt.Sprintf("its descriptions contain %d hidden characters, which were removed", c.taken))
	}
	if c.left > 0 {
		c.found = append(c.found, fmt.Sprintf("it contains %d hidden characters in names or values, which were kept", c.left))
	}
	return out, c.found
}

// sanitizer counts the hidden and overlong texts.
type sanitizer struct {
	depth, cut, taken, left int
	found                   []string
}

func (c *sanitizer) sanitizeValue(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return value
	}
	switch value[0] {
	case '{':
		return c.sanitizeObject(value, false)
	case '[':
		return c.sanitizeList(value)
	case '"':
		c.left += countHidden(value)
	}
	return value
}

// sanitizeObject sanitizes the members of an object. If named, the keys are names the author chose,
// such as properties, and not schema keywords.
func (c *sanitizer) sanitizeObject(value json.RawMessage, named bool) json.RawMessage {
	top := c.depth == 0
	c.depth++
	defer func() { c.depth-- }()
	var members []jsonrpc.Member
	changed := false
	err := jsonrpc.Each(value, func(key string, sub json.RawMessage) error {
		c.left += hiddenIn(key)
		next := sub
		keyword := key
		if named {
			keyword = ""
		}
		switch keyword {
		case "description", "title":
			switch {
			case sub[0] != '"':
				next = c.sanitizeValue(sub)
			case !top:
				next = c.sanitizeText(sub)
			}
		case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
			if sub[0] == '{' {
				next = c.sanitizeObject(sub, true)
			} else {
				next = c.sanitizeValue(sub)
			}
		case "default", "const", "enum", "examples", "_meta": // data, even if a member has the name of a keyword
			data := &sanitizer{depth: 1}
			data.sanitizeValue(sub)
			c.left += data.left + data.taken
		default:
			next = c.sanitizeValue(sub)
		}
		changed = changed || !sameBytes(next, sub)
		members = append(members, jsonrpc.Member{Key: key, Value: next})
		return nil
	})
	if err != nil || !changed {
		return value
	}
	return jsonrpc.Object(members...)
}

func (c *sanitizer) sanitizeList(value json.RawMessage) json.RawMessage {
	var parts []json.RawMessage
	if json.Unmarshal(value, &parts) != nil {
		return value
	}
	changed := false
	for i, sub := range parts {
		parts[i] = c.sanitizeValue(sub)
		changed = changed || !sameBytes(parts[i], sub)
	}
	if !changed {
		return value
	}
	return append(append(json.RawMessage{'['}, bytes.Join(rawParts(parts), []byte{','})...), ']')
}

func rawParts(parts []json.RawMessage) [][]byte {
	out := make([][]byte, len(parts))
	for i, part := range parts {
		out[i] = part
	}
	return out
}

// sameBytes reports whether two values share the same memory.
func sameBytes(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sanitizeText sanitizes a description.
func (c *sanitizer) sanitizeText(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxDescription && !mayHideText(raw) {
		return raw
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	hides := hiddenIn(text)
	if hides == 0 && len(text) <= maxDescription {
		return raw
	}
	c.taken += hides
	shown, found := cleanDescription(text)
	if len(found) > 1 || hides == 0 {
		c.cut++
	}
	return jsonrpc.Text(shown)
}

// maySanitize reports whether an encoded text can contain hidden characters: only if it has
// non-ASCII or escaped characters.
func mayHideText(raw json.RawMessage) bool {
	for _, b := range raw {
		if b == '\\' || b < ' ' || b > '~' {
			return true
		}
	}
	return false
}

// countHidden counts the hidden characters of an encoded text.
func countHidden(raw json.RawMessage) int {
	var text string
	if !mayHideText(raw) || json.Unmarshal(raw, &text) != nil {
		return 0
	}
	return hiddenIn(text)
}

func hiddenIn(text string) int {
	n := 0
	for _, r := range text {
		if isHidden(r) {
			n++
		}
	}
	return n
}

// Flagged returns warnings about a catalog's texts that contain hidden characters or are
// too long.
func Flagged(c *upstream.Catalog) []string {
	var notes []string
	for _, each := range []struct {
		key  string
		list []json.RawMessage
	}{{"name", c.Tools}, {"name", c.Prompts}, {"uri", c.Resources}, {"uriTemplate", c.Templates}} {
		for _, raw := range each.list {
			_, found := sanitize(raw)
			texts := []string{"description", "title"}
			if each.key != "name" {
				texts = append(texts, "name")
			}
			for _, key := range texts {
				_, wrong := cleanDescription(textMember(raw, key))
				found = append(found, wrong...)
			}
			name, _ := cleanDescription(textMember(raw, each.key))
			for _, text := range found {
				notes = append(notes, name+": "+text)
			}
		}
	}
	return notes
}
