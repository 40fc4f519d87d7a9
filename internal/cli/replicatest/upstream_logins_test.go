package replicatest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/testutil/authserver"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newWiki starts an upstream that requires a login. Its tool returns the credential of the call.
func newWiki(t *testing.T) *authserver.Server {
	t.Helper()
	wiki := mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1"}, nil)
	mcp.AddTool(wiki, &mcp.Tool{Name: "token"}, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, map[string]string, error) {
		return nil, map[string]string{"token": req.Extra.Header.Get("Authorization")}, nil
	})
	server := authserver.New(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return wiki }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(server.Close)
	return server
}

// person is a user of the identity provider with a browser and a client.
type person struct {
	c     *cluster
	at    string
	name  string
	login auth.Login
	token string
}

func (c *cluster) newPerson(at, name string, role guideway.Role) *person {
	c.t.Helper()
	cfg := c.config(c.replicas[0].home)
	browsers, err := app.OpenBrowserSessions(cfg)
	checkError(c.t, err)
	p := &person{c: c, at: at, name: name}
	p.login, err = browsers.Start(httptest.NewRequestWithContext(c.t.Context(), http.MethodGet, "/", nil), auth.Person{User: name, Roles: []guideway.Role{role}})
	checkError(c.t, err)
	tokens, err := app.OpenTokens(cfg)
	checkError(c.t, err)
	p.token, err = tokens.Create(auth.NamedToken{Name: "client", User: name, Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{All: true}})
	checkError(c.t, err)
	return p
}

// send sends a request of the person's browser, and returns the status and the answer.
func (p *person) send(method, path, body string) (int, map[string]any) {
	p.c.t.Helper()
	r, err := http.NewRequestWithContext(p.c.t.Context(), method, p.at+path, strings.NewReader(body))
	checkError(p.c.t, err)
	r.AddCookie(p.login.Cookie)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(auth.KeyHeader, p.login.Key)
	resp, err := http.DefaultClient.Do(r)
	checkError(p.c.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	checkError(p.c.t, err)
	var answer map[string]any
	checkError(p.c.t, json.Unmarshal(text, &answer))
	return resp.StatusCode, answer
}

// begin starts a login to the upstream, and returns the query of the redirect after the person
// has agreed.
func (p *person) begin() string {
	p.c.t.Helper()
	status, answer := p.send(http.MethodPost, "/api/upstreams/wiki/login", "")
	page, _ := answer["url"].(string)
	if status != http.StatusOK || page == "" {
		p.c.t.Fatalf("%s starts a login: %d %v", p.name, status, answer)
	}
	r, err := http.NewRequestWithContext(p.c.t.Context(), http.MethodGet, page, nil)
	checkError(p.c.t, err)
	resp, err := http.DefaultTransport.RoundTrip(r)
	checkError(p.c.t, err)
	checkError(p.c.t, resp.Body.Close())
	to, err := url.Parse(resp.Header.Get("Location"))
	checkError(p.c.t, err)
	if to.Scheme+"://"+to.Host+to.Path != publicURL+auth.UpstreamCallbackPath {
		p.c.t.Fatalf("the redirect leads to %s", to)
	}
	return to.RawQuery
}

// finish sends the query of a redirect as the page of the redirect does.
func (p *person) finish(query string) int {
	p.c.t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	checkError(p.c.t, err)
	status, _ := p.send(http.MethodPost, "/api/upstream-logins", string(body))
	return status
}

// call calls the upstream with the client of the person.
func (p *person) call() string {
	p.c.t.Helper()
	result, err := callTool(p.c.t, p.at, p.token, "wiki__token", map[string]any{})
	return fmt.Sprint(result, err)
}

const publicURL = "https://gw.example.com"

// TestUpstreamLoginsArePersonal checks that a login to an upstream is finished at any replica by
// the person and the browser that started it only, that the calls of that person use it at every
// replica, and that those of others are refused.
func TestUpstreamLoginsArePersonal(t *testing.T) {
	t.Parallel()
	const replicas = 3
	wiki, c := newWiki(t), newCluster(t)
	c.env = []string{"GUIDEWAY_PUBLIC_URL=" + publicURL}
	if out, err := c.command(c.newReplica().home, "upstream", "add", "wiki", "--url", wiki.URL+"/mcp"); err != nil {
		t.Fatalf("upstream add: %v\n%s", err, out)
	}
	c.replicas[0].run()
	c.start()
	c.start()
	for _, r := range c.replicas {
		r.waitForUpstream(t, "wiki", true)
	}
	at := c.roundRobin()
	ada, bob, vic := c.newPerson(at, "ada", guideway.RoleOperator), c.newPerson(at, "bob", guideway.RoleAdmin), c.newPerson(at, "vic", guideway.RoleViewer)
	if status, answer := vic.send(http.MethodPost, "/api/upstreams/wiki/login", ""); status != http.StatusForbidden {
		t.Errorf("a viewer starts a login: %d %v", status, answer)
	}
	for range replicas {
		for _, p := range []*person{ada, bob} {
			if got := p.call(); !strings.Contains(got, publicURL+"/gateway/wiki") || strings.Contains(got, "Bearer") {
				t.Errorf("%s without a login: %s", p.name, got)
			}
		}
	}
	query, theirs := ada.begin(), bob.begin()
	for range replicas {
		for who, status := range map[string]int{
			"another person finishes it":       bob.finish(query),
			"a viewer finishes it":             vic.finish(query),
			"a person uses another's redirect": ada.finish(theirs),
			"a made-up state":                  ada.finish("state=wiki.x&code=code-1"),
		} {
			if status == http.StatusOK {
				t.Errorf("%s: %d", who, status)
			}
		}
	}
	if n := wiki.Asked("authorization_code"); n > 0 {
		t.Errorf("%d codes were exchanged", n)
	}
	if status := ada.finish(query); status != http.StatusOK {
		t.Fatalf("ada finishes the login: %d", status)
	}
	if status := ada.finish(query); status == http.StatusOK {
		t.Error("the redirect was accepted twice")
	}
	own := map[string]bool{}
	for range 2 * replicas {
		got := ada.call()
		if !strings.Contains(got, "Bearer access-") {
			t.Errorf("ada after the login: %s", got)
		}
		own[got] = true
		if got := bob.call(); strings.Contains(got, "Bearer") || !strings.Contains(got, "not logged in") {
			t.Errorf("bob uses the login of ada: %s", got)
		}
	}
	if len(own) != 1 {
		t.Errorf("the replicas use different logins: %v", own)
	}
	if status := bob.finish(theirs); status != http.StatusOK {
		t.Fatalf("bob finishes his login: %d", status)
	}
	if got := bob.call(); !strings.Contains(got, "Bearer access-") || own[got] {
		t.Errorf("bob calls with %s", got)
	}
	wiki.Revoke(false) // of several replicas, one renews the token
	var calls sync.WaitGroup
	for range 4 * replicas {
		calls.Go(func() {
			if got := bob.call(); !strings.Contains(got, "Bearer access-") {
				t.Errorf("bob after the tokens have expired: %s", got)
			}
		})
	}
	calls.Wait()
	renewed := map[string]int{} // by login; the subscriptions of ada may renew hers, too
	for _, form := range wiki.Forms() {
		if form.Get("grant_type") == "refresh_token" {
			renewed[form.Get("client_id")]++
		}
	}
	for login, n := range renewed {
		if n != 1 || wiki.Reused() > 0 {
			t.Errorf("the login %s was renewed %d times, and a replaced token was used %d times", login, n, wiki.Reused())
		}
	}
	for _, p := range []*person{ada, bob} {
		if _, answer := p.send(http.MethodGet, "/api/upstreams/wiki", ""); answer["login"] == nil {
			t.Errorf("%s sees no login: %v", p.name, answer)
		}
	}
	if _, answer := vic.send(http.MethodGet, "/api/upstreams/wiki", ""); answer["login"] != nil {
		t.Errorf("vic sees a login: %v", answer["login"])
	}
	if status, answer := ada.send(http.MethodDelete, "/api/upstreams/wiki/login", ""); status != http.StatusOK || answer["login"] != nil {
		t.Errorf("logout: %d %v", status, answer)
	}
	for range replicas {
		if got := ada.call(); strings.Contains(got, "Bearer") {
			t.Errorf("ada after the logout: %s", got)
		}
		if got := bob.call(); !strings.Contains(got, "Bearer access-") {
			t.Errorf("bob after the logout of ada: %s", got)
		}
	}
	if out, err := c.command(c.replicas[1].home, "audit", "list"); err != nil || !strings.Contains(out, "POST /api/upstream-logins") {
		t.Errorf("the audit log: %v\n%s", err, out)
	}
}
