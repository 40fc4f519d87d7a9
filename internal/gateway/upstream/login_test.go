package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/testutil/authserver"
)

// loginRig is a protected server, and what a process needs to log in to it.
type loginRig struct {
	*authserver.Server

	t    *testing.T
	spec upstream.Spec
	opts upstream.Options
}

func newLoginRig(t *testing.T) *loginRig {
	t.Helper()
	s := authserver.New(serverHandlers(sdkServer())["stateful"])
	t.Cleanup(s.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	r := openLoginRig(s.URL, t.TempDir(), base)
	r.Server, r.t = s, t
	return r
}

// openLoginRig returns a rig whose logins are in a directory, for a server at url.
func openLoginRig(url, dir string, base http.RoundTripper) *loginRig {
	return &loginRig{
		spec: upstream.Spec{Name: "x", URL: url + "/mcp"},
		opts: upstream.Options{HTTP: base, Logins: &upstream.Logins{Dir: filepath.Join(dir, "logins"), User: "ann", Source: seal.File{Path: filepath.Join(dir, "key")}}},
	}
}

// openPage is the browser of a person: it opens a page, follows its redirects and returns
// the last page.
func openPage(t *testing.T, address string) (status int, page string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// logIn logs in with a browser of this machine.
func (r *loginRig) logIn(o upstream.LoginOptions) (*upstream.LoginInfo, error) {
	r.t.Helper()
	l, err := upstream.StartLoopbackLogin(r.t.Context(), r.spec, r.opts, o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	status, page := openPage(r.t, l.URL)
	info, err := l.Wait(r.t.Context())
	if (err == nil) != (status == http.StatusOK) {
		r.t.Errorf("status %d, %s, but the login ended with %v", status, page, err)
	}
	return info, err
}

func (r *loginRig) call() (string, error) {
	r.t.Helper()
	u := upstream.New(r.spec, r.opts)
	defer u.Close(r.t.Context())
	s, done, err := u.Session(r.t.Context(), upstream.Want{})
	if err != nil {
		return "", err
	}
	defer done()
	return callText(r.t, s, toolCall("echo", args{"text": "in"})), nil
}

// TestLogin checks a login from its discovery to a call and to the logout.
func TestLogin(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	var required *upstream.LoginRequired
	if _, err := r.call(); !asError(err, &required) || !strings.Contains(guideway.ErrorFix(err), "guideway upstream login x") {
		t.Fatalf("without a login: %v, %s", err, guideway.ErrorFix(err))
	}
	info, err := r.logIn(upstream.LoginOptions{Scopes: []string{"write"}})
	if err != nil {
		t.Fatal(err)
	}
	if info.Issuer != r.URL || !info.Renews || info.Expires == nil || strings.Join(info.Scopes, " ") != "read write offline_access" {
		t.Errorf("the login is %+v", info)
	}
	if got, err := r.call(); got != "in" || err != nil {
		t.Errorf("echo: %q, %v", got, err)
	}
	forms := r.Forms()
	page, exchange := forms[0], forms[1]
	for name, want := range map[string]string{"response_type": "code", "code_challenge_method": "S256", "resource": r.URL + "/mcp", "scope": "read write offline_access"} {
		if page.Get(name) != want {
			t.Errorf("the page has %s=%q, want %q", name, page.Get(name), want)
		}
	}
	if exchange.Get("resource") != r.URL+"/mcp" || exchange.Get("code_verifier") == "" || exchange.Get("redirect_uri") != page.Get("redirect_uri") ||
		!strings.HasPrefix(page.Get("redirect_uri"), "http://127.0.0.1:") {
		t.Errorf("the code was exchanged with %v", exchange)
	}
	if got := upstream.LoginTo(r.spec, r.opts); got == nil || got.Issuer != r.URL {
		t.Errorf("the stored login is %+v", got)
	}
	had, revoked, err := upstream.Logout(t.Context(), r.spec, r.opts)
	if !had || !revoked || err != nil || r.Asked("/revoke") != 1 {
		t.Errorf("logout: %v %v %v", had, revoked, err)
	}
	if had, _, err := upstream.Logout(t.Context(), r.spec, r.opts); had || err != nil {
		t.Errorf("the second logout: %v, %v", had, err)
	}
	if _, err := r.call(); !asError(err, &required) {
		t.Errorf("after the logout: %v", err)
	}
}

func asError[E error](err error, target *E) bool { return errors.As(err, target) }
