package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// tokenIssuer is an authorization server for client credentials, and the server that
// accepts its tokens.
type tokenIssuer struct {
	t   *testing.T
	url string
	mcp http.Handler

	mu sync.Mutex
	// good is the accepted token; each new token replaces it.
	good  string
	given int
	asked []map[string][]string
	// done counts the accepted requests.
	done int
	// expires is the lifetime in a token response.
	expires int
	// status, if set, is the status of token responses.
	status int
	// challenge is added to a refusal.
	challenge string
	// refuse, if set, is the status for every token.
	refuse int
	// documents maps a path to the JSON document, or to the URL of a redirect, that is
	// returned for it.
	documents map[string]string
	hang      chan struct{}
}

func newIssuer(t *testing.T) *tokenIssuer {
	t.Helper()
	i := &tokenIssuer{t: t, mcp: serverHandlers(sdkServer())["stateful"], documents: map[string]string{}, expires: 3600}
	i.url = serveHTTP(t, i).URL
	return i
}

func (i *tokenIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	document, known := i.documents[r.URL.Path]
	hang := i.hang
	i.mu.Unlock()
	switch {
	case r.URL.Path == "/token":
		if hang != nil {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		i.handleToken(w, r)
	case strings.HasPrefix(document, "http"):
		http.Redirect(w, r, document, http.StatusFound)
	case known:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, document)
	case strings.HasPrefix(r.URL.Path, "/.well-known/"):
		w.WriteHeader(http.StatusNotFound)
	default:
		if i.letIn(w, r) {
			i.mcp.ServeHTTP(w, r)
		}
	}
}

// handleToken answers a token request with a new token or an error.
func (i *tokenIssuer) handleToken(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_ = r.ParseForm()
	i.asked = append(i.asked, r.Form)
	w.Header().Set("Content-Type", "application/json")
	_, secret, _ := r.BasicAuth()
	switch {
	case i.status != 0:
		w.WriteHeader(i.status)
		fmt.Fprint(w, "<p>sorry</p>")
	case secret != "s3cret" && r.Form.Get("client_secret") != "s3cret":
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"invalid_client","error_description":"who\u0007 are you"}`)
	default:
		i.given++
		i.good = fmt.Sprint("token-", i.given)
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, i.good, i.expires)
	}
}

func (i *tokenIssuer) letIn(w http.ResponseWriter, r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refuse == 0 && i.good != "" && r.Header.Get("Authorization") == "Bearer "+i.good {
		i.done++
		return true
	}
	w.Header().Set("WWW-Authenticate", "Bearer "+i.challenge)
	status := http.StatusUnauthorized
	if i.refuse != 0 {
		status = i.refuse
	}
	w.WriteHeader(status)
	return false
}

func (i *tokenIssuer) withLock(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// counts returns the numbers of tokens and of accepted requests.
func (i *tokenIssuer) counts() (given, done int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.given, i.done
}

// lastRequest returns the last token request.
func (i *tokenIssuer) lastRequest() map[string][]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[len(i.asked)-1]
}

// openUpstream returns an upstream for the issuer's MCP server that authenticates by o.
func (i *tokenIssuer) openUpstream(o config.UpstreamOAuth) *upstream.Upstream {
	i.t.Helper()
	if o.ClientID == "" {
		o.ClientID, o.ClientSecret = "me", "${env:OAUTH}"
	}
	spec := upstream.Spec{Name: "x", URL: i.url + "/mcp", OAuth: &o}
	u := openUpstream(i.t, spec, upstream.Options{StartTime: 20 * time.Second, Secrets: upstream.Secrets{Getenv: func(string) string { return "s3cret" }}})
	// Closing the sessions at the end needs a token, too.
	i.t.Cleanup(func() { i.withLock(func() { i.refuse, i.status, i.hang = 0, 0, nil }) })
	return u
}

// TestOAuth checks that a token is requested by client credentials, and that the error of a
// failed token request has the reason but not the URL.
func TestOAuth(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := openSession(t, i.openUpstream(config.UpstreamOAuth{TokenURL: i.url + "/token", Scopes: []string{"a", "b"}}), upstream.Want{})
	if got := callText(t, s, toolCall("echo", args{"text": "in"})); got != "in" {
		t.Errorf("echo: %q", got)
	}
	if given, _ := i.counts(); given != 1 || i.lastRequest()["scope"][0] != "a b" || i.lastRequest()["resource"] != nil {
		t.Errorf("%d tokens were issued for %v", given, i.lastRequest())
	}
	for name, tt := range map[string]struct {
		change func()
		code   guideway.Code
		want   string
	}{
		"wrong secret": {func() {}, guideway.CodeUnauthorized, "invalid_client (who  are you)"},
		"broken":       {func() { i.status = http.StatusBadGateway }, guideway.CodeUnavailable, "502 Bad Gateway"},
	} {
		i.withLock(tt.change)
		_, _, err := i.openUpstream(config.UpstreamOAuth{TokenURL: i.url + "/token", ClientID: "me", ClientSecret: "wrong"}).Session(t.Context(), upstream.Want{})
		i.withLock(func() { i.status = 0 })
		if guideway.ErrorCode(err) != tt.code || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), i.url) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without OAuth settings, the refusal of the server is an error with CodeUnauthorized.
	_, _, err := openUpstream(t, upstream.Spec{Name: "x", URL: i.url}, upstream.Options{}).Session(t.Context(), upstream.Want{})
	if guideway.ErrorCode(err) != guideway.CodeUnauthorized {
		t.Errorf("without a token: %v", err)
	}
}

// A token that the server no longer accepts is replaced for all sessions, and the refused
// request is repeated once.
func TestTokenExpiresInUse(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	u := i.openUpstream(config.UpstreamOAuth{TokenURL: i.url + "/token"})
	s := openSession(t, u, upstream.Want{})
	other := openSession(t, u, upstream.Want{Client: "ann"})
	if given, _ := i.counts(); given != 1 {
		t.Errorf("two sessions got %d tokens", given)
	}
	i.withLock(func() { i.good = "revoked" })
	_, before := i.counts()
	var calls sync.WaitGroup
	for n := range 8 {
		calls.Go(func() {
			with := s
			if n%2 == 1 {
				with = other
			}
			result, err := with.Do(t.Context(), toolCall("echo", args{"text": fmt.Sprint(n)}))
			if err != nil || !strings.Contains(string(result), fmt.Sprintf(`"text":"%d"`, n)) {
				t.Errorf("call %d: %s, %v", n, result, err)
			}
		})
	}
	calls.Wait()
	given, done := i.counts()
	// Each session also opens a notification stream, possibly after the calls.
	if done -= before; given != 2 || done < 8 || done > 10 {
		t.Errorf("8 calls made %d requests with %d tokens", done, given)
	}
}

// An expired token is not used.
func TestTokenExpires(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.expires = 1
	s := openSession(t, i.openUpstream(config.UpstreamOAuth{TokenURL: i.url + "/token"}), upstream.Want{})
	before, _ := i.counts()
	for range 3 {
		if got := callText(t, s, toolCall("echo", args{"text": "in"})); got != "in" {
			t.Errorf("echo: %q", got)
		}
	}
	if given, _ := i.counts(); given < before+3 {
		t.Errorf("3 calls used %d tokens", given-before)
	}
}

// TestRefusedToken checks that a request that is refused even with a new token returns an
// error with the server's text and a fix, and is not repeated endlessly.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status    int
		challenge string
		want, fix string
	}{
		"another audience": {401, `error="invalid_token", error_description="wrong\u202e audience"`, "401 Unauthorized: invalid_token: wrong", `"resource"`},
		"another scope":    {403, `error="insufficient_scope", scope="files:write"`, "403 Forbidden: insufficient_scope", `"files:write"`},
		"no words":         {401, ``, "401 Unauthorized", `"resource"`},
		"broken words":     {401, `error="x`, "401 Unauthorized", `"resource"`},
	} {
		i := newIssuer(t)
		s := openSession(t, i.openUpstream(config.UpstreamOAuth{TokenURL: i.url + "/token"}), upstream.Want{})
		i.withLock(func() { i.refuse, i.challenge = tt.status, tt.challenge })
		_, err := s.Do(t.Context(), toolCall("echo", args{}))
		if guideway.ErrorCode(err) != guideway.CodeUnauthorized || !strings.Contains(err.Error(), tt.want) || !strings.Contains(guideway.ErrorFix(err), tt.fix) || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("%s: %v, %s", name, err, guideway.ErrorFix(err))
		}
		if i.mu.Lock(); i.given > 3 { // one refresh for the call, and one for the notification stream
			t.Errorf("%s: %d tokens", name, i.given)
		}
		i.mu.Unlock()
	}
}

// TestTokenRequestTimesOut checks that a cancelled call does not wait for an authorization
// server that does not answer.
func TestTokenRequestTimesOut(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := openSession(t, i.openUpstream(config.UpstreamOAuth{TokenURL: i.url + "/token"}), upstream.Want{})
	hang := make(chan struct{})
	defer close(hang)
	i.withLock(func() { i.good, i.hang = "revoked", hang })
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Do(ctx, toolCall("echo", args{}))
			ended <- err
		}()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
}

// setResource sets the protected resource metadata.
func (i *tokenIssuer) setResource(resource, from string) {
	text, _ := json.Marshal(map[string]any{"resource": resource, "authorization_servers": []string{from}, "scopes_supported": []string{"read"}})
	i.documents["/.well-known/oauth-protected-resource/mcp"] = string(text)
}

// setIssuer sets the metadata of an issuer.
func (i *tokenIssuer) setIssuer(from, endpoint string, more ...string) {
	m := map[string]any{"issuer": from, "token_endpoint": endpoint, "grant_types_supported": []string{"client_credentials"}}
	if len(more) > 0 {
		m["grant_types_supported"] = more
	}
	text, _ := json.Marshal(m)
	i.documents["/.well-known/oauth-authorization-server"] = string(text)
}

// The token endpoint is discovered: from the server itself, from the metadata it links to,
// or from an issuer that a person has configured.
func TestOAuthDiscovery(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(i, by *tokenIssuer) config.UpstreamOAuth{
		"metadata at the server's path": func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setResource(i.url+"/mcp", i.url)
			i.setIssuer(i.url, i.url+"/token")
			return config.UpstreamOAuth{}
		},
		"metadata at the root": func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setResource(i.url, i.url)
			i.documents["/.well-known/oauth-protected-resource"] = i.documents["/.well-known/oauth-protected-resource/mcp"]
			delete(i.documents, "/.well-known/oauth-protected-resource/mcp")
			i.setIssuer(i.url+"/", i.url+"/token")
			return config.UpstreamOAuth{}
		},
		"metadata where the challenge says": func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setResource(i.url+"/mcp", i.url)
			i.documents["/else"] = i.documents["/.well-known/oauth-protected-resource/mcp"]
			delete(i.documents, "/.well-known/oauth-protected-resource/mcp")
			i.setIssuer(i.url, i.url+"/token")
			i.challenge = fmt.Sprintf(`resource_metadata="%s/else", scope="from-challenge"`, i.url)
			return config.UpstreamOAuth{}
		},
		"as OpenID": func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setResource(i.url+"/mcp", i.url+"/tenant")
			i.setIssuer(i.url+"/tenant", i.url+"/token")
			i.documents["/tenant/.well-known/openid-configuration"] = i.documents["/.well-known/oauth-authorization-server"]
			delete(i.documents, "/.well-known/oauth-authorization-server")
			return config.UpstreamOAuth{}
		},
		"a configured issuer": func(i, by *tokenIssuer) config.UpstreamOAuth {
			by.setIssuer(by.url, by.url+"/token")
			return config.UpstreamOAuth{Issuer: by.url}
		},
		"a configured issuer and audience": func(i, by *tokenIssuer) config.UpstreamOAuth {
			by.setIssuer(by.url, by.url+"/token")
			return config.UpstreamOAuth{Issuer: by.url, Resource: "urn:me"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, by := newIssuer(t), newIssuer(t)
			o := prepare(i, by)
			from := i
			if o.Issuer != "" {
				from, i.good = by, "token-1"
			}
			s := openSession(t, i.openUpstream(o), upstream.Want{})
			if got := callText(t, s, toolCall("echo", args{"text": "in"})); got != "in" {
				t.Errorf("echo: %q", got)
			}
			given, _ := from.counts()
			last := from.lastRequest()
			want := map[string]string{"metadata at the root": i.url, "a configured issuer and audience": "urn:me"}[name]
			if want == "" {
				want = i.url + "/mcp"
			}
			if !slices.Equal(last["resource"], []string{want}) || given != 1 {
				t.Errorf("%d tokens were requested for %v, want the resource %s", given, last, want)
			}
			scope := map[string]string{"metadata where the challenge says": "from-challenge", "a configured issuer": "", "a configured issuer and audience": ""}
			if want, other := scope[name]; other && strings.Join(last["scope"], " ") != want || !other && last["scope"][0] != "read" {
				t.Errorf("the scope is %v", last["scope"])
			}
		})
	}
}

// Metadata is untrusted. It can neither send the secret to a host that a person has not
// configured, nor cause requests to a private network.
func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(i, evil *tokenIssuer) config.UpstreamOAuth
		want    string
	}{
		"another host issues the tokens": {func(i, evil *tokenIssuer) config.UpstreamOAuth {
			i.setResource(i.url+"/mcp", evil.url)
			evil.setIssuer(evil.url, evil.url+"/token")
			return config.UpstreamOAuth{}
		}, "which would receive the secret"},
		"a token endpoint on another host": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setResource(i.url+"/mcp", i.url)
			i.setIssuer(i.url, "https://evil.example.net/token")
			return config.UpstreamOAuth{}
		}, "which would receive the secret"},
		"metadata elsewhere": {func(i, evil *tokenIssuer) config.UpstreamOAuth {
			i.challenge = fmt.Sprintf(`resource_metadata="%s/else"`, evil.url)
			return config.UpstreamOAuth{}
		}, "on another host"},
		"metadata is redirected": {func(i, evil *tokenIssuer) config.UpstreamOAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = evil.url
			return config.UpstreamOAuth{}
		}, "redirects to another host"},
		"another resource": {func(i, evil *tokenIssuer) config.UpstreamOAuth {
			i.setResource(evil.url+"/mcp", i.url)
			return config.UpstreamOAuth{}
		}, "another resource"},
		"metadata of another resource": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setResource(i.url+"/mc", i.url)
			return config.UpstreamOAuth{}
		}, "another resource"},
		"nobody": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = fmt.Sprintf(`{"resource":"%s/mcp"}`, i.url)
			return config.UpstreamOAuth{}
		}, "no authorization server"},
		"none": {func(*tokenIssuer, *tokenIssuer) config.UpstreamOAuth { return config.UpstreamOAuth{} }, "no metadata"},
		"no JSON": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = "<p>"
			return config.UpstreamOAuth{}
		}, "is not valid metadata"},
		"without end": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"` + strings.Repeat("x", 1<<20) + `"}`
			return config.UpstreamOAuth{}
		}, "is not valid metadata"},
		"another issuer": {func(i, evil *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(evil.url, i.url+"/token")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "another issuer"},
		"no client credentials": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(i.url, i.url+"/token", "authorization_code")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "does not support client credentials"},
		"plain HTTP elsewhere": {func(i, evil *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(i.url, evil.url+"/token")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "is not https"},
		"an endpoint on this machine": {func(i, evil *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(i.url, strings.Replace(evil.url, "http:", "https:", 1)+"/token")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "reserved address"},
		"an endpoint in the cloud's metadata service": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(i.url, "https://169.254.169.254/latest")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "reserved address"},
		"by a name": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(i.url, "https://localhost:1/token")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "reserved address"},
		"a password in the URL": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(i.url, "https://me:you@example.com/token")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "is not https"},
		"a file": {func(i, _ *tokenIssuer) config.UpstreamOAuth {
			i.setIssuer(i.url, "file:///etc/passwd")
			return config.UpstreamOAuth{Issuer: i.url}
		}, "is not https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, evil := newIssuer(t), newIssuer(t)
			_, _, err := i.openUpstream(tt.prepare(i, evil)).Session(t.Context(), upstream.Want{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") || guideway.ErrorFix(err) == "" {
				t.Errorf("the error is %v, %s", err, guideway.ErrorFix(err))
			}
			if len(evil.asked)+len(i.asked)+evil.done > 0 {
				t.Errorf("a token was requested: %v %v", evil.asked, i.asked)
			}
		})
	}
}
