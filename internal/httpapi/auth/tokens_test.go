package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

func newTokens(t *testing.T, dir string) *auth.Tokens {
	t.Helper()
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: dir, Now: newClock().Now})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func withToken(token string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), "POST", "http://127.0.0.1:3000/api/runs", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func TestNamedTokens(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tokens")
	tokens := newTokens(t, dir)
	if list, err := tokens.List(); err != nil || len(list) != 0 {
		t.Fatalf("at first: %v, %v", list, err)
	}
	approve, err := tokens.Create(auth.NamedToken{Name: "phone", User: "bob", Scopes: []auth.Scope{auth.ScopeApprove}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := tokens.Create(auth.NamedToken{Name: "monitor", User: "bob", Scopes: []auth.Scope{auth.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	a := newAccess(t, nil, newTokens(t, dir)) // checks the tokens as another process would
	for _, tt := range []struct {
		token  string
		rights []auth.Right
		person bool
	}{
		{approve, []auth.Right{auth.RightRead, auth.RightRegistry, auth.RightAnswer}, true},
		{read, []auth.Right{auth.RightRead, auth.RightRegistry}, false},
		{secret, []auth.Right{auth.RightRead, auth.RightRegistry, auth.RightContents, auth.RightWork, auth.RightDefine, auth.RightAnswer}, false},
	} {
		g, err := a.Check(withToken(tt.token))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.rights, g.Rights); diff != "" || g.Person() != tt.person {
			t.Errorf("%s: %s, person %v", g.Principal.Client, diff, g.Person())
		}
	}
	if _, err := tokens.Create(auth.NamedToken{Name: "phone", User: "bob", Scopes: []auth.Scope{auth.ScopeRead}}); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("a name twice: %v", err)
	}
	list, err := tokens.List()
	if err != nil || len(list) != 2 || list[0].Name != "monitor" || list[1].User != "bob" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if err := tokens.Revoke("bob", "phone"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Check(withToken(approve)); guideway.ErrorCode(err) != guideway.CodeUnauthorized {
		t.Errorf("a revoked token: %v", err)
	}
	if err := tokens.Revoke("bob", "phone"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("revoked twice: %v", err)
	}
	if files := readFiles(t, dir); strings.Contains(files, read) || strings.Contains(files, approve) {
		t.Error("a token is stored in plain text")
	}
}

// readFiles returns the names and contents of all files of a directory.
func readFiles(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(entry.Name() + "\n" + string(text) + "\n")
	}
	return all.String()
}

// Bearer refuses the credentials of a person: a token of scope approve, a login cookie and
// a page's key.
func TestBearerRefusesPersonCredentials(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, t.TempDir())
	b := newBrowsers(t, t.TempDir(), newClock())
	a := newAccess(t, b, tokens)
	approve, err := tokens.Create(auth.NamedToken{Name: "phone", User: "ann", Scopes: []auth.Scope{auth.ScopeApprove}})
	if err != nil {
		t.Fatal(err)
	}
	l := loginBrowser(t, b, "ann")
	withCookie := fromPage("POST", "/mcp")
	withCookie.AddCookie(l.Cookie)
	withCookie.Header.Set(auth.KeyHeader, l.Key)
	keyAsToken := withToken(l.Key)
	keyAsToken.AddCookie(l.Cookie)
	for name, r := range map[string]*http.Request{
		"approve token": withToken(approve), "cookie": withCookie, "key": keyAsToken, "cookie as token": withToken(l.Cookie.Value),
	} {
		w := httptest.NewRecorder()
		(&auth.Authenticator{Bearer: a.Bearer}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Errorf("%s: accepted", name)
		})).ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if _, err := auth.NewBearer(auth.BearerOptions{Token: approve, User: "ann"}); err == nil {
		t.Error("a named token was accepted as the token of /mcp")
	}
}

func TestTokensRefuse(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, t.TempDir())
	for name, create := range map[string]func() (string, error){
		"no name": func() (string, error) {
			return tokens.Create(auth.NamedToken{Name: "", User: "ann", Scopes: []auth.Scope{auth.ScopeRead}})
		},
		"a path": func() (string, error) {
			return tokens.Create(auth.NamedToken{Name: "../x", User: "ann", Scopes: []auth.Scope{auth.ScopeRead}})
		},
		"no user": func() (string, error) {
			return tokens.Create(auth.NamedToken{Name: "x", User: "", Scopes: []auth.Scope{auth.ScopeRead}})
		},
		"no scope": func() (string, error) { return tokens.Create(auth.NamedToken{Name: "x", User: "ann"}) },
		"unknown scope": func() (string, error) {
			return tokens.Create(auth.NamedToken{Name: "x", User: "ann", Scopes: []auth.Scope{"work"}})
		},
		"unknown exposure": func() (string, error) {
			return tokens.Create(auth.NamedToken{Name: "x", User: "ann", Scopes: []auth.Scope{auth.ScopeMCP}, Exposure: "none"})
		},
		"an exposure for a scope without tools": func() (string, error) {
			return tokens.Create(auth.NamedToken{Name: "x", User: "ann", Scopes: []auth.Scope{auth.ScopeRead}, Exposure: auth.ExposureAll})
		},
	} {
		if secret, err := create(); secret != "" || guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A damaged file neither grants access nor hides the other tokens.
func TestDamagedToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := newTokens(t, dir)
	secret, err := tokens.Create(auth.NamedToken{Name: "phone", User: "ann", Scopes: []auth.Scope{auth.ScopeApprove}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.Repeat("0", 64)+".json"), []byte(`{"name": 7`), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := tokens.List(); err != nil || len(list) != 1 {
		t.Errorf("with a damaged file: %v, %v", list, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if g, err := newAccess(t, nil, tokens).Check(withToken(secret)); err == nil || len(g.Rights) != 0 {
		t.Errorf("a damaged token returned %+v, %v", g, err)
	}
}

// Delegated access ends when its token expires or is revoked. A new token of the same name
// does not restore it.
func TestDelegationEndsWithTheToken(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tokens")
	c := newClock()
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: dir, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	door := &auth.Authenticator{Bearer: newAccess(t, nil, tokens).Bearer, Tokens: tokens}
	lent := func(name string, expires *time.Time) string {
		secret, err := tokens.Create(auth.NamedToken{
			Name: name, User: "bob", Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &auth.Allow{Toolsets: []string{"runs"}}, Expires: expires,
		})
		if err != nil {
			t.Fatal(err)
		}
		var l *auth.Delegation
		door.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { l = auth.Delegate(r.Context()) })).
			ServeHTTP(httptest.NewRecorder(), withToken(secret))
		if l == nil || l.Token == "" || strings.Contains(secret, l.Token) || !slices.Equal(l.Toolsets, []string{"runs"}) {
			t.Fatalf("%s lends %+v", name, l)
		}
		return l.Token
	}
	soon := c.Now().Add(time.Hour)
	first, short := lent("laptop", nil), lent("ci", &soon)
	good := func(id string, want bool) {
		t.Helper()
		if got, err := tokens.IsValid(id); got != want || err != nil {
			t.Errorf("%s is valid: %v, %v; want %v", id, got, err, want)
		}
	}
	good(first, true)
	good(short, true)
	for _, id := range []string{"", "x", "../" + first, strings.Repeat("0", 16)} {
		good(id, false)
	}
	c.advance(time.Hour)
	if got, err := tokens.IsValid(short); got || err != nil {
		t.Errorf("an expired token is valid: %v, %v", got, err)
	}
	if err := tokens.Revoke("bob", "laptop"); err != nil {
		t.Fatal(err)
	}
	if again := lent("laptop", nil); again == first {
		t.Error("a token of the same name has the earlier id")
	}
	good(first, false)
}

func TestCovers(t *testing.T) {
	t.Parallel()
	wide := auth.Allow{Upstreams: []string{"a", "b"}, Projects: []string{"p"}, Tools: []string{"x__*"}, Toolsets: []string{"runs", "machines"}}
	for _, tt := range []struct {
		name string
		a, b auth.Allow
		want bool
	}{
		{"nothing", auth.Allow{}, auth.Allow{}, true},
		{"the same", wide, wide, true},
		{"less", wide, auth.Allow{Upstreams: []string{"b"}, Toolsets: []string{"runs"}}, true},
		{"nothing, by something", wide, auth.Allow{}, true},
		{"everything", wide, auth.Allow{All: true}, false},
		{"by everything", auth.Allow{All: true}, wide, true},
		{"all by all", auth.Allow{All: true}, auth.Allow{All: true}, true},
		{"another upstream", wide, auth.Allow{Upstreams: []string{"c"}}, false},
		{"another project", wide, auth.Allow{Projects: []string{"q"}}, false},
		{"another pattern", wide, auth.Allow{Tools: []string{"*"}}, false},
		{"another toolset", wide, auth.Allow{Toolsets: []string{"steps"}}, false},
		{"an upstream as a project", auth.Allow{Projects: []string{"a"}}, auth.Allow{Upstreams: []string{"a"}}, false},
	} {
		if got := tt.a.Covers(&tt.b); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// Each scope of a token grants exactly its rights, several scopes grant the rights of all
// of them, and the scope for /mcp grants no rights on the API.
func TestRightsOfScopes(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, filepath.Join(t.TempDir(), "tokens"))
	a := newAccess(t, nil, tokens)
	for i, tt := range []struct {
		scopes []auth.Scope
		rights []auth.Right
	}{
		{[]auth.Scope{auth.ScopeRead}, []auth.Right{auth.RightRead, auth.RightRegistry}},
		{[]auth.Scope{auth.ScopeContents}, []auth.Right{auth.RightRead, auth.RightRegistry, auth.RightContents}},
		{[]auth.Scope{auth.ScopeRegistry}, []auth.Right{auth.RightRegistry}},
		{[]auth.Scope{auth.ScopeApprove}, []auth.Right{auth.RightRead, auth.RightRegistry, auth.RightAnswer}},
		{[]auth.Scope{auth.ScopeManage}, []auth.Right{auth.RightRead, auth.RightRegistry, auth.RightManage}},
		{[]auth.Scope{auth.ScopeMCP}, nil},
		{[]auth.Scope{auth.ScopeApprove, auth.ScopeContents}, []auth.Right{auth.RightRead, auth.RightRegistry, auth.RightAnswer, auth.RightContents}},
	} {
		token, err := tokens.Create(auth.NamedToken{Name: fmt.Sprint("token", i), User: "bob", Scopes: tt.scopes})
		if err != nil {
			t.Fatal(err)
		}
		g, err := a.Check(withToken(token))
		if err != nil {
			t.Errorf("%v: %v", tt.scopes, err)
			continue
		}
		for _, r := range []auth.Right{auth.RightRead, auth.RightRegistry, auth.RightContents, auth.RightWork, auth.RightDefine, auth.RightAnswer, auth.RightManage} {
			if slices.Contains(g.Rights, r) != slices.Contains(tt.rights, r) {
				t.Errorf("a token for %v has the rights %v, want %v", tt.scopes, g.Rights, tt.rights)
			}
		}
	}
}
