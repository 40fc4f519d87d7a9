package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/sanitize"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// surface is the immutable combination of everything that the upstreams offer.
type surface struct {
	// members are the upstreams of the surface.
	members []*member
	tools   []*tool
	// byName and prompt hold each entry under its advertised and its full name.
	byName map[string]*tool
	// names holds the used and the reserved tool names.
	names   *names
	prompts []*entry
	prompt  map[string]*entry
	// resources and templates have the URIs that clients use; see clientURI.
	resources []*entry
	templates []*entry
	address   map[string]*entry
	skills    []*entry
	// realms maps each realm in use to its only upstream, or to nil; see claimRealms.
	realms map[string]*member
	// upstreams holds the names of all upstreams in lower case, also of disabled ones.
	upstreams map[string]bool
	// prints are the fingerprints of the lists.
	prints map[Kind]string
	// notes are warnings for a person.
	notes []Note
}

// Note is a warning about an upstream for a person.
type Note struct {
	Upstream string `json:"upstream"`
	Tool     string `json:"tool,omitempty"`
	Message  string `json:"message"`
}

// entry is a tool, a prompt, a resource or a resource template.
type entry struct {
	member *member
	// name is the name or URI that clients use, and original is the upstream's name or URI.
	name, original string
	// full is the name of a tool or prompt without the limit maxAdvertised. Calls and the
	// configuration may use it too.
	full  string
	shown json.RawMessage
	// blocked is the reason why the entry is not offered; empty if it is offered.
	blocked string
}

// tool is one tool of an upstream.
type tool struct {
	entry
	description string
	// definition is the definition of the upstream, which the tool's pin covers.
	definition json.RawMessage
	// hash is the hash of the tool's pin; "" for an invalid definition and for a tool that a
	// hook added.
	hash string
	// headers are the arguments that are also sent as headers.
	headers []upstream.HeaderArgument
	uses    uses
	// unlisted marks a name that no upstream has; see Gateway.unlistedTool.
	unlisted bool
}

// surfaces holds the surfaces of all clients. The lists that an upstream offers in a
// client's own session can contain the client's data, so no other client sees them.
type surfaces struct {
	shared *surface
	// own holds the surfaces of the clients for which an upstream has different lists, by
	// their list keys.
	own map[string]*surface
	// used holds the clients' own catalogs from which the surfaces were built.
	used map[*upstream.Upstream]map[string]*upstream.Catalog
}

// surfaceOf returns the surface of a client.
func (g *Gateway) surfaceOf(c *Client) *surface {
	all := g.surfaces.Load()
	if len(all.own) == 0 {
		return all.shared
	}
	return all.find(c.listKey())
}

// find returns the surface for the key of a client's lists.
func (all *surfaces) find(client string) *surface {
	if s := all.own[client]; s != nil {
		return s
	}
	return all.shared
}

// isCurrent reports whether the surface of a client is up to date with an upstream: either
// the client has no session of its own with the upstream, or the surface was built from the
// lists of that session.
func (all *surfaces) isCurrent(client string, m *member) bool {
	c, has := m.OwnOf(client)
	return !has || c != nil && c == all.used[m.Upstream][client]
}

// differsFrom reports whether all and next have different lists of a kind for any client.
func (all *surfaces) differsFrom(next *surfaces, kind Kind) bool {
	if all.shared.prints[kind] != next.shared.prints[kind] {
		return true
	}
	for _, own := range []map[string]*surface{all.own, next.own} {
		for client := range own {
			if all.find(client).prints[kind] != next.find(client).prints[kind] {
				return true
			}
		}
	}
	return false
}

// buildSurfaces builds the surfaces from the known catalogs of the members. The caller holds
// mu.
func (g *Gateway) buildSurfaces(members []*member) *surfaces {
	read := g.readPinsOnce()
	known := map[*member]*upstream.Catalog{}
	used := map[*upstream.Upstream]map[string]*upstream.Catalog{}
	own := map[string]map[*member]*upstream.Catalog{}
	inUse := map[*upstream.Catalog]bool{}
	for _, m := range members {
		known[m], used[m.Upstream] = m.Known(), m.Own()
		inUse[known[m]] = true
		for client, c := range used[m.Upstream] {
			inUse[c] = true
			if c == known[m] {
				continue
			}
			keys := []string{client}
			if m.Sessions == SessionsClient || m.IsPersonal(client) { // The client's requests without capabilities use its own session too.
				keys = append(keys, muteKey(client))
			}
			for _, key := range keys {
				if own[key] == nil {
					own[key] = map[*member]*upstream.Catalog{}
				}
				own[key][m] = c
			}
		}
	}
	g.forgetHashes(inUse)
	all := &surfaces{shared: g.buildSurface(members, known, read), own: map[string]*surface{}, used: used}
	for client, differing := range own {
		catalogs := maps.Clone(known)
		maps.Copy(catalogs, differing)
		all.own[client] = g.buildSurface(members, catalogs, read)
	}
	return all
}

// buildSurface builds one surface from the catalogs of the members.
func (g *Gateway) buildSurface(members []*member, known map[*member]*upstream.Catalog, read pinReader) *surface {
	s := &surface{
		members: members, names: newNames(append(lazyNames(), g.own.tools...)), byName: map[string]*tool{}, prompt: map[string]*entry{}, address: map[string]*entry{},
		realms: map[string]*member{}, upstreams: g.configured, prints: map[Kind]string{},
	}
	promptNames := newNames(g.own.prompts)
	waiting := map[*member]map[string]string{}
	for _, m := range members { // The URIs of an upstream depend on those of all others.
		if c := known[m]; c != nil {
			waiting[m] = g.checkPins(m, c, read)
			s.claimRealms(m, c, waiting[m])
		}
	}
	for _, m := range members {
		c := known[m]
		if c == nil {
			continue
		}
		for _, text := range c.Notes {
			s.addNote(m, "", text)
		}
		prefix := m.namePrefix()
		g.addTools(s, m, c, waiting[m])
		for _, raw := range c.Prompts {
			original := jsonrpc.TextMember(raw, "name")
			name, full, ok := promptNames.assignNames(prefix, original)
			if !ok {
				s.addNote(m, original, "the prompt is omitted: its name is reserved or already in use")
				continue
			}
			e := &entry{member: m, name: name, full: full, original: original, shown: s.shownAs(m, raw, "name", name)}
			s.prompt[name], s.prompt[full] = e, e
			if e.blocked = waiting[m][pins.PromptPrefix+original]; e.blocked != "" {
				s.addNote(m, original, e.blocked)
				continue
			}
			s.prompts = append(s.prompts, e)
		}
		s.addResources(m, c, waiting[m])
		s.addSkills(m, c, waiting[m])
	}
	s.setPrints(g.lazy.Load())
	return s
}

// namePrefix returns the beginning of the full names of the upstream's tools.
func (e *Entry) namePrefix() string {
	if e.NoPrefix {
		return ""
	}
	return cmp.Or(e.Prefix, e.Spec.Name) + separator
}

// shortPrefix returns the beginning of all names of the upstream's tools.
func (m *member) shortPrefix() string {
	prefix := m.namePrefix()
	return prefix[:min(len(prefix), maxPrefix)]
}

func (s *surface) addNote(m *member, tool, text string) {
	s.notes = append(s.notes, Note{Upstream: m.Name(), Tool: tool, Message: text})
}

// withoutForeign returns the surface for a person without the resources and skills that the
// login of the local user lists.
func (s *surface) withoutForeign(isForeign func(*member) bool) *surface {
	if !slices.ContainsFunc(s.members, isForeign) {
		return s
	}
	copied, foreign := *s, func(e *entry) bool { return isForeign(e.member) }
	copied.resources = slices.DeleteFunc(slices.Clone(s.resources), foreign)
	copied.skills = slices.DeleteFunc(slices.Clone(s.skills), foreign)
	return &copied
}

// findOriginal returns the tool of an upstream with the upstream's own name original, or
// nil.
func (s *surface) findOriginal(m *member, original string) *tool {
	for _, t := range s.byName {
		if t.member.Upstream == m.Upstream && t.original == original {
			return t
		}
	}
	return nil
}

// findPrompt returns the prompt of an upstream with the upstream's own name original, or
// nil.
func (s *surface) findPrompt(m *member, original string) *entry {
	for _, e := range s.prompt {
		if e.member.Upstream == m.Upstream && e.original == original {
			return e
		}
	}
	return nil
}

// addTools adds the tools of an upstream that the configuration does not hide. Tools that
// wait for approval are only in byName.
func (g *Gateway) addTools(s *surface, m *member, c *upstream.Catalog, waiting map[string]string) {
	prefix := m.namePrefix()
	uris := uriRewriter{surface: s, member: m}
	hashed := g.hashEntries(c) // begins with the tools
	for i, raw := range c.Tools {
		original := jsonrpc.TextMember(raw, "name")
		rule := m.Tools[original]
		if rule.Hide {
			continue
		}
		name, full, ok := s.names.assignNames(prefix, cmp.Or(rule.Name, original))
		if !ok {
			s.addNote(m, original, "the tool is omitted: its name is reserved or already in use")
			continue
		}
		t := &tool{entry: entry{member: m, name: name, full: full, original: original}, definition: raw, hash: hashed[i].hash}
		if rule.Description != "" {
			t.description = rule.Description
		} else {
			var found []string
			t.description, found = sanitize.Description(jsonrpc.TextMember(raw, "description"))
			for _, text := range found {
				s.addNote(m, original, text)
			}
		}
		t.blocked = waiting[original]
		if t.blocked != "" {
			s.addNote(m, original, t.blocked)
		}
		shown, found := sanitize.Object(pins.WithoutVolatileMeta(raw))
		for _, text := range found {
			s.addNote(m, original, text)
		}
		t.shown = shownTool(annotate(shown, rule), name, cmp.Or(rule.Title, jsonrpc.TextMember(shown, "title")), t.description)
		if g.opts.Results != nil {
			t.shown = withoutOutputSchema(t.shown)
		}
		t.shown = uris.rewriteMembers(t.shown, map[string]change{"_meta": uris.rewriteMeta})
		t.headers, t.uses = upstream.HeaderArguments(raw), usesOf(raw)
		s.byName[name], s.byName[full] = t, t
		if t.blocked == "" {
			s.tools = append(s.tools, t)
		}
	}
}

// shownTool returns a tool as clients see it: with its name and description for clients,
// and with a title that is safe to show.
func shownTool(raw json.RawMessage, name, title, description string) json.RawMessage {
	set := []jsonrpc.Member{{Key: "name", Value: jsonrpc.Text(name)}}
	if description != "" {
		set = append(set, jsonrpc.Member{Key: "description", Value: jsonrpc.Text(description)})
	}
	if title != "" {
		shown, _ := sanitize.Description(title)
		set = append(set, jsonrpc.Member{Key: "title", Value: jsonrpc.Text(shown)})
	}
	out, err := jsonrpc.With(raw, set...)
	if err != nil { // The tool was parsed before.
		return raw
	}
	return out
}

// shownAs returns a prompt, a resource or a template as clients see it.
func (s *surface) shownAs(m *member, raw json.RawMessage, key, value string) json.RawMessage {
	shown, found := sanitize.Entry(pins.WithoutVolatileMeta(raw), key)
	for _, text := range found {
		s.addNote(m, jsonrpc.TextMember(raw, key), text)
	}
	out, err := jsonrpc.With(shown, jsonrpc.Member{Key: key, Value: jsonrpc.Text(value)})
	if err != nil {
		return raw
	}
	return out
}

// setPrints computes the fingerprints of the lists, which show changes. lazy reports
// whether clients get tool search by default.
func (s *surface) setPrints(lazy bool) {
	mark := func(kind Kind, lists ...[]*entry) {
		hash := sha256.New()
		for _, list := range lists {
			for _, e := range list {
				hash.Write(e.shown)
			}
		}
		s.prints[kind] = hex.EncodeToString(hash.Sum(nil))
	}
	tools := lists.Map(s.tools, func(t *tool) *entry { return &t.entry })
	mark(KindTools, tools)
	s.prints[KindTools] += strconv.FormatBool(lazy && len(s.members) > 0)
	mark(KindPrompts, s.prompts)
	mark(KindResources, s.resources, s.templates)
}
