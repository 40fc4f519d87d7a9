// Package pins stores which tools, prompts, templates, pages and skills of upstreams are
// approved, and compares them with the current ones.
package pins

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/visible"
)

// Mode sets which tools, prompts, templates and pages need approval.
type Mode string

// The pin modes.
const (
	// ModeFirstUse approves all tools, prompts and templates when the upstream is first used,
	// and each page when it is first read. Changes, and those that are added later, wait for
	// human approval. It is the default.
	ModeFirstUse Mode = "first-use"
	// ModeApprove requires human approval for every tool, prompt, template and page.
	ModeApprove Mode = "approve"
	// ModeOff approves everything.
	ModeOff Mode = "off"
)

// Pin is the stored state of a tool, a prompt, a template or a page.
type Pin struct {
	Hash string `json:"hash"`
	// Definition is the definition that Hash identifies.
	Definition json.RawMessage `json:"definition"`
	Approved   time.Time       `json:"approvedAt"`
	By         string          `json:"by"`
}

// Pins stores the pins of upstreams.
type Pins interface {
	// Approved returns the pins of an upstream by their names; nil if nothing was ever
	// pinned.
	Approved(upstream string) (map[string]Pin, error)
	// Approve adds pins. A pin with an empty hash removes the stored one.
	Approve(upstream string, pins map[string]Pin) error
}

// Of returns the pin of an entry of a list. The pin covers everything that is passed on to
// clients. An invalid definition has no pin, and neither has one with a duplicate member:
// it has several readings, and the pin would cover one of them.
func Of(raw json.RawMessage) (Pin, error) {
	var kept []jsonrpc.Member
	err := jsonrpc.Each(raw, func(key string, value json.RawMessage) error {
		if key == "_meta" {
			value = withoutVolatile(value)
		}
		value = jsontext.Normalize(value)
		if key != "_meta" || string(value) != "{}" {
			kept = append(kept, jsonrpc.Member{Key: key, Value: value})
		}
		return nil
	})
	if err == nil {
		err = jsonrpc.CheckUnique(raw)
	}
	if err != nil {
		return Pin{}, err
	}
	slices.SortFunc(kept, func(a, b jsonrpc.Member) int { return strings.Compare(a.Key, b.Key) })
	definition := jsonrpc.Object(kept...)
	return Pin{Hash: digest.Hex(definition), Definition: definition}, nil
}

// withoutVolatile removes the members of _meta that belong to one message, the trace context
// and the progress token: they differ each time, so a pin cannot cover them. Without such
// members, it returns the same bytes.
func withoutVolatile(meta json.RawMessage) json.RawMessage {
	var kept []jsonrpc.Member
	removed := false
	err := jsonrpc.Each(meta, func(key string, value json.RawMessage) error {
		switch key {
		case "traceparent", "tracestate", "baggage", "progressToken":
			removed = true
		default:
			kept = append(kept, jsonrpc.Member{Key: key, Value: value})
		}
		return nil
	})
	if err != nil || !removed {
		return meta // A _meta that is not an object is kept.
	}
	return jsonrpc.Object(kept...)
}

// WithoutVolatileMeta returns an entry of a list without the members of its _meta that belong
// to one message. Clients must not get them, because no pin covers them.
func WithoutVolatileMeta(raw json.RawMessage) json.RawMessage {
	return jsonrpc.RewriteObject(raw, func(key string, value json.RawMessage) json.RawMessage {
		if key == "_meta" {
			return withoutVolatile(value)
		}
		return value
	})
}

// PromptPrefix is the prefix of the names of prompts among the pins. If a tool has the same
// name as such a pin, the hashes differ, and the tool and the prompt wait for approval.
const PromptPrefix = "prompt:"

// TemplatePrefix, ResourcePrefix and SkillPrefix are the prefixes for resource templates, for pages in
// lists of resources, and for skills.
const (
	TemplatePrefix = "template:"
	ResourcePrefix = "resource:"
	SkillPrefix    = "skill:"
)

// Entry is an entry of a catalog that needs a pin.
type Entry struct {
	// Name is the name among the pins, and Kind is the kind of the entry, such as "tool".
	Name, Kind string
	Raw        json.RawMessage
}

// Entries returns the tools, the prompts, the resource templates, the pages and the
// skills of a catalog. Other resources are data that change with every file: nothing runs
// them, and no description of a tool depends on them.
func Entries(c *upstream.Catalog) []Entry {
	list := lists.Map(c.Tools, func(raw json.RawMessage) Entry { return Entry{jsonrpc.TextMember(raw, "name"), "tool", raw} })
	for _, raw := range c.Prompts {
		list = append(list, Entry{PromptPrefix + jsonrpc.TextMember(raw, "name"), "prompt", raw})
	}
	for _, raw := range c.Templates {
		list = append(list, Entry{TemplatePrefix + jsonrpc.TextMember(raw, "uriTemplate"), "resource template", raw})
	}
	for _, raw := range c.Resources {
		if uri := jsonrpc.TextMember(raw, "uri"); IsPage(uri) {
			list = append(list, Entry{ResourcePrefix + uri, "page", raw})
		}
	}
	for _, raw := range c.Skills {
		list = append(list, Entry{SkillPrefix + jsonrpc.TextMember(raw, "uri"), "skill", raw})
	}
	return list
}

// Waiting is the difference between the approved and the current definition of a tool, a
// prompt, a template or a page.
type Waiting struct {
	// Tool is the name of the pin: the name of the tool, or the name or URI with the prefix
	// "prompt:", "template:", "resource:", "skill:" or "page:".
	Tool string `json:"tool"`
	Why  string `json:"why"`
	// Before is the approved definition, nil for a new one; After is the current
	// definition, nil for a removed one.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Hash is the hash of After. The approval checks it, so that the approved definition is
	// the reviewed one.
	Hash string `json:"hash,omitempty"`
	pin  Pin
}

// Review returns the entries of a catalog that differ from their pins, the pins
// that the catalog lacks, and the pages that wait for approval.
func Review(pins Pins, c *upstream.Catalog, name string) ([]Waiting, error) {
	approved, err := pins.Approved(name)
	if err != nil {
		return nil, err
	}
	var waiting []Waiting
	offered := map[string]bool{}
	for _, e := range Entries(c) {
		tool := e.Name
		offered[tool] = true
		pin, err := Of(e.Raw)
		if err != nil {
			continue
		}
		old, known := approved[tool]
		switch {
		case !known:
			waiting = append(waiting, Waiting{Tool: tool, Why: "new", After: pin.Definition, Hash: pin.Hash, pin: pin})
		case old.Hash != pin.Hash:
			waiting = append(waiting, Waiting{Tool: tool, Why: "changed", Before: old.Definition, After: pin.Definition, Hash: pin.Hash, pin: pin})
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(approved)) {
		if isPagePin(tool) {
			if page, ok := waitingPage(approved, tool); ok {
				waiting = append(waiting, page)
			}
			continue
		}
		if !offered[tool] {
			waiting = append(waiting, Waiting{Tool: tool, Why: "gone", Before: approved[tool].Definition})
		}
	}
	return waiting, nil
}

// Accept approves reviewed changes, removals included.
func Accept(pins Pins, name, by string, list []Waiting) error {
	accepted := map[string]Pin{}
	for _, w := range list {
		w.pin.Approved, w.pin.By = time.Now(), by
		if w.After == nil {
			w.pin = Pin{}
		}
		if uri, ok := strings.CutPrefix(w.Tool, PagePrefix); ok {
			accepted[PageOfferPrefix+uri] = Pin{}
		}
		accepted[w.Tool] = w.pin
	}
	return pins.Approve(name, accepted)
}

// Change is one difference between definitions. Hidden characters are escaped.
type Change struct {
	// Path contains the keys and indexes that lead to the value, such as
	// "/inputSchema/properties/path/type".
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Changes returns the differences in the order of the paths.
func (w Waiting) Changes() []Change {
	before, after := flatten(w.Before), flatten(w.After)
	keys := slices.Collect(maps.Keys(after))
	for key := range before {
		if _, both := after[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var list []Change
	for _, key := range keys {
		if before[key] != after[key] {
			list = append(list, Change{Path: escapeHidden(key), Before: before[key], After: after[key]})
		}
	}
	return list
}

// Diff formats Changes for a terminal, one line for each value.
func (w Waiting) Diff() string {
	var b strings.Builder
	for _, c := range w.Changes() {
		if c.Before != "" {
			fmt.Fprintf(&b, "- %s: %s\n", c.Path, c.Before)
		}
		if c.After != "" {
			fmt.Fprintf(&b, "+ %s: %s\n", c.Path, c.After)
		}
	}
	return b.String()
}

// flatten maps the path of each value to the value.
func flatten(definition json.RawMessage) map[string]string {
	out := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			if len(v) == 0 {
				out[path] = "{}"
			}
			for key, sub := range v {
				walk(path+"/"+key, sub)
			}
		case []any:
			if len(v) == 0 {
				out[path] = "[]"
			}
			for i, sub := range v {
				walk(fmt.Sprintf("%s/%d", path, i), sub)
			}
		case string:
			out[path] = escapeHidden(v)
		default:
			text, _ := json.Marshal(v) // Strings, numbers, booleans and null always marshal.
			out[path] = string(text)
		}
	}
	var decoded any
	if len(definition) > 0 && json.Unmarshal(definition, &decoded) == nil {
		walk("", decoded)
	}
	return out
}

// escapeHidden escapes line breaks, tabs and hidden characters. Unlike in sanitize.Description,
// no hidden character is exempt. It also escapes the backslash, so that different texts stay
// different.
func escapeHidden(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\\':
			b.WriteString(`\\`)
		case visible.IsHidden(r) || r == '\r' || r == '\t':
			fmt.Fprintf(&b, `\u{%04X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

const (
	// PagePrefix is the prefix of the names of pins of approved pages.
	PagePrefix = "page:"
	// PageOfferPrefix is the prefix for new and changed pages that wait for approval. A
	// waiting page is stored, because no list has the contents of a page, and the process
	// that approves may not be the one that has read them.
	PageOfferPrefix = "page-offer:"
	// MaxPages is the maximum number of approved and waiting pages of an upstream.
	MaxPages = 500
)

// IsPage reports whether a URI is the URI of a page that a host shows with a tool.
func IsPage(uri string) bool {
	const scheme = "ui://"
	return len(uri) >= len(scheme) && strings.EqualFold(uri[:len(scheme)], scheme)
}

// OfPage returns the pin of a page: the hash of each of its contents, with the members
// that describe it.
func OfPage(encoded json.RawMessage) Pin {
	var contents []map[string]json.RawMessage
	if json.Unmarshal(encoded, &contents) != nil {
		contents = []map[string]json.RawMessage{{"text": encoded}}
	}
	for _, content := range contents {
		for _, name := range []string{"text", "blob"} {
			if text, ok := content[name]; ok {
				content[name] = jsonrpc.Text(fmt.Sprintf("%d bytes, sha256:%s", len(text), digest.Hex(text)))
			}
		}
	}
	definition, _ := json.Marshal(contents) // valid JSON always marshals
	definition = jsontext.Normalize(definition)
	return Pin{Hash: digest.Hex(definition), Definition: definition}
}

// CountPages returns the number of approved and waiting pages.
func CountPages(approved map[string]Pin) int {
	n := 0
	for name := range approved {
		if isPagePin(name) {
			n++
		}
	}
	return n
}

// isPagePin reports whether the name of a pin belongs to a page, approved or offered.
func isPagePin(pin string) bool {
	return strings.HasPrefix(pin, PagePrefix) || strings.HasPrefix(pin, PageOfferPrefix)
}

// waitingPage returns the page that waits for approval under the name of a pin. ok is false
// if the pin does not have the prefix PageOfferPrefix, or equals the approved page.
func waitingPage(approved map[string]Pin, name string) (Waiting, bool) {
	uri, ok := strings.CutPrefix(name, PageOfferPrefix)
	offer := approved[name]
	old, known := approved[PagePrefix+uri]
	if !ok || known && old.Hash == offer.Hash {
		return Waiting{}, false
	}
	w := Waiting{Tool: PagePrefix + uri, Why: "new", After: offer.Definition, Hash: offer.Hash, pin: offer}
	if known {
		w.Why, w.Before = "changed", old.Definition
	}
	return w, true
}
