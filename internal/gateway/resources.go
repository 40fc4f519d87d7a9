package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/yosida95/uritemplate/v3"
)

// scheme is the prefix of a URI that contains the name of its upstream.
const scheme = "guideway-upstream:"

// uiScheme is the prefix of the URI of a page that a host shows with a tool. Hosts accept
// no other scheme for it.
const uiScheme = "ui://"

// addressOf returns a URI with the name of its upstream in it. A page keeps its scheme.
func addressOf(m *member, uri string) string {
	if page, ok := strings.CutPrefix(uri, uiScheme); ok {
		return uiScheme + m.Name() + "/" + page
	}
	return scheme + m.Name() + "/" + uri
}

// isForeignPage reports whether the URI of a page has the name of another upstream in it.
// An upstream must not replace a page of another upstream.
func (s *surface) isForeignPage(m *member, uri string) bool {
	page, ok := strings.CutPrefix(uri, uiScheme)
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(page, "/")
	return slices.ContainsFunc(s.members, func(other *member) bool {
		return other.Name() != m.Name() && strings.EqualFold(other.Name(), authority)
	})
}

// findPageOwner returns the upstream that the URI of a page names, and the upstream's own
// URI of the page.
func (s *surface) findPageOwner(uri string) (*member, string) {
	page, ok := strings.CutPrefix(uri, uiScheme)
	if !ok {
		return nil, ""
	}
	name, original, _ := strings.Cut(page, "/")
	for _, m := range s.members {
		// If no other upstream has pages, the URIs of pages are unchanged.
		if m.Name() == name && original != "" && s.realms["ui"] != m {
			return m, uiScheme + original
		}
	}
	return nil, ""
}

// isReservedURI reports whether a URI has one of this server's schemes. An upstream must
// not replace the server's workflows or runs.
func isReservedURI(uri string) bool {
	name, _, _ := strings.Cut(uri, ":")
	return strings.EqualFold(name, "guideway") || strings.EqualFold(name+":", scheme)
}

// maxAddress is the maximum length of a URI that is matched against templates.
const maxAddress = 4 << 10

// addResources adds resources and templates. A URI that an earlier upstream also has, that
// is reserved, or that is too general is offered with the upstream's name in it, and so is
// a page whose URI contains the name of another upstream.
func (s *surface) addResources(m *member, c *upstream.Catalog) {
	add := func(raw json.RawMessage, key string, claims bool) *entry {
		e := &entry{member: m, original: textMember(raw, key)}
		e.name = e.original
		if s.address[e.name] != nil || !claims {
			e.name = addressOf(m, e.original)
		}
		if s.address[e.name] != nil {
			s.addNote(m, e.original, "the resource or template is omitted: its URI is already in use")
			return nil
		}
		e.shown = s.shownAs(m, raw, key, e.name)
		s.address[e.name] = e
		if realm := realmOf(e.original); realm != "" && claims {
			if owner, taken := s.realms[realm]; taken && owner != m {
				s.realms[realm] = nil
			} else if !taken {
				s.realms[realm] = m
			}
		}
		return e
	}
	for _, raw := range c.Resources {
		uri := textMember(raw, "uri")
		if e := add(raw, "uri", !isReservedURI(uri) && !s.isForeignPage(m, uri)); e != nil {
			s.resources = append(s.resources, e)
		}
	}
	for _, raw := range c.Templates {
		original := textMember(raw, "uriTemplate")
		literal, _, _ := strings.Cut(original, "{")
		claims := isClaimable(literal) && !s.isForeignPage(m, literal)
		e := add(raw, "uriTemplate", claims)
		if e == nil {
			continue
		}
		if !claims {
			s.addNote(m, original, "the resource template is offered as "+e.name+": "+s.unclaimedReason(m, literal))
		}
		s.addTemplate(m, e, literal)
	}
}

// unclaimedReason returns the reason why a template is offered with the upstream's name.
func (s *surface) unclaimedReason(m *member, literal string) string {
	switch {
	case isReservedURI(literal):
		return "its URIs are reserved for Guideway"
	case s.isForeignPage(m, literal):
		return "its URIs contain the name of another upstream"
	default:
		return "it is too general"
	}
}

// maxTemplate is the maximum length of a template that is matched, in bytes.
const maxTemplate = 1 << 10

// addTemplate adds a template with the URI that clients use.
func (s *surface) addTemplate(m *member, e *entry, literal string) {
	if len(e.name) > maxTemplate {
		s.addNote(m, e.original, fmt.Sprintf("the resource template is omitted: its URI is longer than %d bytes", maxTemplate))
		return
	}
	template, err := uritemplate.New(e.name)
	if err != nil {
		s.addNote(m, "", fmt.Sprintf("a resource template is omitted: %v", err))
		return
	}
	if e.name == e.original { // A template with the upstream's name in it needs no search.
		e.match, e.literal = template.Regexp(), literal
	}
	s.templates = append(s.templates, e)
}

// isClaimable reports whether the literal start of a template is specific enough to send
// URIs that are not listed to its upstream. It needs a scheme and further text; for public
// schemes a part of the authority or of the path, and for pages the whole authority. With a
// shorter start, URIs of other servers would reach the upstream.
func isClaimable(literal string) bool {
	name, rest, ok := strings.Cut(literal, ":")
	if !ok || name == "" || isReservedURI(literal) {
		return false
	}
	if isPublicScheme(name) {
		rest = strings.TrimPrefix(rest, "//")
	}
	if page, ok := strings.CutPrefix(literal, uiScheme); ok {
		return strings.Contains(page, "/") // a page needs its whole authority
	}
	return rest != ""
}

// isPublicScheme reports whether many servers use URIs of a scheme.
func isPublicScheme(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss", "ftp", "file", "data", "urn", "mailto":
		return true
	}
	return false
}

// realmOf returns the part that a URI shares with other URIs of the same upstream: its
// scheme, and for public schemes also the authority. It returns "" for a reserved URI, and
// if one of these parts is missing or contains variables.
func realmOf(uri string) string {
	name, rest, ok := strings.Cut(uri, ":")
	if !ok || name == "" || strings.Contains(name, "{") || isReservedURI(uri) {
		return ""
	}
	name = strings.ToLower(name)
	if !isPublicScheme(name) {
		return name
	}
	authority, found := strings.CutPrefix(rest, "//")
	if !found {
		return ""
	}
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	if strings.Contains(authority, "{") {
		return ""
	}
	return name + "://" + strings.ToLower(authority)
}

// findRoute returns the upstream of a URI, and the upstream's URI for it; the upstream is
// nil if none exists. A URI that begins with guideway-upstream: names its upstream. For
// other URIs the upstream is, in this order: the upstream that lists the URI; the upstream
// with the most specific matching template, by precedence among equals; the upstream that
// the URI of a page names; the only upstream that uses the realm of the URI. A URI is never
// sent to several upstreams, because it may be a secret.
func (s *surface) findRoute(g *Gateway, uri string) (*member, string) {
	if rest, ok := strings.CutPrefix(uri, scheme); ok {
		name, original, _ := strings.Cut(rest, "/")
		return g.findMember(name), original
	}
	if e := s.address[uri]; e != nil {
		return e.member, e.original
	}
	if len(uri) > maxAddress || isReservedURI(uri) {
		return nil, ""
	}
	var best *entry
	for _, e := range s.templates {
		if e.match != nil && (best == nil || len(e.literal) > len(best.literal)) && e.match.MatchString(uri) {
			best = e
		}
	}
	if best != nil {
		return best.member, uri
	}
	if m, original := s.findPageOwner(uri); m != nil {
		return m, original
	}
	return s.realms[realmOf(uri)], uri
}
