package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"pgregory.net/rapid"
)

// offerResources returns the surface of upstreams with these resources and templates, in
// order of precedence.
func offerResources(names []string, catalogs ...*upstream.Catalog) *surface {
	s := &surface{address: map[string]*entry{}, realms: map[string]*member{}, upstreams: map[string]bool{}}
	for _, name := range names {
		s.members = append(s.members, &member{Upstream: upstream.New(upstream.Spec{Name: name}, upstream.Options{})})
		s.upstreams[strings.ToLower(name)] = true
	}
	for i, c := range catalogs {
		s.claimRealms(s.members[i], c, nil)
	}
	for i, c := range catalogs {
		s.addResources(s.members[i], c, nil)
	}
	return s
}

func ownerOf(m *member) string {
	if m == nil {
		return ""
	}
	return m.Name()
}

// offeredCatalog returns a catalog with resources, and templates, which contain a brace.
func offeredCatalog(uris ...string) *upstream.Catalog {
	c := &upstream.Catalog{}
	for _, uri := range uris {
		if strings.Contains(uri, "{") {
			c.Templates = append(c.Templates, json.RawMessage(`{"uriTemplate":"`+uri+`"}`))
			continue
		}
		c.Resources = append(c.Resources, json.RawMessage(`{"uri":"`+uri+`"}`))
	}
	return c
}

// A template whose URIs can begin with the name of any upstream claims no realm.
func TestOpenTemplateClaimsNoRealm(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"note:{+x}": "", "note:{x}/y": "", "note:{+x}y": "", "{+x}": "", "note:{x}": "a", "note:a/{+id}": "", "note:b/{+id}": "a",
	} {
		s := offerResources([]string{"a"}, offeredCatalog(template))
		if m, _ := s.findRoute("note:unlisted/deep/er"); template != "note:a/{+id}" && ownerOf(m) != want {
			t.Errorf("with %s, an unlisted URI goes to %q, want %q", template, ownerOf(m), want)
		}
	}
}

// TestTakenURIIsOmitted checks that an entry is omitted with a note if the upstream has
// another one with its URI.
func TestTakenURIIsOmitted(t *testing.T) {
	t.Parallel()
	same := &upstream.Catalog{
		Resources: []json.RawMessage{json.RawMessage(`{"uri":"note://one","name":"resource"}`)},
		Templates: []json.RawMessage{json.RawMessage(`{"uriTemplate":"note://one","name":"template"}`), json.RawMessage(`{"uriTemplate":"note://{"}`)},
	}
	s := offerResources([]string{"a", "b"}, &upstream.Catalog{Resources: same.Resources}, same)
	if len(s.resources) != 2 || len(s.templates) != 0 {
		t.Errorf("%d resources and %d templates are offered", len(s.resources), len(s.templates))
	}
	if len(s.notes) != 2 || !strings.Contains(s.notes[0].Message, "its URI is already in use") || s.notes[0].Upstream != "b" {
		t.Errorf("the notes are %v", s.notes)
	}
	for uri, want := range map[string]string{"note://a/one": "a", "note://b/one": "b"} {
		e := s.address[uri]
		if e == nil || ownerOf(e.member) != want || !strings.Contains(string(e.shown), `"name":"resource"`) {
			t.Errorf("%s is %+v, want the resource of %s", uri, e, want)
		}
	}
}

// The URI that clients use for a URI of an upstream has the same scheme, belongs to one
// upstream alone, and leads back to it, for all combinations of offers.
func TestClientURILeadsBack(t *testing.T) {
	t.Parallel()
	uris := []string{
		"note://x", "note:x", "note://one/x", "note://two/x", "note://one/two/x", "note://one/one/x", "note://TWO/x", "note:one/x", "note:/x", "note:", "NOTE://x",
		"ui://view.html", "ui://one/view.html", "ui://two/one/view.html", "file:///home/x", "file://one//home/x", "https://example.com/x", "https://one/example.com/x",
		"https://two", "https://Example.com?x=/y", "urn:isbn:1", "data:text/plain,a/b", "plain", "one/plain", "two/note://x", "/x", "", "a b:c", "guideway://runs/1", "guideway:x", "guideway://upstreams/one/x",
		"note://{id}", "note://{id}/x", "note://{+x}", "note://one/{id}", "ui://{name}.html", "https://{host}/x", "https://example.com/{+x}", "file:///{+x}", "{+x}", "{scheme}://x", "urn:isbn:{n}", "guideway://{+x}",
	}
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"one", "two", "Two", "three"}[:rapid.IntRange(1, 4).Draw(t, "upstreams")]
		var catalogs []*upstream.Catalog
		for range names {
			catalogs = append(catalogs, offeredCatalog(rapid.SliceOfN(rapid.SampledFrom(uris), 0, 4).Draw(t, "offered")...))
		}
		s := offerResources(names, catalogs...)
		all := map[string]string{}
		for _, m := range s.members {
			for _, original := range uris {
				uri := s.clientURI(m, original)
				before, _ := splitURI(original)
				if begin, _ := splitURI(uri); begin != before {
					t.Fatalf("%s of %s becomes %s", original, m.Name(), uri)
				}
				if other := all[uri]; other != "" {
					t.Fatalf("%s stands for %s of %s and for %s", uri, original, m.Name(), other)
				}
				all[uri] = original + " of " + m.Name()
				if owner, got := s.findRoute(uri); ownerOf(owner) != m.Name() || got != original {
					t.Fatalf("%s for %s of %s leads to %s of %q", uri, original, m.Name(), got, ownerOf(owner))
				}
			}
		}
	})
}

// An upstream cannot use a URI that contains the name of another upstream. Its URIs do not
// get its own name as long as no other upstream has URIs of their realm.
func TestClientURI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		offered []string // by upstream a and, after "|", by upstream b
		uri     string   // of upstream a
		want    string
	}{
		{[]string{"ui://view.html"}, "ui://view.html", "ui://view.html"},
		{[]string{"ui://view.html"}, "ui://a/view.html", "ui://a/view.html"},
		{[]string{"ui://view.html"}, "ui://b/view.html", "ui://a/b/view.html"},
		{[]string{"ui://view.html"}, "ui://a/b/view.html", "ui://a/a/b/view.html"},
		{[]string{"ui://view.html"}, "ui://B/view.html", "ui://a/B/view.html"},
		{[]string{"ui://view.html", "|", "ui://view.html"}, "ui://view.html", "ui://a/view.html"},
		{[]string{"ui://view.html", "|", "ui://other.html"}, "ui://view.html", "ui://a/view.html"},
		{[]string{"file:///x", "|", "https://example.com/"}, "file:///x", "file:///x"},
		{[]string{"file:///x", "|", "file:///y"}, "file:///x", "file://a//x"},
		{[]string{"https://a.example/x", "|", "https://b.example/x"}, "https://a.example/y", "https://a.example/y"},
		{[]string{"https://a.example/x", "|", "https://b.example/x"}, "https://b.example/y", "https://a/b.example/y"},
		{[]string{"urn:isbn:1"}, "urn:isbn:1", "urn:isbn:1"},
		{[]string{"urn:isbn:1"}, "urn:isbn:2", "urn:a/isbn:2"},
		{[]string{"guideway://runs/1"}, "guideway://runs/1", "guideway://upstreams/a/runs/1"},
		{[]string{"note:x", "note:{+x}"}, "note:x", "note:a/x"},
	} {
		list := [2][]string{}
		i := 0
		for _, uri := range c.offered {
			if uri == "|" {
				i = 1
				continue
			}
			list[i] = append(list[i], uri)
		}
		s := offerResources([]string{"a", "b"}, offeredCatalog(list[0]...), offeredCatalog(list[1]...))
		if got := s.clientURI(s.members[0], c.uri); got != c.want {
			t.Errorf("with %q, %s becomes %s, want %s", c.offered, c.uri, got, c.want)
		}
	}
}
