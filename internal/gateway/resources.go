package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/yosida95/uritemplate/v3"
)

// namesPath separates the name of an upstream from the scheme "guideway", so that the URI
// differs from all URIs of this server.
const namesPath = "upstreams/"

// splitURI splits a URI or a URI template. The beginning is the scheme with its colon, and
// the slashes of an authority; it is empty without a scheme.
func splitURI(uri string) (begin, rest string) {
	name, rest, ok := strings.Cut(uri, ":")
	if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-.", r))
	}) {
		return "", uri
	}
	begin = uri[:len(name)+1]
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		return begin + "//", after
	}
	return begin, rest
}

// schemeOf returns the scheme of the beginning of a URI.
func schemeOf(begin string) string { return strings.ToLower(strings.TrimRight(begin, ":/")) }

// isReserved reports whether a scheme is the scheme of this server. An upstream must not
// replace the server's workflows or runs.
func isReserved(scheme string) bool { return scheme == "guideway" }

// realmOf returns the part that a URI shares with other URIs of the same upstream: its
// scheme, and for public schemes also the authority. A public URI without an authority, or
// one without a scheme, is its own realm. It returns "" for a reserved URI, and if one of
// these parts contains variables.
func realmOf(begin, rest string) string {
	scheme := schemeOf(begin)
	switch {
	case isReserved(scheme):
		return ""
	case begin != "" && !isPublicScheme(scheme):
		return scheme
	}
	if authority := strings.HasSuffix(begin, "//"); authority {
		if end := strings.IndexAny(rest, "/?#"); end >= 0 {
			rest = rest[:end]
		}
		rest = strings.ToLower(rest)
	}
	if strings.Contains(rest, "{") {
		return ""
	}
	return scheme + begin[len(scheme):] + rest
}

// claimRealms records the realms of the URIs and templates of an upstream. A realm with an
// open template, or with several upstreams, belongs to none of them.
func (s *surface) claimRealms(m *member, c *upstream.Catalog, waiting map[string]string) {
	claim := func(uri string, open bool) {
		realm := realmOf(splitURI(uri))
		if owner, taken := s.realms[realm]; taken && owner != m || open {
			s.realms[realm] = nil
		} else if realm != "" {
			s.realms[realm] = m
		}
	}
	for _, raw := range c.Resources {
		claim(jsonrpc.TextMember(raw, "uri"), false)
	}
	for _, raw := range c.Templates {
		if uri := jsonrpc.TextMember(raw, "uriTemplate"); waiting[pins.TemplatePrefix+uri] == "" {
			claim(uri, isOpen(uri))
		}
	}
}

// isOpen reports whether URIs of a template can begin with any path, also with the name of
// an upstream.
func isOpen(template string) bool {
	_, rest := splitURI(template)
	first, _, more := strings.Cut(rest, "/")
	return strings.Contains(first, "{+") || more && strings.Contains(first, "{")
}

// needsName reports whether clients use a URI of an upstream with the upstream's name in it:
// if the realm of the URI does not belong to the upstream, and if the URI without the name
// could be taken for a URI that contains the name of an upstream.
func (s *surface) needsName(m *member, uri string) bool {
	begin, rest := splitURI(uri)
	for {
		if realm := realmOf(begin, rest); realm == "" || s.realms[realm] != m {
			return true
		}
		name, after, ok := strings.Cut(rest, "/")
		if !ok || name != m.Name() {
			return ok && s.upstreams[strings.ToLower(name)]
		}
		rest = after
	}
}

// clientURI returns the form in which clients use a URI or URI template of an upstream:
// unchanged, or, if needsName returns true, with the upstream's name inserted after the
// scheme (for a reserved scheme, after namesPath).
func (s *surface) clientURI(m *member, uri string) string {
	if !s.needsName(m, uri) {
		return uri
	}
	begin, rest := splitURI(uri)
	if isReserved(schemeOf(begin)) {
		begin += namesPath
	}
	return begin + m.Name() + "/" + rest
}

// findNamed returns the upstream whose name a URI contains, and the upstream's URI. named is
// false if the URI contains no name, and the upstream is nil if it is not in use.
func (s *surface) findNamed(uri string) (m *member, original string, named bool) {
	begin, rest := splitURI(uri)
	name := rest
	if isReserved(schemeOf(begin)) {
		if name, named = strings.CutPrefix(rest, namesPath); !named {
			return nil, "", false
		}
	}
	name, after, ok := strings.Cut(name, "/")
	if !ok || !s.upstreams[strings.ToLower(name)] {
		return nil, "", false
	}
	if i := slices.IndexFunc(s.members, func(m *member) bool { return m.Name() == name }); i >= 0 {
		m = s.members[i]
	}
	if m != nil && s.realms[realmOf(begin, rest)] == m && !s.needsName(m, begin+after) {
		return nil, "", false // The name is a part of the upstream's own URI.
	}
	return m, begin + after, true
}

// findRoute returns the upstream of a URI, and the upstream's URI for it; the upstream is
// nil if no upstream is found. It is the upstream that the URI names, or else the only one
// with URIs of the realm. A URI is never sent to several upstreams, because it may be a secret.
func (s *surface) findRoute(uri string) (*member, string) {
	if m, original, named := s.findNamed(uri); named {
		return m, original
	}
	return s.realms[realmOf(splitURI(uri))], uri
}

// addResources adds resources and templates. Those that wait for approval are only in
// address.
func (s *surface) addResources(m *member, c *upstream.Catalog, waiting map[string]string) {
	add := func(list *[]*entry, raw json.RawMessage, key, pin string) {
		e := &entry{member: m, original: jsonrpc.TextMember(raw, key)}
		e.name, e.blocked = s.clientURI(m, e.original), waiting[pin+e.original]
		if s.address[e.name] != nil {
			s.addNote(m, e.original, "the resource or template is omitted: its URI is already in use")
			return
		}
		if _, err := uritemplate.New(e.name); key == "uriTemplate" && err != nil {
			s.addNote(m, "", fmt.Sprintf("a resource template is omitted: %v", err))
			return
		}
		s.address[e.name] = e
		if e.blocked != "" {
			s.addNote(m, e.original, e.blocked)
			return
		}
		e.shown = s.shownAs(m, raw, key, e.name)
		*list = append(*list, e)
	}
	for _, raw := range c.Resources {
		add(&s.resources, raw, "uri", pins.ResourcePrefix)
	}
	for _, raw := range c.Templates {
		add(&s.templates, raw, "uriTemplate", pins.TemplatePrefix)
	}
}

// isPublicScheme reports whether many servers use URIs of a scheme.
func isPublicScheme(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss", "ftp", "file", "data", "urn", "mailto":
		return true
	}
	return false
}
