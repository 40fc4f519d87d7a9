package auth_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

func newGuard(t *testing.T, opts auth.GuardOptions) http.Handler {
	t.Helper()
	g, err := auth.NewGuard(opts)
	if err != nil {
		t.Fatal(err)
	}
	return g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot) // the guard accepted the request
	}))
}

func allMethods() []string {
	return []string{
		http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost,
		http.MethodPut, http.MethodPatch, http.MethodDelete, "PROPFIND",
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	type header = map[string]string
	opts := auth.GuardOptions{
		AllowedHosts: []string{"guideway.example.com", "lan:3000", "192.0.2.7", "2001:db8::1"},
		AllowOrigins: []string{"https://inspector.example.com", "http://localhost:6274"},
	}
	tests := []struct {
		name, host string
		header     header
		refused    bool
	}{
		{name: "localhost", host: "localhost:3000"},
		{name: "localhost in capitals", host: "LOCALHOST:3000"},
		{name: "localhost without a port", host: "localhost"},
		{name: "127.0.0.1", host: "127.0.0.1:3000"},
		{name: "127.1.2.3", host: "127.1.2.3:3000"},
		{name: "IPv6", host: "[::1]:3000"},
		{name: "IPv6 without a port", host: "[::1]"},
		{name: "IPv4 in IPv6", host: "[::ffff:127.0.0.1]:3000"},
		{name: "allowed name", host: "guideway.example.com"},
		{name: "allowed name with a port", host: "guideway.example.com:8443"},
		{name: "allowed name and port", host: "lan:3000"},
		{name: "allowed address", host: "192.0.2.7:3000"},
		{name: "allowed IPv6 address", host: "[2001:db8::1]:3000"},

		{name: "evil host", host: "evil.example", refused: true},
		{name: "foreign host with our port", host: "evil.example:3000", refused: true},
		{name: "no host", host: "", refused: true},
		{name: "a name that begins like ours", host: "localhost.evil.example:3000", refused: true},
		{name: "a name that ends like ours", host: "evil-localhost:3000", refused: true},
		{name: "a name below localhost", host: "a.localhost:3000", refused: true},
		{name: "a trailing dot", host: "localhost.:3000", refused: true},
		{name: "a name that looks like an address", host: "127.0.0.1.nip.example:3000", refused: true},
		{name: "an address in octal", host: "0177.0.0.1:3000", refused: true},
		{name: "the unspecified address", host: "0.0.0.0:3000", refused: true},
		{name: "another port of an entry with a port", host: "lan:3001", refused: true},
		{name: "below an allowed name", host: "a.guideway.example.com", refused: true},
		{name: "a user before the host", host: "localhost@evil.example", refused: true},

		{name: "own origin", host: "localhost:3000", header: header{"Origin": "http://localhost:3000"}},
		{name: "own origin over TLS", host: "guideway.example.com", header: header{"Origin": "https://guideway.example.com", "Sec-Fetch-Site": "same-origin"}},
		{name: "allowed origin", host: "localhost:3000", header: header{"Origin": "https://inspector.example.com", "Sec-Fetch-Site": "cross-site"}},
		{name: "allowed origin on loopback", host: "localhost:3000", header: header{"Origin": "http://localhost:6274", "Sec-Fetch-Site": "same-site"}},
		{name: "typed in the address bar", host: "localhost:3000", header: header{"Sec-Fetch-Site": "none"}},

		{name: "evil origin", host: "localhost:3000", header: header{"Origin": "http://evil.example"}, refused: true},
		{name: "evil origin that claims the same site", host: "localhost:3000", header: header{"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, refused: true},
		{name: "allowed origin, evil host", host: "evil.example", header: header{"Origin": "http://localhost:6274"}, refused: true},
		{name: "evil origin and host alike", host: "evil.example:3000", header: header{"Origin": "http://evil.example:3000"}, refused: true},
		{name: "origin null", host: "localhost:3000", header: header{"Origin": "null"}, refused: true},
		{name: "an empty origin", host: "localhost:3000", header: header{"Origin": ""}, refused: true},
		{name: "another port", host: "localhost:3000", header: header{"Origin": "http://localhost:5173"}, refused: true},
		{name: "another name of loopback", host: "localhost:3000", header: header{"Origin": "http://127.0.0.1:3000"}, refused: true},
		{name: "another scheme", host: "localhost:3000", header: header{"Origin": "chrome-extension://localhost:3000"}, refused: true},
		{name: "an origin with a path", host: "localhost:3000", header: header{"Origin": "http://localhost:3000/a"}, refused: true},
		{name: "an origin with a user", host: "localhost:3000", header: header{"Origin": "http://a@localhost:3000"}, refused: true},
		{name: "other scheme of an allowed origin", host: "localhost:3000", header: header{"Origin": "http://inspector.example.com"}, refused: true},
		{name: "two origins in one", host: "localhost:3000", header: header{"Origin": "http://localhost:3000 http://evil.example"}, refused: true},
		{name: "cross-site without an origin", host: "localhost:3000", header: header{"Sec-Fetch-Site": "cross-site"}, refused: true},
		{name: "same-site without an origin", host: "localhost:3000", header: header{"Sec-Fetch-Site": "same-site"}, refused: true},
		{name: "cross-site with our origin", host: "localhost:3000", header: header{"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"}, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newGuard(t, opts)
			for _, method := range allMethods() {
				r := httptest.NewRequestWithContext(t.Context(), method, "/mcp", nil)
				r.Host = tt.host
				for k, v := range tt.header {
					r.Header.Set(k, v)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if !tt.refused {
					if w.Code != http.StatusTeapot {
						t.Errorf("%s: %d %s, want it accepted", method, w.Code, w.Body)
					}
					continue
				}
				if w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: %d, headers %v, want 403 without CORS", method, w.Code, w.Header())
				}
				checkErrorBody(t, w, guideway.CodeForbidden)
			}
		})
	}
}

func TestGuardTwoOrigins(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
	r.Host = "localhost:3000"
	r.Header["Origin"] = []string{"http://localhost:3000", "http://evil.example"}
	w := httptest.NewRecorder()
	newGuard(t, auth.GuardOptions{}).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("%d, want 403", w.Code)
	}
}

func checkErrorBody(t *testing.T, w *httptest.ResponseRecorder, code guideway.Code) {
	t.Helper()
	var body struct {
		Success    *bool
		Code       guideway.Code
		Error, Fix string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("the body %q is not JSON: %v", w.Body, err)
	}
	if body.Success == nil || *body.Success || body.Code != code || body.Error == "" || body.Fix == "" {
		t.Errorf("the body is %s, want code %s with a message and a fix", w.Body, code)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

func TestGuardCORS(t *testing.T) {
	t.Parallel()
	const origin = "http://localhost:6274"
	tests := []struct {
		name          string
		opts          auth.GuardOptions
		method        string
		header        map[string]string
		status        int
		origin, lists string
	}{
		{
			name: "preflight", opts: auth.GuardOptions{AllowOrigins: []string{origin}}, method: http.MethodOptions,
			header: map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,Mcp-Param-City,x-evil"},
			status: http.StatusNoContent, origin: origin, lists: "authorization, content-type",
		},
		{
			name: "preflight without an origin", opts: auth.GuardOptions{AllowOrigins: []string{origin}}, method: http.MethodOptions,
			header: map[string]string{"Access-Control-Request-Method": "POST"}, status: http.StatusTeapot,
		},
		{
			name: "request", opts: auth.GuardOptions{AllowOrigins: []string{origin}}, method: http.MethodPost,
			header: map[string]string{"Origin": origin}, status: http.StatusTeapot, origin: origin,
		},
		{
			name: "OPTIONS that is no preflight", opts: auth.GuardOptions{AllowOrigins: []string{origin}}, method: http.MethodOptions,
			header: map[string]string{"Origin": origin}, status: http.StatusTeapot, origin: origin,
		},
		{
			name: "own origin gets none", opts: auth.GuardOptions{AllowOrigins: []string{origin}}, method: http.MethodPost,
			header: map[string]string{"Origin": "http://localhost:3000"}, status: http.StatusTeapot,
		},
		{
			name: "none by default", method: http.MethodOptions,
			header: map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST"}, status: http.StatusForbidden,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), tt.method, "/mcp", nil)
			r.Host = "localhost:3000"
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			newGuard(t, tt.opts).ServeHTTP(w, r)
			if w.Code != tt.status || w.Header().Get("Access-Control-Allow-Origin") != tt.origin {
				t.Errorf("%d, headers %v; want %d with the origin %q", w.Code, w.Header(), tt.status, tt.origin)
			}
			if w.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials are allowed")
			}
			lists := w.Header().Get("Access-Control-Allow-Headers")
			if !strings.Contains(lists, tt.lists) || strings.Contains(lists, "x-evil") || (tt.lists != "" && !strings.Contains(lists, "mcp-param-city")) {
				t.Errorf("allowed headers %q", lists)
			}
			methods := strings.Split(w.Header().Get("Access-Control-Allow-Methods"), ", ")
			for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				if slices.Contains(methods, m) != (tt.status == http.StatusNoContent) {
					t.Errorf("a page may send the methods %q", methods)
				}
			}
			if len(tt.opts.AllowOrigins) > 0 && w.Header().Get("Vary") == "" {
				t.Error("no Vary, so a cache may return one origin's answer to another")
			}
		})
	}
}

func TestNewGuardRefusesWildcards(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"*", "null", "", "localhost:6274", "http://*.example.com", "http://a/", "http://a/b", "http://u@a", "ftp://a", "file://"} {
		if _, err := auth.NewGuard(auth.GuardOptions{AllowOrigins: []string{origin}}); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("allowed origin %q: %v", origin, err)
		}
	}
	for _, host := range []string{"*", "", "*.example.com", "http://a", "a/b", "a,b"} {
		if _, err := auth.NewGuard(auth.GuardOptions{AllowedHosts: []string{host}}); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("allowed host %q: %v", host, err)
		}
	}
}
