package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestUpstreamGetsOnlyItsOwnURIs checks that an upstream is asked only for URIs that contain
// its name, and for those of a realm that no other upstream has (see realmOf). It gets no
// other URI, even with the highest precedence, because it could fake the contents of other
// upstreams, of the web or of this server.
func TestUpstreamGetsOnlyItsOwnURIs(t *testing.T) {
	t.Parallel()
	off := newEntry(t, "off")
	off.Disabled = true
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "grasping", upstreamtest.ClaimsForeignResources), newEntry(t, "good"), off}})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames() // Listing the tools asks both upstreams.
		for uri, want := range map[string]string{
			"note://one":                                  "",
			"note://good/one":                             "the note",
			"note://good/any":                             "the note",
			"note://grasping/one":                         "grasped",
			"note://Good/one":                             "",
			"note://off/one":                              "",
			"other://secret":                              "",
			"other://grasping/x":                          "grasped",
			"https://bank.example/?key=1":                 "",
			"https://grasping.example/page":               "grasped",
			"https://grasping.example/page/2":             "grasped",
			"https://GRASPING.example/3":                  "grasped",
			"https://grasping.example.evil/x":             "",
			"http://grasping.example/page":                "",
			"https://grasping/bank.example/":              "grasped",
			"grasping/x:y":                                "grasped",
			"guideway://schemas/steps":                    "",
			"guideway://runs/r_1":                         "",
			"GUIDEWAY://schemas/steps":                    "",
			"guideway://grasping/schemas/steps":           "",
			"guideway://upstreams/grasping/schemas/steps": "grasped",
		} {
			got := ""
			if read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				if got = read.Contents[0].Text; read.Contents[0].URI != uri {
					t.Errorf("%s: %s is read as %s", version, uri, read.Contents[0].URI)
				}
			}
			if got != want {
				t.Errorf("%s: %s gives %q, want %q", version, uri, got, want)
			}
		}
		templates, err := p.session.ListResourceTemplates(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, each := range templates.ResourceTemplates {
			names = append(names, each.URITemplate)
		}
		want := []string{"grasping/{+x}", "note:grasping/{+x}", "https://grasping/{+x}", "guideway://upstreams/grasping/{+x}", "note://grasping/{a}", "note://good/{id}"}
		if !slices.Equal(names, want) {
			t.Errorf("%s: the templates are %q", version, names)
		}
	}
}

// TestURIsLeadToTheirUpstream checks that every URI that a client gets leads to the upstream
// that it came from, even if both have the same resources and templates: the URIs of lists,
// links, embedded resources, completions and updates. All keep their schemes. Web pages stay
// unchanged.
func TestURIsLeadToTheirUpstream(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Hostile), newEntry(t, "two", upstreamtest.Hostile)}})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version, mute: true})
		p.toolNames()
		if got := listedURIs(t, p); !slices.Equal(got, []string{"note://one/one", "note://two/one", "note://one/{id}", "note://two/{id}"}) {
			t.Errorf("%s: the lists have %q", version, got)
		}
		for _, upstream := range []string{"one", "two"} {
			result, err := p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: upstream + "__link"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, each := range result.Content {
				switch c := each.(type) {
				case *mcp.ResourceLink:
					got = append(got, c.URI)
				case *mcp.EmbeddedResource:
					got = append(got, c.Resource.URI)
					if c.Resource.Text != `"uri"` {
						t.Errorf("the text is %q", c.Resource.Text)
					}
				case *mcp.TextContent:
					if c.Text != `"uri": note://one` {
						t.Errorf("the text is %q", c.Text)
					}
				}
			}
			want := []string{"note://" + upstream + "/one", "note://" + upstream + "/two", "https://example.com/", "guideway://upstreams/" + upstream + "/runs"}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s gives %q", version, upstream, got)
			}
			hidden := `{"content":[{"type":"resource_link","name":"a","\u0075ri":"note://one"}]}`
			if result, err = p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: upstream + "__raw", Arguments: args{"text": hidden}}); err != nil {
				t.Fatal(err)
			}
			if link, ok := result.Content[0].(*mcp.ResourceLink); !ok || link.URI != want[0] {
				t.Errorf("%s: an escaped member gives %s", version, marshalText(t, result))
			}
			note, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: want[1]})
			if err != nil || note.Contents[0].URI != want[1] || note.Contents[0].Text != "the note" {
				t.Errorf("%s: %s is read as %s %v", version, want[1], marshalText(t, note), err)
			}
			if got := p.callTool(upstream+"__asked", nil); got != "note://two" {
				t.Errorf("%s: the upstream %s was asked for %q", version, upstream, got)
			}
			for _, uri := range []string{"note://" + upstream + "/{id}", want[0], want[1]} {
				done, err := p.session.Complete(t.Context(), &mcp.CompleteParams{
					Ref: &mcp.CompleteReference{Type: "ref/resource", URI: uri}, Argument: mcp.CompleteParamsArgument{Name: "id", Value: "a"},
				})
				original := strings.Replace(uri, upstream+"/", "", 1)
				if err != nil || !slices.Equal(done.Completion.Values, []string{"alpha", "beta"}) {
					t.Errorf("%s: the completion of %s is %s %v", version, uri, marshalText(t, done), err)
				}
				if got := p.callTool(upstream+"__asked", nil); got != original {
					t.Errorf("%s: the upstream %s completes %q, not %q", version, upstream, got, original)
				}
			}
			p.followResource(want[0], func() { p.callTool(upstream+"__touch", nil) })
		}
		if got := p.takeEntries(&p.updated); slices.ContainsFunc(got, func(uri string) bool { return uri != "note://one/one" && uri != "note://two/one" }) {
			t.Errorf("%s: the updates are of %q", version, got)
		}
	}
}

// listedURIs returns the resources and then the templates that a client sees.
func listedURIs(t *testing.T, p *testClient) []string {
	t.Helper()
	resources, err := p.session.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := p.session.ListResourceTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, each := range resources.Resources {
		uris = append(uris, each.URI)
	}
	for _, each := range templates.ResourceTemplates {
		uris = append(uris, each.URITemplate)
	}
	return uris
}

// An upstream that is added later does not get the URIs that clients know from another one.
func TestAddedUpstreamGetsNoKnownURI(t *testing.T) {
	t.Parallel()
	good, late := newEntry(t, "good"), newEntry(t, "late", upstreamtest.ClaimsForeignResources)
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{good}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.toolNames()
	if _, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://one"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{late, good}}); err != nil {
		t.Fatal(err)
	}
	p.toolNames()
	for _, uri := range []string{"note://one", "note://any"} {
		if read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s gives %s", uri, marshalText(t, read))
		}
	}
	if read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://good/one"}); err != nil || read.Contents[0].Text != "the note" {
		t.Errorf("note://good/one gives %s %v", marshalText(t, read), err)
	}
}
