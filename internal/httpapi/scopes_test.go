package httpapi_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

var updateDocs = flag.Bool("update", false, "write the table of routes in docs/tokens.md")

// newScopeRig returns a server with every part, and a token of each scope.
func newScopeRig(t *testing.T) (*rig, map[auth.Scope]credential) {
	t.Helper()
	s := newRig(t, func(o *httpapi.Options) {
		o.Registry = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
		o.Metrics = fakeMetrics{}
	})
	tokens := map[auth.Scope]credential{}
	for _, scope := range auth.Scopes() {
		token := auth.NamedToken{Name: string(scope), User: "ann", Scopes: []auth.Scope{scope}}
		if scope == auth.ScopeMCP {
			token.Allow = &auth.Allow{All: true}
		}
		secret, err := s.tokens.Create(token)
		if err != nil {
			t.Fatal(err)
		}
		tokens[scope] = withBearer(secret)
	}
	return s, tokens
}

// docs/tokens.md lists which routes a token of each scope may use: all operations of the
// OpenAPI document and the paths outside of it.
func TestScopesMatchTheDocumentation(t *testing.T) {
	t.Parallel()
	s, tokens := newScopeRig(t)
	routes := []string{"GET /metrics", "GET /registry", "POST /mcp", "GET /api/docs"}
	for path, operations := range s.contract.paths {
		for method := range operations.(map[string]any) {
			if !isStatus(path) {
				routes = append(routes, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.SortFunc(routes, func(a, b string) int {
		_, pathA, _ := strings.Cut(a, " ")
		_, pathB, _ := strings.Cut(b, " ")
		return strings.Compare(pathA+" "+a, pathB+" "+b)
	})
	placeholders := strings.NewReplacer("{id}", "none", "{workflow}", "none", "{dialect}", "steps", "{name}", "none", "{tool}", "none", "{version}", "none")
	var groups []string
	byScopes := map[string][]string{}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		var allowed []string
		for _, scope := range auth.Scopes() {
			status := s.requestStatus(t, tokens[scope], method, placeholders.Replace(path))
			if status != http.StatusUnauthorized && status != http.StatusForbidden {
				allowed = append(allowed, "`"+string(scope)+"`")
			}
		}
		group := strings.Join(allowed, ", ")
		if group == "" {
			continue
		}
		if byScopes[group] == nil {
			groups = append(groups, group)
		}
		byScopes[group] = append(byScopes[group], "`"+route+"`")
	}
	var table strings.Builder
	table.WriteString("\n| Scopes | Routes |\n|---|---|\n")
	for _, group := range groups {
		fmt.Fprintf(&table, "| %s | %s |\n", group, strings.Join(byScopes[group], ", "))
	}
	file := filepath.Join("..", "..", "docs", "tokens.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), "<!-- routes -->\n")
	given, after, found := strings.Cut(rest, "\n<!-- /routes -->")
	if !found {
		t.Fatal("docs/tokens.md has no place for the table")
	}
	if *updateDocs {
		if err := os.WriteFile(file, []byte(before+"<!-- routes -->\n"+table.String()+"\n<!-- /routes -->"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), given); diff != "" {
		t.Errorf("the routes (-) and docs/tokens.md (+); -update writes them:\n%s", diff)
	}
}

// A token of scope registry reads the registry and nothing else, and a token of scope read
// reads neither contexts nor checkpoints nor the bodies of requests.
func TestNarrowReadScopes(t *testing.T) {
	t.Parallel()
	s, tokens := newScopeRig(t)
	a := s.startAtGate(t, callerAnn(), "plain", "a goal")
	contents := []string{"/api/checkpoints", "/api/checkpoints/none", "/api/runs/" + a.RunID + "/context", "/api/requests/none"}
	for _, path := range append(contents, "/api/runs", "/api/requests", "/api/me", "/api/events", "/metrics", "/api/docs") {
		if got := s.requestStatus(t, tokens[auth.ScopeRegistry], "GET", path); got != http.StatusForbidden && got != http.StatusUnauthorized {
			t.Errorf("the scope registry at %s: %d", path, got)
		}
	}
	for scope := range tokens {
		if got := s.requestStatus(t, tokens[scope], "GET", "/registry/index"); (got == http.StatusOK) != (scope != auth.ScopeMCP) {
			t.Errorf("the scope %s at the registry: %d", scope, got)
		}
	}
	for _, path := range contents {
		for scope, who := range tokens {
			got := s.requestStatus(t, who, "GET", path)
			if allowed := got == http.StatusOK || got == http.StatusNotFound; allowed != (scope == auth.ScopeContents) {
				t.Errorf("the scope %s at %s: %d", scope, path, got)
			}
		}
		s.requestStatus(t, asAgent, "GET", path)
	}
	if p := s.wantCode(t, 403, guideway.CodeForbidden, tokens[auth.ScopeRead], "GET", "/api/checkpoints", ""); !strings.Contains(p.Fix, "--scope contents") {
		t.Errorf("the fix is %q", p.Fix)
	}
}

// A token of scope manage opens no gate, creates no token that could open one, and receives
// neither a login link nor the passphrase from any route.
func TestManageOpensNoGate(t *testing.T) {
	t.Parallel()
	s, tokens := newScopeRig(t)
	manage := tokens[auth.ScopeManage]
	for _, workflow := range []string{"person", "plain"} {
		s.tryGate(t, manage, workflow, http.StatusForbidden, "")
	}
	for _, scope := range []auth.Scope{auth.ScopeApprove, auth.ScopeManage, auth.ScopeContents} {
		s.wantCode(t, 403, guideway.CodeForbidden, manage, "POST", "/api/tokens", fmt.Sprintf(`{"name":"more","scope":%q}`, scope))
	}
	code, _, err := s.browsers.NewLink("ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range s.contract.listOperations() {
		if slices.Contains([]string{"loginUpstream", "logoutUpstream", "finishUpstreamLogin"}, o.id) { // The page belongs to another server.
			continue
		}
		if strings.Contains(o.path, "passphrase") || strings.Contains(o.path, "login") || strings.Contains(o.path, "link") {
			t.Errorf("%s %s may reveal a credential", o.method, o.path)
		}
		if o.method != http.MethodGet || strings.Contains(o.path, "{") || strings.HasSuffix(o.path, "/events") {
			continue
		}
		if got := s.sendRequest(t, manage, o.method, o.path, ""); strings.Contains(string(got.body), code) {
			t.Errorf("%s %s shows the login link", o.method, o.path)
		}
	}
	for _, path := range []string{"/login", "/login/", "/api/login", "/api/passphrase", "/api/links"} {
		for _, method := range []string{"GET", "POST"} {
			if got := s.requestStatus(t, manage, method, path); got < 400 {
				t.Errorf("%s %s: %d", method, path, got)
			}
		}
	}
}
