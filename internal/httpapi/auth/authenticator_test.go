package auth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

func newDoor(t *testing.T, tokens *auth.Tokens) *auth.Authenticator {
	t.Helper()
	return &auth.Authenticator{Bearer: newAccess(t, nil, nil).Bearer, Tokens: tokens}
}

// authenticate sends a request with a token and returns what the handler sees.
func authenticate(t *testing.T, d *auth.Authenticator, token string) (status int, body string, user string, holder *auth.TokenLease) {
	t.Helper()
	w := httptest.NewRecorder()
	d.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p, _ := auth.PrincipalFrom(r.Context())
		user, holder = p.User, auth.TokenLeaseFrom(r.Context())
	})).ServeHTTP(w, withToken(token))
	return w.Code, w.Body.String(), user, holder
}

// A client's token is accepted at /mcp with its allowed tools. An expired, revoked or
// unknown token and one with another scope are refused.
func TestAuthenticator(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: t.TempDir(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	made := func(token auth.NamedToken) string {
		token.User = "ann"
		secret, err := tokens.Create(token)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	later := clock.Now().Add(time.Hour)
	allow := auth.Allow{Upstreams: []string{"files"}, Tools: []string{"git__*"}}
	laptop := made(auth.NamedToken{Name: "laptop", Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &allow})
	short := made(auth.NamedToken{Name: "short", Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{All: true}, Expires: &later})
	bare := made(auth.NamedToken{Name: "bare", Scopes: []auth.Scope{auth.ScopeMCP}})
	lost := made(auth.NamedToken{Name: "lost", Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{All: true}})
	d := newDoor(t, tokens)

	status, _, user, holder := authenticate(t, d, laptop)
	if status != 200 || user != "ann" || holder == nil || holder.Name != "laptop" || !holder.IsValid() {
		t.Fatalf("%d for %q by %+v", status, user, holder)
	}
	if diff := cmp.Diff(allow, holder.Allow); diff != "" {
		t.Error(diff)
	}
	if _, _, _, holder := authenticate(t, d, bare); holder == nil || !holder.Allow.IsEmpty() {
		t.Errorf("a token that names nothing allows %+v", holder)
	}
	if status, _, user, holder := authenticate(t, d, secret); status != 200 || user == "" || holder != nil {
		t.Errorf("the token of the token file: %d for %q by %+v", status, user, holder)
	}
	if status, _, _, _ := authenticate(t, d, short); status != 200 {
		t.Errorf("before the token expires: %d", status)
	}
	if err := tokens.Revoke("ann", "lost"); err != nil {
		t.Fatal(err)
	}
	clock.now = clock.now.Add(time.Hour)
	for name, tt := range map[string]struct{ token, want string }{
		"expired":                   {short, "has expired"},
		"revoked":                   {lost, "was revoked"},
		"unknown":                   {"gdn_" + strings.Repeat("x", 43), "was revoked"},
		"a token of the API":        {made(auth.NamedToken{Name: "read", Scopes: []auth.Scope{auth.ScopeRead}}), "lacks the scope mcp"},
		"a person's":                {made(auth.NamedToken{Name: "phone", Scopes: []auth.Scope{auth.ScopeApprove}}), "lacks the scope mcp"},
		"a manager's":               {made(auth.NamedToken{Name: "admin", Scopes: []auth.Scope{auth.ScopeManage, auth.ScopeApprove}}), "lacks the scope mcp"},
		"a token of another server": {strings.Repeat("y", 48), "does not belong to this server"},
	} {
		status, body, _, _ := authenticate(t, d, tt.token)
		if status != http.StatusUnauthorized || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if err := tokens.Revoke("ann", "laptop"); err != nil {
		t.Fatal(err)
	}
	again := made(auth.NamedToken{Name: "laptop", Scopes: []auth.Scope{auth.ScopeMCP}})
	if _, _, _, other := authenticate(t, d, again); holder.IsValid() || other == nil || other.ID == holder.ID {
		t.Errorf("a new token of the same name replaces the old one: %+v", other)
	}
}

// A client's token has no rights at the API.
func TestClientTokensAreNotForTheAPI(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, t.TempDir())
	secret, err := tokens.Create(auth.NamedToken{Name: "laptop", User: "ann", Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{All: true}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newAccess(t, nil, tokens).Check(withToken(secret))
	if err != nil || len(g.Rights) != 0 || g.Person() {
		t.Errorf("it may %v, %v", g.Rights, err)
	}
}

func TestInvalidTokens(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: t.TempDir(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Now()
	for name, token := range map[string]auth.NamedToken{
		"a client token that acts for a person": {Scopes: []auth.Scope{auth.ScopeMCP, auth.ScopeApprove}},
		"a token that reads, with tools":        {Scopes: []auth.Scope{auth.ScopeRead}, Allow: &auth.Allow{All: true}},
		"no pattern":                            {Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{Tools: []string{"[a"}}},
		"an empty name":                         {Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{Upstreams: []string{""}}},
		"a control character":                   {Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{Projects: []string{"a\nb"}}},
		"over already":                          {Scopes: []auth.Scope{auth.ScopeMCP}, Expires: &now},
		"too many":                              {Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{Tools: slices.Repeat([]string{"a"}, 201)}},
		"a long name":                           {Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{Toolsets: []string{strings.Repeat("a", 201)}}},
	} {
		token.Name, token.User = "x", "ann"
		if _, err := tokens.Create(token); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	names := slices.Repeat([]string{strings.Repeat("<", 200)}, 200)
	most := auth.Allow{Upstreams: names, Projects: names, Tools: names, Toolsets: names}
	if _, err := tokens.Create(auth.NamedToken{Name: "x", User: "ann", Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &most}); err != nil {
		t.Errorf("200 names of 200 bytes: %v", err)
	}
	if list, err := tokens.List(); err != nil || len(list) != 1 || !cmp.Equal(list[0].Allow, &most) {
		t.Errorf("of a token with 200 names, %d are listed, %v", len(list), err)
	}
}

// TestLastUseIsRecorded checks that a new token has no last use, and that the recorded last
// use is at most one minute old.
func TestLastUseIsRecorded(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: t.TempDir(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := tokens.Create(auth.NamedToken{Name: "laptop", User: "ann", Scopes: []auth.Scope{auth.ScopeMCP}})
	if err != nil {
		t.Fatal(err)
	}
	used := func() *time.Time {
		t.Helper()
		list, err := tokens.List()
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Used
	}
	if at := used(); at != nil {
		t.Errorf("a new token was used at %v", at)
	}
	d := newDoor(t, tokens)
	for _, after := range []time.Duration{time.Second, 30 * time.Second, time.Hour} {
		clock.now = clock.now.Add(after)
		authenticate(t, d, secret)
		if at := used(); at == nil || clock.Now().Sub(*at) > time.Minute || at.After(clock.Now()) {
			t.Errorf("the token was used at %v, and it is %v", at, clock.Now())
		}
	}
}

// A request in progress ends without an answer when its token is revoked.
func TestRevokedDuringRequest(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := tokens.Create(auth.NamedToken{Name: "laptop", User: "ann", Scopes: []auth.Scope{auth.ScopeMCP}})
	if err != nil {
		t.Fatal(err)
	}
	begun, cause := make(chan struct{}), make(chan error, 1)
	srv := httptest.NewServer(newDoor(t, tokens).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		cause <- context.Cause(r.Context())
		_, _ = io.WriteString(w, "the secret answer")
	})))
	defer srv.Close()
	answer := make(chan string, 1)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		resp, err := srv.Client().Do(r)
		if err != nil {
			answer <- ""
			return
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		answer <- string(text)
	}()
	<-begun
	if err := tokens.Revoke("ann", "laptop"); err != nil {
		t.Fatal(err)
	}
	if err := <-cause; !errors.Is(err, auth.ErrRevoked) {
		t.Errorf("the request ended by %v", err)
	}
	if text := <-answer; text != "" {
		t.Errorf("the client got %q", text)
	}
}

// failingAccess are access tokens of an identity provider whose check fails.
type failingAccess struct{ err error }

func (f failingAccess) VerifyAccess(context.Context, string) (auth.Person, error) {
	return auth.Person{}, f.err
}

func (failingAccess) Audience() (resource, scope, issuer string) {
	return "https://guideway.example/mcp", "tools", "https://id.example"
}

// Clients get a new token after a challenge. So a token that was not checked, because the
// identity provider does not answer, is answered without a challenge.
func TestChallengesOfAccessTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err       error
		status    int
		challenge string
	}{
		"another error":          {errors.New("no route to the host"), http.StatusServiceUnavailable, ""},
		"not available":          {guideway.Errorf(guideway.CodeUnavailable, "the provider does not answer"), http.StatusServiceUnavailable, ""},
		"an invalid one":         {guideway.Errorf(guideway.CodeUnauthorized, "it has expired"), http.StatusUnauthorized, `error="invalid_token"`},
		"one that lacks a scope": {guideway.Errorf(guideway.CodeForbidden, "it lacks the scope"), http.StatusForbidden, `error="insufficient_scope"`},
	} {
		d := newDoor(t, nil)
		d.AccessTokens = failingAccess{tt.err}
		w := httptest.NewRecorder()
		d.Handler(http.NotFoundHandler()).ServeHTTP(w, withToken("eyJhbGciOiJub25lIn0.e30.x"))
		challenge := w.Header().Get("WWW-Authenticate")
		if w.Code != tt.status || (challenge == "") != (tt.challenge == "") || !strings.Contains(challenge, tt.challenge) {
			t.Errorf("%s: %d with the challenge %q, want %d with %q", name, w.Code, challenge, tt.status, tt.challenge)
		}
		if strings.Contains(w.Body.String(), "no route") {
			t.Errorf("%s: the body reveals the cause: %s", name, w.Body)
		}
	}
}
