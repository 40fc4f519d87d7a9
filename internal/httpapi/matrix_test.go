package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// memoryAudit is an audit log in memory.
type memoryAudit struct {
	mu      sync.Mutex
	entries []audit.Entry
}

func (m *memoryAudit) Record(_ context.Context, e audit.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Seq, e.At, e.MAC = int64(len(m.entries)+1), time.Now(), "mac"
	m.entries = append(m.entries, e)
}

func (m *memoryAudit) Visit(after int64, visit func([]byte, audit.Entry) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries[min(after, int64(len(m.entries))):] {
		if err := visit(nil, e); err != nil {
			return err
		}
	}
	return nil
}

// newMatrixRig returns a server with every part, an identity provider and an audit log.
func newMatrixRig(t *testing.T, change ...func(*httpapi.Options)) (*identityRig, *memoryAudit) {
	t.Helper()
	log := &memoryAudit{}
	s := newIdentityRig(t, append([]func(*httpapi.Options){func(o *httpapi.Options) {
		o.Registry = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
		o.Metrics, o.Audit = fakeMetrics{}, log
	}}, change...)...)
	return s, log
}

// allRoutes returns the routes of the OpenAPI document and those outside of it, in order.
func (s *rig) allRoutes() []string {
	routes := []string{"GET /metrics", "GET /registry", "POST /mcp", "GET /api/docs"}
	for path, operations := range s.contract.paths {
		for method := range operations.(map[string]any) {
			if path != "/api/health" && path != "/api/ready" {
				routes = append(routes, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.SortFunc(routes, func(a, b string) int {
		_, pathA, _ := strings.Cut(a, " ")
		_, pathB, _ := strings.Cut(b, " ")
		return strings.Compare(pathA+" "+a, pathB+" "+b)
	})
	return routes
}

var noneOf = strings.NewReplacer("{id}", "none", "{workflow}", "none", "{dialect}", "steps", "{name}", "none", "{tool}", "none", "{version}", "none")

// tryRoute returns the status of a request to a route without its body. Credentials that a
// logout removes are replaced by the caller.
func (s *rig) tryRoute(t *testing.T, who credential, route string) int {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	body := ""
	if route == "POST /api/tokens" {
		body = `{"name":"a name that is not valid","scope":"read"}`
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+noneOf.Replace(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	who(r)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// docs/people.md lists which routes each role may use. A route without a row fails. Each
// role has the rights of a viewer, and an admin has the rights of every role.
func TestRolesMatchTheDocumentation(t *testing.T) {
	t.Parallel()
	s, _ := newMatrixRig(t)
	may := func(role guideway.Role, route string) bool {
		who := s.login(t, "u-"+string(role), role)
		if strings.HasSuffix(route, " /mcp") {
			who = withBearer(s.provider.Issue(map[string]any{"aud": s.url + "/mcp", "scope": "guideway"}))
		}
		status := s.tryRoute(t, who, route)
		return status != http.StatusUnauthorized && status != http.StatusForbidden
	}
	var groups []string
	byRoles := map[string][]string{}
	for _, route := range s.allRoutes() {
		if got := s.tryRoute(t, withoutCredential, route); got != http.StatusUnauthorized {
			t.Errorf("%s without a credential: %d", route, got)
		}
		var allowed []string
		for _, role := range guideway.Roles() {
			if may(role, route) {
				allowed = append(allowed, "`"+string(role)+"`")
			}
		}
		group := strings.Join(allowed, ", ")
		if byRoles[group] == nil {
			groups = append(groups, group)
		}
		if viewer := strings.HasPrefix(group, "`viewer`"); viewer && len(allowed) < len(guideway.Roles()) || len(allowed) > 0 && !strings.HasSuffix(group, "`admin`") {
			t.Errorf("%s is allowed to %s: a role includes viewer, and admin every role", route, group)
		}
		byRoles[group] = append(byRoles[group], "`"+route+"`")
	}
	var table strings.Builder
	table.WriteString("\n| Roles | Routes |\n|---|---|\n")
	for _, group := range groups {
		fmt.Fprintf(&table, "| %s | %s |\n", group, strings.Join(byRoles[group], ", "))
	}
	file := filepath.Join("..", "..", "docs", "people.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), "<!-- roles -->\n")
	given, after, found := strings.Cut(rest, "\n<!-- /roles -->")
	if !found {
		t.Fatal("docs/people.md has no place for the table")
	}
	if *updateDocs {
		if err := os.WriteFile(file, []byte(before+"<!-- roles -->\n"+table.String()+"\n<!-- /roles -->"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), given); diff != "" {
		t.Errorf("the routes (-) and docs/people.md (+); -update writes them:\n%s", diff)
	}
}

// marker is in everything that belongs to ann.
const marker = "ANNS-SECRET"

// annsObjects creates an object of each kind that belongs to ann, and returns their ids by
// the beginning of their routes.
func (s *rig) annsObjects(t *testing.T) map[string]string {
	t.Helper()
	a := s.startAtGate(t, callerAnn(), "person", marker)
	s.createDocument(t, "ann", projectA, "person", marker)
	saved, err := s.memory.Save(t.Context(), callerAnn().Principal, checkpoint.SaveRequest{Session: marker, Name: marker, Context: json.RawMessage(`{"x":"` + marker + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := s.machines.Service.Start(t.Context(), callerAnn(), driver.StartRequest{Machine: "desk", Inputs: map[string]json.RawMessage{"request": json.RawMessage(`"` + marker + `"`)}})
	if err != nil {
		t.Fatal(err)
	}
	s.waitForRest(t, machine.RunID) // so that only bob could change it
	return map[string]string{
		"/api/runs/": a.RunID, "/api/sessions/": marker, "/api/checkpoints/": saved.ID, "/api/calls/": s.holdCall(t, "ann", marker).ID,
		"/api/machine-runs/": machine.RunID, "/api/requests/": "q_1",
	}
}

// A user with every role of the provider sees and changes nothing of another user, on any
// route of the OpenAPI document.
func TestNoUserSeesAnothers(t *testing.T) {
	t.Parallel()
	requests, err := requestlog.Open(t.Context(), filepath.Join(t.TempDir(), "requests.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = requests.Close() })
	entry := recordedEntry(1)
	entry.Error, entry.Client = marker, marker
	if err := requests.Write(t.Context(), requestlog.Batch{Entries: []*requestlog.Entry{entry}}); err != nil {
		t.Fatal(err)
	}
	s, _ := newMatrixRig(t, func(o *httpapi.Options) { o.Requests = &fakeRequests{requests} })
	ids := s.annsObjects(t)
	before := s.readAnns(t, ids)
	if n := strings.Count(before, marker); n < 5 {
		t.Fatalf("ann sees only %d of her objects: %s", n, before)
	}
	bob := s.login(t, "bob", guideway.Roles()...)
	for _, route := range s.allRoutes() {
		method, path, _ := strings.Cut(route, " ")
		if strings.HasSuffix(path, "/stream") || path == "/api/events" || path == "/api/logout" || path == "/mcp" {
			continue // TestStreamsShowNoOthers; a logout ends the session of the test
		}
		named := false
		for prefix, id := range ids {
			if strings.HasPrefix(path, prefix) && strings.Contains(path, "{id}") {
				path, named = strings.Replace(path, "{id}", id, 1), true
			}
		}
		path = noneOf.Replace(strings.Replace(path, "{workflow}", "person", 1))
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+path+"?limit=100&q="+marker, strings.NewReader(bodyOf(route)))
		if err != nil {
			t.Fatal(err)
		}
		bob(r)
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		// An error repeats the requested id, which contains the marker for documents.
		if shown := strings.ReplaceAll(string(body), `\"`+marker+`\"`, ""); resp.StatusCode < 300 && strings.Contains(shown, marker) {
			t.Errorf("%s shows an object of ann: %s", route, body)
		}
		if named && resp.StatusCode < 400 {
			if list := strings.HasSuffix(path, "/checkpoints"); !list || !strings.Contains(string(body), `"count":0`) {
				t.Errorf("%s of an object of ann: %d %s", route, resp.StatusCode, body)
			}
		}
	}
	if after := s.readAnns(t, ids); after != before {
		t.Errorf("bob changed ann's objects:\n%s", cmp.Diff(before, after))
	}
}

// bodyOf returns a valid body of a route that has an object in its path.
func bodyOf(route string) string {
	switch {
	case strings.HasPrefix(route, "GET"), strings.HasPrefix(route, "DELETE"):
		return ""
	case strings.HasSuffix(route, "/calls/{id}/answer"):
		return `{"approve":true}`
	case strings.HasSuffix(route, "/runs/{id}/answer"):
		return `{"optionId":"confirm"}`
	case strings.HasSuffix(route, "/input"):
		return `{"value":"x"}`
	}
	return `{}`
}

// readAnns returns what ann sees of her objects.
func (s *rig) readAnns(t *testing.T, ids map[string]string) string {
	t.Helper()
	var all strings.Builder
	for _, prefix := range []string{"/api/runs/", "/api/sessions/", "/api/checkpoints/", "/api/calls/", "/api/machine-runs/", "/api/requests/"} {
		all.Write(s.wantStatus(t, 200, asAgent, "GET", prefix+ids[prefix], "").body)
	}
	return all.String()
}

// A stream shows a user the changes of the user's own objects, and of no others.
func TestStreamsShowNoOthers(t *testing.T) {
	t.Parallel()
	s, _ := newMatrixRig(t)
	ids := s.annsObjects(t)
	bob := s.login(t, "bob", guideway.Roles()...)
	s.createDocument(t, "bob", projectA, "person", "bobs-document")
	for _, path := range []string{"/api/sessions/person/" + marker + "/stream", "/api/machine-runs/" + ids["/api/machine-runs/"] + "/stream"} {
		s.wantStatus(t, 404, bob, "GET", path, "")
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/events?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	bob(r)
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "bobs-document") {
		if text := lines.Text(); strings.Contains(text, marker) || strings.Contains(text, ids["/api/runs/"]) {
			t.Errorf("the stream shows %s", text)
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

// Two approvers of a project open a gate in the browser, and each answer, the refused
// attempts, logins and tokens are in the audit log, which only an admin reads.
func TestApproversAndTheAuditLog(t *testing.T) {
	t.Parallel()
	shares := []run.Share{{Project: projectA, Members: []string{"olga", "ada", "bea"}}}
	s, log := newMatrixRig(t, func(o *httpapi.Options) { o.Runs = newSharedRuns(t, o, shares) })
	operator := s.login(t, "olga", guideway.RoleOperator)
	ada, bea, eve := s.login(t, "ada", guideway.RoleApprover), s.login(t, "bea", guideway.RoleApprover), s.login(t, "eve", guideway.RoleAdmin)
	var made struct{ RunID, Handle string }
	s.wantStatus(t, 201, operator, "POST", "/api/runs", `{"workflowId":"two","project":{"id":"`+projectA+`","path":"/src/a"}}`).decodeInto(t, &made)
	path := "/api/runs/" + made.RunID
	s.wantStatus(t, 409, operator, "POST", path+"/answer", `{"optionId":"confirm"}`)
	s.wantStatus(t, 404, eve, "POST", path+"/answer", `{"optionId":"confirm"}`)
	s.wantStatus(t, 200, ada, "POST", path+"/answer", `{"optionId":"confirm"}`)
	s.wantStatus(t, 409, ada, "POST", path+"/answer", `{"optionId":"confirm"}`)
	var open struct{ Position engine.Position }
	s.wantStatus(t, 200, bea, "GET", path, "").decodeInto(t, &open)
	if open.Position.Kind != engine.PositionGate || len(open.Position.Votes) != 1 {
		t.Fatalf("after one approval the run is at %+v", open.Position)
	}
	s.wantStatus(t, 200, bea, "POST", path+"/answer", `{"optionId":"confirm"}`)
	var private struct{ RunID string }
	s.wantStatus(t, 201, operator, "POST", "/api/runs", `{"workflowId":"two"}`).decodeInto(t, &private)
	held := s.holdCall(t, "olga", "arguments", made.RunID)
	for _, runs := range [][]string{nil, {private.RunID}, {made.RunID, private.RunID}} { // calls that may not belong to the project
		hidden := s.holdCall(t, "olga", "private arguments "+strings.Join(runs, " "), runs...)
		s.wantStatus(t, 404, ada, "GET", "/api/calls/"+hidden.ID, "")
		s.wantStatus(t, 404, ada, "POST", "/api/calls/"+hidden.ID+"/answer", `{"approve":true}`)
		if list := s.wantStatus(t, 200, ada, "GET", "/api/calls", "").body; strings.Contains(string(list), hidden.ID) || !strings.Contains(string(list), held.ID) {
			t.Errorf("the calls of ada are %s", list)
		}
	}
	s.wantStatus(t, 403, operator, "POST", "/api/calls/"+held.ID+"/answer", `{"approve":true}`)
	s.wantStatus(t, 404, eve, "POST", "/api/calls/"+held.ID+"/answer", `{"approve":true}`)
	s.wantStatus(t, 200, ada, "POST", "/api/calls/"+held.ID+"/answer", `{"approve":true}`)
	s.wantStatus(t, 201, operator, "POST", "/api/tokens", `{"name":"laptop","scope":"read"}`)
	s.wantStatus(t, 200, operator, "DELETE", "/api/tokens/laptop", "")
	s.wantStatus(t, 403, operator, "GET", "/api/audit", "")
	s.wantStatus(t, 401, func(*http.Request) {}, "GET", "/api/runs", "") // has no credential, so no entry
	for range 40 {
		s.wantStatus(t, 401, withBearer(strings.Repeat("x", 40)), "GET", "/api/runs", "")
	}
	s.later.Add(int64(time.Minute))
	s.provider.SetClaims(map[string]any{"sub": "zoe", "groups": []string{}})
	browser := s.newBrowser(t)
	s.finish(t, browser, s.begin(t, browser))
	var list struct{ Entries []audit.Entry }
	s.wantStatus(t, 200, eve, "GET", "/api/audit?limit=1000", "").decodeInto(t, &list)
	count := map[string]int{}
	for _, e := range list.Entries {
		count[string(e.Kind)+" "+e.User]++
	}
	for key, want := range map[string]int{"login olga": 1, "login ada": 1, "approval ada": 1, "token_created olga": 1, "token_revoked olga": 1, "credential_refused olga": 1} {
		if count[key] != want {
			t.Errorf("the audit log has %d entries %q, want %d: %v", count[key], key, want, count)
		}
	}
	last := list.Entries[len(list.Entries)-1]
	if last.Kind != audit.LoginRefused || last.Via != "identity" || !strings.Contains(last.Detail, "from 127.0.0.1; ") || !strings.Contains(last.Detail, "others were not recorded") {
		t.Errorf("the refused login is %+v", last)
	}
	for _, e := range list.Entries {
		if strings.Contains(e.Detail, "needs a bearer token") {
			t.Errorf("a request without a credential has the entry %+v", e)
		}
	}
	if n := count["credential_refused "]; n == 0 || n > 30 {
		t.Errorf("the audit log has %d entries about 40 refused requests", n)
	}
	s.wantStatus(t, 200, eve, "GET", "/api/audit?after=2&limit=1", "").decodeInto(t, &list)
	if len(list.Entries) != 1 || list.Entries[0].Seq != 3 || len(log.entries) < 10 {
		t.Errorf("the page is %+v", list.Entries)
	}
}

// newSharedRuns returns a service of runs with shared projects and a workflow whose first
// gate needs two approvers.
func newSharedRuns(t *testing.T, o *httpapi.Options, shares []run.Share) *run.Service {
	t.Helper()
	store := o.Feed.(run.Journal)
	runs, err := run.New(run.Options{Journal: store, Definitions: twoApprovers(t), Key: []byte(strings.Repeat("k", run.KeySize)), Shares: shares})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// twoApprovers returns a catalog with a workflow that begins with a gate for two approvers.
func twoApprovers(t *testing.T) fakeCatalog {
	t.Helper()
	d, found := workflow.Check("", []byte(`{"id":"two","name":"Two","description":"d","version":"1.0.0","steps":[
		{"id":"rounds","type":"loop","title":"Rounds","approval":{"by":["approver"],"count":2},"requireConfirmation":true,
		 "loop":{"type":"for","count":1,"maxIterations":2},"body":[{"id":"work","title":"Work","prompt":"Work."}]}]}`))
	if d == nil {
		t.Fatal(found)
	}
	return fakeCatalog{&catalog.Opened{Definition: d, Entry: &catalog.Entry{Head: catalog.NewHead(d)}}}
}
