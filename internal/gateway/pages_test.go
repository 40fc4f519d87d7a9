package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two upstreams have a page with the same URI. Each tool, result and link contains a URI
// with the name of its upstream and with the scheme that hosts accept, and reading that
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
		for name, page := range map[string]string{"a": "ui://a/chart/view.html", "b": "ui://b/chart/view.html"} {
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
		if want := []string{"ui://a/chart/view.html", "ui://b/chart/view.html"}; !slices.Equal(uris, want) {
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

// A page is pinned when it is first read. A page that changes is not returned until a person
// approves the change, and neither is a new page if every tool needs approval.
func TestChangedPageNeedsApproval(t *testing.T) {
	t.Parallel()
	for _, mode := range []pins.Mode{pins.ModeFirstUse, pins.ModeApprove} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			store := newPins(t, t.TempDir())
			read := func(content string) (string, error) {
				e := newEntry(t, "one", upstreamtest.Pages)
				e.Pins, e.Spec.Env[upstreamtest.PageVariable] = mode, content
				p := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Pins: store}).connectClient(t, clientSetup{user: "ann", version: legacy})
				result, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ui://chart/view.html"})
				if err != nil {
					return "", err
				}
				return result.Contents[0].Text, nil
			}
			approve := func(why string) {
				t.Helper()
				waiting, err := pins.Review(store, &upstream.Catalog{}, "one")
				waiting = slices.DeleteFunc(waiting, func(w pins.Waiting) bool { return w.Tool != "page:ui://chart/view.html" })
				if err != nil || len(waiting) != 1 || waiting[0].Why != why || !strings.Contains(waiting[0].Diff(), "sha256:") {
					t.Fatalf("waiting: %+v %v", waiting, err)
				}
				if err := pins.Accept(store, "one", "ann", waiting); err != nil {
					t.Fatal(err)
				}
			}
			refused := func(content, why string) {
				t.Helper()
				text, err := read(content)
				if err == nil || !strings.Contains(err.Error(), "waits for approval: "+why) || !strings.Contains(err.Error(), "guideway upstream approve one") {
					t.Fatalf("reading %s returned %q, %v", content, text, err)
				}
			}
			if mode == pins.ModeApprove {
				refused("good", "new page")
				approve("new")
			}
			for range 2 {
				if text, err := read("good"); err != nil || text != "good ui://chart/view.html" {
					t.Fatalf("the approved page is %q, %v", text, err)
				}
			}
			refused("evil", "changed since its approval")
			if _, err := read("good"); err != nil {
				t.Errorf("the approved page is refused after a changed one: %v", err)
			}
			refused("evil", "changed since its approval")
			approve("changed")
			if text, err := read("evil"); err != nil || text != "evil ui://chart/view.html" {
				t.Errorf("the newly approved page is %q, %v", text, err)
			}
			refused("good", "changed since its approval")
		})
	}
}
