package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newBrowsers(t *testing.T, dir string, c *clock) *auth.BrowserSessions {
	t.Helper()
	b, err := auth.NewBrowserSessions(auth.BrowserOptions{Dir: dir, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fromPage returns a request as a browser sends it for a page of this server's origin.
func fromPage(method, path string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://127.0.0.1:3000"+path, nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		r.Header.Set("Origin", "http://127.0.0.1:3000")
	}
	return r
}

func loginBrowser(t *testing.T, b *auth.BrowserSessions, user string) auth.Login {
	t.Helper()
	code, _, err := b.NewLink(user)
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Redeem(fromPage("POST", "/login/"+code), code)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newAccess returns the access check of the API with browsers and tokens.
func newAccess(t *testing.T, b *auth.BrowserSessions, tokens *auth.Tokens) *auth.Access {
	t.Helper()
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: secret, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return &auth.Access{Bearer: bearer, Browsers: b, Tokens: tokens}
}

func TestLinkWorksOnce(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := newBrowsers(t, t.TempDir(), c)
	code, expires, err := b.NewLink("ann")
	if err != nil || !expires.Equal(c.Now().Add(5*time.Minute)) || len(code) != 22 {
		t.Fatalf("code %q until %v, %v; want 128 bits for five minutes", code, expires, err)
	}
	for range 3 {
		if !b.LinkIsValid(code) {
			t.Fatal("a read of the link has consumed it")
		}
	}
	if _, err := b.Redeem(fromPage("POST", "/"), code); err != nil {
		t.Fatal(err)
	}
	if b.LinkIsValid(code) {
		t.Error("a used link is still valid")
	}
	if _, err := b.Redeem(fromPage("POST", "/"), code); guideway.ErrorCode(err) != guideway.CodeUnauthorized {
		t.Errorf("used twice: %v", err)
	}
	for _, code := range []string{"", "x", "../" + code, strings.Repeat("a", 22), strings.Repeat("a", 1<<16)} {
		if _, err := b.Redeem(fromPage("POST", "/"), code); guideway.ErrorCode(err) != guideway.CodeUnauthorized {
			t.Errorf("the code %.30q: %v", code, err)
		}
	}
}

func TestLinkExpires(t *testing.T) {
	t.Parallel()
	c := newClock()
	dir := t.TempDir()
	b := newBrowsers(t, dir, c)
	code, _, err := b.NewLink("ann")
	if err != nil {
		t.Fatal(err)
	}
	c.advance(5*time.Minute - time.Second)
	if !b.LinkIsValid(code) {
		t.Error("the link is not valid for five minutes")
	}
	c.advance(time.Second)
	if _, err := b.Redeem(fromPage("POST", "/"), code); guideway.ErrorCode(err) != guideway.CodeUnauthorized {
		t.Errorf("after five minutes: %v", err)
	}
	c.advance(time.Second)
	if _, _, err := b.NewLink("ann"); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "links", "*")); len(files) != 1 {
		t.Errorf("expired links are kept: %v", files)
	}
}

// If several BrowserSessions of one directory redeem a link at the same time, exactly one
// succeeds.
func TestLinkRace(t *testing.T) {
	t.Parallel()
	c, dir := newClock(), t.TempDir()
	for range 20 {
		code, _, err := newBrowsers(t, dir, c).NewLink("ann")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 8 {
			b := newBrowsers(t, dir, c)
			wg.Go(func() {
				if _, err := b.Redeem(fromPage("POST", "/"), code); err == nil {
					mu.Lock()
					won++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Fatalf("%d logged in with one link", won)
		}
	}
}

// A link can only be redeemed by a form of this server, not by a GET or from another page.
func TestRedeemRequiresOwnPage(t *testing.T) {
	t.Parallel()
	b := newBrowsers(t, t.TempDir(), newClock())
	code, _, err := b.NewLink("ann")
	if err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]http.Header{
		"without an origin":      {},
		"typed in":               {"Sec-Fetch-Site": {"none"}, "Origin": {"http://127.0.0.1:3000"}},
		"without a referrer":     {"Sec-Fetch-Site": {"same-origin"}, "Origin": {"null"}},
		"another port":           {"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://127.0.0.1:6274"}},
		"another port, no fetch": {"Origin": {"http://127.0.0.1:6274"}},
		"another page":           {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"http://evil.example"}},
		"two origins":            {"Origin": {"http://127.0.0.1:3000", "http://127.0.0.1:3000"}},
	} {
		r := httptest.NewRequestWithContext(context.Background(), "POST", "http://127.0.0.1:3000/login/"+code, nil)
		r.Header = header
		if _, err := b.Redeem(r, code); guideway.ErrorCode(err) != guideway.CodeForbidden {
			t.Errorf("%s: %v, want forbidden", name, err)
		}
	}
	if !b.LinkIsValid(code) {
		t.Error("a refused request has consumed the link")
	}
}

func TestCookie(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBrowsers(t, dir, newClock())
	l := loginBrowser(t, b, "ann")
	c := l.Cookie
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 30*24*3600 || c.Secure {
		t.Errorf("the cookie is %v", c)
	}
	if len(c.Value) != 43 || len(l.Key) != 43 || c.Value == l.Key {
		t.Errorf("cookie %q and key %q are not 256 bits each", c.Value, l.Key)
	}
	other := newBrowsers(t, t.TempDir(), newClock())
	if name := loginBrowser(t, other, "ann").Cookie.Name; name == c.Name {
		t.Errorf("servers of two data directories share the cookie %q", name)
	}
	code, _, _ := b.NewLink("ann")
	r := fromPage("POST", "/")
	r.Header.Set("X-Forwarded-Proto", "https")
	if l, err := b.Redeem(r, code); err != nil || !l.Cookie.Secure {
		t.Errorf("with TLS the cookie is %v, %v", l.Cookie, err)
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; path != dir && runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("the mode of %s is %#o", path, info.Mode().Perm())
		}
		if entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if s := path + string(text); strings.Contains(s, c.Value) || strings.Contains(s, l.Key) || strings.Contains(s, code) {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBrowserRights(t *testing.T) {
	t.Parallel()
	b := newBrowsers(t, t.TempDir(), newClock())
	a := newAccess(t, b, nil)
	l, other := loginBrowser(t, b, "bob"), loginBrowser(t, b, "eve")
	tests := []struct {
		name   string
		method string
		change func(*http.Request)
		code   guideway.Code
		rights string
	}{
		{name: "reads without the key", method: "GET", code: guideway.CodeUnauthorized},
		{name: "reads without the key, typed in", method: "GET", change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, code: guideway.CodeUnauthorized},
		{name: "reads without the key, old browser", method: "GET", change: func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, code: guideway.CodeUnauthorized},
		{name: "posts without the key", method: "POST", code: guideway.CodeUnauthorized},
		{name: "posts with another's key", method: "POST", change: withKey(other.Key), code: guideway.CodeUnauthorized},
		{name: "reads with another's key", method: "GET", change: withKey(other.Key), code: guideway.CodeUnauthorized},
		{name: "posts with the cookie as key", method: "POST", change: withKey(l.Cookie.Value), code: guideway.CodeUnauthorized},
		{name: "two cookies without the key", method: "GET", change: func(r *http.Request) { r.AddCookie(other.Cookie) }, code: guideway.CodeUnauthorized},
		{name: "from another port", method: "POST", change: func(r *http.Request) {
			withKey(l.Key)(r)
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Origin", "http://127.0.0.1:6274")
		}, code: guideway.CodeForbidden},
		{name: "from another port, old browser", method: "GET", change: func(r *http.Request) {
			withKey(l.Key)(r)
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://127.0.0.1:6274")
		}, code: guideway.CodeForbidden},
		{name: "linked from another page", method: "GET", change: func(r *http.Request) { withKey(l.Key)(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, code: guideway.CodeForbidden},
		{name: "posts with the key, without browser headers", method: "POST", change: func(r *http.Request) {
			withKey(l.Key)(r)
			r.Header.Del("Origin")
			r.Header.Del("Sec-Fetch-Site")
		}, rights: "read registry contents"},
		{name: "reads with the key, typed in", method: "GET", change: func(r *http.Request) { withKey(l.Key)(r); r.Header.Set("Sec-Fetch-Site", "none") }, rights: "read registry contents"},
		{name: "posts with the key", method: "POST", change: withKey(l.Key), rights: "read registry contents work answer define manage login tokens"},
		{name: "reads with the key", method: "GET", change: withKey(l.Key), rights: "read registry contents work answer define manage login tokens"},
		{name: "two cookies with the key", method: "GET", change: func(r *http.Request) { withKey(l.Key)(r); r.AddCookie(other.Cookie) }, rights: "read registry contents work answer define manage login tokens"},
		{name: "with a wrong token", method: "GET", change: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.Repeat("x", 40)) }, code: guideway.CodeUnauthorized},
		{name: "with a token that is empty", method: "GET", change: func(r *http.Request) { r.Header.Set("Authorization", "") }, code: guideway.CodeUnauthorized},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := fromPage(tt.method, "/api/runs")
			r.AddCookie(l.Cookie)
			if tt.change != nil {
				tt.change(r)
			}
			g, err := a.Check(r)
			var rights []string
			for _, right := range g.Rights {
				rights = append(rights, string(right))
			}
			if guideway.ErrorCode(err) != tt.code || strings.Join(rights, " ") != tt.rights {
				t.Errorf("%v, %v; want %q, %q", rights, err, tt.rights, tt.code)
			}
			if err == nil && (g.Principal.User != "bob" || g.Proof != auth.ProofBrowser) {
				t.Errorf("the grant is %+v", g)
			}
			if g.Person() != strings.Contains(tt.rights, "answer") {
				t.Errorf("person: %v with %v", g.Person(), rights)
			}
		})
	}
}

// TestBrowserRightsOfRoles checks that a login through the identity provider has exactly the
// rights of its roles.
func TestBrowserRightsOfRoles(t *testing.T) {
	t.Parallel()
	b := newBrowsers(t, t.TempDir(), newClock())
	a := newAccess(t, b, nil)
	for _, tt := range []struct {
		roles  []guideway.Role
		rights string
	}{
		{[]guideway.Role{guideway.RoleViewer}, "read registry contents tokens"},
		{[]guideway.Role{guideway.RoleApprover}, "read registry contents answer tokens"},
		{[]guideway.Role{guideway.RoleOperator}, "read registry contents work answer login tokens"},
		{[]guideway.Role{guideway.RoleOperator, guideway.RoleApprover}, "read registry contents work answer login tokens"},
		{[]guideway.Role{guideway.RoleAdmin}, "read registry contents work answer define manage login tokens"},
	} {
		l, err := b.Start(fromPage("GET", auth.CallbackPath), auth.Person{User: "bob", Roles: tt.roles})
		if err != nil {
			t.Fatal(err)
		}
		r := fromPage("POST", "/api/runs")
		r.AddCookie(l.Cookie)
		withKey(l.Key)(r)
		g, err := a.Check(r)
		var rights []string
		for _, right := range g.Rights {
			rights = append(rights, string(right))
		}
		if err != nil || strings.Join(rights, " ") != tt.rights || !slices.Equal(g.Principal.Roles, tt.roles) {
			t.Errorf("%v has the rights %v, want %s (%v)", tt.roles, rights, tt.rights, err)
		}
	}
	for _, who := range []auth.Person{{User: "bob"}, {Roles: []guideway.Role{guideway.RoleAdmin}}} {
		if l, err := b.Start(fromPage("GET", auth.CallbackPath), who); err == nil {
			t.Errorf("%+v is logged in as %s", who, l.User)
		}
	}
}

func withKey(k string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(auth.KeyHeader, k) }
}

// TestLoginLasts checks that a login in regular use is valid for 176 days but not for 180,
// and that a login expires after 30 days without use.
func TestLoginLasts(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	c := newClock()
	b := newBrowsers(t, t.TempDir(), c)
	a := newAccess(t, b, nil)
	l := loginBrowser(t, b, "ann")
	good := func() bool {
		r := fromPage("GET", "/api/runs")
		r.AddCookie(l.Cookie)
		withKey(l.Key)(r)
		_, err := a.Check(r)
		return err == nil
	}
	for used := range 8 {
		c.advance(22 * day)
		if !good() {
			t.Fatalf("expired after %d days of use", 22*(used+1))
		}
	}
	c.advance(4 * day) // 180 days in total
	if good() {
		t.Error("valid for more than 180 days")
	}

	l = loginBrowser(t, b, "ann")
	c.advance(30 * day)
	if good() {
		t.Error("valid for 30 days without use")
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	b := newBrowsers(t, t.TempDir(), newClock())
	l := loginBrowser(t, b, "ann")
	r := fromPage("GET", "/")
	r.AddCookie(l.Cookie)
	if again := b.Renew(r); again == nil || again.Value != l.Cookie.Value {
		t.Fatalf("renewed to %v", again)
	}
	gone, err := b.Logout(r)
	if err != nil || gone.MaxAge >= 0 || gone.Name != l.Cookie.Name {
		t.Fatalf("the cookie %v, %v is not deleted", gone, err)
	}
	if b.Renew(r) != nil {
		t.Error("still logged in after the logout")
	}
}

func TestDirectoryWritableByOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	dir := t.TempDir()
	b := newBrowsers(t, dir, newClock())
	l := loginBrowser(t, b, "ann")
	if err := os.Chmod(filepath.Join(dir, "browsers"), 0o777); err != nil {
		t.Fatal(err)
	}
	r := fromPage("GET", "/")
	r.AddCookie(l.Cookie)
	if _, err := newAccess(t, b, nil).Check(r); guideway.ErrorCode(err) != guideway.CodeForbidden || guideway.ErrorFix(err) == "" {
		t.Errorf("a login in a directory that all may write: %v", err)
	}
}

// NewBrowserSessions and requests without a login do not create the directory.
func TestNewBrowserSessionsDoesNotAccessDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "access")
	b := newBrowsers(t, dir, newClock())
	r := fromPage("GET", "/")
	if b.LinkIsValid("x") || b.Renew(r) != nil {
		t.Error("a request is logged in")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory exists: %v", err)
	}
	if _, err := auth.NewBrowserSessions(auth.BrowserOptions{}); err == nil {
		t.Error("browser sessions without a directory are accepted")
	}
}

// A page of another port can set a cookie of the same name. The user stays logged in: the
// valid cookie counts, whatever the order, and the key selects one of several logins.
func TestSecondCookieLocksNobodyOut(t *testing.T) {
	t.Parallel()
	b := newBrowsers(t, t.TempDir(), newClock())
	access := newAccess(t, b, nil)
	ann, bob := loginBrowser(t, b, "ann"), loginBrowser(t, b, "bob")
	junk := &http.Cookie{Name: ann.Cookie.Name, Value: "junk"}
	for _, tt := range []struct {
		name    string
		cookies []*http.Cookie
		key     string
		user    string
	}{
		{"junk first", []*http.Cookie{junk, ann.Cookie}, ann.Key, "ann"},
		{"junk last", []*http.Cookie{ann.Cookie, junk}, ann.Key, "ann"},
		{"another login first", []*http.Cookie{bob.Cookie, ann.Cookie}, ann.Key, "ann"},
		{"another login last", []*http.Cookie{ann.Cookie, bob.Cookie}, ann.Key, "ann"},
		{"junk alone", []*http.Cookie{junk, junk}, ann.Key, ""},
	} {
		r := fromPage("POST", "/api/runs")
		for _, c := range tt.cookies {
			r.AddCookie(c)
		}
		r.Header.Set(auth.KeyHeader, tt.key)
		grant, err := access.Check(r)
		if grant.Principal.User != tt.user || (err == nil) != (tt.user != "") || grant.May(auth.RightWork) != (tt.user != "") {
			t.Errorf("%s: %+v, %v", tt.name, grant, err)
		}
	}
}
