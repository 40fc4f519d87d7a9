package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// cleared gives an object with all descriptions and titles in it as a person may be shown
// them, those of a schema's properties among them: a model reads them like the tool's
// own, which are not looked at here. Other texts are what they are, because programs go
// by them; what hides in those is said. Without anything to change the value is the very
// one that came.
func cleared(value json.RawMessage) (json.RawMessage, []string) {
	c := &clearing{}
	out := c.value(value)
	if c.cut > 0 {
		c.found = append(c.found, fmt.Sprintf("%d descriptions in it are cut to %d bytes", c.cut, maxDescription))
	}
	if c.taken > 0 {
		c.found = append(c.found, fmt.Sprintf("descriptions in it hide %d characters, which are taken out", c.taken))
	}
	if c.left > 0 {
		c.found = append(c.found, fmt.Sprintf("it hides %d characters in names or values, which are left", c.left))
	}
	return out, c.found
}

// clearing counts what was found.
type clearing struct {
	depth, cut, taken, left int
	found                   []string
}

func (c *clearing) value(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return value
	}
	switch value[0] {
	case '{':
		return c.object(value, false)
	case '[':
		return c.list(value)
	case '"':
		c.left += countHidden(value)
	}
	return value
}

// object looks at the members; named ones are called as their author likes, and none of
// their names is a keyword.
func (c *clearing) object(value json.RawMessage, named bool) json.RawMessage {
	top := c.depth == 0
	c.depth++
	defer func() { c.depth-- }()
	var members []wire.Member
	changed := false
	err := wire.Each(value, func(key string, sub json.RawMessage) error {
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
				next = c.value(sub)
			case !top:
				next = c.text(sub)
			}
		case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
			if sub[0] == '{' {
				next = c.object(sub, true)
			} else {
				next = c.value(sub)
			}
		case "default", "const", "enum", "examples", "_meta": // data, whatever its members are called
			data := &clearing{depth: 1}
			data.value(sub)
			c.left += data.left + data.taken
		default:
			next = c.value(sub)
		}
		changed = changed || !same(next, sub)
		members = append(members, wire.Member{Key: key, Value: next})
		return nil
	})
	if err != nil || !changed {
		return value
	}
	return wire.Object(members...)
}

func (c *clearing) list(value json.RawMessage) json.RawMessage {
	var parts []json.RawMessage
	if json.Unmarshal(value, &parts) != nil {
		return value
	}
	changed := false
	for i, sub := range parts {
		parts[i] = c.value(sub)
		changed = changed || !same(parts[i], sub)
	}
	if !changed {
		return value
	}
	return append(append(json.RawMessage{'['}, bytes.Join(raws(parts), []byte{','})...), ']')
}

func raws(parts []json.RawMessage) [][]byte {
	out := make([][]byte, len(parts))
	for i, part := range parts {
		out[i] = part
	}
	return out
}

// same tells whether two values are the same bytes in memory.
func same(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// text is a description as it is shown.
func (c *clearing) text(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxDescription && !suspect(raw) {
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
	shown, found := described(text)
	if len(found) > 1 || hides == 0 {
		c.cut++
	}
	return wire.Text(shown)
}

// suspect tells whether a text as it is written may hide something: only what is beyond
// ASCII, or escaped, can.
func suspect(raw json.RawMessage) bool {
	for _, b := range raw {
		if b == '\\' || b < ' ' || b > '~' {
			return true
		}
	}
	return false
}

// countHidden counts in a text as it is written.
func countHidden(raw json.RawMessage) int {
	var text string
	if !suspect(raw) || json.Unmarshal(raw, &text) != nil {
		return 0
	}
	return hiddenIn(text)
}

func hiddenIn(text string) int {
	n := 0
	for _, r := range text {
		if hidden(r) {
			n++
		}
	}
	return n
}

// Flagged says what is wrong with what a catalog offers: texts that hide something or are
// too long.
func Flagged(c *upstream.Catalog) []string {
	var notes []string
	for _, each := range []struct {
		key  string
		list []json.RawMessage
	}{{"name", c.Tools}, {"name", c.Prompts}, {"uri", c.Resources}, {"uriTemplate", c.Templates}} {
		for _, raw := range each.list {
			_, found := cleared(raw)
			texts := []string{"description", "title"}
			if each.key != "name" {
				texts = append(texts, "name")
			}
			for _, key := range texts {
				_, wrong := described(member1(raw, key))
				found = append(found, wrong...)
			}
			name, _ := described(member1(raw, each.key))
			for _, text := range found {
				notes = append(notes, name+": "+text)
			}
		}
	}
	return notes
}
