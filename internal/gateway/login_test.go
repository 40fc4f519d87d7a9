package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/testutil/authserver"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// loginFixture is a gateway with an upstream that requires a login.
type loginFixture struct {
	*fixture

	t      *testing.T
	server *authserver.Server
	entry  gateway.Entry
	opts   upstream.Options
}

func newLoginFixture(t *testing.T, way string) *loginFixture {
	t.Helper()
	protected := mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1"}, nil)
	mcp.AddTool(protected, &mcp.Tool{Name: "search"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil, nil
	})
	server := authserver.New(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return protected }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(server.Close)
	dir, base := t.TempDir(), &http.Transport{DisableKeepAlives: true}
	f := &loginFixture{
		t: t, server: server, entry: gateway.Entry{Spec: upstream.Spec{Name: "wiki", URL: server.URL + "/mcp"}},
		opts: upstream.Options{
			HTTP: base, CacheDir: filepath.Join(dir, "cache"),
			Logins: &upstream.Logins{Dir: filepath.Join(dir, "logins"), User: "ann", Source: seal.File{Path: filepath.Join(dir, "key")}},
		},
	}
	f.opts.Logins.Changed = func(name string) error { return f.Restart(name) }
	f.fixture = newFixture(t, gateway.Options{
		Upstreams: []gateway.Entry{f.entry}, Upstream: f.opts, Dashboard: func(context.Context) string { return "http://127.0.0.1:3999/" },
	}, way)
	return f
}

// logIn logs in like a person with a browser.
func (f *loginFixture) logIn() {
	l, err := upstream.StartLoopbackLogin(f.t.Context(), f.entry.Spec, f.opts, upstream.LoginOptions{})
	if err != nil {
		f.t.Error(err)
		return
	}
	defer l.Close()
	req, _ := http.NewRequestWithContext(f.t.Context(), http.MethodGet, l.URL, nil)
	resp, err := f.opts.HTTP.(*http.Transport).RoundTrip(req)
	if err == nil { // The browser follows the redirect.
		_ = resp.Body.Close()
		req, _ = http.NewRequestWithContext(f.t.Context(), http.MethodGet, resp.Header.Get("Location"), nil)
		resp, err = f.opts.HTTP.RoundTrip(req)
	}
	if err != nil {
		f.t.Error(err)
		return
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if _, err := l.Wait(f.t.Context()); err != nil {
		f.t.Errorf("%v: %s", err, text)
	}
}

// TestLoginDuringCall checks that a client that can open pages is asked to open the page of the
// upstream, which contains no secret, and that the call goes on after the login. Without the
// consent, or without that capability, the call fails with the command for the login.
func TestLoginDuringCall(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		for _, way := range []string{"", slow} {
			t.Run(version+" "+way, func(t *testing.T) {
				t.Parallel()
				f := newLoginFixture(t, way)
				f.logIn()
				var asked []*mcp.ElicitParams
				agree := true
				p := f.connectClient(t, clientSetup{user: "ann", version: version, url: true, elicit: func(req *mcp.ElicitRequest) *mcp.ElicitResult {
					asked = append(asked, req.Params)
					if !agree {
						return &mcp.ElicitResult{Action: "decline"}
					}
					f.logIn()
					return &mcp.ElicitResult{Action: "accept"}
				}})
				mute := f.connectClient(t, clientSetup{user: "bob", version: version})
				p.toolNames()
				logOut := func() {
					if had, _, err := upstream.Logout(t.Context(), f.entry.Spec, f.opts); !had || err != nil {
						t.Fatalf("logout: %v %v", had, err)
					}
				}
				logOut()
				if got := mute.callTool("wiki__search", nil); !strings.Contains(got, "guideway upstream login wiki") || len(asked) > 0 {
					t.Errorf("a client that opens no pages got %s", got)
				}
				if got := p.callTool("wiki__search", nil); got != "found" {
					t.Errorf("after the login the call returned %s", got)
				}
				if len(asked) != 1 || asked[0].Mode != "url" || asked[0].URL != f.url+"/gateway/wiki" {
					t.Errorf("the client was asked %s", marshalText(t, asked))
				}
				logOut()
				agree = false
				if got := p.callTool("wiki__search", nil); !strings.Contains(got, "guideway upstream login wiki") {
					t.Errorf("without consent the call returned %s", got)
				}
				if n := f.server.Asked("authorization_code"); n != 2 || len(asked) != 2 {
					t.Errorf("there were %d logins and %d questions", n, len(asked))
				}
			})
		}
	}
}

// TestLoginOfClientThatCannotBeAsked checks that a client that declares the capability, but
// cannot be asked during the call, gets the error that names the page.
func TestLoginOfClientThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	f := newLoginFixture(t, "")
	f.logIn()
	c := &gateway.Client{
		Session: "1", Principal: guideway.Principal{User: "ann"}, Capabilities: gateway.Capabilities{Elicitation: json.RawMessage(`{"url":{}}`)},
		Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no stream"}
		},
	}
	call := func() (json.RawMessage, error) { return f.Call(t.Context(), c, gateway.Request{Name: "wiki__search"}) }
	if result, err := call(); err != nil || !strings.Contains(string(result), "found") {
		t.Fatalf("after the login: %s, %v", result, err)
	}
	if _, _, err := upstream.Logout(t.Context(), f.entry.Spec, f.opts); err != nil {
		t.Fatal(err)
	}
	result, err := call()
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) || failure.Code != -32042 || !strings.Contains(string(failure.Data), `"url":"http://127.0.0.1:3999/gateway/wiki"`) {
		t.Errorf("after the logout: %s, %+v", result, failure)
	}
}
