// Package sanitize makes the texts of upstreams safe to show to a person.
package sanitize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/visible"
)

// maxText is the maximum length of a description or a title in bytes.
const maxText = 4 << 10

// countHiddenCharacters counts the characters of a text that are invisible to a person but
// readable for a model.
func countHiddenCharacters(text string) (n int) {
	for i := range text {
		if visible.IsHiddenInProse(text, i) {
			n++
		}
	}
	return n
}

// Description returns a description or a title that is safe to show, and a warning for
// each kind of change.
func Description(text string) (string, []string) {
	var found []string
	shown := text
	if count := countHiddenCharacters(text); count > 0 {
		shown = removeHidden(text)
		found = append(found, fmt.Sprintf("hidden characters removed: %d", count))
	}
	if len(shown) > maxText {
		found = append(found, fmt.Sprintf("the text was truncated to %d of %d bytes", maxText, len(shown)))
		shown = strings.ToValidUTF8(shown[:maxText-len("…")], "") + "…"
	}
	return shown, found
}

// removeHidden removes the hidden characters of a text.
func removeHidden(text string) string {
	var b strings.Builder
	for i, r := range text {
		if !visible.IsHiddenInProse(text, i) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Entry returns an entry of a list with texts that are safe to show, and warnings
// about changed and hidden characters. The text of the entry's key stays unchanged.
func Entry(raw json.RawMessage, key string) (json.RawMessage, []string) {
	inner, found := Object(raw)
	texts := []string{"description", "title"}
	if key != "name" { // The name of a resource is only shown to people.
		texts = append(texts, "name")
	}
	var set []jsonrpc.Member
	for _, each := range texts {
		if text := jsonrpc.TextMember(raw, each); text != "" {
			shown, wrong := Description(text)
			set = append(set, jsonrpc.Member{Key: each, Value: jsonrpc.Text(shown)})
			found = append(found, wrong...)
		}
	}
	if out, err := jsonrpc.With(inner, set...); err == nil {
		return out, found
	}
	return raw, found
}

// Object returns an object whose descriptions and titles below the top level are safe to
// show to a person, including those of schema properties, which a model reads too. It also
// returns warnings. The description and the title at the top level are checked elsewhere.
// Other texts stay unchanged, because programs depend on them; hidden characters in them
// are only reported. If nothing has to change, Object returns the same bytes.
func Object(value json.RawMessage) (json.RawMessage, []string) {
	c := &sanitizer{}
	out := c.sanitizeValue(value)
	if c.cut > 0 {
		c.found = append(c.found, fmt.Sprintf("descriptions truncated to %d bytes: %d", maxText, c.cut))
	}
	if c.taken > 0 {
		c.found = append(c.found, fmt.Sprintf("hidden characters removed from descriptions: %d", c.taken))
	}
	if c.left > 0 {
		c.found = append(c.found, fmt.Sprintf("hidden characters kept in names or values: %d", c.left))
	}
	return out, c.found
}

// sanitizer counts the hidden characters and the overlong texts.
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
		return jsonrpc.RewriteList(value, c.sanitizeValue)
	case '"':
		c.left += countHidden(value)
	}
	return value
}

// sanitizeObject sanitizes the members of an object. named reports that the keys are names
// chosen by the author, such as properties, and not schema keywords.
func (c *sanitizer) sanitizeObject(value json.RawMessage, named bool) json.RawMessage {
	top := c.depth == 0
	c.depth++
	defer func() { c.depth-- }()
	return jsonrpc.RewriteObject(value, func(key string, sub json.RawMessage) json.RawMessage {
		c.left += countHiddenCharacters(key)
		if named {
			key = ""
		}
		switch key {
		case "description", "title":
			switch {
			case sub[0] != '"':
				return c.sanitizeValue(sub)
			case !top:
				return c.sanitizeText(sub)
			}
			return sub
		case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
			if sub[0] == '{' {
				return c.sanitizeObject(sub, true)
			}
		case "default", "const", "enum", "examples", "_meta": // These members are data, even if they contain the names of keywords.
			data := &sanitizer{depth: 1}
			data.sanitizeValue(sub)
			c.left += data.left + data.taken
			return sub
		}
		return c.sanitizeValue(sub)
	})
}

// sanitizeText sanitizes a description or a title.
func (c *sanitizer) sanitizeText(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxText && !mayHideText(raw) {
		return raw
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	hides := countHiddenCharacters(text)
	if hides == 0 && len(text) <= maxText {
		return raw
	}
	c.taken += hides
	shown, found := Description(text)
	if len(found) > 1 || hides == 0 {
		c.cut++
	}
	return jsonrpc.Text(shown)
}

// mayHideText reports whether an encoded text can contain hidden characters: only if it has
// non-ASCII or escaped characters.
func mayHideText(raw json.RawMessage) bool {
	return slices.ContainsFunc(raw, func(b byte) bool { return b == '\\' || b < ' ' || b > '~' })
}

// countHidden counts the hidden characters of an encoded text.
func countHidden(raw json.RawMessage) int {
	var text string
	if !mayHideText(raw) || json.Unmarshal(raw, &text) != nil {
		return 0
	}
	return countHiddenCharacters(text)
}

// Flagged returns warnings about texts of a catalog that contain hidden characters or are
// too long.
func Flagged(c *upstream.Catalog) []string {
	var notes []string
	for _, each := range []struct {
		key  string
		list []json.RawMessage
	}{{"name", c.Tools}, {"name", c.Prompts}, {"uri", c.Resources}, {"uriTemplate", c.Templates}} {
		for _, raw := range each.list {
			_, found := Entry(raw, each.key)
			name, _ := Description(jsonrpc.TextMember(raw, each.key))
			for _, text := range found {
				notes = append(notes, name+": "+text)
			}
		}
	}
	return notes
}
