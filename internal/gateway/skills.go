package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/sanitize"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// The methods of the extension for skills (SEP-2640).
const (
	methodListSkills    = "skills/list"
	methodGetSkill      = "skills/get"
	methodReadDirectory = "resources/directory/read"
)

// addSkills adds the skills of an upstream. Their texts stay unchanged, because hosts compare
// them with the files of the skill.
func (s *surface) addSkills(m *member, c *upstream.Catalog, waiting map[string]string) {
	a := uriRewriter{surface: s, member: m}
	for _, raw := range c.Skills {
		e := &entry{member: m, original: jsonrpc.TextMember(raw, "uri"), shown: a.rewriteSkill(pins.WithoutVolatileMeta(raw))}
		if why := waiting[pins.SkillPrefix+e.original]; why != "" {
			s.addNote(m, e.original, why)
			continue
		}
		s.skills = append(s.skills, e)
	}
}

// rewriteSkill rewrites the URIs of a skill and of its files.
func (a *uriRewriter) rewriteSkill(raw json.RawMessage) json.RawMessage {
	return a.rewriteMembers(raw, map[string]change{
		"uri": a.nameURI, "resources": func(files json.RawMessage) json.RawMessage { return a.rewriteContents(files, a.nameURI) },
	})
}

// listSkills returns the skills that a client sees, on one page.
func (g *Gateway) listSkills(ctx context.Context, c *Client, _ Request, _ map[string]json.RawMessage) (json.RawMessage, error) {
	skills := g.shownEntries(ctx, c, func(s *surface) []*entry { return s.skills })
	if skills == nil && !g.extensionsFor(ctx, c).Has(upstream.ExtensionSkills) {
		return nil, methodNotFound(methodListSkills)
	}
	return c.withCacheHints("skills", jsonrpc.Object(jsonrpc.Member{Key: "skills", Value: jsonrpc.List(skills...)}), nil)
}

// getSkill returns the entry of one skill, which need not be in the list of its upstream.
func (g *Gateway) getSkill(ctx context.Context, c *Client, r Request, params map[string]json.RawMessage) (json.RawMessage, error) {
	r.Name = jsonrpc.TextOf(params["uri"])
	return g.forwardToSkills(ctx, c, r, route{method: methodGetSkill}, "skill", func(a uriRewriter, original string, skill json.RawMessage) (json.RawMessage, error) {
		if err := g.checkSkill(ctx, a.member, original, skill); err != nil {
			return nil, err
		}
		return a.rewriteSkill(pins.WithoutVolatileMeta(skill)), nil
	})
}

// readDirectory lists the files of a directory of a skill.
func (g *Gateway) readDirectory(ctx context.Context, c *Client, r Request, params map[string]json.RawMessage) (json.RawMessage, error) {
	r.Name = jsonrpc.TextOf(params["uri"])
	a := route{method: methodReadDirectory}
	if cursor := params["cursor"]; cursor != nil {
		a.params = append(a.params, jsonrpc.Member{Key: "cursor", Value: cursor})
	}
	return g.forwardToSkills(ctx, c, r, a, "resources", func(a uriRewriter, _ string, list json.RawMessage) (json.RawMessage, error) {
		return jsonrpc.RewriteList(list, func(file json.RawMessage) json.RawMessage {
			shown, _ := sanitize.Entry(pins.WithoutVolatileMeta(file), "uri")
			return a.rewriteMembers(shown, map[string]change{"uri": a.nameURI})
		}), nil
	})
}

// forwardToSkills sends a request about a URI to its upstream, and changes one member of the
// result.
func (g *Gateway) forwardToSkills(ctx context.Context, c *Client, r Request, a route, member string, change func(uriRewriter, string, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	o := g.observe(c, a.method, &r)
	m, original, err := g.findOwner(ctx, c, r.Name)
	if err != nil {
		return o.endUnrouted(ctx, unknownSkill(r.Name))
	}
	known := m.Known()
	if known == nil || !known.Info.Capabilities.Extensions.Has(upstream.ExtensionSkills) ||
		a.method == methodReadDirectory && !known.Info.Capabilities.Extensions.ListsDirectories() {
		return o.endUnrouted(ctx, unknownSkill(r.Name))
	}
	a.member, a.original, a.shown = m, original, r.Name
	result, err := g.sendRouted(ctx, c, o, a, r)
	if err != nil {
		return nil, err
	}
	members, err := jsonrpc.Members(result, member)
	if err != nil || members[member] == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("the answer of the upstream %s has no valid member %q", m.Name(), member)}
	}
	changed, err := change(uriRewriter{surface: g.surfaceOf(c), member: m}, original, members[member])
	if err != nil {
		return nil, err
	}
	result, err = jsonrpc.With(result, jsonrpc.Member{Key: member, Value: changed})
	return c.withCacheHints(member, result, err)
}

// unknownSkill returns the error for a URI that is no skill or directory of an upstream with
// skills.
func unknownSkill(uri string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("no upstream has a skill or a directory %q", clipText(uri, maxAddress))}
}

// checkSkill compares the entry of a skill that an upstream returned with its pin. A skill
// without a pin is not in the upstream's list, and is returned unless everything needs
// approval.
func (g *Gateway) checkSkill(ctx context.Context, m *member, uri string, skill json.RawMessage) error {
	if given := jsonrpc.TextMember(skill, "uri"); given != uri {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("the upstream %s returned the skill %q instead of %q", m.Name(), clipText(given, maxAddress), clipText(uri, maxAddress))}
	}
	if g.opts.Pins == nil || m.Pins == pins.ModeOff {
		return nil
	}
	refuse := func(why string) error {
		return blockedError("the skill "+clipText(uri, maxAddress), why, m)
	}
	pin, err := pins.Of(skill)
	if err != nil {
		return refuse(invalidDefinition + err.Error())
	}
	approved, err := g.opts.Pins.Approved(m.Name())
	if err != nil {
		return withheldError("the skill "+clipText(uri, maxAddress), "the approvals cannot be read", err)
	}
	switch old, known := approved[pins.SkillPrefix+uri]; {
	case known && old.Hash == pin.Hash:
		return nil
	case known:
		_, _ = m.Refresh(ctx, m.listWant()) // The review shows the change if the upstream can be asked.
		return refuse("changed since its approval")
	case m.Pins == pins.ModeApprove:
		return refuse("new skill")
	}
	return nil
}
