package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/workflow"
)

const (
	projectA = "aaaaaaaaaaaa"
	projectB = "bbbbbbbbbbbb"
)

// fakeCatalog holds definitions for runs and for the catalog.
type fakeCatalog []*catalog.Opened

func newFakeCatalog(t *testing.T) fakeCatalog {
	t.Helper()
	var s fakeCatalog
	for _, text := range []string{
		`{"id":"person","name":"A person's gate","description":"d","version":"1.0.0","steps":[
			{"id":"plan","title":"Plan","prompt":"Plan it.","approval":"human","validationCriteria":[{"type":"contains","value":"PLAN","message":"say PLAN"}]},
			{"id":"build","title":"Build","prompt":"Build it."}]}`,
		`{"id":"plain","name":"Plain","description":"d","version":"1.0.0","metaGuidance":["Be brief."],"steps":[
			{"id":"plan","title":"Plan","prompt":"Plan it.","requireConfirmation":true,
			 "functionDefinitions":[{"name":"f","definition":"does it","parameters":[{"name":"p","type":"string","required":true,"enum":["a"],"default":"a"}],"scope":"step"}],
			 "functionCalls":[{"name":"f","args":{"p":"a"}}],"functionReferences":["f()"]},
			{"id":"size","title":"Size","prompt":"Size it.","runCondition":{"var":"size","equals":"large"}},
			{"id":"rounds","type":"loop","title":"Rounds","loop":{"type":"for","count":2,"maxIterations":5},"body":[{"id":"work","title":"Work","prompt":"Work."}]}]}`,
		`{"id":"phased","title":"Phased","description":"d","version":"1.0.0","initialPhase":"plan","rules":["Be brief."],
			"variables":[{"name":"good","type":"boolean"}],"phases":[
			{"id":"plan","name":"Plan","entryActions":[{"action":"log","message":"It begins"}],"steps":[{"id":"draft","name":"Draft"}],
			 "checkpoints":[{"id":"word","name":"Word","message":"Good?","approval":"human","options":[
				{"id":"good","label":"Good","effect":{"setVariable":{"good":true},"skipPhases":["rest"]}},{"id":"stop","label":"Stop","effect":{"transitionTo":"end"}}]}],
			 "decisions":[{"id":"way","name":"Way","branches":[
				{"id":"on","label":"On","transitionTo":"work","condition":{"type":"simple","variable":"good","operator":"==","value":true}},
				{"id":"off","label":"Off","transitionTo":"end","isDefault":true}]}]},
			{"id":"rest","name":"Rest","transitions":[{"to":"work"}]},
			{"id":"work","name":"Work","loops":[{"id":"parts","name":"Parts","type":"forEach","variable":"part","over":"list","steps":[{"id":"make","name":"Make"}]}],"transitions":[{"to":"end"}]},
			{"id":"end","name":"End","steps":[{"id":"tell","name":"Tell"}]}]}`,
		checkedWorkflow,
	} {
		d, found := workflow.Check("", []byte(text))
		if d == nil {
			t.Fatalf("a definition of the test does not load: %+v", found)
		}
		s = append(s, &catalog.Opened{Definition: d, Entry: &catalog.Entry{
			Head: catalog.NewHead(d), Source: catalog.SourceInfo{Name: "test", Kind: "dir", Trust: catalog.TrustUser}, Path: d.ID + ".json",
			Overrides: []catalog.Overridden{{Source: catalog.SourceInfo{Name: "bundled", Kind: "embedded", Trust: catalog.TrustBundled}, Path: "x", Version: "1", Hash: d.Hash}},
		}})
	}
	return s
}

func (s fakeCatalog) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	entry, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	return entry.Definition, nil
}

func (s fakeCatalog) Get(id string) (*catalog.Opened, error) {
	for _, entry := range s {
		if entry.Definition.ID == id {
			return entry, nil
		}
	}
	if id == "broken" {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "workflow with id 'broken' did not load").WithFix("fix it")
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "Workflow with id '%s' not found", id)
}

func (s fakeCatalog) List(catalog.Filter) (entries []*catalog.Entry) {
	for _, opened := range s {
		entries = append(entries, opened.Entry)
	}
	return entries
}

func (s fakeCatalog) Sources() []catalog.SourceStatus { return nil }

func (s fakeCatalog) Diagnostics() []guideway.Diagnostic { return nil }

func (s fakeCatalog) Load(context.Context) error { return nil }

func (s fakeCatalog) OnChange(func(catalog.Change)) func() { return func() {} }

// rig is a complete server with a store on disk, and its clients.
type rig struct {
	*runningServer
	storePath string
	store     *sqlite.Store
	runs      *run.Service
	sessions  *session.Service
	memory    *checkpoint.Service
	keeper    *contexts.AutoSaver
	browsers  *auth.BrowserSessions
	tokens    *auth.Tokens
	calls     *holds.Store
	contract  *contract
	// configFile contains the upstreams.
	configFile string
	machines   testMachines
	// mcp counts the calls that reached /mcp.
	mcp int
}

func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// newMemory returns a checkpoint service in a store and the keeper that saves in the
// background.
func newMemory(t *testing.T, store *sqlite.Store, dir string) (*checkpoint.Service, *contexts.AutoSaver) {
	t.Helper()
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(dir, "contexts")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.New(checkpoint.Options{Index: store, Blobs: blobs, Store: checkpoint.Store{Mode: checkpoint.ModeSQLite}})
	if err != nil {
		t.Fatal(err)
	}
	k, err := contexts.NewAutoSaver(contexts.AutoSaverOptions{Checkpoints: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = k.Close()
		_ = s.Close()
	})
	return s, k
}

func newRig(t *testing.T, change ...func(*httpapi.Options)) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{storePath: filepath.Join(dir, "store.db")}
	r.store = openStore(t, r.storePath)
	shelf := newFakeCatalog(t)
	r.memory, r.keeper = newMemory(t, r.store, dir)
	var err error
	r.runs, err = run.New(run.Options{Journal: r.store, Definitions: shelf, Key: bytes.Repeat([]byte{7}, run.KeySize), Observer: r.keeper, Checker: testChecker{}})
	if err != nil {
		t.Fatal(err)
	}
	remembers, err := contexts.New(contexts.Options{Checkpoints: r.memory, Runs: r.runs, AutoSaver: r.keeper, Counter: compress.Estimator{}})
	if err != nil {
		t.Fatal(err)
	}
	r.sessions = session.New(session.Options{Store: r.store})
	guard, err := auth.NewGuard(auth.GuardOptions{AllowOrigins: []string{allowedOrigin}})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: token, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if r.browsers, err = auth.NewBrowserSessions(auth.BrowserOptions{Dir: filepath.Join(dir, "access")}); err != nil {
		t.Fatal(err)
	}
	if r.tokens, err = auth.NewTokens(auth.TokenOptions{Dir: filepath.Join(dir, "tokens")}); err != nil {
		t.Fatal(err)
	}
	r.machines = newTestMachines(t)
	var opts httpapi.Options
	r.calls = holds.New(holds.Options{
		Path: filepath.Join(dir, "held-calls.json"), Key: func() ([]byte, error) { return []byte("key"), nil },
		Answered: func(ctx context.Context, c holds.Call) {
			opts.Audit.Record(ctx, audit.Entry{Kind: audit.Approval, User: c.Answer.By, Via: c.Answer.Via})
		},
	})
	opts = httpapi.Options{
		Machines: r.machines, Audit: &memoryAudit{},
		MCP:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { r.mcp++ }),
		Guard: guard, Bearer: bearer, Browsers: r.browsers, Tokens: r.tokens,
		Catalog: shelf, Runs: r.runs, Sessions: r.store, Feed: r.store, Memory: remembers, Hooks: emptyService(), Requests: &fakeRequests{}, Calls: r.calls,
		Upstreams:      r.newUpstreams(t, dir),
		CurrentProject: func(context.Context) run.Project { return run.Project{ID: projectA, Path: "/src/a", Branch: "main"} },
	}
	for _, c := range change {
		c(&opts)
	}
	handler, err := httpapi.NewHandler(opts)
	if err != nil {
		t.Fatal(err)
	}
	r.runningServer = startServer(t, handler)
	r.contract = newContract(t, handler)
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return r
}

const allowedOrigin = "http://localhost:6274"

// credential adds a credential to a request.
type credential func(*http.Request)

func withoutCredential(*http.Request) {}

func withBearer(token string) credential {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// asAgent adds the token of /mcp.
func asAgent(r *http.Request) { withBearer(token)(r) }

// loginBrowser logs a browser in. cookie is its cookie alone, page its cookie and key.
func (s *rig) loginBrowser(t *testing.T, user string) (cookie, page credential) {
	t.Helper()
	code, _, err := s.browsers.NewLink(user)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/login/"+code, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.addPageHeaders(r)
	l, err := s.browsers.Redeem(r, code)
	if err != nil {
		t.Fatal(err)
	}
	cookie = func(r *http.Request) {
		s.addPageHeaders(r)
		r.AddCookie(l.Cookie)
	}
	page = func(r *http.Request) {
		cookie(r)
		r.Header.Set(auth.KeyHeader, l.Key)
	}
	return cookie, page
}

// addPageHeaders adds the headers that a browser sends for a page of this server.
func (s *rig) addPageHeaders(r *http.Request) {
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if r.Method != http.MethodGet {
		r.Header.Set("Origin", s.url)
	}
}

// reply is an answer with its body.
type reply struct {
	*http.Response
	body []byte
}

// decodeInto decodes the body into a value.
func (r reply) decodeInto(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(r.body, into); err != nil {
		t.Fatalf("the body %s: %v", r.body, err)
	}
}

// sendRequest sends a request with a JSON body, if it is not empty, and checks the answer
// against the OpenAPI document.
func (s *rig) sendRequest(t *testing.T, who credential, method, path, body string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	who(r)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.contract.checkAnswer(t, r, body, resp, got)
	return reply{resp, got}
}

// wantStatus sends a request and checks the status of the answer.
func (s *rig) wantStatus(t *testing.T, status int, who credential, method, path, body string, header ...string) reply {
	t.Helper()
	r := s.sendRequest(t, who, method, path, body, header...)
	if r.StatusCode != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, r.StatusCode, r.body, status)
	}
	return r
}

// wantCode sends a request and checks that the answer is a Problem with the status and the
// code.
func (s *rig) wantCode(t *testing.T, status int, code guideway.Code, who credential, method, path, body string, header ...string) httpapi.Problem {
	t.Helper()
	var p httpapi.Problem
	s.wantStatus(t, status, who, method, path, body, header...).decodeInto(t, &p)
	if p.Success || p.Code != code || p.Error == "" {
		t.Errorf("%s %s: %+v, want %s", method, path, p, code)
	}
	return p
}

func callerAnn() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ann", Client: "test"}, Via: run.ViaAgent}
}

// startAtGate starts a run of a workflow and moves it to its first gate.
func (s *rig) startAtGate(t *testing.T, who run.Caller, workflowID, goal string) *run.Answer {
	t.Helper()
	got, err := s.runs.Start(t.Context(), who, run.StartRequest{WorkflowID: workflowID, Goal: goal, Project: run.Project{ID: projectA, Path: "/src/a"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err = s.runs.Continue(t.Context(), who, run.ContinueRequest{Handle: got.Handle, Output: "the PLAN"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Position.Kind != engine.PositionGate {
		t.Fatalf("the run is at %+v, want a gate", got.Position)
	}
	return got
}

func (s *rig) createDocument(t *testing.T, user, project, workflowID, id string) {
	t.Helper()
	_, err := s.sessions.Create(t.Context(), guideway.Principal{User: user}, session.CreateRequest{
		Project: project, ProjectPath: "/src/" + project[:1], Workflow: workflowID, ID: id,
		Data: map[string]any{"dashboard": map[string]any{"title": "T " + id, "status": "in_progress", "progress": 10}, "n": json.Number("12345678901234567890")},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *rig) updateDocument(t *testing.T, user, project, workflowID, id string, updates map[string]any) {
	t.Helper()
	_, err := s.sessions.Update(t.Context(), guideway.Principal{User: user}, session.Name{Project: project, Workflow: workflowID, ID: id}, updates)
	if err != nil {
		t.Fatal(err)
	}
}
