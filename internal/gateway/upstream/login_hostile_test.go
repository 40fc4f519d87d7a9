package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// TestLoginDiscovery checks that no login starts with an authorization server that is not
// safe, or that the server may not name.
func TestLoginDiscovery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(r, evil *loginRig)
		want   string
	}{
		"no PKCE":                    {func(r, _ *loginRig) { r.Metadata = metadata("code_challenge_methods_supported", nil) }, "does not support PKCE"},
		"only plain PKCE":            {func(r, _ *loginRig) { r.Metadata = metadata("code_challenge_methods_supported", []string{"plain"}) }, "does not support PKCE"},
		"no logins":                  {func(r, _ *loginRig) { r.Metadata = metadata("grant_types_supported", []string{"client_credentials"}) }, "does not support logins"},
		"metadata of another issuer": {func(r, evil *loginRig) { r.Metadata = metadata("issuer", evil.URL) }, "describes another issuer"},
		"metadata without an issuer": {func(r, _ *loginRig) { r.Metadata = metadata("issuer", nil) }, "describes another issuer"},
		"a token endpoint elsewhere": {func(r, evil *loginRig) { r.Metadata = metadata("token_endpoint", evil.URL+"/token") }, "is not https"},
		"a page over http":           {func(r, _ *loginRig) { r.Metadata = metadata("authorization_endpoint", "http://example.com/a") }, "is not https"},
		"a page that is a script":    {func(r, _ *loginRig) { r.Metadata = metadata("authorization_endpoint", "javascript:alert(1)") }, "is not https"},
		"a page that is a file":      {func(r, _ *loginRig) { r.Metadata = metadata("authorization_endpoint", "file:///etc/passwd") }, "is not https"},
		"a page with a user name":    {func(r, _ *loginRig) { r.Metadata = metadata("authorization_endpoint", "https://a:b@example.com/") }, "is not https"},
		"no page":                    {func(r, _ *loginRig) { r.Metadata = metadata("authorization_endpoint", nil) }, "is not https"},
		"a huge page": {func(r, _ *loginRig) {
			r.Metadata = metadata("authorization_endpoint", "https://example.com/"+strings.Repeat("a", 4000))
		}, "is not https"},
		"registration elsewhere":       {func(r, evil *loginRig) { r.Metadata = metadata("registration_endpoint", evil.URL+"/register") }, "is not https"},
		"revocation elsewhere":         {func(r, evil *loginRig) { r.Metadata = metadata("revocation_endpoint", evil.URL+"/revoke") }, "is not https"},
		"no registration":              {func(r, _ *loginRig) { r.Metadata = metadata("registration_endpoint", nil) }, "does not register clients"},
		"registration on this machine": {func(r, _ *loginRig) { r.Metadata = metadata("registration_endpoint", "https://127.0.0.1:1/r") }, "reserved address"},
		"another resource":             {func(r, evil *loginRig) { r.Resource = metadata("resource", evil.URL+"/mcp") }, "another resource"},
		"an issuer over http":          {func(r, evil *loginRig) { r.Resource = metadata("authorization_servers", []string{evil.URL}) }, "of the authorization server is not https"},
		"an issuer on this machine":    {func(r, _ *loginRig) { r.Resource = metadata("authorization_servers", []string{"https://127.0.0.1:1"}) }, "reserved address"},
		"an issuer in the cloud": {func(r, _ *loginRig) {
			r.Resource = metadata("authorization_servers", []string{"https://169.254.169.254"})
		}, "reserved address"},
		"huge metadata": {func(r, _ *loginRig) { r.Metadata = metadata("x", strings.Repeat("x", 1<<20)) }, "is not valid metadata"},
		"metadata that is redirected": {func(r, evil *loginRig) {
			r.Answer = answerAt("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, evil.URL, http.StatusFound) })
		}, "redirects to another host"},
		"registration that is redirected": {func(r, evil *loginRig) {
			r.Answer = answerAt("/register", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, evil.URL+"/register", http.StatusTemporaryRedirect)
			})
		}, "register a client"},
		"a huge refusal of the registration": {func(r, _ *loginRig) {
			r.Answer = answerAt("/register", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write([]byte(strings.Repeat("\u202ex", 1<<20)))
			})
		}, "register a client"},
		"a secret for another host": {func(r, evil *loginRig) {
			r.Resource = metadata("authorization_servers", []string{"https://auth.example.net"})
			r.spec.OAuth = &config.UpstreamOAuth{Grant: config.GrantCode, ClientID: "me", ClientSecret: "s3cret"}
		}, "which would receive the secret"},
		"a secret for another token endpoint": {func(r, _ *loginRig) {
			r.Metadata = metadata("token_endpoint", "https://auth.example.net/token")
			r.spec.OAuth = &config.UpstreamOAuth{Grant: config.GrantCode, ClientID: "me", ClientSecret: "s3cret"}
		}, "which would receive the secret"},
		"another credential": {func(r, _ *loginRig) { r.spec.Bearer = "t" }, "is not possible"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, evil := newLoginRig(t), newLoginRig(t)
			tt.change(r, evil)
			l, err := upstream.StartLoopbackLogin(t.Context(), r.spec, r.opts, upstream.LoginOptions{})
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || guideway.ErrorFix(err) == "" || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\u202e") {
				t.Errorf("the error is %v, %s; want %q", err, guideway.ErrorFix(err), tt.want)
			}
			if len(r.Forms())+len(evil.Forms())+evil.Asked("/register")+evil.Asked("/") > 0 {
				t.Errorf("the servers got requests: %v %v", r.Forms(), evil.Forms())
			}
		})
	}
}

func metadata(name string, value any) map[string]any { return map[string]any{name: value} }

// answerAt answers the requests to one path.
func answerAt(path string, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == path {
			answer(w, r)
		}
		return r.URL.Path == path
	}
}

// TestLoginRedirects checks that a redirect is accepted only from the authorization server of
// the login, and only for this login.
func TestLoginRedirects(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(r *loginRig)
		want   string
	}{
		"mix-up":    {func(r *loginRig) { r.Redirect = set("iss", "https://evil.example.net") }, "comes from another authorization server"},
		"no issuer": {func(r *loginRig) { r.Redirect = func(q url.Values) { q.Del("iss") } }, "contains no \"iss\""},
		"an unadvertised wrong one": {func(r *loginRig) {
			r.Metadata = metadata("authorization_response_iss_parameter_supported", nil)
			r.Redirect = set("iss", "https://evil.example.net")
		}, "comes from another authorization server"},
		"two issuers": {func(r *loginRig) { r.Redirect = func(q url.Values) { q.Add("iss", "https://evil.example.net") } }, `contains "iss" more than once`},
		"two codes":   {func(r *loginRig) { r.Redirect = func(q url.Values) { q.Add("code", "x") } }, `contains "code" more than once`},
		"no code":     {func(r *loginRig) { r.Redirect = func(q url.Values) { q.Del("code") } }, "contains no code"},
		"a refusal": {func(r *loginRig) {
			r.Redirect = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied\u202e") }
		}, "answered access_denied"},
		"a refusal of another one": {func(r *loginRig) {
			r.Redirect = func(q url.Values) { q.Set("error", "x"); q.Set("iss", "https://evil.example.net") }
		}, "comes from another authorization server"},
		"a made-up code":        {func(r *loginRig) { r.Redirect = set("code", "code-99") }, "invalid_grant"},
		"another type of token": {func(r *loginRig) { r.Token = metadata("token_type", "mac") }, `a token of the type "mac"`},
		"no token":              {func(r *loginRig) { r.Token = metadata("access_token", nil) }, "get a token"},
		"a huge token":          {func(r *loginRig) { r.Token = metadata("access_token", strings.Repeat("x", 800_000)) }, "fewer than"},
		"a huge response":       {func(r *loginRig) { r.Token = metadata("x", strings.Repeat("x", 2<<20)) }, "get a token"},
		"a redirected exchange": {func(r *loginRig) {
			r.Answer = answerAt("/token", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:1/token", http.StatusTemporaryRedirect)
			})
		}, "redirects to another host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLoginRig(t)
			tt.change(r)
			_, err := r.logIn(upstream.LoginOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\u202e") || guideway.ErrorFix(err) == "" {
				t.Errorf("the error is %v, %s; want %q", err, guideway.ErrorFix(err), tt.want)
			}
			if upstream.LoginTo(r.spec, r.opts) != nil {
				t.Error("a login was stored")
			}
		})
	}
}

func set(name, value string) func(url.Values) { return func(q url.Values) { q.Set(name, value) } }

// TestLoginPort checks that only the redirect of the login changes something, that it works
// once, and that the pages of the port lead nowhere.
func TestLoginPort(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	stolen := make(chan url.Values, 1)
	l, err := upstream.StartLoopbackLogin(t.Context(), r.spec, r.opts, upstream.LoginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	page, _ := url.Parse(l.URL)
	redirect, state := page.Query().Get("redirect_uri"), page.Query().Get("state")
	r.Do(func() {
		r.Redirect = func(q url.Values) { stolen <- url.Values{"code": q["code"], "iss": q["iss"]}; q.Set("state", "other") }
	})
	openPage(t, l.URL) // the redirect has another state
	code := <-stolen
	for _, address := range []string{
		redirect, redirect + "?" + code.Encode(), redirect + "?state=x&" + code.Encode(), redirect + "?state=&" + code.Encode(),
		strings.Replace(redirect, "/oauth/callback", "/", 1) + "?state=" + state, strings.Replace(redirect, "127.0.0.1", "localhost", 1) + "?state=" + state,
		redirect + "?state=x&redirect_uri=https://evil.example.net&error_description=" + url.QueryEscape("<script>alert(1)</script>"),
	} {
		if status, text := openPage(t, address); status != http.StatusBadRequest || strings.Contains(text, "evil") || strings.Contains(text, "script") {
			t.Errorf("%s: status %d, %s", address, status, text)
		}
	}
	if r.Asked("authorization_code") != 0 {
		t.Fatal("a code was exchanged")
	}
	// The code of another login does not match the verifier of this one, even with its state.
	other, err := upstream.StartLoopbackLogin(t.Context(), r.spec, r.opts, upstream.LoginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	otherPage, _ := url.Parse(other.URL)
	code.Set("state", otherPage.Query().Get("state"))
	openPage(t, otherPage.Query().Get("redirect_uri")+"?"+code.Encode())
	if _, err := other.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("the injected code: %v", err)
	}
	r.Do(func() { r.Redirect = nil })
	if status, text := openPage(t, l.URL); status != http.StatusOK {
		t.Errorf("the login after the attacks: %d %s", status, text)
	}
	if status, text := openPage(t, l.URL); status != http.StatusBadRequest || !strings.Contains(text, "has already ended") {
		t.Errorf("the second redirect: %d %s", status, text)
	}
}

// TestLoginClients checks how Guideway identifies itself to authorization servers.
func TestLoginClients(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		oauth    *config.UpstreamOAuth
		change   map[string]any
		id       string
		secret   string
		register int
	}{
		"metadata document": {change: metadata("client_id_metadata_document_supported", true), id: "https://example.com/client.json"},
		"registration":      {id: "client-1", register: 1},
		"configured":        {oauth: &config.UpstreamOAuth{ClientID: "me"}, id: "me", change: metadata("client_id_metadata_document_supported", true)},
		"with a secret":     {oauth: &config.UpstreamOAuth{ClientID: "me", ClientSecret: "s3cret", Grant: config.GrantCode}, id: "me", secret: "s3cret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLoginRig(t)
			r.spec.OAuth, r.Metadata = tt.oauth, tt.change
			if tt.register == 0 {
				r.AddClient(tt.id, tt.secret)
			}
			info, err := r.logIn(upstream.LoginOptions{ClientMetadata: "https://example.com/client.json"})
			if err != nil || info.Client != tt.id || r.Asked("/register") != tt.register {
				t.Fatalf("the client is %+v with %d registrations: %v", info, r.Asked("/register"), err)
			}
			r.Revoke(false)
			if got, err := r.call(); got != "in" || err != nil || r.Asked("refresh_token") != 1 {
				t.Errorf("after the renewal: %q, %v", got, err)
			}
		})
	}
}

// loginDirVariable and loginURLVariable are set for a process that runs renewLogins.
const loginDirVariable, loginURLVariable = "TEST_LOGIN_DIR", "TEST_LOGIN_URL"

// renewLogins is a process with the logins of a rig: for each line on its input, clients of
// two gateways call the server at once, and it prints a line with the errors.
func renewLogins() {
	r := openLoginRig(os.Getenv(loginURLVariable), os.Getenv(loginDirVariable), &http.Transport{})
	gateways := []*upstream.Upstream{upstream.New(r.spec, r.opts), upstream.New(r.spec, r.opts)}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var calls sync.WaitGroup
		errs := make([]error, 16)
		for n := range errs {
			calls.Go(func() {
				s, done, err := gateways[n%2].Session(context.Background(), upstream.Want{})
				if err == nil {
					_, err = s.Do(context.Background(), toolCall("echo", args{"text": "in"}))
					done()
				}
				errs[n] = err
			})
		}
		calls.Wait()
		fmt.Fprintf(os.Stdout, "%q\n", fmt.Sprint(errors.Join(errs...)))
	}
	for _, u := range gateways {
		u.Close(context.Background())
	}
}

// startRenewing starts a process that runs renewLogins. The function run makes its clients
// call once.
func (r *loginRig) startRenewing(dir string) (run func()) {
	r.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), loginDirVariable+"="+dir, loginURLVariable+"="+r.URL)
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			r.t.Error(err)
		}
	})
	lines := bufio.NewReader(out)
	return func() {
		_, writeErr := io.WriteString(in, "call\n")
		line, err := lines.ReadString('\n')
		if writeErr != nil || err != nil || line != "\"<nil>\"\n" {
			r.t.Errorf("the clients of a process ended with %s (%v, %v)", line, writeErr, err)
		}
	}
}

// TestLoginIsRenewedOnce checks that 32 clients in two processes renew a token once, with the
// resource, and that a renewed refresh token replaces the old one: the authorization server
// revokes all tokens when a replaced one is used.
func TestLoginIsRenewedOnce(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	if _, err := r.logIn(upstream.LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(r.opts.Logins.Dir)
	processes := []func(){r.startRenewing(dir), r.startRenewing(dir)}
	for round := 1; round <= 3; round++ {
		r.Revoke(false)
		var calls sync.WaitGroup
		for _, run := range processes {
			calls.Go(run)
		}
		calls.Wait()
		if n := r.Asked("refresh_token"); n != round || r.Reused() > 0 {
			t.Fatalf("round %d: the token was renewed %d times, and a replaced token was used %d times", round, n, r.Reused())
		}
	}
	forms := r.Forms()
	if last := forms[len(forms)-1]; last.Get("resource") != r.URL+"/mcp" {
		t.Errorf("the token was renewed with %v", last)
	}
}

// TestLoginExpires checks that a login ends if the authorization server refuses to renew it,
// but not if that server fails.
func TestLoginExpires(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	if _, err := r.logIn(upstream.LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Revoke(false)
	var required *upstream.LoginRequired
	for _, status := range []int{http.StatusBadGateway, http.StatusTooManyRequests} {
		r.Do(func() {
			r.Answer = answerAt("/token", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		})
		if _, err := r.call(); err == nil || asError(err, &required) || upstream.LoginTo(r.spec, r.opts) == nil {
			t.Errorf("status %d: %v", status, err)
		}
	}
	r.Do(func() { r.Answer = nil })
	r.Revoke(true)
	if _, err := r.call(); !asError(err, &required) || !strings.Contains(guideway.ErrorFix(err), "guideway upstream login x") {
		t.Errorf("after the revocation: %v, %s", err, guideway.ErrorFix(err))
	}
	if upstream.LoginTo(r.spec, r.opts) != nil {
		t.Error("the login was kept")
	}
}

// TestLoginIsBound checks that tokens are used only for the user, the upstream, the URL and
// the OAuth settings of the login.
func TestLoginIsBound(t *testing.T) {
	t.Parallel()
	r, evil := newLoginRig(t), newLoginRig(t)
	if _, err := r.logIn(upstream.LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	evil.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if given := r.Header.Get("Authorization"); given != "" {
			seen <- given
		}
		return false
	}
	var required *upstream.LoginRequired
	for name, spec := range map[string]upstream.Spec{
		"another URL":    {Name: "x", URL: evil.URL + "/mcp"},
		"another issuer": {Name: "x", URL: r.URL + "/mcp", OAuth: &config.UpstreamOAuth{Issuer: evil.URL}},
	} {
		other := &loginRig{Server: r.Server, t: t, spec: spec, opts: r.opts}
		if _, err := other.call(); !asError(err, &required) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A copied or edited file is not used.
	path := filepath.Join(r.opts.Logins.Dir, "x.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	file["info"].(map[string]any)["issuer"] = "https://evil.example.net"
	edited, _ := json.Marshal(file)
	for name, tt := range map[string]struct {
		spec upstream.Spec
		user string
		text []byte
	}{
		"a copy for another upstream": {upstream.Spec{Name: "y", URL: r.spec.URL}, "ann", text},
		"a copy for another user":     {r.spec, "bob", text},
		"an edited file":              {r.spec, "ann", edited},
		"no JSON":                     {r.spec, "ann", []byte("{")},
	} {
		logins := *r.opts.Logins
		logins.Dir, logins.User = t.TempDir(), tt.user
		if err := os.WriteFile(filepath.Join(logins.Dir, tt.spec.Name+".json"), tt.text, 0o600); err != nil {
			t.Fatal(err)
		}
		opts := r.opts
		opts.Logins = &logins
		other := &loginRig{Server: r.Server, t: t, spec: tt.spec, opts: opts}
		if _, err := other.call(); !asError(err, &required) || !strings.Contains(err.Error(), "read the login") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(seen) > 0 {
		t.Errorf("the other server got %s", <-seen)
	}
}

// TestLoginTimesOut checks that neither a login nor a call waits for a silent authorization
// server after it was cancelled.
func TestLoginTimesOut(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	asked, hang := make(chan string, 10), make(chan struct{})
	r.Answer = answerAt("/.well-known/oauth-authorization-server", func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-hang
	})
	defer close(hang)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := upstream.StartLoopbackLogin(ctx, r.spec, r.opts, upstream.LoginOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the login: %v", err)
	}
}
