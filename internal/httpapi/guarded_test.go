package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// Every route of the OpenAPI document except the two that report the status refuses requests
// without a credential. Every route refuses requests from pages of other origins, and all but
// these two refuse requests with a foreign host name (DNS rebinding).
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	cookie, page := s.loginBrowser(t, "ann")
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
		// open reports whether the routes of the status answer the request.
		open bool
	}{
		{"no credential", withoutCredential, 401, true},
		{"a wrong token", withBearer(strings.Repeat("x", 48)), 401, true},
		{"a page of another origin, with the cookie and the key", elsewhere(page, "cross-site", "http://evil.example"), 403, false},
		{"a page of another port, with the cookie and the key", elsewhere(page, "same-site", "http://127.0.0.1:1"), 403, false},
		{"a page without an origin", elsewhere(page, "cross-site", "null"), 403, false},
		{"another origin that has the token of /mcp", elsewhere(asAgent, "cross-site", "http://evil.example"), 403, false},
		{"a rebound host name, with the token", rebound(asAgent), 403, true},
		{"a rebound host name, with the cookie and the key", rebound(page), 403, true},
		{"a login without the key", cookie, 401, true},
		{"a login with a wrong key", withKey(cookie, strings.Repeat("k", 43)), 401, true},
	}
	routes := 0
	for path, operations := range s.contract.paths {
		for method := range operations.(map[string]any) {
			routes++
			target := strings.NewReplacer("{id}", "one", "{workflow}", "flow", "{dialect}", "steps", "{name}", "none", "{tool}", "none").Replace(path)
			for _, tt := range tests {
				want := tt.status
				if isStatus(path) && tt.open {
					want = http.StatusOK
				}
				if got := s.requestStatus(t, tt.who, method, target); got != want {
					t.Errorf("%s %s for %s: %d, want %d", method, path, tt.name, got, want)
				}
			}
		}
	}
	if routes < 30 {
		t.Errorf("only %d routes", routes)
	}
}

// isStatus reports whether a route reports the status of the server.
func isStatus(path string) bool { return path == "/api/health" || path == "/api/ready" }

// withKey adds a page's key to a credential.
func withKey(who credential, key string) credential {
	return func(r *http.Request) { who(r); r.Header.Set(auth.KeyHeader, key) }
}

// A browser sends the cookie of a login to every port of the host. The cookie alone must
// read nothing: no operation of the OpenAPI document, no metrics and no registry. With the
// page's key none of these paths is refused.
func TestLoginCookieAloneReadsNothing(t *testing.T) {
	t.Parallel()
	s, _ := newScopeRig(t)
	cookie, page := s.loginBrowser(t, "ann")
	paths := []string{"/metrics", "/registry", "/registry/index", "/api", "/api/none"}
	for path, operations := range s.contract.paths {
		if _, found := operations.(map[string]any)["get"]; found && !isStatus(path) {
			paths = append(paths, strings.NewReplacer("{id}", "one", "{workflow}", "flow", "{dialect}", "steps", "{name}", "none", "{version}", "1").Replace(path))
		}
	}
	for name, site := range map[string]string{"a page": "same-origin", "an address that was typed in": "none", "an old browser, or a program that received the cookie": ""} {
		who := func(r *http.Request) { cookie(r); r.Header.Set("Sec-Fetch-Site", site) }
		for _, path := range paths {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				if got := s.requestStatus(t, who, method, path); got != http.StatusUnauthorized {
					t.Errorf("%s %s with the cookie alone, from %s: %d", method, path, name, got)
				}
			}
		}
	}
	for _, path := range paths {
		got := s.requestStatus(t, page, http.MethodHead, path)
		if got == http.StatusUnauthorized || got == http.StatusForbidden {
			t.Errorf("%s with the cookie and the key: %d", path, got)
		}
	}
}

// requestStatus sends a request and returns the status. It fails the test if a request with
// a page's key succeeds, except HEAD and the health check.
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
	if resp.StatusCode < 300 && r.Header.Get(auth.KeyHeader) != "" && r.Method != http.MethodHead && !isStatus(path) {
		t.Errorf("%s %s was executed", method, path)
	}
	return resp.StatusCode
}
