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
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// issuer hands out tokens by client credentials, and is the server that takes them.
type issuer struct {
	t   *testing.T
	url string
	mcp http.Handler

	mu sync.Mutex
	// good is the token that is taken; each that is handed out takes its place.
	good  string
	given int
	asked []map[string][]string
	// done counts what got in.
	done int
	// expires is how long a token says that it lasts.
	expires int
	// status, if set, is how a request for a token is answered.
	status int
	// challenge is what a refusal says besides.
	challenge string
	// refuse has no token taken, whatever it is.
	refuse int
	// documents are what is at other paths.
	documents map[string]string
	hang      chan struct{}
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, mcp: ways(sdkServer())["stateful"], documents: map[string]string{}, expires: 3600}
	i.url = serveHTTP(t, i).URL
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		i.hand(w, r)
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

// hand gives a token.
func (i *issuer) hand(w http.ResponseWriter, r *http.Request) {
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

func (i *issuer) letIn(w http.ResponseWriter, r *http.Request) bool {
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

func (i *issuer) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// counts are the tokens that were given, and what got in.
func (i *issuer) counts() (given, done int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.given, i.done
}

// last is how a token was asked for last.
func (i *issuer) last() map[string][]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[len(i.asked)-1]
}

// open is the server as an upstream.
func (i *issuer) open(o upstream.OAuth) *upstream.Upstream {
	i.t.Helper()
	if o.ClientID == "" {
		o.ClientID, o.ClientSecret = "me", "${env:OAUTH}"
	}
	spec := upstream.Spec{Name: "x", URL: i.url + "/mcp", OAuth: &o}
	u := open(i.t, spec, upstream.Options{StartTime: 20 * time.Second, Secrets: upstream.Secrets{Getenv: func(string) string { return "s3cret" }}})
	// Its sessions are ended at the end, which takes a token, too.
	i.t.Cleanup(func() { i.set(func() { i.refuse, i.status, i.hang = 0, 0, nil }) })
	return u
}

// Tokens are got by client credentials, and a refusal says what to check.
func TestOAuth(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := session(t, i.open(upstream.OAuth{TokenURL: i.url + "/token", Scopes: []string{"a", "b"}}), upstream.Want{})
	if got := call(t, s, tool("echo", args{"text": "in"})); got != "in" {
		t.Errorf("echo: %q", got)
	}
	if given, _ := i.counts(); given != 1 || i.last()["scope"][0] != "a b" || i.last()["resource"] != nil {
		t.Errorf("%d tokens, asked for by %v", given, i.last())
	}
	for name, tt := range map[string]struct {
		change func()
		code   guideway.Code
		want   string
	}{
		"wrong secret": {func() {}, guideway.CodeUnauthorized, "invalid_client (who  are you)"},
		"broken":       {func() { i.status = http.StatusBadGateway }, guideway.CodeUnavailable, "502 Bad Gateway"},
	} {
		i.set(tt.change)
		_, _, err := i.open(upstream.OAuth{TokenURL: i.url + "/token", ClientID: "me", ClientSecret: "wrong"}).Session(t.Context(), upstream.Want{})
		i.set(func() { i.status = 0 })
		if guideway.ErrorCode(err) != tt.code || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), i.url) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without a token at all the server's refusal is told.
	_, _, err := open(t, upstream.Spec{Name: "x", URL: i.url}, upstream.Options{}).Session(t.Context(), upstream.Want{})
	if guideway.ErrorCode(err) != guideway.CodeUnauthorized {
		t.Errorf("without a token: %v", err)
	}
}

// A token that the server does not take any more is replaced in the midst of a session,
// for all sessions at once, and what was refused for it is done once.
func TestTokenEndsInUse(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	u := i.open(upstream.OAuth{TokenURL: i.url + "/token"})
	s := session(t, u, upstream.Want{})
	other := session(t, u, upstream.Want{Client: "ann"})
	if given, _ := i.counts(); given != 1 {
		t.Errorf("two sessions have got %d tokens", given)
	}
	i.set(func() { i.good = "revoked" })
	_, before := i.counts()
	var calls sync.WaitGroup
	for n := range 8 {
		calls.Go(func() {
			with := s
			if n%2 == 1 {
				with = other
			}
			result, err := with.Do(t.Context(), tool("echo", args{"text": fmt.Sprint(n)}))
			if err != nil || !strings.Contains(string(result), fmt.Sprintf(`"text":"%d"`, n)) {
				t.Errorf("call %d: %s, %v", n, result, err)
			}
		})
	}
	calls.Wait()
	given, done := i.counts()
	// Streams of notifications, which each session has one of, may come in late.
	if done -= before; given != 2 || done < 8 || done > 10 {
		t.Errorf("the 8 calls got in %d times, with %d tokens", done, given)
	}
}

// A token that is over by its own word is not used.
func TestTokenExpires(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.expires = 1
	s := session(t, i.open(upstream.OAuth{TokenURL: i.url + "/token"}), upstream.Want{})
	before, _ := i.counts()
	for range 3 {
		if got := call(t, s, tool("echo", args{"text": "in"})); got != "in" {
			t.Errorf("echo: %q", got)
		}
	}
	if given, _ := i.counts(); given < before+3 {
		t.Errorf("3 calls with %d tokens", given-before)
	}
}

// What is refused with a new token, too, is refused: with the words of the server, and
// without trying for ever.
func TestTokenIsNotTaken(t *testing.T) {
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
		s := session(t, i.open(upstream.OAuth{TokenURL: i.url + "/token"}), upstream.Want{})
		i.set(func() { i.refuse, i.challenge = tt.status, tt.challenge })
		_, err := s.Do(t.Context(), tool("echo", args{}))
		if guideway.ErrorCode(err) != guideway.CodeUnauthorized || !strings.Contains(err.Error(), tt.want) || !strings.Contains(guideway.ErrorFix(err), tt.fix) || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("%s: %v, %s", name, err, guideway.ErrorFix(err))
		}
		if i.mu.Lock(); i.given > 3 { // of the call, and of the stream of notifications
			t.Errorf("%s: %d tokens", name, i.given)
		}
		i.mu.Unlock()
	}
}

// Who hands out tokens and does not answer holds up nobody who has lost patience.
func TestTokenIsWaitedForByNobody(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := session(t, i.open(upstream.OAuth{TokenURL: i.url + "/token"}), upstream.Want{})
	hang := make(chan struct{})
	defer close(hang)
	i.set(func() { i.good, i.hang = "revoked", hang })
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Do(ctx, tool("echo", args{}))
			ended <- err
		}()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
}

// protected has the server say of itself where its tokens are got.
func (i *issuer) protected(resource, from string) {
	text, _ := json.Marshal(map[string]any{"resource": resource, "authorization_servers": []string{from}, "scopes_supported": []string{"read"}})
	i.documents["/.well-known/oauth-protected-resource/mcp"] = string(text)
}

// hands has an issuer say where it hands out tokens.
func (i *issuer) hands(from, endpoint string, more ...string) {
	m := map[string]any{"issuer": from, "token_endpoint": endpoint, "grant_types_supported": []string{"client_credentials"}}
	if len(more) > 0 {
		m["grant_types_supported"] = more
	}
	text, _ := json.Marshal(m)
	i.documents["/.well-known/oauth-authorization-server"] = string(text)
}

// Where tokens are got is found out: from the server itself, from where it says that it
// says so, and from an issuer that a person has named.
func TestOAuthIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(i, by *issuer) upstream.OAuth{
		"the server's own": func(i, _ *issuer) upstream.OAuth {
			i.protected(i.url+"/mcp", i.url)
			i.hands(i.url, i.url+"/token")
			return upstream.OAuth{}
		},
		"of its root": func(i, _ *issuer) upstream.OAuth {
			i.protected(i.url, i.url)
			i.documents["/.well-known/oauth-protected-resource"] = i.documents["/.well-known/oauth-protected-resource/mcp"]
			delete(i.documents, "/.well-known/oauth-protected-resource/mcp")
			i.hands(i.url+"/", i.url+"/token")
			return upstream.OAuth{}
		},
		"where it says": func(i, _ *issuer) upstream.OAuth {
			i.protected(i.url+"/mcp", i.url)
			i.documents["/else"] = i.documents["/.well-known/oauth-protected-resource/mcp"]
			delete(i.documents, "/.well-known/oauth-protected-resource/mcp")
			i.hands(i.url, i.url+"/token")
			i.challenge = fmt.Sprintf(`resource_metadata="%s/else", scope="from-challenge"`, i.url)
			return upstream.OAuth{}
		},
		"as OpenID": func(i, _ *issuer) upstream.OAuth {
			i.protected(i.url+"/mcp", i.url+"/tenant")
			i.hands(i.url+"/tenant", i.url+"/token")
			i.documents["/tenant/.well-known/openid-configuration"] = i.documents["/.well-known/oauth-authorization-server"]
			delete(i.documents, "/.well-known/oauth-authorization-server")
			return upstream.OAuth{}
		},
		"a named issuer": func(i, by *issuer) upstream.OAuth {
			by.hands(by.url, by.url+"/token")
			return upstream.OAuth{Issuer: by.url}
		},
		"a named issuer and audience": func(i, by *issuer) upstream.OAuth {
			by.hands(by.url, by.url+"/token")
			return upstream.OAuth{Issuer: by.url, Resource: "urn:me"}
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
			s := session(t, i.open(o), upstream.Want{})
			if got := call(t, s, tool("echo", args{"text": "in"})); got != "in" {
				t.Errorf("echo: %q", got)
			}
			given, _ := from.counts()
			last := from.last()
			want := map[string]string{"of its root": i.url, "a named issuer and audience": "urn:me"}[name]
			if want == "" {
				want = i.url + "/mcp"
			}
			if !slices.Equal(last["resource"], []string{want}) || given != 1 {
				t.Errorf("%d tokens were asked for by %v, want the resource %s", given, last, want)
			}
			scope := map[string]string{"where it says": "from-challenge", "a named issuer": "", "a named issuer and audience": ""}
			if want, other := scope[name]; other && strings.Join(last["scope"], " ") != want || !other && last["scope"][0] != "read" {
				t.Errorf("the scope is %v", last["scope"])
			}
		})
	}
}

// Metadata is a stranger's word. It leads the secret to no host that a person has not
// named, and us into no network of ours.
func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(i, evil *issuer) upstream.OAuth
		want    string
	}{
		"another host hands out": {func(i, evil *issuer) upstream.OAuth {
			i.protected(i.url+"/mcp", evil.url)
			evil.hands(evil.url, evil.url+"/token")
			return upstream.OAuth{}
		}, "which would get the secret"},
		"metadata elsewhere": {func(i, evil *issuer) upstream.OAuth {
			i.challenge = fmt.Sprintf(`resource_metadata="%s/else"`, evil.url)
			return upstream.OAuth{}
		}, "on another host"},
		"metadata is redirected": {func(i, evil *issuer) upstream.OAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = evil.url
			return upstream.OAuth{}
		}, "redirects to another host"},
		"of another resource": {func(i, evil *issuer) upstream.OAuth {
			i.protected(evil.url+"/mcp", i.url)
			return upstream.OAuth{}
		}, "of another resource"},
		"of a resource beside": {func(i, _ *issuer) upstream.OAuth {
			i.protected(i.url+"/mc", i.url)
			return upstream.OAuth{}
		}, "of another resource"},
		"nobody": {func(i, _ *issuer) upstream.OAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = fmt.Sprintf(`{"resource":"%s/mcp"}`, i.url)
			return upstream.OAuth{}
		}, "names nobody"},
		"none": {func(*issuer, *issuer) upstream.OAuth { return upstream.OAuth{} }, "no metadata"},
		"no JSON": {func(i, _ *issuer) upstream.OAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = "<p>"
			return upstream.OAuth{}
		}, "is no metadata"},
		"without end": {func(i, _ *issuer) upstream.OAuth {
			i.documents["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"` + strings.Repeat("x", 1<<20) + `"}`
			return upstream.OAuth{}
		}, "is no metadata"},
		"of another issuer": {func(i, evil *issuer) upstream.OAuth {
			i.hands(evil.url, i.url+"/token")
			return upstream.OAuth{Issuer: i.url}
		}, "of another issuer"},
		"no client credentials": {func(i, _ *issuer) upstream.OAuth {
			i.hands(i.url, i.url+"/token", "authorization_code")
			return upstream.OAuth{Issuer: i.url}
		}, "no tokens by client credentials"},
		"plain HTTP elsewhere": {func(i, evil *issuer) upstream.OAuth {
			i.hands(i.url, evil.url+"/token")
			return upstream.OAuth{Issuer: i.url}
		}, "not an address of https"},
		"into this machine": {func(i, evil *issuer) upstream.OAuth {
			i.hands(i.url, strings.Replace(evil.url, "http:", "https:", 1)+"/token")
			return upstream.OAuth{Issuer: i.url}
		}, "private address"},
		"into the cloud's metadata": {func(i, _ *issuer) upstream.OAuth {
			i.hands(i.url, "https://169.254.169.254/latest")
			return upstream.OAuth{Issuer: i.url}
		}, "private address"},
		"by a name": {func(i, _ *issuer) upstream.OAuth {
			i.hands(i.url, "https://localhost:1/token")
			return upstream.OAuth{Issuer: i.url}
		}, "private address"},
		"a password in it": {func(i, _ *issuer) upstream.OAuth {
			i.hands(i.url, "https://me:you@example.com/token")
			return upstream.OAuth{Issuer: i.url}
		}, "not an address of https"},
		"a file": {func(i, _ *issuer) upstream.OAuth {
			i.hands(i.url, "file:///etc/passwd")
			return upstream.OAuth{Issuer: i.url}
		}, "not an address of https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, evil := newIssuer(t), newIssuer(t)
			_, _, err := i.open(tt.prepare(i, evil)).Session(t.Context(), upstream.Want{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") || guideway.ErrorFix(err) == "" {
				t.Errorf("the error is %v, %s", err, guideway.ErrorFix(err))
			}
			if len(evil.asked)+len(i.asked)+evil.done > 0 {
				t.Errorf("a token was asked for: %v %v", evil.asked, i.asked)
			}
		})
	}
}
