package transport_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Revoking a token in use ends its legacy and modern sessions, and no others.
func TestRevokedTokenEndsSessions(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: strings.Repeat("b", 43), User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	b := newTestServer(t)
	h := transport.NewHTTPHandler(b.server, transport.HTTPOptions{HostsChecked: true})
	door := &auth.Authenticator{Bearer: bearer, Tokens: tokens}
	srv := httptest.NewServer(door.Handler(h))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	comeIn := func(token, version string) *mcp.ClientSession {
		base := &http.Transport{}
		t.Cleanup(base.CloseIdleConnections)
		return connectClient(t, &mcp.StreamableClientTransport{Endpoint: srv.URL, MaxRetries: -1, HTTPClient: &http.Client{
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				r.Header.Set("Authorization", "Bearer "+token)
				return base.RoundTrip(r)
			}),
		}}, version)
	}
	secrets := map[string]string{}
	for _, name := range []string{"laptop", "phone"} {
		secrets[name], err = tokens.Create(auth.NamedToken{Name: name, User: "ann", Scopes: []auth.Scope{auth.ScopeMCP}})
		if err != nil {
			t.Fatal(err)
		}
	}
	gone := map[string]*mcp.ClientSession{}
	stays := []*mcp.ClientSession{comeIn(strings.Repeat("b", 43), protocolVersions[1])}
	for _, version := range protocolVersions {
		gone[version] = comeIn(secrets["laptop"], version)
		stays = append(stays, comeIn(secrets["phone"], version))
	}
	for _, session := range gone {
		if got := callText(t, session, "whoami"); got != "ann true" {
			t.Fatalf("before: %s", got)
		}
	}
	open := func() (ids int) {
		for session := range b.server.Sessions() {
			if session.ID() != "" {
				ids++
			}
		}
		return ids
	}
	before := open()
	// A call of a modern client is in progress.
	failed := make(chan error, 1)
	go func() {
		_, err := gone[transport.ModernVersion].CallTool(t.Context(), &mcp.CallToolParams{Name: "park", Arguments: map[string]any{}})
		failed <- err
	}()
	<-b.started
	if err := tokens.Revoke("ann", "laptop"); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the call in progress was answered")
	}
	<-b.cancelled
	limit := time.After(20 * time.Second)
	for open() > before-2 { // waits for the end of the sessions of the two legacy clients
		select {
		case <-limit:
			t.Fatalf("%d sessions of %d are open", open(), before)
		case <-time.After(10 * time.Millisecond):
		}
	}
	for version, session := range gone {
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami", Arguments: map[string]any{}}); err == nil {
			t.Errorf("%s continues", version)
		}
	}
	for _, session := range stays {
		if got := callText(t, session, "whoami"); got != "ann true" {
			t.Errorf("another client's: %s", got)
		}
	}
}
