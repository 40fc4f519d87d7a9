package httpapi_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

const someUpstreams = `{
  "listen": "127.0.0.1:3999",
  "upstreams": {
    "files": {"command": "/bin/false", "args": ["--token=s3cr3t", "/home"], "env": {"API_KEY": "s3cr3t", "OTHER": "${env:X}"}},
    "docs": {"url": "https://example.com/mcp", "bearer": "s3cr3t", "headers": {"X-Team": "s3cr3t"}, "project": "site"}
  }
}
`

// newUpstreams returns the upstreams of a configuration file without a gateway.
func (r *rig) newUpstreams(t *testing.T, dir string) *gatewayadmin.Service {
	t.Helper()
	r.configFile = filepath.Join(dir, "guideway.json")
	if err := os.WriteFile(r.configFile, []byte(someUpstreams), 0o600); err != nil {
		t.Fatal(err)
	}
	approvals, err := approval.Open(approval.Options{Path: filepath.Join(dir, "approvals.json"), Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	return gatewayadmin.New(gatewayadmin.Options{
		Load: func() (*config.Config, error) {
			return config.Load(config.Options{File: r.configFile, Getenv: func(name string) string { return map[string]string{"HOME": dir}[name] }, Dir: dir})
		},
		Edit: func(_ context.Context, edit func([]byte) ([]byte, error)) error {
			text, err := os.ReadFile(r.configFile)
			if err == nil {
				text, err = edit(text)
			}
			if err == nil {
				err = os.WriteFile(r.configFile, text, 0o600)
			}
			return err
		},
		Pins: pins.Store{Approvals: approvals, Dir: filepath.Join(dir, "upstreams")},
		Logs: func(string, int) ([]string, error) { return []string{"a log line"}, nil },
	})
}

func (r *rig) readConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.configFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// upstreamBase returns the version of an upstream that a change must name.
func (r *rig) upstreamBase(t *testing.T, name string) string {
	t.Helper()
	var one struct{ Base string }
	r.wantStatus(t, 200, asAgent, "GET", "/api/upstreams/"+name, "").decodeInto(t, &one)
	return one.Base
}

// Only a person, or a token with the scope manage, can change the tools that agents may
// use. No credential of /mcp can do that on any route.
func TestUpstreamsRequireAPerson(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	made := func(name string, scope auth.Scope, allow *auth.Allow) credential {
		secret, err := s.tokens.Create(auth.NamedToken{Name: name, User: "ann", Scopes: []auth.Scope{scope}, Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		return withBearer(secret)
	}
	cookie, commands := s.loginBrowser(t, "ann")
	base := s.upstreamBase(t, "files")
	moves := []struct{ method, path, body string }{
		{"POST", "/api/upstreams", `{"name":"evil","config":{"command":"sh"}}`},
		{"PUT", "/api/upstreams/files", `{"base":"` + base + `","config":{"command":"sh"}}`},
		{"DELETE", "/api/upstreams/files?base=" + base, ""},
		{"PUT", "/api/upstreams/files/enabled", `{"base":"` + base + `","enabled":false}`},
		{"PUT", "/api/upstreams/files/project", `{"base":"` + base + `","project":"mine"}`},
		{"PUT", "/api/upstreams/files/tools/read", `{"base":"` + base + `","description":"Obey."}`},
		{"POST", "/api/upstreams/files/restart", ""},
		{"POST", "/api/upstreams/files/login", ""},
		{"POST", "/api/upstreams/files/ask", ""},
		{"GET", "/api/upstreams/files/log", ""},
		{"POST", "/api/upstreams/files/approve", `{"tools":[{"tool":"read","hash":"x"}]}`},
		{"POST", "/api/upstream-import", `{"text":"{\"mcpServers\":{\"evil\":{\"command\":\"sh\"}}}"}`},
		{"GET", "/api/tokens", ""},
		{"POST", "/api/tokens", `{"name":"evil","allow":{"all":true}}`},
		{"DELETE", "/api/tokens/reader", ""},
	}
	for _, tt := range []struct {
		name   string
		who    credential
		status int
	}{
		{"no credential", withoutCredential, http.StatusUnauthorized},
		{"the token of /mcp", asAgent, http.StatusForbidden},
		{"a client's token", made("client", auth.ScopeMCP, &auth.Allow{All: true}), http.StatusForbidden},
		{"a token that reads", made("reader", auth.ScopeRead, nil), http.StatusForbidden},
		{"a token that answers gates", made("phone", auth.ScopeApprove, nil), http.StatusForbidden},
		{"a browser without the page's key", cookie, http.StatusUnauthorized},
		{"a browser and the token of /mcp", func(r *http.Request) { commands(r); asAgent(r) }, http.StatusForbidden},
	} {
		for _, m := range moves {
			if got := s.sendRequest(t, tt.who, m.method, m.path, m.body); got.StatusCode != tt.status {
				t.Errorf("%s: %s %s: %d %s", tt.name, m.method, m.path, got.StatusCode, got.body)
			}
		}
	}
	if diff := cmp.Diff(someUpstreams, s.readConfig(t)); diff != "" {
		t.Errorf("a refused request changed the file:\n%s", diff)
	}
	if list, err := s.tokens.List(); err != nil || len(list) != 3 {
		t.Errorf("the tokens are %v, %v", list, err)
	}
	for name, who := range map[string]credential{"a manager's token": made("admin", auth.ScopeManage, nil), "a browser": commands} {
		s.wantStatus(t, 200, who, "PUT", "/api/upstreams/files/enabled", `{"base":"`+s.upstreamBase(t, "files")+`","enabled":false}`)
		if !strings.Contains(s.readConfig(t), `"disabled"`) {
			t.Errorf("%s: the request changed nothing", name)
		}
		s.wantStatus(t, 200, who, "PUT", "/api/upstreams/files/enabled", `{"base":"`+s.upstreamBase(t, "files")+`","enabled":true}`)
		s.wantStatus(t, 200, who, "GET", "/api/upstreams/files/log", "")
		s.wantStatus(t, 200, who, "GET", "/api/tokens", "")
	}
	// A token with the scope manage answers no gate, and the API does not create tokens
	// that do.
	s.tryGate(t, made("boss", auth.ScopeManage, nil), "person", http.StatusForbidden, "")
	for _, scope := range []string{"approve", "manage"} {
		s.wantCode(t, 403, guideway.CodeForbidden, commands, "POST", "/api/tokens", `{"name":"more","scope":"`+scope+`"}`)
	}
}

// Upstreams are added, changed, grouped and removed. The rest of the file stays unchanged.
func TestManageUpstreams(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, me := s.loginBrowser(t, "ann")
	made := s.wantStatus(t, 201, me, "POST", "/api/upstreams", `{"name":"git","config":{"command":"git-mcp","args":["--repo","/src"],"env":{"TOKEN":"${env:GIT}"},"pins":"approve","timeout":"90s"}}`)
	if !strings.Contains(s.readConfig(t), `"listen": "127.0.0.1:3999"`) || made.Header.Get("Location") != "/api/upstreams/git" {
		t.Errorf("%s in\n%s", made.Header, s.readConfig(t))
	}
	s.wantCode(t, 409, guideway.CodeConflict, me, "POST", "/api/upstreams", `{"name":"git","config":{"command":"x"}}`)
	for name, body := range map[string]string{
		"neither":      `{"name":"a","config":{}}`,
		"both":         `{"name":"a","config":{"command":"x","url":"https://example.com"}}`,
		"a bad name":   `{"name":"a__b","config":{"command":"x"}}`,
		"no name":      `{"config":{"command":"x"}}`,
		"an unknown":   `{"name":"a","config":{"command":"x","comand":"y"}}`,
		"a file":       `{"name":"a","config":{"url":"file:///etc/passwd"}}`,
		"a hidden":     `{"name":"a","config":{"command":"x","env":{"A":"(hidden)"}}}`,
		"a bad mode":   `{"name":"a","config":{"command":"x","pins":"never"}}`,
		"a bound":      `{"name":"a","config":{"command":"x","callsPerMinute":-1}}`,
		"a project":    `{"name":"a","config":{"command":"x","project":" a\nb"}}`,
		"a bad prefix": `{"name":"a","config":{"command":"x","prefix":"a__"}}`,
	} {
		if got := s.sendRequest(t, me, "POST", "/api/upstreams", body); got.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
	}
	s.wantStatus(t, 200, me, "PUT", "/api/upstreams/git/project", `{"base":"`+s.upstreamBase(t, "git")+`","project":"site"}`)
	var projects struct{ Projects []gatewayadmin.Project }
	s.wantStatus(t, 200, asAgent, "GET", "/api/upstream-projects", "").decodeInto(t, &projects)
	if diff := cmp.Diff([]gatewayadmin.Project{{Name: "site", Upstreams: []string{"docs", "git"}}}, projects.Projects); diff != "" {
		t.Error(diff)
	}
	s.wantStatus(t, 200, me, "PUT", "/api/upstreams/git/tools/push", `{"base":"`+s.upstreamBase(t, "git")+`","hide":true}`)
	var list struct {
		On        bool
		Upstreams []gatewayadmin.Live
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/upstreams", "").decodeInto(t, &list)
	if len(list.Upstreams) != 3 || list.On || list.Upstreams[2].State != gatewayadmin.StateOff || list.Upstreams[2].Project != "site" {
		t.Errorf("the list is %+v", list)
	}
	if !strings.Contains(s.readConfig(t), `"push"`) {
		t.Errorf("the file is\n%s", s.readConfig(t))
	}
	s.wantCode(t, 409, guideway.CodeConflict, me, "POST", "/api/upstreams/git/restart", "")
	s.wantStatus(t, 200, asAgent, "GET", "/api/upstreams/git/waiting", "")
	s.wantCode(t, 409, guideway.CodeConflict, me, "POST", "/api/upstreams/git/approve", `{"tools":[{"tool":"push","hash":"x"}]}`)
	s.wantStatus(t, 200, me, "DELETE", "/api/upstreams/git?base="+s.upstreamBase(t, "git"), "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/upstreams/git", "")
	if diff := cmp.Diff(someUpstreams, s.readConfig(t)); diff != "" {
		t.Errorf("the file has changed:\n%s", diff)
	}
}

// If two callers change one upstream, the second gets a conflict and changes nothing.
func TestUpstreamConflicts(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, me := s.loginBrowser(t, "ann")
	old := s.upstreamBase(t, "docs")
	s.wantStatus(t, 200, me, "PUT", "/api/upstreams/docs/enabled", `{"base":"`+old+`","enabled":false}`)
	after := s.readConfig(t)
	for _, m := range [][3]string{
		{"PUT", "/api/upstreams/docs", `{"base":"` + old + `","config":{"url":"https://example.com/other"}}`},
		{"PUT", "/api/upstreams/docs/enabled", `{"base":"` + old + `","enabled":true}`},
		{"PUT", "/api/upstreams/docs/project", `{"base":"","project":"x"}`},
		{"PUT", "/api/upstreams/docs/tools/a", `{"base":"` + old + `","hide":true}`},
		{"DELETE", "/api/upstreams/docs?base=" + old, ""},
	} {
		p := s.wantCode(t, 409, guideway.CodeConflict, me, m[0], m[1], m[2])
		if p.Fix == "" {
			t.Errorf("%v: %+v", m, p)
		}
	}
	if s.readConfig(t) != after {
		t.Error("a refused change was written")
	}
}

// No answer contains a secret. A hidden value stays with its server and is not copied to
// others.
func TestUpstreamSecrets(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, me := s.loginBrowser(t, "ann")
	for _, path := range []string{"/api/upstreams", "/api/upstreams/files", "/api/upstreams/docs"} {
		if got := s.wantStatus(t, 200, me, "GET", path, ""); strings.Contains(string(got.body), "s3cr3t") {
			t.Errorf("%s tells %s", path, got.body)
		}
	}
	kept := s.wantStatus(t, 200, me, "PUT", "/api/upstreams/docs", `{"base":"`+s.upstreamBase(t, "docs")+`","config":
		{"url":"https://example.com/v2","bearer":"(hidden)","headers":{"X-Team":"(hidden)","X-New":"1"}}}`)
	if text := s.readConfig(t); strings.Count(text, "s3cr3t") != 4 || !strings.Contains(text, "/v2") || strings.Contains(string(kept.body), "s3cr3t") {
		t.Errorf("%s gives\n%s", kept.body, text)
	}
	for name, body := range map[string]string{
		"another host":                    `{"url":"https://evil.example/mcp","bearer":"(hidden)"}`,
		"another scheme":                  `{"url":"http://example.com/v2","headers":{"X-Team":"(hidden)"}}`,
		"a hidden value without a secret": `{"url":"https://example.com/v2","headers":{"X-Other":"(hidden)"}}`,
	} {
		if got := s.sendRequest(t, me, "PUT", "/api/upstreams/docs", `{"base":"`+s.upstreamBase(t, "docs")+`","config":`+body+`}`); got.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
	}
	for name, body := range map[string]string{
		"another program":   `{"command":"/bin/cat","args":["--token=(hidden)","/home"],"env":{"API_KEY":"(hidden)"}}`,
		"another argument":  `{"command":"/bin/false","args":["--token=(hidden)","/evil"],"env":{"API_KEY":"(hidden)"}}`,
		"another directory": `{"command":"/bin/false","args":["--token=(hidden)","/home"],"dir":"/evil","env":{"API_KEY":"(hidden)"}}`,
	} {
		if got := s.sendRequest(t, me, "PUT", "/api/upstreams/files", `{"base":"`+s.upstreamBase(t, "files")+`","config":`+body+`}`); got.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
	}
	s.wantStatus(t, 200, me, "PUT", "/api/upstreams/files", `{"base":"`+s.upstreamBase(t, "files")+`","config":
		{"command":"/bin/false","args":["--token=(hidden)","/home"],"env":{"API_KEY":"(hidden)","OTHER":"${env:Y}"}}}`)
	if text := s.readConfig(t); strings.Count(text, "s3cr3t") != 4 || strings.Contains(text, "(hidden)") {
		t.Errorf("the file is\n%s", text)
	}
}

// A preview of an import shows no secret and changes nothing. The import adds only the
// chosen server.
func TestImportUpstreams(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, me := s.loginBrowser(t, "ann")
	const text = `"{\"mcpServers\":{\"files\":{\"command\":\"x\"},\"time\":{\"command\":\"uvx\",\"args\":[\"mcp-server-time\"],\"env\":{\"TIME_KEY\":\"p14in\"}},\"web\":{\"url\":\"https://example.com\"},\"bad\":{\"url\":\"ftp://x\"}}}"`
	var got struct{ Found []gatewayadmin.Found }
	looked := s.wantStatus(t, 200, me, "POST", "/api/upstream-import", `{"look":true,"text":`+text+`}`)
	looked.decodeInto(t, &got)
	taken := map[string]bool{}
	for _, f := range got.Found {
		taken[f.Name] = f.Taken
	}
	if diff := cmp.Diff(map[string]bool{"files": false, "time": true, "web": true, "bad": false}, taken); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(looked.body), "p14in") || s.readConfig(t) != someUpstreams {
		t.Errorf("%s, and the file is\n%s", looked.body, s.readConfig(t))
	}
	s.wantStatus(t, 200, me, "POST", "/api/upstream-import", `{"chosen":["time"],"text":`+text+`}`)
	if text := s.readConfig(t); !strings.Contains(text, "mcp-server-time") || strings.Contains(text, `"web"`) {
		t.Errorf("the file is\n%s", text)
	}
	for _, body := range []string{`{}`, `{"text":"hello"}`, `{"text":"{}"}`} {
		s.wantCode(t, 400, guideway.CodeInvalid, me, "POST", "/api/upstream-import", body)
	}
}

// A token is created, shown once and revoked.
func TestClientTokens(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, me := s.loginBrowser(t, "ann")
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	var made struct {
		Secret string
		Token  struct{ Name string }
	}
	s.wantStatus(t, 201, me, "POST", "/api/tokens", `{"name":"laptop","allow":{"upstreams":["files"],"tools":["docs__get_*"]},"exposure":"search","expiresAt":"`+until+`"}`).decodeInto(t, &made)
	list := s.wantStatus(t, 200, me, "GET", "/api/tokens", "")
	if made.Secret == "" || strings.Contains(string(list.body), made.Secret) || !strings.Contains(string(list.body), "docs__get_*") || !strings.Contains(string(list.body), `"exposure":"search"`) {
		t.Errorf("the created token is %+v, listed as %s", made, list.body)
	}
	if got := s.sendRequest(t, withBearer(made.Secret), "POST", "/mcp", `{}`); got.StatusCode != 200 {
		t.Errorf("at /mcp: %d", got.StatusCode)
	}
	s.wantCode(t, 409, guideway.CodeConflict, me, "POST", "/api/tokens", `{"name":"laptop"}`)
	for _, body := range []string{`{"name":"a b"}`, `{}`, `{"name":"x","scope":"read","allow":{"all":true}}`, `{"name":"x","allow":{"tools":["["]}}`, `{"name":"x","expiresAt":"2020-01-01T00:00:00Z"}`, `{"name":"x","scope":"root"}`, `{"name":"x","exposure":"none"}`} {
		if got := s.sendRequest(t, me, "POST", "/api/tokens", body); got.StatusCode != 400 {
			t.Errorf("%s: %d %s", body, got.StatusCode, got.body)
		}
	}
	// The tokens of another user can be revoked only by name and user.
	if _, err := s.tokens.Create(auth.NamedToken{Name: "bobs", User: "bob", Scopes: []auth.Scope{auth.ScopeMCP}}); err != nil {
		t.Fatal(err)
	}
	s.wantCode(t, 404, guideway.CodeNotFound, me, "DELETE", "/api/tokens/bobs", "")
	s.wantStatus(t, 200, me, "DELETE", "/api/tokens/laptop", "")
	s.wantCode(t, 404, guideway.CodeNotFound, me, "DELETE", "/api/tokens/laptop", "")
	if got := s.sendRequest(t, withBearer(made.Secret), "POST", "/mcp", `{}`); got.StatusCode != 401 {
		t.Errorf("at /mcp, revoked: %d", got.StatusCode)
	}
}

// The page of the redirect of a login to an upstream opens for a navigation from another site,
// without a credential, and contains no data; nothing else on that path is allowed.
func TestUpstreamLoginPage(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	from := func(mode, dest string) credential {
		return func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", mode)
			r.Header.Set("Sec-Fetch-Dest", dest)
		}
	}
	const path = auth.UpstreamCallbackPath + "?state=files.x&code=c0de"
	got := s.sendRequest(t, from("navigate", "document"), "GET", path, "")
	if got.StatusCode != http.StatusOK || strings.Contains(string(got.body), "c0de") || !strings.Contains(string(got.body), "/assets/upstream.js") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if policy := got.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self'") || len(got.Cookies()) > 0 {
		t.Errorf("the page has the policy %q and the cookies %v", policy, got.Cookies())
	}
	for _, other := range []credential{from("navigate", "iframe"), from("no-cors", "image"), from("cors", "empty")} {
		if got := s.sendRequest(t, other, "GET", path, ""); got.StatusCode != http.StatusForbidden {
			t.Errorf("another request gets %d %s", got.StatusCode, got.body)
		}
	}
	if got := s.sendRequest(t, from("navigate", "document"), "POST", path, ""); got.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site gets %d %s", got.StatusCode, got.body)
	}
}
