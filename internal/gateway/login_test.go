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
	mcp.AddTool(protected, &mcp.Tool{Name: "token"}, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	protected.AddResource(&mcp.Resource{URI: "note://1", Name: "1"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "note://1", Text: req.Extra.Header.Get("Authorization")}}}, nil
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

// logIn logs in as the local user with a browser.
func (f *loginFixture) logIn() { f.logInAs("") }

// optionsOf returns the options with the logins of a user.
func (f *loginFixture) optionsOf(user string) upstream.Options {
	opts := f.opts
	opts.Logins = opts.Logins.Of(user)
	return opts
}

// logInAs logs in like a person with a browser.
func (f *loginFixture) logInAs(user string) {
	l, err := upstream.StartLoopbackLogin(f.t.Context(), f.entry.Spec, f.optionsOf(user), upstream.LoginOptions{})
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
				mute := f.connectClient(t, clientSetup{user: "ann", version: version})
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

// TestLoginsBelongToPersons checks that a call uses the login of the user who makes it, or is
// refused: with the command for the local user, and with the page of the dashboard for every
// other one.
func TestLoginsBelongToPersons(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		for _, sessions := range []gateway.Sessions{gateway.SessionsAuto, gateway.SessionsShared, gateway.SessionsClient} {
			for _, way := range []string{"", slow} {
				t.Run(version+" "+string(sessions)+" "+way, func(t *testing.T) {
					t.Parallel()
					testLoginsOfPersons(t, version, sessions, way)
				})
			}
		}
	}
}

func testLoginsOfPersons(t *testing.T, version string, sessions gateway.Sessions, way string) {
	f := newLoginFixture(t, way)
	entry := f.entry
	entry.Sessions = sessions
	if err := f.Configure(gateway.Settings{Upstreams: []gateway.Entry{entry}}); err != nil {
		t.Fatal(err)
	}
	client := func(user string) *testClient { return f.connectClient(t, clientSetup{user: user, version: version}) }
	ada, bob := client("ada"), client("bob")
	page := f.url + "/gateway/wiki"
	refused := func(who string, p *testClient, tool string) {
		t.Helper()
		if got := p.callTool(tool, nil); !strings.Contains(got, "not logged in to wiki") || !strings.Contains(got, page) || strings.Contains(got, "Bearer") || strings.Contains(got, "guideway upstream login") {
			t.Errorf("%s calls %s: %s", who, tool, got)
		}
	}
	// No login exists, so the tools are unknown.
	refused("ada", ada, "wiki__token")
	f.logIn()
	ann := client("ann")
	local := ann.callTool("wiki__token", nil)
	if !strings.HasPrefix(local, "Bearer access-") {
		t.Fatalf("the local user: %s", local)
	}
	// Now the local user has a login, which is not for others; nor are the listed resources.
	for who, p := range map[string]*testClient{"ada": ada, "bob": bob} {
		refused(who, p, "wiki__token")
		list, err := p.session.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) > 0 {
			t.Errorf("%s sees %s, %v", who, marshalText(t, list), err)
		}
		if got, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://1"}); err == nil {
			t.Errorf("%s reads %s", who, marshalText(t, got))
		}
		if strings.Contains(strings.Join(p.toolNames(), " "), "wiki__nothing") {
			t.Error("an unknown tool is listed")
		}
	}
	f.logInAs("ada")
	f.Relist()
	own := ada.callTool("wiki__token", nil)
	if !strings.HasPrefix(own, "Bearer access-") || own == local {
		t.Errorf("ada calls with %s, the local user with %s", own, local)
	}
	refused("bob", bob, "wiki__token")
	if list, err := ada.session.ListResources(t.Context(), nil); err != nil || len(list.Resources) != 1 {
		t.Errorf("ada sees %s, %v", marshalText(t, list), err)
	}
	if got, err := ada.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://1"}); err != nil || got.Contents[0].Text != own {
		t.Errorf("ada reads %s, %v", marshalText(t, got), err)
	}
	f.logInAs("bob")
	theirs := bob.callTool("wiki__token", nil)
	if theirs == own || theirs == local || ada.callTool("wiki__token", nil) != own || ann.callTool("wiki__token", nil) != local {
		t.Errorf("bob calls with %s, ada with %s, the local user with %s", theirs, own, local)
	}
	// A machine acts for the user who started it.
	machine := &gateway.Client{Principal: guideway.Principal{User: "ada", Client: "machine x"}, Modern: true}
	if got, err := f.Call(t.Context(), machine, gateway.Request{Name: "wiki__token"}); err != nil || !strings.Contains(string(got), own) {
		t.Errorf("a machine of ada: %s, %v", got, err)
	}
	machine.Principal.User = "eve"
	if got, err := f.Call(t.Context(), machine, gateway.Request{Name: "wiki__token"}); err != nil || !strings.Contains(string(got), "not logged in") {
		t.Errorf("a machine of eve: %s, %v", got, err)
	}
	if had, _, err := upstream.Logout(t.Context(), f.entry.Spec, f.optionsOf("ada")); !had || err != nil {
		t.Fatal(had, err)
	}
	refused("ada", ada, "wiki__token")
	for who, p := range map[string]*testClient{"bob": bob, "the local user": ann} { // also renews their tokens before the test ends
		if got := p.callTool("wiki__token", nil); !strings.HasPrefix(got, "Bearer access-") {
			t.Errorf("%s after the logout of ada: %s", who, got)
		}
	}
}

// TestPersonLogsInDuringCall checks that a person who is asked to open the page goes on after
// the own login, and that the login of another person does not count.
func TestPersonLogsInDuringCall(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newLoginFixture(t, "")
			f.logIn()
			f.connectClient(t, clientSetup{user: "ann", version: version}).toolNames() // now the tools are known
			f.logInAs("bob")
			asked := 0
			ada := f.connectClient(t, clientSetup{user: "ada", version: version, url: true, elicit: func(req *mcp.ElicitRequest) *mcp.ElicitResult {
				if asked++; req.Params.URL != f.url+"/gateway/wiki" {
					t.Errorf("the client was asked %s", marshalText(t, req.Params))
				}
				f.logInAs("ada")
				return &mcp.ElicitResult{Action: "accept"}
			}})
			ada.toolNames()
			if got := ada.callTool("wiki__search", nil); got != "found" || asked != 1 {
				t.Errorf("the call returned %s after %d questions", got, asked)
			}
		})
	}
}

// TestUnknownToolNeedsLogin checks that a client that can open pages gets the page of an upstream
// whose tools it cannot see yet, and that other unknown names stay unknown.
func TestUnknownToolNeedsLogin(t *testing.T) {
	t.Parallel()
	f := newLoginFixture(t, "")
	c := &gateway.Client{Principal: guideway.Principal{User: "ada"}, Modern: true, Capabilities: gateway.Capabilities{Elicitation: json.RawMessage(`{"url":{}}`)}}
	for name, code := range map[string]int64{"wiki__search": -32042, "wik__search": jsonrpc.CodeInvalidParams, "wiki": jsonrpc.CodeInvalidParams} {
		_, err := f.Call(t.Context(), c, gateway.Request{Name: name})
		var failure *jsonrpc.Error
		if !errors.As(err, &failure) || int64(failure.Code) != code || strings.Contains(string(failure.Data), `"url":"http://127.0.0.1:3999/gateway/wiki"`) != (code == -32042) {
			t.Errorf("%s: %+v", name, failure)
		}
	}
}
