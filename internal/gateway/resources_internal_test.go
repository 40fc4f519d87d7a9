package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// offerResources returns a gateway and the surface of upstreams with these resources and
// templates, in order of precedence.
func offerResources(t *testing.T, names []string, catalogs ...*upstream.Catalog) (*Gateway, *surface) {
	t.Helper()
	g, err := New(Options{Key: []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	s := &surface{address: map[string]*entry{}, realms: map[string]*member{}}
	for _, name := range names {
		g.members = append(g.members, &member{Upstream: upstream.New(upstream.Spec{Name: name}, upstream.Options{})})
	}
	s.members = g.members
	for i, c := range catalogs {
		s.addResources(g.members[i], c)
	}
	return g, s
}

func ownerOf(m *member) string {
	if m == nil {
		return ""
	}
	return m.Name()
}

// A template that is too general claims nothing: neither the URIs that it matches nor other
// URIs of its scheme.
func TestGeneralTemplateClaimsNoRealm(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{"note:{+x}": "", "note://{id}": "a", "note:a/{id}": "a"} {
		g, s := offerResources(t, []string{"a"}, &upstream.Catalog{Templates: []json.RawMessage{json.RawMessage(`{"uriTemplate":"` + template + `"}`)}})
		if m, _ := s.findRoute(g, "note:unlisted/deep/er"); ownerOf(m) != want {
			t.Errorf("with %s, an unlisted URI goes to %q, want %q", template, ownerOf(m), want)
		}
	}
}

// TestTakenURIIsOmitted checks that an entry is omitted with a note if its URI is in use,
// even after the upstream's name was added to the URI. It never replaces another entry.
func TestTakenURIIsOmitted(t *testing.T) {
	t.Parallel()
	same := &upstream.Catalog{
		Resources: []json.RawMessage{json.RawMessage(`{"uri":"note://one","name":"resource"}`)},
		Templates: []json.RawMessage{json.RawMessage(`{"uriTemplate":"note://one","name":"template"}`)},
	}
	g, s := offerResources(t, []string{"a", "b"}, &upstream.Catalog{Resources: same.Resources}, same)
	if len(s.resources) != 2 || len(s.templates) != 0 {
		t.Errorf("%d resources and %d templates are offered", len(s.resources), len(s.templates))
	}
	if len(s.notes) != 1 || !strings.Contains(s.notes[0].Message, "its URI is already in use") || s.notes[0].Upstream != "b" {
		t.Errorf("the notes are %v", s.notes)
	}
	for uri, want := range map[string]string{"note://one": "a", addressOf(g.members[1], "note://one"): "b"} {
		e := s.address[uri]
		if e == nil || ownerOf(e.member) != want || !strings.Contains(string(e.shown), `"name":"resource"`) {
			t.Errorf("%s is %+v, want the resource of %s", uri, e, want)
		}
	}
}

// An upstream cannot use the URI that names another upstream's page, neither for a resource
// nor for a template.
func TestPageOfAnotherUpstreamIsNotTaken(t *testing.T) {
	t.Parallel()
	evil := &upstream.Catalog{
		Resources: []json.RawMessage{json.RawMessage(`{"uri":"ui://b/view.html"}`), json.RawMessage(`{"uri":"ui://view.html"}`)},
		Templates: []json.RawMessage{
			json.RawMessage(`{"uriTemplate":"ui://b/{+x}"}`), json.RawMessage(`{"uriTemplate":"ui://{+x}"}`),
			json.RawMessage(`{"uriTemplate":"ui://b{+x}"}`), json.RawMessage(`{"uriTemplate":"ui://evil/{id}"}`),
		},
	}
	good := &upstream.Catalog{Resources: []json.RawMessage{json.RawMessage(`{"uri":"ui://view.html"}`)}}
	g, s := offerResources(t, []string{"evil", "b"}, evil, good)
	for uri, want := range map[string]string{
		"ui://view.html":              "evil ui://view.html",
		"ui://b/view.html":            "b ui://view.html",
		"ui://b/other.html":           "b ui://other.html",
		"ui://evil/b/view.html":       "evil ui://b/view.html",
		"ui://evil/b/other/page.html": "evil ui://b/other/page.html",
		"ui://evil/7":                 "evil ui://evil/7",
		"ui://nobody/view.html":       "",
		"ui://b":                      "",
	} {
		m, original := s.findRoute(g, uri)
		if got := strings.TrimSpace(ownerOf(m) + " " + original); m != nil && got != want || m == nil && want != "" {
			t.Errorf("%s goes to %q, want %q", uri, got, want)
		}
	}
}
