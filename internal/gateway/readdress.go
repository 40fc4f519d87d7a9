package gateway

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// readdress has the addresses of resources in a result lead to the upstream that has
// given them, where they would lead to another one: two servers of one kind have the
// same addresses. Links to pages of the web, and all that is not the address of a
// resource, are left as they are; so is a result without any, byte for byte.
func (g *Gateway) readdress(m *member, result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte(`"uri"`)) {
		return result
	}
	known := m.Known()
	if known == nil || known.Info.Capabilities.Resources == nil {
		return result
	}
	a := addresses{gateway: g, surface: g.surface.Load(), member: m}
	return a.members(result, map[string]change{
		"content": a.items, "contents": a.contents,
		"messages": func(raw json.RawMessage) json.RawMessage {
			return list(raw, func(message json.RawMessage) json.RawMessage {
				return a.members(message, map[string]change{"content": a.items})
			})
		},
	})
}

// addresses writes the addresses of one upstream anew.
type addresses struct {
	gateway *Gateway
	surface *surface
	member  *member
}

type change func(json.RawMessage) json.RawMessage

// members changes some members of an object, and gives the very same one where nothing
// changes.
func (a *addresses) members(raw json.RawMessage, by map[string]change) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	var all []wire.Member
	changed := false
	err := wire.Each(raw, func(key string, value json.RawMessage) error {
		next := value
		if f := by[key]; f != nil {
			next = f(value)
		}
		changed = changed || !same(next, value)
		all = append(all, wire.Member{Key: key, Value: next})
		return nil
	})
	if err != nil || !changed {
		return raw
	}
	return wire.Object(all...)
}

// list changes the entries of a list, or what stands in its place.
func list(raw json.RawMessage, f change) json.RawMessage {
	if raw[0] != '[' {
		return f(raw)
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return raw
	}
	changed := false
	for i, part := range parts {
		parts[i] = f(part)
		changed = changed || !same(parts[i], part)
	}
	if !changed {
		return raw
	}
	return append(append(json.RawMessage{'['}, bytes.Join(raws(parts), []byte{','})...), ']')
}

// items are parts of a message or of a tool's answer.
func (a *addresses) items(raw json.RawMessage) json.RawMessage {
	return list(raw, func(item json.RawMessage) json.RawMessage {
		switch member1(item, "type") {
		case "resource_link":
			return a.members(item, map[string]change{"uri": a.uri})
		case "resource":
			return a.members(item, map[string]change{"resource": a.contents})
		}
		return item
	})
}

// contents are what was read of resources.
func (a *addresses) contents(raw json.RawMessage) json.RawMessage {
	return list(raw, func(item json.RawMessage) json.RawMessage { return a.members(item, map[string]change{"uri": a.uri}) })
}

func (a *addresses) uri(raw json.RawMessage) json.RawMessage {
	var uri string
	if json.Unmarshal(raw, &uri) != nil || uri == "" {
		return raw
	}
	owner, _ := a.surface.route(a.gateway, uri)
	name, _, _ := strings.Cut(uri, ":")
	switch {
	case owner != nil && owner.Name() == a.member.Name() && !strings.HasPrefix(uri, scheme):
		return raw
	case owner == nil && worldly(name):
		return raw
	}
	return wire.Text(addressOf(a.member, uri))
}
