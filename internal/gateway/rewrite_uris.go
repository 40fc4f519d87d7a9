package gateway

import (
	"bytes"
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
)

// rewriteURIs changes the resource URIs in a result that would not lead back to the
// upstream that returned them: two servers of the same kind have the same URIs. Links to
// web pages and texts that are not resource URIs stay unchanged, and a result without
// resource URIs is returned byte for byte.
func (g *Gateway) rewriteURIs(c *Client, to route, result json.RawMessage) json.RawMessage {
	if !mayHaveURIs(result) {
		return result
	}
	a := uriRewriter{surface: g.surfaceOf(c), member: to.member, read: to}
	return a.rewriteMembers(result, map[string]change{
		"_meta":   a.rewriteMeta,
		"content": a.rewriteItems, "contents": func(raw json.RawMessage) json.RawMessage { return a.rewriteContents(raw, a.nameURI) },
		"messages": func(raw json.RawMessage) json.RawMessage {
			return jsonrpc.RewriteList(raw, func(message json.RawMessage) json.RawMessage {
				return a.rewriteMembers(message, map[string]change{"content": a.rewriteItems})
			})
		},
	})
}

// mayHaveURIs reports whether a result can have resource URIs: it has a member "uri", the
// scheme of a page in any case, or an escaped character that can be a part of them. The
// member _meta alone is not a reason to parse a result, because every result of the latest
// protocol version has it.
func mayHaveURIs(result json.RawMessage) bool {
	for _, sign := range []string{`"uri"`, "ui:", "uI:", "Ui:", "UI:"} {
		if bytes.Contains(result, []byte(sign)) {
			return true
		}
	}
	escape := []byte(`\u00`)
	for i := bytes.Index(result, escape); i >= 0; i = bytes.Index(result, escape) {
		result = result[i+len(escape):]
		if len(result) > 1 && (result[0] >= '4' && result[0] <= '7' || result[0] == '3' && result[1]|' ' == 'a') {
			return true
		}
	}
	return false
}

// uriRewriter rewrites the URIs of one upstream.
type uriRewriter struct {
	surface *surface
	member  *member
	// read is the route of the request. If the request reads a resource, the URI of that
	// resource in the result becomes the URI that the client used.
	read route
}

type change func(json.RawMessage) json.RawMessage

// rewriteMembers changes some members of an object. If nothing changes, it returns the same
// bytes.
func (a *uriRewriter) rewriteMembers(raw json.RawMessage, by map[string]change) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	return jsonrpc.RewriteObject(raw, func(key string, value json.RawMessage) json.RawMessage {
		if f := by[key]; f != nil {
			return f(value)
		}
		return value
	})
}

// rewriteItems rewrites parts of a message or of a tool's answer.
func (a *uriRewriter) rewriteItems(raw json.RawMessage) json.RawMessage {
	return jsonrpc.RewriteList(raw, func(item json.RawMessage) json.RawMessage {
		switch jsonrpc.TextMember(item, "type") {
		case "resource_link":
			return a.rewriteMembers(item, map[string]change{"uri": a.rewriteURI})
		case "resource":
			return a.rewriteMembers(item, map[string]change{"resource": func(raw json.RawMessage) json.RawMessage { return a.rewriteContents(raw, a.rewriteURI) }})
		}
		return item
	})
}

// rewriteContents rewrites the URIs of the contents of resources.
func (a *uriRewriter) rewriteContents(raw json.RawMessage, uri change) json.RawMessage {
	return jsonrpc.RewriteList(raw, func(item json.RawMessage) json.RawMessage {
		return a.rewriteMembers(item, map[string]change{"uri": uri})
	})
}

// rewriteMeta rewrites the URIs of pages in the _meta of a tool or of a result: members such
// as "ui/resourceUri", and those of the member "ui".
func (a *uriRewriter) rewriteMeta(raw json.RawMessage) json.RawMessage {
	rewritePage := func(value json.RawMessage) json.RawMessage {
		if bytes.HasPrefix(value, []byte(`"`)) && pins.IsPage(jsonrpc.TextOf(value)) {
			return a.rewriteURI(value)
		}
		return value
	}
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	return jsonrpc.RewriteObject(raw, func(key string, value json.RawMessage) json.RawMessage {
		if key == "ui" && value[0] == '{' {
			return jsonrpc.RewriteObject(value, func(_ string, each json.RawMessage) json.RawMessage { return rewritePage(each) })
		}
		return rewritePage(value)
	})
}

// nameURI rewrites the URI of a resource of the upstream.
func (a *uriRewriter) nameURI(raw json.RawMessage) json.RawMessage {
	uri := jsonrpc.TextOf(raw)
	name := a.surface.clientURI(a.member, uri)
	if a.read.method == methodRead && uri == a.read.original {
		name = a.read.shown
	}
	if uri == "" || name == uri {
		return raw
	}
	return jsonrpc.Text(name)
}

// rewriteURI rewrites a URI in a result if it can be the URI of a resource of an upstream.
func (a *uriRewriter) rewriteURI(raw json.RawMessage) json.RawMessage {
	uri := jsonrpc.TextOf(raw)
	begin, rest := splitURI(uri)
	scheme := schemeOf(begin)
	_, used := a.surface.realms[realmOf(begin, rest)]
	_, _, named := a.surface.findNamed(uri)
	if used || named || pins.IsPage(uri) || isReserved(scheme) || begin != "" && !isPublicScheme(scheme) && a.hasResources() {
		return a.nameURI(raw)
	}
	return raw
}

// hasResources reports whether the upstream declares resources.
func (a *uriRewriter) hasResources() bool {
	known := a.member.Known()
	return known != nil && known.Info.Capabilities.Resources != nil
}
