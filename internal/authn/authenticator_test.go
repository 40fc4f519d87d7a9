package authn_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
)

func newDoor(t *testing.T, tokens *authn.Tokens) *authn.Authenticator {
	t.Helper()
	return &authn.Authenticator{Bearer: newAccess(t, nil, nil).Bearer, Tokens: tokens}
}

// authenticate sends a request with a token and returns what the handler sees.
func authenticate(t *testing.T, d *authn.Authenticator, token string) (status int, body string, user string, holder *authn.TokenLease) {
	t.Helper()
	w := httptest.NewRecorder()
	d.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p, _ := authn.PrincipalFrom(r.Context())
		user, holder = p.User, authn.TokenLeaseFrom(r.Context())
	})).ServeHTTP(w, withToken(token))
	return w.Code, w.Body.String(), user, holder
}

// A client's token is accepted at /mcp with its allowed tools. An expired, revoked or
// unknown token and one with another scope are refused.
func TestAuthenticator(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens, err := authn.NewTokens(authn.TokenOptions{Dir: t.TempDir(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	made := func(token authn.NamedToken) string {
		token.User = "ann"
		secret, err := tokens.Create(token)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	later := clock.Now().Add(time.Hour)
	allow := authn.Allow{Upstreams: []string{"files"}, Tools: []string{"git__*"}}
	laptop := made(authn.NamedToken{Name: "laptop", Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &allow})
	short := made(authn.NamedToken{Name: "short", Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &authn.Allow{All: true}, Expires: &later})
	bare := made(authn.NamedToken{Name: "bare", Scopes: []authn.Scope{authn.ScopeMCP}})
	lost := made(authn.NamedToken{Name: "lost", Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &authn.Allow{All: true}})
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
		t.Errorf("before it ends: %d", status)
	}
	if err := tokens.Revoke("lost"); err != nil {
		t.Fatal(err)
	}
	clock.now = clock.now.Add(time.Hour)
	for name, tt := range map[string]struct{ token, want string }{
		"expired":      {short, "has expired"},
		"revoked":      {lost, "was revoked"},
		"unknown":      {"gdn_" + strings.Repeat("x", 43), "was revoked"},
		"of the API":   {made(authn.NamedToken{Name: "read", Scopes: []authn.Scope{authn.ScopeRead}}), "not valid here"},
		"a person's":   {made(authn.NamedToken{Name: "phone", Scopes: []authn.Scope{authn.ScopeApprove}}), "not valid here"},
		"a manager's":  {made(authn.NamedToken{Name: "admin", Scopes: []authn.Scope{authn.ScopeManage, authn.ScopeApprove}}), "not valid here"},
		"of the other": {strings.Repeat("y", 48), "does not belong to this server"},
	} {
		status, body, _, _ := authenticate(t, d, tt.token)
		if status != http.StatusUnauthorized || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if err := tokens.Revoke("laptop"); err != nil {
		t.Fatal(err)
	}
	again := made(authn.NamedToken{Name: "laptop", Scopes: []authn.Scope{authn.ScopeMCP}})
	if _, _, _, other := authenticate(t, d, again); holder.IsValid() || other == nil || other.ID == holder.ID {
		t.Errorf("a new token of the same name stands for the old one: %+v", other)
	}
}

// A client's token is not valid at the API.
func TestClientTokensAreNotForTheAPI(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, t.TempDir())
	secret, err := tokens.Create(authn.NamedToken{Name: "laptop", User: "ann", Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &authn.Allow{All: true}})
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
	tokens, err := authn.NewTokens(authn.TokenOptions{Dir: t.TempDir(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Now()
	for name, token := range map[string]authn.NamedToken{
		"a client's that stands for a person": {Scopes: []authn.Scope{authn.ScopeMCP, authn.ScopeApprove}},
		"a reader's with tools":               {Scopes: []authn.Scope{authn.ScopeRead}, Allow: &authn.Allow{All: true}},
		"no pattern":                          {Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &authn.Allow{Tools: []string{"[a"}}},
		"an empty name":                       {Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &authn.Allow{Upstreams: []string{""}}},
		"a control character":                 {Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &authn.Allow{Projects: []string{"a\nb"}}},
		"over already":                        {Scopes: []authn.Scope{authn.ScopeMCP}, Expires: &now},
		"too many":                            {Scopes: []authn.Scope{authn.ScopeMCP}, Allow: &authn.Allow{Tools: make([]string, 500)}},
	} {
		token.Name, token.User = "x", "ann"
		if _, err := tokens.Create(token); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The time of the last use of a token is known to a minute. A new token has none.
func TestLastUseIsRecorded(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens, err := authn.NewTokens(authn.TokenOptions{Dir: t.TempDir(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := tokens.Create(authn.NamedToken{Name: "laptop", User: "ann", Scopes: []authn.Scope{authn.ScopeMCP}})
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
		t.Errorf("a new one was used at %v", at)
	}
	d := newDoor(t, tokens)
	for _, after := range []time.Duration{time.Second, 30 * time.Second, time.Hour} {
		clock.now = clock.now.Add(after)
		authenticate(t, d, secret)
		if at := used(); at == nil || clock.Now().Sub(*at) > time.Minute || at.After(clock.Now()) {
			t.Errorf("used at %v, and it is %v", at, clock.Now())
		}
	}
}

// A request in progress ends without an answer when its token is revoked.
func TestRevokedDuringRequest(t *testing.T) {
	t.Parallel()
	tokens, err := authn.NewTokens(authn.TokenOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := tokens.Create(authn.NamedToken{Name: "laptop", User: "ann", Scopes: []authn.Scope{authn.ScopeMCP}})
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
	if err := tokens.Revoke("laptop"); err != nil {
		t.Fatal(err)
	}
	if err := <-cause; !errors.Is(err, authn.ErrRevoked) {
		t.Errorf("the request ended by %v", err)
	}
	if text := <-answer; text != "" {
		t.Errorf("the client got %q", text)
	}
}
