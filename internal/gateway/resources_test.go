package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestUpstreamGetsOnlyItsOwnURIs checks that an upstream is asked for the resources that it
// lists, for those that match one of its specific templates, and for others in its realm
// (see realmOf). It gets no other URI, even with the highest precedence, because it could
// fake the contents of other upstreams, of the web or of this server.
func TestUpstreamGetsOnlyItsOwnURIs(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "grasping", upstreamtest.ClaimsForeignResources), newEntry(t, "good")}})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames() // Listing the tools asks both upstreams.
		for uri, want := range map[string]string{
			"note://one":                                          "the note",
			"other://secret":                                      "",
			"https://bank.example/?key=1":                         "",
			"https://grasping.example/page":                       "grasped",
			"https://grasping.example/page/2":                     "grasped",
			"https://GRASPING.example/3":                          "grasped",
			"https://grasping.example.evil/x":                     "",
			"http://grasping.example/page":                        "",
			"guideway://schemas/steps":                            "",
			"guideway://runs/r_1":                                 "",
			"GUIDEWAY://schemas/steps":                            "",
			"guideway-upstream:good/note://any":                   "the note",
			"guideway-upstream:grasping/other://x":                "grasped",
			"guideway-upstream:grasping/guideway://schemas/steps": "grasped",
			"guideway-upstream:nobody/note://one":                 "",
			"Guideway-Upstream:grasping/note://one":               "",
		} {
			got := ""
			if read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				got = read.Contents[0].Text
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
		for _, name := range []string{"{+x}", "note:{+x}", "https://{+x}", "guideway://{+x}"} {
			if slices.Contains(names, name) || !slices.Contains(names, "guideway-upstream:grasping/"+name) {
				t.Errorf("%s: %s is offered in %v", version, name, names)
			}
		}
	}
	if notes := fmt.Sprint(r.Notes()); !strings.Contains(notes, "too general") {
		t.Errorf("the notes are %s", notes)
	}
}

// A URI goes to the upstream that lists it, or else to the upstream with the most specific
// matching template, regardless of precedence.
func TestMostSpecificTemplateWins(t *testing.T) {
	t.Parallel()
	wide := newEntry(t, "grasping", upstreamtest.ClaimsForeignResources)
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{wide, newEntry(t, "deep", upstreamtest.Deep), newEntry(t, "good")}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.toolNames()
	for uri, want := range map[string]string{
		"note://x":          "grasped",
		"note://deep/x":     "the note",
		"note://one":        "the note",
		"note://deep":       "grasped",
		"note://deepest/x":  "",
		"note://deep/x?k=1": "",
	} {
		got := ""
		if read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			got = read.Contents[0].Text
		}
		if got != want {
			t.Errorf("%s gives %q, want %q", uri, got, want)
		}
	}
}

// TestURIsInResultsLeadToTheirUpstream checks that a URI in a result leads to the upstream
// that returned it, even if another upstream has the same URI. Web pages stay unchanged,
// and so do the URIs of the upstream with the highest precedence, except those with the
// scheme "guideway".
func TestURIsInResultsLeadToTheirUpstream(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Hostile), newEntry(t, "two", upstreamtest.Hostile)}})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		for upstream, want := range map[string][]string{
			"one": {"note://one", "note://two", "https://example.com/", "guideway-upstream:one/guideway://runs"},
			"two": {"guideway-upstream:two/note://one", "guideway-upstream:two/note://two", "https://example.com/", "guideway-upstream:two/guideway://runs"},
		} {
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
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s gives %q", version, upstream, got)
			}
			for _, uri := range want[:2] {
				if strings.HasPrefix(uri, "https:") || strings.HasSuffix(uri, "runs") {
					continue
				}
				note, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if err != nil || note.Contents[0].URI != uri {
					t.Errorf("%s: %s is read as %s %v", version, uri, marshalText(t, note), err)
				}
			}
		}
	}
}
