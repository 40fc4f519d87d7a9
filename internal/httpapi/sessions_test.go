package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// Session documents have the JSON forms that dashboards of WorkRail read.
func TestSessionsMatchTheSeed(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.createDocument(t, "ann", projectA, "bug", "one")
	s.createDocument(t, "bob", projectA, "bug", "secret")
	var list struct {
		Success, Unified bool
		Count            int
		Sessions         []map[string]any
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/sessions", "").decodeInto(t, &list)
	if !list.Success || !list.Unified || list.Count != 1 {
		t.Fatalf("the list is %+v", list)
	}
	one := list.Sessions[0]
	for _, member := range []string{"id", "workflowId", "projectId", "projectPath", "createdAt", "updatedAt", "url", "data"} {
		if one[member] == nil {
			t.Errorf("an item has no %s: %v", member, one)
		}
	}
	if data := one["data"].(map[string]any); len(data) != 1 || data["dashboard"] == nil {
		t.Errorf("the data of an item are %v, want only the dashboard", data)
	}
	if url := one["url"].(string); !strings.HasPrefix(url, "/dashboard/one?") {
		t.Errorf("url %q", url)
	}
	for _, path := range []string{"/api/sessions/one", "/api/sessions/bug/one", "/api/sessions/bug/one?project=" + projectA} {
		got := s.wantStatus(t, 200, asAgent, "GET", path, "")
		if !strings.Contains(string(got.body), "12345678901234567890") {
			t.Errorf("%s: a number was rounded: %s", path, got.body)
		}
	}
	for _, path := range []string{
		"/api/sessions/none", "/api/sessions/secret", "/api/sessions/bug/secret", "/api/sessions/other/one",
		"/api/sessions/bug/one?project=" + projectB, "/api/sessions/%00", "/api/sessions/..%2f..%2fetc/passwd", "/api/sessions/bug/%ff",
	} {
		s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", path, "")
	}
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "GET", "/api/sessions?limit=0", "")
}

// A list of large documents neither reads nor contains their data.
func TestListLargeSessions(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(o *httpapi.Options) { o.Sessions = headOnlyStore{o.Sessions, t} })
	const documents = 20
	long := strings.Repeat("x", 300_000)
	for i := range documents {
		id := fmt.Sprintf("s%d", i)
		s.createDocument(t, "ann", projectA, "bug", id)
		s.updateDocument(t, "ann", projectA, "bug", id, map[string]any{"log": long, "dashboard.log": long})
	}
	got := s.wantStatus(t, 200, asAgent, "GET", "/api/sessions?limit=1000", "")
	if len(got.body) > documents*1000 {
		t.Errorf("the list has %d bytes", len(got.body))
	}
	var list struct {
		Sessions []struct {
			Data struct{ Dashboard map[string]any }
		}
	}
	got.decodeInto(t, &list)
	if len(list.Sessions) != documents {
		t.Fatalf("%d documents", len(list.Sessions))
	}
	for _, one := range list.Sessions {
		if d := one.Data.Dashboard; d["progress"] != 10.0 || d["status"] != "in_progress" || d["title"] == nil || d["log"] != nil {
			t.Errorf("the dashboard in the list is %.200v", d)
		}
	}
	s.wantStatus(t, 200, asAgent, "DELETE", "/api/sessions/bug/s0", "")
	s.wantStatus(t, 200, asAgent, "GET", "/api/sessions/bug/s1/validation", "")
}

// headOnlyStore fails the test if complete documents are read.
type headOnlyStore struct {
	session.Store
	t *testing.T
}

func (h headOnlyStore) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	h.t.Errorf("whole documents were read: %+v", f)
	return h.Store.Documents(ctx, f)
}

func TestAmbiguousSession(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.createDocument(t, "ann", projectA, "bug", "one")
	s.createDocument(t, "ann", projectA, "review", "one")
	p := s.wantCode(t, 409, guideway.CodeConflict, asAgent, "GET", "/api/sessions/one", "")
	if len(p.Candidates) != 2 || !strings.Contains(p.Fix, "/api/sessions/:workflow/:id") {
		t.Errorf("with two workflows the answer is %+v", p)
	}
	for _, path := range p.Candidates {
		if path != "/api/sessions/bug/one" && path != "/api/sessions/review/one" {
			t.Errorf("the candidate is %q", path)
		}
		s.wantStatus(t, 200, asAgent, "GET", path, "")
	}
	s.createDocument(t, "ann", projectB, "bug", "one")
	p = s.wantCode(t, 409, guideway.CodeConflict, asAgent, "GET", "/api/sessions/bug/one", "")
	if len(p.Candidates) != 2 {
		t.Errorf("with two projects the answer is %+v", p)
	}
	for _, path := range p.Candidates {
		s.wantStatus(t, 200, asAgent, "GET", path, "")
	}
	s.wantCode(t, 409, guideway.CodeConflict, asAgent, "DELETE", "/api/sessions/bug/one", "")
}

func TestDeleteAndRestore(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.createDocument(t, "ann", projectA, "bug", "one")
	s.createDocument(t, "bob", projectA, "bug", "two")
	var gone struct{ Restore string }
	s.wantStatus(t, 200, asAgent, "DELETE", "/api/sessions/bug/one", "").decodeInto(t, &gone)
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/sessions/one", "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "DELETE", "/api/sessions/bug/one", "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "DELETE", "/api/sessions/bug/two", "")
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/sessions/bug/one/restore", "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "POST", "/api/sessions/bug/two/restore?project="+projectA, "")
	s.wantStatus(t, 200, asAgent, "POST", gone.Restore, "")
	s.wantStatus(t, 200, asAgent, "GET", "/api/sessions/one", "")
}

func TestBulkDelete(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for i := range 3 {
		s.createDocument(t, "ann", projectA, "bug", fmt.Sprintf("s%d", i))
	}
	s.createDocument(t, "bob", projectA, "bug", "his")
	var got struct {
		Success bool
		Deleted []struct{ Deleted struct{ ID string } }
		Failed  []struct{ SessionID, Code string }
	}
	s.wantStatus(t, 200, asAgent, "POST", "/api/sessions/bulk-delete",
		`{"sessions":[{"workflowId":"bug","sessionId":"s0"},{"workflowId":"bug","sessionId":"his"},{"workflowId":"bug","sessionId":"s2","projectId":"`+projectA+`"},{"workflowId":"","sessionId":"s1"}]}`).decodeInto(t, &got)
	if got.Success || len(got.Deleted) != 2 || len(got.Failed) != 2 || got.Failed[0].Code != "not_found" || got.Failed[1].Code != "invalid" {
		t.Errorf("deleted %+v", got)
	}
	var list struct{ Count int }
	s.wantStatus(t, 200, asAgent, "GET", "/api/sessions", "").decodeInto(t, &list)
	if list.Count != 1 {
		t.Errorf("%d sessions are left, want s1", list.Count)
	}
	for _, body := range []string{"", `{}`, `{"sessions":[]}`, `{"sessions":[{"id":"x"}]}`} {
		s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/sessions/bulk-delete", body)
	}
	s.wantCode(t, 405, guideway.CodeInvalid, asAgent, "GET", "/api/sessions/bulk-delete", "")
}

func TestProjectsAndValidation(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.createDocument(t, "ann", projectA, "bug-investigation", "one")
	s.updateDocument(t, "ann", projectA, "bug-investigation", "one", map[string]any{"dashboard": map[string]any{"status": "complete"}, "hypotheses": "none"})
	s.startAtGate(t, callerAnn(), "plain", "")
	s.createDocument(t, "bob", projectB, "bug", "two")
	var projects struct {
		Projects []struct {
			ID                     string
			SessionCount, RunCount int
		}
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/projects", "").decodeInto(t, &projects)
	if len(projects.Projects) != 1 || projects.Projects[0].ID != projectA || projects.Projects[0].SessionCount != 1 || projects.Projects[0].RunCount != 1 {
		t.Errorf("projects: %+v", projects)
	}
	var log struct{ Count int }
	s.wantStatus(t, 200, asAgent, "GET", "/api/sessions/bug-investigation/one/validation", "").decodeInto(t, &log)
	if log.Count == 0 {
		t.Error("the log is empty")
	}
	var current struct{ Project run.Project }
	s.wantStatus(t, 200, asAgent, "GET", "/api/current-project", "").decodeInto(t, &current)
	if current.Project.ID != projectA {
		t.Errorf("the current project is %+v", current)
	}
	nowhere := newRig(t, func(o *httpapi.Options) {
		o.CurrentProject = func(context.Context) run.Project { return run.Project{} }
	})
	nowhere.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/current-project", "")
}
