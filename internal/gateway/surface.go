package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// surface is what the gateway offers, made of what the upstreams offer. It does
// not change.
type surface struct {
	tools  []*tool
	byName map[string]*tool
	// names are those that are taken or reserved, of tools.
	names   *names
	prompts []*entry
	prompt  map[string]*entry
	// resources and templates keep the upstreams' addresses where they are
	// unique, so that results that name them need no change.
	resources []*entry
	templates []*entry
	address   map[string]*entry
	// realms has the upstream of each realm that only one uses; see realmOf.
	realms map[string]*member
	// prints change with the lists.
	prints map[Kind]string
	// notes are what a person should know.
	notes []Note
}

// Note is something about an upstream that a person should know.
type Note struct {
	Upstream string `json:"upstream"`
	Tool     string `json:"tool,omitempty"`
	Message  string `json:"message"`
}

// entry is a prompt or resource.
type entry struct {
	member *member
	// name is what clients say, original what the upstream says.
	name, original string
	shown          json.RawMessage
	// match is set for a template that addresses are looked for in; literal is what
	// it begins with.
	match   *regexp.Regexp
	literal string
}

// tool is one tool of an upstream.
type tool struct {
	entry
	description string
	// headers are the arguments that go along as headers, by their place.
	headers []headerArgument
	// blocked says why the tool is not offered; empty is not at all.
	blocked string
	// unlisted marks a name that no upstream's tool has; see Gateway.unlisted.
	unlisted bool
}

// build makes the surface of what is known of the members. mu is held.
func (g *Gateway) build(members []*member) *surface {
	s := &surface{
		names: newNames(append(lazyNames(), g.own.tools...)), byName: map[string]*tool{}, prompt: map[string]*entry{}, address: map[string]*entry{},
		realms: map[string]*member{}, prints: map[Kind]string{},
	}
	promptNames := newNames(g.own.prompts)
	for _, m := range members {
		c := m.Known()
		if c == nil {
			continue
		}
		for _, text := range c.Notes {
			s.note(m, "", text)
		}
		prefix := m.prefix()
		g.addTools(s, m, c, prefix)
		for _, raw := range c.Prompts {
			original := member1(raw, "name")
			name, ok := promptNames.give(prefix, original)
			if !ok {
				s.note(m, original, "the prompt is left out: its name is taken or reserved")
				continue
			}
			e := &entry{member: m, name: name, original: original, shown: s.shownAs(m, raw, "name", name)}
			s.prompts, s.prompt[name] = append(s.prompts, e), e
		}
		s.addResources(m, c)
	}
	s.print(g.lazy.Load())
	return s
}

func (m *member) prefix() string {
	switch {
	case m.NoPrefix:
		return ""
	case m.Prefix != "":
		return m.Prefix + separator
	}
	return m.Name() + separator
}

func (s *surface) note(m *member, tool, text string) {
	s.notes = append(s.notes, Note{Upstream: m.Name(), Tool: tool, Message: text})
}

// addTools adds the tools of an upstream that may be offered.
func (g *Gateway) addTools(s *surface, m *member, c *upstream.Catalog, prefix string) {
	verdicts := g.judge(m, c)
	for _, raw := range c.Tools {
		original := member1(raw, "name")
		rule := m.Tools[original]
		if rule.Hide {
			continue
		}
		want := original
		if rule.Name != "" {
			want = rule.Name
		}
		name, ok := s.names.give(prefix, want)
		if !ok {
			s.note(m, original, "the tool is left out: its name is taken or reserved")
			continue
		}
		t := &tool{entry: entry{member: m, name: name, original: original}}
		if rule.Description != "" {
			t.description = rule.Description
		} else {
			var found []string
			t.description, found = described(member1(raw, "description"))
			for _, text := range found {
				s.note(m, original, text)
			}
		}
		t.blocked = verdicts[original]
		if t.blocked != "" {
			s.note(m, original, t.blocked)
		}
		shown, found := cleared(raw)
		for _, text := range found {
			s.note(m, original, text)
		}
		t.shown = shownTool(shown, name, t.description)
		t.headers = headerArguments(raw)
		s.byName[name] = t
		if t.blocked == "" {
			s.tools = append(s.tools, t)
		}
	}
}

// shownTool is a tool as clients see it. What it says besides is kept; texts
// that a person reads are rid of what they would not see.
func shownTool(raw json.RawMessage, name, description string) json.RawMessage {
	set := []wire.Member{{Key: "name", Value: wire.Text(name)}}
	if description != "" {
		set = append(set, wire.Member{Key: "description", Value: wire.Text(description)})
	}
	if title := member1(raw, "title"); title != "" {
		shown, _ := described(title)
		set = append(set, wire.Member{Key: "title", Value: wire.Text(shown)})
	}
	out, err := wire.With(raw, set...)
	if err != nil { // it was read before
		return raw
	}
	return out
}

// shownAs is a prompt, a resource or a template as clients see it.
func (s *surface) shownAs(m *member, raw json.RawMessage, key, value string) json.RawMessage {
	set := []wire.Member{{Key: key, Value: wire.Text(value)}}
	inner, found := cleared(raw)
	for _, each := range []string{"description", "title"} {
		if text := member1(raw, each); text != "" {
			shown, wrong := described(text)
			set = append(set, wire.Member{Key: each, Value: wire.Text(shown)})
			found = append(found, wrong...)
		}
	}
	if name := member1(raw, "name"); key != "name" && name != "" { // of a resource it is read by people alone
		shown, wrong := described(name)
		set = append(set, wire.Member{Key: "name", Value: wire.Text(shown)})
		found = append(found, wrong...)
	}
	for _, text := range found {
		s.note(m, member1(raw, key), text)
	}
	out, err := wire.With(inner, set...)
	if err != nil {
		return raw
	}
	return out
}

// member1 is one text of an object, or "".
func member1(raw json.RawMessage, key string) string {
	var text string
	_ = wire.Each(raw, func(name string, value json.RawMessage) error {
		if name == key {
			_ = json.Unmarshal(value, &text)
		}
		return nil
	})
	return text
}

// print notes what the lists are, to see when they change; lazy is by which way the
// tools are offered to most.
func (s *surface) print(lazy bool) {
	mark := func(kind Kind, lists ...[]*entry) {
		hash := sha256.New()
		for _, list := range lists {
			for _, e := range list {
				hash.Write(e.shown)
			}
		}
		s.prints[kind] = hex.EncodeToString(hash.Sum(nil))
	}
	tools := make([]*entry, len(s.tools))
	for i, t := range s.tools {
		tools[i] = &t.entry
	}
	mark(KindTools, tools)
	s.prints[KindTools] += strconv.FormatBool(lazy)
	mark(KindPrompts, s.prompts)
	mark(KindResources, s.resources, s.templates)
}
