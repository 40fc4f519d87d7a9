package auth_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// newProvingServer returns a server that proves that it has a token.
func newProvingServer(t *testing.T, token string) *httptest.Server {
	t.Helper()
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: token, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/health" {
			_, _ = io.WriteString(w, "data for "+r.Header.Get("Authorization"))
			return
		}
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		proof, err := bearer.Prove(r.URL.Query().Get("challenge"), local)
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"status":"ok","proof":"`+proof+`"}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// getProven sends a request with a token through DialProven and returns the body.
func getProven(t *testing.T, token, url string) (string, error) {
	t.Helper()
	trip := &http.Transport{DialContext: auth.DialProven(token)}
	defer trip.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Transport: trip}).Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// A server that has the token receives it, at each of its addresses.
func TestDialProvenReachesTheServer(t *testing.T) {
	t.Parallel()
	s := newProvingServer(t, secret)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	for _, address := range []string{s.URL, "http://localhost:" + port} {
		if got, err := getProven(t, secret, address); err != nil || got != "data for Bearer "+secret {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}

// A program on the server's port that does not have the token receives neither the token
// nor an Authorization header, even if it forwards the challenge to the real server.
func TestDialProvenSendsNoTokenToOthers(t *testing.T) {
	t.Parallel()
	real := newProvingServer(t, secret)
	target, err := url.Parse(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	for name, handler := range map[string]http.Handler{
		"a page":                         answer("<html>"),
		"a server without a proof":       answer(`{"status":"ok"}`),
		"a made up proof":                answer(`{"status":"ok","proof":"` + strings.Repeat("ab", 32) + `"}`),
		"a server with another token":    newProvingServer(t, strings.Repeat("o", 40)).Config.Handler,
		"a relay to the server":          httputil.NewSingleHostReverseProxy(target),
		"a redirect to the server":       http.RedirectHandler(real.URL+"/api/health", http.StatusFound),
		"a program that closes":          http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"a response that is far too big": answer(`{"status":"ok","x":"` + strings.Repeat("x", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var seen strings.Builder
			squatter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := httputil.DumpRequest(r, true)
				mu.Lock()
				seen.Write(text)
				mu.Unlock()
				handler.ServeHTTP(w, r)
			}))
			defer squatter.Close()
			got, err := getProven(t, secret, squatter.URL)
			if guideway.ErrorCode(err) != guideway.CodeForbidden {
				t.Errorf("%q, %v", got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(seen.String(), secret) || strings.Contains(seen.String(), "Authorization") {
				t.Errorf("the program has received %s", seen.String())
			}
		})
	}
}

// A request to a program that accepts connections and stays silent ends with its context.
func TestDialProvenEndsWithContext(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := silent.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1))
			cancel()
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	if conn, err := auth.DialProven(secret)(ctx, "tcp", silent.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("a silent program was accepted as the server")
	}
}

// Prove accepts a challenge of 16 to 128 bytes only, and an address with an IP address and a
// port only.
func TestProveRefusesOddChallenges(t *testing.T) {
	t.Parallel()
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: secret, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3000}
	for size, code := range map[int]guideway.Code{0: guideway.CodeInvalid, 15: guideway.CodeInvalid, 16: "", 32: "", 128: "", 129: guideway.CodeInvalid} {
		if proof, err := bearer.Prove(strings.Repeat("x", size), local); guideway.ErrorCode(err) != code || (proof != "") != (code == "") {
			t.Errorf("a challenge of %d bytes: %q, %v", size, proof, err)
		}
	}
	for _, address := range []net.Addr{nil, &net.UnixAddr{Name: "/run/guideway.sock", Net: "unix"}, &net.IPAddr{IP: local.IP}} {
		if proof, err := bearer.Prove(strings.Repeat("x", 32), address); guideway.ErrorCode(err) != guideway.CodeInternal || proof != "" {
			t.Errorf("the proof of the address %v is %q, %v", address, proof, err)
		}
	}
}

// A response that is shorter than its Content-Length is refused, even if it contains the
// right proof.
func TestCutOffProofIsRefused(t *testing.T) {
	t.Parallel()
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: secret, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for missing, wanted := range map[int]bool{0: true, 1: false, 100: false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			proof, err := bearer.Prove(r.URL.Query().Get("challenge"), local)
			if err != nil && r.URL.Path == "/api/health" {
				t.Error(err)
			}
			text := `{"status":"ok","proof":"` + proof + `"}`
			w.Header().Set("Content-Length", strconv.Itoa(len(text)+missing))
			_, _ = io.WriteString(w, text)
		}))
		_, err := getProven(t, secret, s.URL)
		s.Close()
		if (err == nil) != wanted || !wanted && guideway.ErrorCode(err) != guideway.CodeForbidden {
			t.Errorf("a response that lacks %d bytes: %v", missing, err)
		}
	}
}
