package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// Every route of the OpenAPI document refuses requests without a credential, requests from
// pages of other origins, and requests for host names that resolve to this machine (DNS
// rebinding). The routes come from the document, so that none is missed.
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	reads, commands := s.loginBrowser(t, "ann")
	elsewhere := func(c credential, site, origin string) credential {
		return func(r *http.Request) {
			c(r)
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Origin", origin)
		}
	}
	rebound := func(c credential) credential {
		return func(r *http.Request) { c(r); r.Host = "evil.example:3000" }
	}
	tests := []struct {
		name   string
		who    credential
		status int
		// open reports whether the health check also answers.
		open bool
	}{
		{"no credential", withoutCredential, 401, true},
		{"a wrong token", withBearer(strings.Repeat("x", 48)), 401, true},
		{"a page of another origin, with the cookie and the key", elsewhere(commands, "cross-site", "http://evil.example"), 403, false},
		{"a page of another port, with the cookie and the key", elsewhere(commands, "same-site", "http://127.0.0.1:1"), 403, false},
		{"a page without an origin", elsewhere(commands, "cross-site", "null"), 403, false},
		{"another origin that has the token of /mcp", elsewhere(asAgent, "cross-site", "http://evil.example"), 403, false},
		{"a rebound host name, with the token", rebound(asAgent), 403, false},
		{"a rebound host name, with the cookie and the key", rebound(commands), 403, false},
	}
	routes := 0
	for path, operations := range s.contract.paths {
		for method, o := range operations.(map[string]any) {
			routes++
			target := strings.NewReplacer("{id}", "one", "{workflow}", "flow", "{dialect}", "steps", "{name}", "none", "{tool}", "none").Replace(path)
			for _, tt := range tests {
				want := tt.status
				if path == "/api/health" && tt.open {
					want = http.StatusOK
				}
				if got := s.requestStatus(t, tt.who, method, target); got != want {
					t.Errorf("%s %s for %s: %d, want %d", method, path, tt.name, got, want)
				}
			}
			// The cookie alone can read but not command.
			if requiresKey(o.(map[string]any)) {
				if got := s.requestStatus(t, reads, method, target); got != http.StatusForbidden {
					t.Errorf("%s %s from a browser without the key returns %d", method, path, got)
				}
			}
		}
	}
	if routes < 30 {
		t.Errorf("only %d routes", routes)
	}
}

func requiresKey(operation map[string]any) bool {
	ways, _ := operation["security"].([]any)
	for _, way := range ways {
		if _, ok := way.(map[string]any)["key"]; ok {
			return true
		}
	}
	return false
}

// requestStatus sends a request and returns the status.
func (s *rig) requestStatus(t *testing.T, who credential, method, path string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	who(r)
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 300 && r.Header.Get(auth.KeyHeader) != "" {
		t.Errorf("%s %s was executed", method, path)
	}
	return resp.StatusCode
}
