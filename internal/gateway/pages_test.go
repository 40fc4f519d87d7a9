package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two upstreams have a page with the same URI. Each tool, result and link contains a URI
// with the name of its own upstream and with the scheme that hosts accept, and reading that
// URI returns the page of that upstream.
func TestPagesBelongToTheirUpstream(t *testing.T) {
	t.Parallel()
	entries := []gateway.Entry{newEntry(t, "a", upstreamtest.Pages), newEntry(t, "b", upstreamtest.Pages)}
	for i := range entries {
		entries[i].Spec.Env[upstreamtest.PageVariable] = entries[i].Spec.Name
	}
	r := newFixture(t, gateway.Options{Upstreams: entries})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		metas := map[string]mcp.Meta{}
		for each, err := range p.session.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			metas[each.Name] = each.Meta
		}
		for name, page := range map[string]string{"a": "ui://chart/view.html", "b": "ui://b/chart/view.html"} {
			unlisted := "ui://" + name + "/unlisted/page.html"
			want := `{"note":"see ui://chart/view.html","other/template":"` + unlisted + `","ui":{"prefersBorder":true,"resourceUri":"` + page + `"},"ui/resourceUri":"` + page + `"}`
			if got := marshalText(t, metas[name+"__show"]); got != want {
				t.Errorf("%s: the tool of %s has %s, want %s", version, name, got, want)
			}
			result, err := p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: name + "__show"})
			if err != nil {
				t.Fatal(err)
			}
			delete(result.Meta, "io.modelcontextprotocol/serverInfo")
			if got := marshalText(t, result.Meta); got != want {
				t.Errorf("%s: the result of %s has %s", version, name, got)
			}
			link, linked := result.Content[0].(*mcp.ResourceLink)
			embedded, ok := result.Content[1].(*mcp.EmbeddedResource)
			if !linked || !ok || link.URI != page || embedded.Resource.URI != page || embedded.Resource.Text != "ui://chart/view.html" {
				t.Errorf("%s: the content of %s is %s", version, name, marshalText(t, result.Content))
			}
			for uri, text := range map[string]string{page: name + " ui://chart/view.html", unlisted: name + " ui://unlisted/page.html"} {
				read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if err != nil || read.Contents[0].Text != text || read.Contents[0].URI != uri {
					t.Errorf("%s: %s gives %s, %v", version, uri, marshalText(t, read), err)
				}
			}
		}
		list, err := p.session.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var uris []string
		for _, each := range list.Resources {
			uris = append(uris, each.URI)
		}
		if want := []string{"ui://chart/view.html", "ui://b/chart/view.html"}; !slices.Equal(uris, want) {
			t.Errorf("%s: the resources are %v", version, uris)
		}
	}
}

// If only one upstream has pages, their URIs stay unchanged.
func TestOnlyUpstreamWithPagesKeepsURIs(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "chart", upstreamtest.Pages)
	e.Spec.Env[upstreamtest.PageVariable] = "chart"
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "a"), e}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	for each, err := range p.session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if text := marshalText(t, each.Meta); each.Name == "chart__show" && strings.Contains(text, "ui://chart/chart") {
			t.Errorf("the tool has %s", text)
		}
	}
	for _, uri := range []string{"ui://chart/view.html", "ui://unlisted/page.html"} {
		read, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || read.Contents[0].Text != "chart "+uri {
			t.Errorf("%s gives %s, %v", uri, marshalText(t, read), err)
		}
	}
}
