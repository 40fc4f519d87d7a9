package upstream_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// as returns the rig of a person with the same server and the same stored logins.
func (r *loginRig) as(user string) *loginRig {
	opts := r.opts
	opts.Logins = opts.Logins.Of(user)
	return &loginRig{Server: r.Server, t: r.t, spec: r.spec, opts: opts}
}

// startAt starts a login whose redirect leads to the server, in a browser.
func (r *loginRig) startAt(browser string) *upstream.Login {
	r.t.Helper()
	l, err := upstream.StartLogin(r.t.Context(), r.spec, r.opts, upstream.LoginOptions{Redirect: "https://gw.example.com/oauth/upstream/callback"})
	if err == nil {
		err = l.Save(r.t.Context(), browser)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// agree is a person who logs in at the authorization server. It returns the parameters of the
// redirect.
func (r *loginRig) agree(l *upstream.Login) url.Values {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, l.URL, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := r.opts.HTTP.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = resp.Body.Close()
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Path != "/oauth/upstream/callback" {
		r.t.Fatalf("the redirect leads to %s, %v", to, err)
	}
	return to.Query()
}

// finish is the request with the redirect, which any process may get.
func (r *loginRig) finish(query url.Values, browser string) error {
	l, err := upstream.ResumeLogin(r.t.Context(), r.spec, r.opts, query.Get("state"), browser)
	if err == nil {
		_, err = l.Finish(r.t.Context(), query)
	}
	return err
}

// callAs calls the server in the session of a person.
func (r *loginRig) callAs(user string) error {
	u := upstream.New(r.spec, r.opts)
	defer u.Close(r.t.Context())
	_, done, err := u.Session(r.t.Context(), upstream.Want{Client: "of " + user, User: user})
	if err == nil {
		done()
	}
	return err
}

// TestLoginOfAPerson checks that only the person who has started a login finishes it, once, in
// the same browser, and that nobody else uses it.
func TestLoginOfAPerson(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	ada, bob := r.as("ada"), r.as("bob")
	ours, theirs := ada.startAt("browser 1"), bob.startAt("browser 2")
	query, other := ada.agree(ours), bob.agree(theirs)
	foreignCode := url.Values{"state": query["state"], "iss": query["iss"], "code": other["code"]}
	entries, err := filepath.Glob(filepath.Join(r.opts.Logins.Dir, "people", "x", "*-pending.json"))
	if err != nil || len(entries) != 2 {
		t.Fatalf("the logins in progress are %v, %v", entries, err)
	}
	for _, file := range entries {
		text, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(text), ours.Verifier) || strings.Contains(string(text), ours.State) {
			t.Errorf("%s: %s, %v", file, text, err)
		}
	}
	changed := r.as("ada")
	changed.spec.OAuth = &config.UpstreamOAuth{Scopes: []string{"admin"}}
	for name, try := range map[string]func() error{
		"another person":               func() error { return bob.finish(query, "browser 1") },
		"another person's browser":     func() error { return bob.finish(query, "browser 2") },
		"another browser":              func() error { return ada.finish(query, "browser 2") },
		"no browser":                   func() error { return ada.finish(query, "") },
		"the local user":               func() error { return r.finish(query, "browser 1") },
		"the state of another person":  func() error { return ada.finish(other, "browser 1") },
		"no state":                     func() error { return ada.finish(url.Values{"code": query["code"]}, "browser 1") },
		"other settings":               func() error { return changed.finish(query, "browser 1") },
		"a person who started nothing": func() error { return r.as("eve").finish(query, "browser 1") },
	} {
		if err := try(); guideway.ErrorCode(err) != guideway.CodeUnauthorized || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := r.Asked("authorization_code"); n > 0 {
		t.Errorf("%d codes were exchanged", n)
	}
	// A stored login in progress is useless for another person.
	own, foreign := filepath.Join(filepath.Dir(entries[0]), digest.Hex("ada")+"-pending.json"), filepath.Join(filepath.Dir(entries[0]), digest.Hex("bob")+"-pending.json")
	text, err := os.ReadFile(own)
	if err == nil {
		err = os.WriteFile(foreign, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []url.Values{query, other} {
		for _, browser := range []string{"browser 1", "browser 2"} {
			if err := bob.finish(each, browser); err == nil {
				t.Error("a copied login in progress was finished")
			}
		}
	}

	// The code of another person's login does not fit, and the attempt is used up.
	if err := ada.finish(foreignCode, "browser 1"); err == nil || upstream.LoginTo(ada.spec, ada.opts) != nil {
		t.Errorf("with the code of another login: %v", err)
	}
	if err := ada.finish(query, "browser 1"); err == nil {
		t.Error("the attempt was used twice")
	}
	old := ada.startAt("browser 1")
	old.Started = time.Now().Add(-upstream.LoginTime - time.Second)
	if err := old.Save(t.Context(), "browser 1"); err != nil {
		t.Fatal(err)
	}
	if err := ada.finish(ada.agree(old), "browser 1"); err == nil {
		t.Error("an old attempt was finished")
	}
	replaced := ada.startAt("browser 1")
	query = ada.agree(ada.startAt("browser 1"))
	if err := ada.finish(ada.agree(replaced), "browser 1"); err == nil {
		t.Error("a replaced attempt was finished")
	}
	if err := r.as("ada").finish(query, "browser 1"); err != nil {
		t.Fatal(err)
	}
	var required *upstream.LoginRequired
	if err := r.callAs("ada"); err != nil {
		t.Errorf("with the own login: %v", err)
	}
	for _, user := range []string{"bob", "ADA", "ada ", ""} {
		if err := r.callAs(user); !asError(err, &required) {
			t.Errorf("%q uses the login of ada: %v", user, err)
		}
	}
	if err := ada.finish(query, "browser 1"); err == nil {
		t.Error("the redirect was accepted again")
	}
}

// TestPersonLogsInDuringSession checks that a session of a person uses a login that was made
// after its start, that a logout ends the use, and that the failures of a person without a
// login affect no other person.
func TestPersonLogsInDuringSession(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	r.Answer = func(w http.ResponseWriter, req *http.Request) bool { // the server accepts everyone
		if req.URL.Path == "/mcp" {
			r.Protected.ServeHTTP(w, req)
		}
		return req.URL.Path == "/mcp"
	}
	u := upstream.New(r.spec, r.opts)
	t.Cleanup(func() { u.Close(context.Background()) })
	session := func(user string) (*upstream.Session, error) {
		s, done, err := u.Session(t.Context(), upstream.Want{Client: "of " + user, User: user})
		if err == nil {
			t.Cleanup(done)
		}
		return s, err
	}
	ada, err := session("ada")
	if err != nil {
		t.Fatal(err)
	}
	call := func(s *upstream.Session) error {
		_, err := s.Do(t.Context(), toolCall("echo", args{"text": "in"}))
		return err
	}
	r.Do(func() { r.Answer = nil })
	var required *upstream.LoginRequired
	for range 3 {
		if err := call(ada); !asError(err, &required) {
			t.Fatalf("without a login: %v", err)
		}
		if _, err := session("bob"); !asError(err, &required) {
			t.Fatalf("bob: %v", err)
		}
	}
	if u.HasLogin("ada") {
		t.Error("ada has a login")
	}
	a := r.as("ada")
	if err := a.finish(a.agree(a.startAt("b")), "b"); err != nil || !u.HasLogin("ada") || u.HasLogin("bob") {
		t.Fatal(err)
	}
	if err := call(ada); err != nil {
		t.Errorf("after the login: %v", err)
	}
	if _, err := session("carl"); !asError(err, &required) {
		t.Errorf("carl: %v", err)
	}
	if _, err := session("ada"); err != nil {
		t.Errorf("ada after the refusals of others: %v", err)
	}
	if err := func() error { _, _, err := u.Session(t.Context(), upstream.Want{}); return err }(); !asError(err, &required) {
		t.Errorf("the shared session: %v", err)
	}
	// The refusal of the shared credential delays no person, not even after a success of another one.
	b := r.as("bob")
	if err := b.finish(b.agree(b.startAt("b")), "b"); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"bob", "dora", "ada"} {
		if _, err := session(user); user == "dora" != asError(err, &required) || user != "dora" && err != nil {
			t.Errorf("%s after the refusal of the shared credential: %v", user, err)
		}
	}
	if had, revoked, err := upstream.Logout(t.Context(), a.spec, a.opts); !had || !revoked || err != nil {
		t.Errorf("logout: %v %v %v", had, revoked, err)
	}
	if err := call(ada); !asError(err, &required) {
		t.Errorf("after the logout: %v", err)
	}
	r.Do(func() { // so that the server accepts the end of the session
		r.Answer = func(w http.ResponseWriter, req *http.Request) bool {
			r.Protected.ServeHTTP(w, req)
			return true
		}
	})
}

// TestRemovedUpstreamHasNoLogins checks that the logins of all users end with an upstream.
func TestRemovedUpstreamHasNoLogins(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	for _, user := range []string{"ada", "bob"} {
		p := r.as(user)
		if err := p.finish(p.agree(p.startAt("b")), "b"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.logIn(upstream.LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.opts.Logins.RemoveAll(t.Context(), "../x"); err == nil {
		t.Error("an invalid name was accepted")
	}
	if err := r.opts.Logins.RemoveAll(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"", "ada", "bob"} {
		if upstream.LoginTo(r.spec, r.as(user).opts) != nil {
			t.Errorf("%q still has a login", user)
		}
	}
}
