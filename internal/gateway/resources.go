package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/yosida95/uritemplate/v3"
)

// scheme begins an address that says which upstream it is of.
const scheme = "guideway-upstream:"

func addressOf(m *member, uri string) string { return scheme + m.Name() + "/" + uri }

// reserved tells whether an address is of a scheme of ours: what an upstream says of
// itself must not take the place of our workflows and runs.
func reserved(uri string) bool {
	name, _, _ := strings.Cut(uri, ":")
	return strings.EqualFold(name, "guideway") || strings.EqualFold(name+":", scheme)
}

// maxAddress bounds what is matched against templates.
const maxAddress = 4 << 10

// addResources adds resources and templates. An address that an earlier upstream
// has too, or that is one of ours, is offered with the upstream's name in it.
func (s *surface) addResources(m *member, c *upstream.Catalog) {
	add := func(raw json.RawMessage, key string, claims bool) *entry {
		e := &entry{member: m, original: member1(raw, key)}
		e.name = e.original
		if s.address[e.name] != nil || !claims {
			e.name = addressOf(m, e.original)
		}
		if s.address[e.name] != nil {
			s.note(m, e.original, "the resource is left out: its address is taken")
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
		if e := add(raw, "uri", !reserved(member1(raw, "uri"))); e != nil {
			s.resources = append(s.resources, e)
		}
	}
	for _, raw := range c.Templates {
		original := member1(raw, "uriTemplate")
		literal, _, _ := strings.Cut(original, "{")
		claims := claimable(literal)
		e := add(raw, "uriTemplate", claims)
		if e == nil {
			continue
		}
		if !claims {
			s.note(m, original, "the resource template is for nearly everything, or for addresses of Guideway: it is offered as "+e.name)
		}
		s.addTemplate(m, e, literal)
	}
}

// addTemplate adds a template whose address is settled.
func (s *surface) addTemplate(m *member, e *entry, literal string) {
	if len(e.name) > 1<<10 {
		s.note(m, e.original, "the template is too long to be matched")
		return
	}
	template, err := uritemplate.New(e.name)
	if err != nil {
		s.note(m, "", fmt.Sprintf("a resource template is left out: %v", err))
		return
	}
	if e.name == e.original { // one with the upstream's name in it needs no search
		e.match, e.literal = template.Regexp(), literal
	}
	s.templates = append(s.templates, e)
}

// claimable tells whether what a template begins with says enough for an upstream to
// be asked for what nobody has listed: a scheme and something behind it, and of the
// schemes of all the world a part of the authority, or of the path. With less than that
// it would be told addresses that are no business of its own.
func claimable(literal string) bool {
	name, rest, ok := strings.Cut(literal, ":")
	if !ok || name == "" || reserved(literal) {
		return false
	}
	if worldly(name) {
		rest = strings.TrimPrefix(rest, "//")
	}
	return rest != ""
}

// worldly tells whether addresses of a scheme are of many.
func worldly(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss", "ftp", "file", "data", "urn", "mailto":
		return true
	}
	return false
}

// realmOf is what an address shares with others of the same upstream: its scheme, and
// of the schemes of all the world the authority too. It is empty where those are not
// settled.
func realmOf(uri string) string {
	name, rest, ok := strings.Cut(uri, ":")
	if !ok || name == "" || strings.Contains(name, "{") || reserved(uri) {
		return ""
	}
	name = strings.ToLower(name)
	if !worldly(name) {
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

// route finds whose resource an address is, and how the upstream calls it: who lists
// it, or else whose template says the most of it, in order of precedence where several
// say the same. An address that nobody has offered goes to the upstream whose realm it
// is of, if there is one such. It never goes to several: an address may be a secret.
func (s *surface) route(g *Gateway, uri string) (*member, string) {
	if rest, ok := strings.CutPrefix(uri, scheme); ok {
		name, original, _ := strings.Cut(rest, "/")
		return g.member(name), original
	}
	if e := s.address[uri]; e != nil {
		return e.member, e.original
	}
	if len(uri) > maxAddress || reserved(uri) {
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
	return s.realms[realmOf(uri)], uri
}
