package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/httpapi/auth/sso"
	"github.com/guideway-dev/guideway/internal/testutil/idserver"
)

// identityRig is a server with an identity provider.
type identityRig struct {
	*rig
	provider *idserver.Server
	sso      *sso.Provider
	// later is added to the clock, in nanoseconds.
	later atomic.Int64
}

// roleGroups maps the groups of the tests to roles. The user "bob" of the provider is in the
// group of each role in the claim groups.
func roleGroups(groups []string) []guideway.Role {
	var roles []guideway.Role
	for _, role := range guideway.Roles() {
		if slices.Contains(groups, "g-"+string(role)) {
			roles = append(roles, role)
		}
	}
	return roles
}

func newIdentityRig(t *testing.T, change ...func(*httpapi.Options)) *identityRig {
	t.Helper()
	s := &identityRig{provider: idserver.New(t)}
	s.sso = sso.New(sso.Options{
		Issuer: s.provider.URL, ClientID: idserver.ClientID, UserClaim: "sub", RolesClaim: "groups", RolesOf: roleGroups,
		ResourceScope: "guideway", LocalUser: "ann", Now: func() time.Time { return time.Now().Add(time.Duration(s.later.Load())) },
	})
	s.rig = newRig(t, append([]func(*httpapi.Options){func(o *httpapi.Options) { o.Identities, o.AccessTokens, o.Now = s.sso, s.sso, s.sso.Now }}, change...)...)
	s.sso.PublicURL, s.sso.Resource = s.url, s.url+"/mcp"
	s.provider.SetClaims(map[string]any{"groups": []string{"g-operator"}})
	return s
}

// browserOf is a browser with its own cookies. It does not follow redirects.
func (s *identityRig) newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Transport: s.client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// open opens a page like a link of another site.
func (s *identityRig) open(t *testing.T, browser *http.Client, page string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", page, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	if strings.Contains(page, "/callback") {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}
	resp, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp, got}
}

// begin starts a login and returns the address to which the provider sends the browser.
func (s *identityRig) begin(t *testing.T, browser *http.Client) *url.URL {
	t.Helper()
	to := s.open(t, browser, s.url+auth.LoginPath)
	if to.StatusCode != http.StatusFound {
		t.Fatalf("the login begins with %d %s", to.StatusCode, to.body)
	}
	back := s.open(t, browser, to.Header.Get("Location"))
	if back.StatusCode != http.StatusFound {
		t.Fatalf("the provider answers %d %s", back.StatusCode, back.body)
	}
	address, err := url.Parse(back.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return address
}

var keyOfPage = regexp.MustCompile(`guideway-key" content="([^"]+)"`)

// finish opens the redirect of a provider. It returns the credential of the browser's pages,
// or nil if the login was refused; then no session may exist.
func (s *identityRig) finish(t *testing.T, browser *http.Client, back *url.URL) (page credential, answer string) {
	t.Helper()
	got := s.open(t, browser, back.String())
	home, _ := url.Parse(s.url)
	sessions := slices.DeleteFunc(browser.Jar.Cookies(home), func(c *http.Cookie) bool { return c.Name == "guideway_login" })
	key := keyOfPage.FindSubmatch(got.body)
	if got.StatusCode != http.StatusOK || key == nil {
		if len(sessions) > 0 || key != nil {
			t.Errorf("a refused login leaves %v and %q", sessions, key)
		}
		return nil, string(got.body)
	}
	return func(r *http.Request) {
		s.addPageHeaders(r)
		r.AddCookie(sessions[0])
		r.Header.Set(auth.KeyHeader, string(key[1]))
	}, string(got.body)
}

// login logs in with roles.
func (s *identityRig) login(t *testing.T, user string, roles ...guideway.Role) credential {
	t.Helper()
	groups := []string{}
	for _, role := range roles {
		groups = append(groups, "g-"+string(role))
	}
	s.provider.SetClaims(map[string]any{"sub": user, "groups": groups})
	browser := s.newBrowser(t)
	page, answer := s.finish(t, browser, s.begin(t, browser))
	if page == nil {
		t.Fatalf("the login was refused: %s", answer)
	}
	return page
}

// A person logs in through the provider, has the rights of the role, and needs another login
// after twelve hours.
func TestLoginThroughProvider(t *testing.T) {
	t.Parallel()
	s := newIdentityRig(t)
	page := s.login(t, "bob", guideway.RoleOperator)
	var me struct {
		User   string
		Rights []auth.Right
	}
	s.wantStatus(t, 200, page, "GET", "/api/me", "").decodeInto(t, &me)
	if me.User != "bob" || slices.Contains(me.Rights, auth.RightManage) {
		t.Errorf("the user is %+v", me)
	}
	for _, form := range s.provider.Forms() {
		if form.Get("code_challenge_method") != "S256" && form.Get("code_verifier") == "" || form.Has("response_type") && (form.Get("nonce") == "" || form.Get("state") == "") {
			t.Errorf("a request has no PKCE, nonce or state: %v", form)
		}
	}
	outside := s.open(t, s.newBrowser(t), s.url+"/")
	if !strings.Contains(string(outside.body), auth.LoginPath) {
		t.Error("the page does not offer the login")
	}
}

// No login succeeds if the provider's answer is not the answer to this login of this browser.
func TestHostileLogins(t *testing.T) {
	t.Parallel()
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		claims map[string]any
		change func(s *identityRig)
		back   func(url.Values)
		want   string
	}{
		"wrong issuer":           {claims: map[string]any{"iss": "https://evil.example"}, want: "issued by a different provider"},
		"wrong audience":         {claims: map[string]any{"aud": "other"}, want: "audience"},
		"another client's party": {claims: map[string]any{"aud": []string{idserver.ClientID, "other"}, "azp": "other"}, want: "another client"},
		"several audiences":      {claims: map[string]any{"aud": []string{idserver.ClientID, "other"}}, want: "another client"},
		"wrong nonce":            {claims: map[string]any{"nonce": "other"}, want: "another login"},
		"no nonce":               {claims: map[string]any{"nonce": nil}, want: "another login"},
		"expired":                {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, want: "expired"},
		"no expiry":              {claims: map[string]any{"exp": nil}, want: "expired"},
		"not yet valid":          {claims: map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, want: "nbf"},
		"wrong access token":     {claims: map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, want: "access token"},
		"algorithm none":         {change: func(s *identityRig) { s.provider.SetSign(idserver.Unsigned) }, want: "invalid"},
		"key of a stranger": {change: func(s *identityRig) {
			key := jose.JSONWebKey{Key: stranger, KeyID: s.provider.PublicKey().KeyID}
			s.provider.SetSign(func(c map[string]any) string {
				return idserver.Sign(jose.SigningKey{Algorithm: jose.ES256, Key: key}, c)
			})
		}, want: "signature"},
		"public key as a secret": {change: func(s *identityRig) {
			secret, _ := json.Marshal(s.provider.PublicKey())
			s.provider.SetSign(func(c map[string]any) string {
				return idserver.Sign(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, c)
			})
		}, want: "invalid"},
		"no ID token":        {change: func(s *identityRig) { s.provider.Do(func() { s.provider.IDToken = nil }) }, want: "no ID token"},
		"user without role":  {claims: map[string]any{"groups": []string{"others"}}, want: "has no role"},
		"text with spaces":   {claims: map[string]any{"groups": "team g-admin"}, want: "has no role"},
		"no groups":          {claims: map[string]any{"groups": nil}, want: "has no role"},
		"the local user":     {claims: map[string]any{"sub": "ann"}, want: "local user"},
		"a user with a NUL":  {claims: map[string]any{"sub": "bob\x00"}, want: "no valid user"},
		"a user of 300 byte": {claims: map[string]any{"sub": strings.Repeat("b", 300)}, want: "no valid user"},
		"unverified e-mail":  {claims: map[string]any{"email": "bob@example.com"}, change: func(s *identityRig) { s.sso.UserClaim = "email" }, want: "not verified"},
		"wrong state":        {back: func(q url.Values) { q.Set("state", "other") }, want: "did not start"},
		"no state":           {back: func(q url.Values) { q.Del("state") }, want: "did not start"},
		"two states":         {back: func(q url.Values) { q.Add("state", "other") }, want: "several times"},
		"mix-up":             {back: func(q url.Values) { q.Set("iss", "https://evil.example") }, want: "another identity provider"},
		"no issuer":          {back: func(q url.Values) { q.Del("iss") }, want: "another identity provider"},
		"a foreign code":     {back: func(q url.Values) { q.Set("code", "code-999") }, want: "does not accept the code"},
		"no code":            {back: func(q url.Values) { q.Del("code") }, want: "no code"},
		"an error":           {back: func(q url.Values) { q.Del("code"); q.Set("error", "<script>") }, want: "&lt;script&gt;"},
		"a late answer":      {change: func(s *identityRig) {}, back: nil, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newIdentityRig(t)
			browser := s.newBrowser(t)
			if c.change != nil {
				c.change(s)
			}
			claims := map[string]any{"groups": []string{"g-admin"}}
			for name, value := range c.claims {
				claims[name] = value
			}
			s.provider.SetClaims(claims)
			back := s.begin(t, browser)
			if c.back != nil {
				q := back.Query()
				c.back(q)
				back.RawQuery = q.Encode()
			}
			if name == "a late answer" {
				s.later.Store(int64(11 * time.Minute))
				c.want = "did not start"
			}
			page, answer := s.finish(t, browser, back)
			if page != nil || !strings.Contains(answer, c.want) {
				t.Errorf("the login was accepted, or refused for another reason than %q: %s", c.want, answer)
			}
		})
	}
}

// A redirect works once, only in the browser that started the login, and only as a
// navigation; it always leads to the start page.
func TestLoginBelongsToItsBrowser(t *testing.T) {
	t.Parallel()
	s := newIdentityRig(t)
	mine, other := s.newBrowser(t), s.newBrowser(t)
	back := s.begin(t, mine)
	if page, answer := s.finish(t, other, back); page != nil || !strings.Contains(answer, "did not start") {
		t.Errorf("another browser is logged in: %s", answer)
	}
	s.begin(t, other)
	if page, answer := s.finish(t, other, back); page != nil || !strings.Contains(answer, "did not start") {
		t.Errorf("another browser with its own login is logged in: %s", answer)
	}
	for name, header := range map[string][]string{
		"a script":  {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"},
		"a frame":   {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		"an origin": {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Origin", "https://evil.example"},
	} {
		if got := s.sendRequest(t, withoutCredential, "GET", back.RequestURI(), "", header...); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s gets %d", name, got.StatusCode)
		}
	}
	q := back.Query()
	q.Set("return", "https://evil.example")
	q.Set("redirect_uri", "https://evil.example")
	back.RawQuery = q.Encode()
	page, answer := s.finish(t, mine, back)
	if page == nil || strings.Contains(answer, "evil") {
		t.Fatalf("the login of the browser: %s", answer)
	}
	again := s.open(t, mine, back.String())
	if again.StatusCode != http.StatusUnauthorized || keyOfPage.Match(again.body) {
		t.Errorf("the second use of a redirect: %d %s", again.StatusCode, again.body)
	}
}

// Each access token is checked, the metadata leads a client to the provider, and no access
// token works outside of /mcp.
func TestAccessTokens(t *testing.T) {
	t.Parallel()
	var seen []auth.TokenLease
	var people []guideway.Principal
	s := newIdentityRig(t, func(o *httpapi.Options) {
		o.MCP = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			p, _ := auth.PrincipalFrom(r.Context())
			people, seen = append(people, p), append(seen, *auth.TokenLeaseFrom(r.Context()))
		})
	})
	good := map[string]any{"aud": s.url + "/mcp", "scope": "openid guideway", "client_id": "editor", "groups": []string{"g-operator", "g-approver"}}
	s.provider.SetClaims(nil)
	with := func(change map[string]any) credential {
		claims := map[string]any{}
		for _, m := range []map[string]any{good, change} {
			for name, value := range m {
				claims[name] = value
			}
		}
		return withBearer(s.provider.Issue(claims))
	}
	for name, c := range map[string]struct {
		change map[string]any
		status int
	}{
		"valid":             {nil, 200},
		"list of audiences": {map[string]any{"aud": []string{"x", s.url + "/mcp"}}, 200},
		"list of scopes":    {map[string]any{"scope": nil, "scp": []string{"guideway"}}, 200},
		"other audience":    {map[string]any{"aud": "https://other.example/mcp"}, 401},
		"ID token":          {map[string]any{"aud": idserver.ClientID}, 401},
		"no audience":       {map[string]any{"aud": nil}, 401},
		"other issuer":      {map[string]any{"iss": "https://evil.example"}, 401},
		"expired":           {map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, 401},
		"no scope":          {map[string]any{"scope": "openid"}, 403},
		"part of a scope":   {map[string]any{"scope": "guideway:read"}, 403},
		"no role":           {map[string]any{"groups": nil}, 403},
		"viewer":            {map[string]any{"groups": []string{"g-viewer"}}, 403},
		"approver":          {map[string]any{"groups": []string{"g-approver"}}, 403},
		"local user":        {map[string]any{"sub": "ann"}, 403},
	} {
		got := s.sendRequest(t, with(c.change), "POST", "/mcp", "{}")
		challenge := got.Header.Get("WWW-Authenticate")
		if got.StatusCode != c.status || (c.status != 200) != strings.Contains(challenge, `resource_metadata="`+s.url+`/.well-known/oauth-protected-resource/mcp"`) ||
			(c.status == 403) != strings.Contains(challenge, "insufficient_scope") {
			t.Errorf("%s: %d %s %q", name, got.StatusCode, got.body, challenge)
		}
	}
	for i, p := range people {
		if p.User != "bob" || p.Client != "editor" || !slices.Equal(p.Roles, []guideway.Role{guideway.RoleOperator}) || !seen[i].Allow.All {
			t.Errorf("the client is %+v with %+v", p, seen[i])
		}
	}
	s.provider.SetSign(idserver.Unsigned)
	if got := s.sendRequest(t, with(nil), "POST", "/mcp", "{}"); got.StatusCode != 401 {
		t.Errorf("an unsigned token: %d", got.StatusCode)
	}
	s.provider.SetSign(nil)
	s.wantStatus(t, 401, with(nil), "GET", "/api/runs", "")

	var about struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	for _, path := range []string{"", "/mcp"} {
		s.wantStatus(t, 200, withoutCredential, "GET", auth.MetadataPath+path, "").decodeInto(t, &about)
		if about.Resource != s.url+"/mcp" || about.Servers[0] != s.provider.URL || about.Scopes[0] != "guideway" {
			t.Errorf("the metadata is %+v", about)
		}
	}
	s.wantStatus(t, 404, withoutCredential, "GET", auth.MetadataPath+"/other", "")
	if got := s.sendRequest(t, withoutCredential, "POST", "/mcp", "{}"); got.StatusCode != 401 || !strings.Contains(got.Header.Get("WWW-Authenticate"), "resource_metadata=") {
		t.Errorf("a request without a token: %d %q", got.StatusCode, got.Header)
	}
}

// A key of the provider that is new is read, but tokens with unknown keys cannot flood the
// provider.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	s := newIdentityRig(t)
	issue := func() credential {
		return withBearer(s.provider.Issue(map[string]any{"aud": s.url + "/mcp", "scope": "guideway", "groups": []string{"g-admin"}}))
	}
	s.wantStatus(t, 200, issue(), "POST", "/mcp", "{}")
	s.provider.Rotate(t)
	for range 20 {
		s.wantStatus(t, 401, issue(), "POST", "/mcp", "{}")
	}
	if n := s.provider.Asked("/keys"); n != 1 {
		t.Errorf("the keys were read %d times", n)
	}
	s.later.Store(int64(time.Minute))
	s.wantStatus(t, 200, issue(), "POST", "/mcp", "{}")
}

// A person creates, sees and revokes only the person's own tokens, and none with more rights
// than the roles; an admin sees and revokes all.
func TestPeopleHaveTheirTokens(t *testing.T) {
	t.Parallel()
	s := newIdentityRig(t)
	_, ann := s.loginBrowser(t, "ann")
	viewer, operator, admin := s.login(t, "vic", guideway.RoleViewer), s.login(t, "bob", guideway.RoleOperator), s.login(t, "ada", guideway.RoleAdmin)
	names := func(who credential) (names []string) {
		var list struct {
			Tokens []struct{ Name, User string }
		}
		s.wantStatus(t, 200, who, "GET", "/api/tokens", "").decodeInto(t, &list)
		for _, token := range list.Tokens {
			names = append(names, token.User+"/"+token.Name)
		}
		return names
	}
	create := func(who credential, status int, body string) (secret string) {
		t.Helper()
		var made struct {
			Secret string
			Token  struct{ ExpiresAt *time.Time }
		}
		s.wantStatus(t, status, who, "POST", "/api/tokens", body).decodeInto(t, &made)
		if status == 201 && (made.Token.ExpiresAt == nil) != strings.Contains(body, "mine") {
			t.Errorf("%s: the token expires at %v", body, made.Token.ExpiresAt)
		}
		return made.Secret
	}
	create(ann, 201, `{"name":"laptop","scope":"mcp","allow":{"toolsets":["mine"]}}`)
	mcp := create(operator, 201, `{"name":"laptop","scope":"mcp","allow":{"all":true}}`)
	read := create(viewer, 201, `{"name":"laptop","scope":"read"}`)
	create(viewer, 403, `{"name":"x","scope":"mcp"}`)
	create(operator, 409, `{"name":"laptop","scope":"read"}`)
	create(operator, 403, `{"name":"x","scope":"approve"}`)
	create(admin, 403, `{"name":"x","scope":"manage"}`)
	create(operator, 400, `{"name":"x","scope":"read","expiresAt":"2999-01-01T00:00:00Z"}`)
	for who, want := range map[string]struct {
		who  credential
		list []string
	}{
		"vic": {viewer, []string{"vic/laptop"}}, "bob": {operator, []string{"bob/laptop"}}, "ada": {admin, []string{"ann/laptop", "bob/laptop", "vic/laptop"}},
	} {
		if got := names(want.who); !slices.Equal(got, want.list) {
			t.Errorf("%s sees %v", who, got)
		}
	}
	s.wantStatus(t, 403, operator, "DELETE", "/api/tokens/laptop?user=vic", "")
	s.wantStatus(t, 404, viewer, "DELETE", "/api/tokens/other", "")
	s.wantStatus(t, 200, withBearer(mcp), "POST", "/mcp", "{}")
	s.wantStatus(t, 403, withBearer(read), "POST", "/api/tokens", `{"name":"more","scope":"read"}`)
	s.wantStatus(t, 200, viewer, "DELETE", "/api/tokens/laptop", "")
	s.wantStatus(t, 401, withBearer(read), "GET", "/api/runs", "")
	if got := names(admin); !slices.Equal(got, []string{"ann/laptop", "bob/laptop"}) {
		t.Errorf("after vic has revoked laptop, there are %v", got)
	}
	s.wantStatus(t, 200, admin, "DELETE", "/api/tokens/laptop?user=ann", "")

	// A user who has lost a role, or all of them, loses the tokens at the next login.
	s.login(t, "bob", guideway.RoleViewer)
	s.wantStatus(t, 401, withBearer(mcp), "POST", "/mcp", "{}")
	more := create(viewer, 201, `{"name":"later","scope":"read"}`)
	s.provider.SetClaims(map[string]any{"sub": "vic", "groups": []string{}})
	browser := s.newBrowser(t)
	if page, _ := s.finish(t, browser, s.begin(t, browser)); page != nil {
		t.Error("a user without a role is logged in")
	}
	s.wantStatus(t, 401, withBearer(more), "GET", "/api/runs", "")
}
