package gateway

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// rewriteURIs changes the resource URIs in a result that would not lead back to the
// upstream that returned them: two servers of the same kind have the same URIs. Links to
// web pages and texts that are not resource URIs stay unchanged, and a result without
// resource URIs is returned byte for byte.
func (g *Gateway) rewriteURIs(c *Client, m *member, result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte(`"uri"`)) && !bytes.Contains(result, []byte(`"_meta"`)) {
		return result
	}
	a := uriRewriter{gateway: g, surface: g.surfaceOf(c), member: m}
	return a.rewriteMembers(result, map[string]change{
		"_meta":   a.rewriteMeta,
		"content": a.rewriteItems, "contents": a.rewriteContents,
		"messages": func(raw json.RawMessage) json.RawMessage {
			return rewriteList(raw, func(message json.RawMessage) json.RawMessage {
				return a.rewriteMembers(message, map[string]change{"content": a.rewriteItems})
			})
		},
	})
}

// uriRewriter rewrites the URIs of one upstream.
type uriRewriter struct {
	gateway *Gateway
	surface *surface
	member  *member
}

type change func(json.RawMessage) json.RawMessage

// rewriteMembers changes some members of an object. If nothing changes, it returns the same
// bytes.
func (a *uriRewriter) rewriteMembers(raw json.RawMessage, by map[string]change) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	return rewriteObject(raw, func(key string, value json.RawMessage) json.RawMessage {
		if f := by[key]; f != nil {
			return f(value)
		}
		return value
	})
}

// rewriteItems rewrites parts of a message or of a tool's answer.
func (a *uriRewriter) rewriteItems(raw json.RawMessage) json.RawMessage {
	return rewriteList(raw, func(item json.RawMessage) json.RawMessage {
		switch textMember(item, "type") {
		case "resource_link":
			return a.rewriteMembers(item, map[string]change{"uri": a.rewriteURI})
		case "resource":
			return a.rewriteMembers(item, map[string]change{"resource": a.rewriteContents})
		}
		return item
	})
}

// rewriteContents rewrites the contents of read resources.
func (a *uriRewriter) rewriteContents(raw json.RawMessage) json.RawMessage {
	return rewriteList(raw, func(item json.RawMessage) json.RawMessage {
		return a.rewriteMembers(item, map[string]change{"uri": a.rewriteURI})
	})
}

// rewriteMeta rewrites the URIs of pages in the _meta of a tool or of a result: members such
// as "ui/resourceUri", and those of the member "ui".
func (a *uriRewriter) rewriteMeta(raw json.RawMessage) json.RawMessage {
	rewritePage := func(value json.RawMessage) json.RawMessage {
		if bytes.HasPrefix(value, []byte(`"`)) && strings.HasPrefix(textOf(value), uiScheme) {
			return a.rewriteURI(value)
		}
		return value
	}
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	return rewriteObject(raw, func(key string, value json.RawMessage) json.RawMessage {
		if key == "ui" && value[0] == '{' {
			return rewriteObject(value, func(_ string, each json.RawMessage) json.RawMessage { return rewritePage(each) })
		}
		return rewritePage(value)
	})
}

// textOf returns the text of a JSON string, or "".
func textOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text)
	return text
}

func (a *uriRewriter) rewriteURI(raw json.RawMessage) json.RawMessage {
	uri := textOf(raw)
	if uri == "" || !strings.HasPrefix(uri, uiScheme) && !a.hasResources() {
		return raw
	}
	owner, original := a.surface.findRoute(a.gateway, uri)
	name, _, _ := strings.Cut(uri, ":")
	switch {
	case owner != nil && owner.Name() == a.member.Name() && original == uri:
		return raw
	case owner == nil && isPublicScheme(name):
		return raw
	}
	return jsonrpc.Text(addressOf(a.member, uri))
}

// hasResources reports whether the upstream declares resources. If it does not, only the
// URIs of its pages are resource URIs.
func (a *uriRewriter) hasResources() bool {
	known := a.member.Known()
	return known != nil && known.Info.Capabilities.Resources != nil
}
