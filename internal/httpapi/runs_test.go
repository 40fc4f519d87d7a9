package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// runPage is the part of a list of runs that tests read.
type runPage struct {
	Count int
	Runs  []struct{ RunID, WorkflowID, Status string }
	Next  string
}

// details is the part of a run that tests read.
type details struct {
	Run       struct{ RunID, Status string }
	Handle    string
	Position  engine.Position
	Variables map[string]any
	Events    []struct {
		Seq  int64
		Kind string
		By   run.By
	}
	NextAfter int64
}

func TestStartAndGetRun(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, browser := s.loginBrowser(t, "ann")
	made := s.wantStatus(t, 201, browser, "POST", "/api/runs",
		`{"workflowId":"plain","goal":"Move the login","context":{"size":12345678901234567890},"project":{"id":"`+projectA+`","path":"/src/a"}}`,
		"Idempotency-Key", "k1")
	var a run.Answer
	made.decodeInto(t, &a)
	if got := made.Header.Get("Location"); got != "/api/runs/"+a.RunID {
		t.Errorf("Location %q", got)
	}
	again := s.wantStatus(t, 200, browser, "POST", "/api/runs", `{"workflowId":"plain","goal":"Move the login","context":{"size":12345678901234567890},"project":{"id":"`+projectA+`","path":"/src/a"}}`, "Idempotency-Key", "k1")
	var b run.Answer
	again.decodeInto(t, &b)
	if b.RunID != a.RunID || !b.Replayed {
		t.Errorf("two requests with the same key made %+v and %+v", a, b)
	}
	got := s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID, "")
	if !strings.Contains(string(got.body), "12345678901234567890") {
		t.Errorf("a number was rounded: %s", got.body)
	}
	var d details
	got.decodeInto(t, &d)
	if d.Run.RunID != a.RunID || d.Handle != a.Handle || d.Position.ID != "plan" || len(d.Events) == 0 || d.Events[0].Kind != run.KindCreated || d.Events[0].By.Via != run.ViaBrowser {
		t.Errorf("the run is %+v", d)
	}
	definition := s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID+"/definition", "")
	if !strings.Contains(string(definition.body), `"id":"plain"`) {
		t.Errorf("the definition is %s", definition.body)
	}
	bundle := s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID+"/export", "")
	if got := bundle.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") || !json.Valid(bundle.body) {
		t.Errorf("the bundle is %q %s", got, bundle.body)
	}
	imported, err := s.runs.Import(t.Context(), run.Caller{Principal: guideway.Principal{User: "bob"}}, bundle.body)
	if err != nil || imported.Position.ID != "plan" {
		t.Errorf("reading the bundle returns %+v, %v", imported, err)
	}
}

func TestRunEventPages(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	a := s.startAtGate(t, callerAnn(), "plain", "")
	var all details
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID, "").decodeInto(t, &all)
	var seqs []int64
	after := int64(0)
	for {
		var page details
		s.wantStatus(t, 200, asAgent, "GET", fmt.Sprintf("/api/runs/%s?limit=2&after=%d", a.RunID, after), "").decodeInto(t, &page)
		for _, e := range page.Events {
			seqs = append(seqs, e.Seq)
		}
		if after = page.NextAfter; after == 0 {
			break
		}
	}
	if len(seqs) != len(all.Events) || len(seqs) < 3 || seqs[len(seqs)-1] != int64(len(seqs)) {
		t.Errorf("the pages have the events %v of %d", seqs, len(all.Events))
	}
	var none details
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID+"?limit=0", "").decodeInto(t, &none)
	if len(none.Events) != 0 {
		t.Errorf("limit=0 gives %v", none.Events)
	}
}

// A page of events is also limited in bytes, and no event is lost between pages.
func TestRunEventPagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	got, err := s.runs.Start(t.Context(), callerAnn(), run.StartRequest{WorkflowID: "plain", Context: map[string]any{"size": "small"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 { // Each round of the gate has a further large output.
		got, err = s.runs.Continue(t.Context(), callerAnn(), run.ContinueRequest{Handle: got.Handle, Output: strings.Repeat("x", 900_000)})
		if err != nil {
			t.Fatal(i, err)
		}
		got, err = s.runs.Continue(t.Context(), callerAnn(), run.ContinueRequest{Handle: got.Handle, Answer: &engine.Answer{OptionID: engine.OptionRevise, Note: "again"}})
		if err != nil {
			t.Fatal(i, err)
		}
	}
	var seqs []int64
	pages, after := 0, int64(0)
	for {
		r := s.wantStatus(t, 200, asAgent, "GET", fmt.Sprintf("/api/runs/%s?after=%d", got.RunID, after), "")
		if len(r.body) > 5<<20 {
			t.Errorf("a page has %d bytes", len(r.body))
		}
		var page details
		r.decodeInto(t, &page)
		for _, e := range page.Events {
			seqs = append(seqs, e.Seq)
		}
		pages++
		if after = page.NextAfter; after == 0 {
			break
		}
	}
	for i, seq := range seqs {
		if seq != int64(i)+1 {
			t.Fatalf("the events are %v", seqs)
		}
	}
	if pages < 2 || len(seqs) < 15 {
		t.Errorf("%d pages with %d events", pages, len(seqs))
	}
}

func TestListRuns(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	ids := map[string]bool{}
	for i := range 5 {
		ids[s.startAtGate(t, callerAnn(), []string{"plain", "person"}[i%2], fmt.Sprintf("goal %d", i)).RunID] = true
	}
	s.startAtGate(t, run.Caller{Principal: guideway.Principal{User: "bob"}}, "person", "not yours")
	seen := map[string]bool{}
	path := "/api/runs?limit=2"
	for pages := 0; path != ""; pages++ {
		var page runPage
		s.wantStatus(t, 200, asAgent, "GET", path, "").decodeInto(t, &page)
		for _, r := range page.Runs {
			if seen[r.RunID] || !ids[r.RunID] {
				t.Errorf("page %d repeats the run %s or has another user's run", pages, r.RunID)
			}
			seen[r.RunID] = true
		}
		if path = ""; page.Next != "" {
			path = "/api/runs?limit=2&cursor=" + page.Next
		}
		if pages > 5 {
			t.Fatal("the pages do not end")
		}
	}
	if len(seen) != len(ids) {
		t.Errorf("the pages have %d of %d runs", len(seen), len(ids))
	}
	for query, count := range map[string]int{
		"person=true": 2, "workflow=plain": 3, "workflow=none": 0, "status=waiting": 5, "status=running,completed": 0,
		"status=waiting&status=running": 5, "project=" + projectA: 5, "project=" + projectB: 0,
		"since=2020-01-01T00:00:00Z": 5, "until=2020-01-01T00:00:00Z": 0,
	} {
		var page runPage
		s.wantStatus(t, 200, asAgent, "GET", "/api/runs?"+query, "").decodeInto(t, &page)
		if page.Count != count || len(page.Runs) != count {
			t.Errorf("%s: %d runs, want %d", query, page.Count, count)
		}
	}
	for _, query := range []string{"limit=0", "limit=x", "limit=501", "status=odd", "since=yesterday", "person=maybe", "cursor=!", "cursor=eHg", "workflow=%00"} {
		p := s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "GET", "/api/runs?"+query, "")
		if p.Fix == "" {
			t.Errorf("%s has no fix", query)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	a := s.startAtGate(t, callerAnn(), "plain", "refactor the authentication")
	s.startAtGate(t, callerAnn(), "plain", "write a poem")
	var found struct {
		Runs []struct{ RunID, Handle, Why string }
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs/search?q="+url.QueryEscape("the auth refactoring"), "").decodeInto(t, &found)
	if len(found.Runs) == 0 || found.Runs[0].RunID != a.RunID || found.Runs[0].Handle != a.Handle {
		t.Errorf("found %+v, want %s", found.Runs, a.RunID)
	}
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "GET", "/api/runs/search", "")
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "GET", "/api/runs/search?q=+", "")
}

func TestAnswerGate(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, browser := s.loginBrowser(t, "ann")
	a := s.startAtGate(t, callerAnn(), "plain", "")
	path := "/api/runs/" + a.RunID + "/answer"
	for body, code := range map[string]guideway.Code{
		`{}`: guideway.CodeInvalid, `{"optionId":"confirm","decline":true}`: guideway.CodeInvalid, `{"optionId":7}`: guideway.CodeInvalid,
		`{"optionId":"confirm","via":"browser"}`: guideway.CodeInvalid, `[]`: guideway.CodeInvalid, `{"optionId":"confirm"}{}`: guideway.CodeInvalid,
		`{"optionId":"confirm","note":"` + strings.Repeat("x", 1<<20) + `"}`: guideway.CodeTooLarge,
	} {
		status := map[guideway.Code]int{guideway.CodeInvalid: 400, guideway.CodeTooLarge: 413}[code]
		s.wantCode(t, status, code, browser, "POST", path, body)
	}
	p := s.wantCode(t, 409, guideway.CodeRefused, browser, "POST", path, `{"optionId":"maybe"}`)
	if p.Rule != engine.RuleUnknownOption || p.Allowed == nil || p.Next == nil {
		t.Errorf("an unknown option returns %+v", p)
	}
	p = s.wantCode(t, 400, guideway.CodeInvalid, browser, "POST", path, `{"optionId":"confirm"}`, "Content-Type", "text/plain")
	if !strings.Contains(p.Fix, "application/json") {
		t.Errorf("a form's type: %+v", p)
	}
	var got run.Answer
	s.wantStatus(t, 200, browser, "POST", path, `{"optionId":"revise","note":"shorter","stepId":"plan","handle":"`+a.Handle+`"}`).decodeInto(t, &got)
	if got.Position.ID != "plan" || !strings.Contains(got.Position.Message, "shorter") {
		t.Errorf("after the answer, the run is at %+v", got.Position)
	}
	// The handle belongs to an earlier position.
	p = s.wantCode(t, 409, guideway.CodeRefused, browser, "POST", path, `{"optionId":"confirm","handle":"`+a.Handle+`"}`)
	if p.Rule != run.RuleStaleHandle {
		t.Errorf("an old handle returns %+v", p)
	}
	s.wantCode(t, 404, guideway.CodeNotFound, browser, "POST", "/api/runs/r_none/answer", `{"optionId":"confirm"}`)
	other := s.startAtGate(t, callerAnn(), "plain", "")
	s.wantCode(t, 400, guideway.CodeInvalid, browser, "POST", "/api/runs/"+other.RunID+"/answer", `{"optionId":"confirm","handle":"`+got.Handle+`"}`)
}

func TestAbortAndFork(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	a := s.startAtGate(t, callerAnn(), "plain", "")
	var forked, again run.Answer
	s.wantStatus(t, 201, asAgent, "POST", "/api/runs/"+a.RunID+"/fork", "", "Idempotency-Key", "f").decodeInto(t, &forked)
	if forked.RunID == a.RunID || forked.Position.Kind != engine.PositionGate {
		t.Errorf("forked: %+v", forked)
	}
	s.wantStatus(t, 200, asAgent, "POST", "/api/runs/"+a.RunID+"/fork", "", "Idempotency-Key", "f").decodeInto(t, &again)
	if again.RunID != forked.RunID {
		t.Errorf("the same key forked %s and %s", forked.RunID, again.RunID)
	}
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/runs/"+a.RunID+"/fork", `{"seq":-1}`)
	if p := s.wantCode(t, 409, guideway.CodeRefused, asAgent, "POST", "/api/runs/"+a.RunID+"/fork", `{"seq":999}`); p.Rule != run.RuleUnknownSeq {
		t.Errorf("a missing event returns %+v", p)
	}
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/runs/"+a.RunID+"/fork", "", "Idempotency-Key", strings.Repeat("k", 129))
	var ended run.Answer
	s.wantStatus(t, 200, asAgent, "POST", "/api/runs/"+a.RunID+"/abort", `{"reason":"enough"}`).decodeInto(t, &ended)
	if ended.Status != engine.StatusAborted {
		t.Errorf("aborted: %+v", ended)
	}
	p := s.wantCode(t, 409, guideway.CodeRefused, asAgent, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"confirm"}`)
	if p.Rule != engine.RuleEnded {
		t.Errorf("after the end the answer is %+v", p)
	}
}

// The runs of another user are hidden from every route.
func TestRunsOfOtherUsersAreHidden(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	bob := run.Caller{Principal: guideway.Principal{User: "bob"}}
	a := s.startAtGate(t, bob, "plain", "secret goal")
	for _, path := range []string{"", "/definition", "/export"} {
		s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/runs/"+a.RunID+path, "")
	}
	for path, body := range map[string]string{"/answer": `{"optionId":"confirm"}`, "/abort": `{}`, "/fork": `{}`} {
		s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "POST", "/api/runs/"+a.RunID+path, body)
	}
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"confirm","handle":"`+a.Handle+`"}`)
	for _, path := range []string{"/api/runs", "/api/runs/search?q=secret"} {
		if got := s.wantStatus(t, 200, asAgent, "GET", path, ""); strings.Contains(string(got.body), "secret") {
			t.Errorf("%s shows bob's run: %s", path, got.body)
		}
	}
	for _, id := range []string{"%00", "%2e%2e%2fetc", "x%2fy", strings.Repeat("a", 5000)} {
		if got := s.sendRequest(t, asAgent, "GET", "/api/runs/"+id, ""); got.StatusCode >= 500 || got.StatusCode < 300 {
			t.Errorf("the id %.20q returns %d %s", id, got.StatusCode, got.body)
		}
	}
}

func TestWorkflows(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	var list struct{ Workflows []struct{ ID, Source string } }
	s.wantStatus(t, 200, asAgent, "GET", "/api/workflows", "").decodeInto(t, &list)
	if len(list.Workflows) != 4 || list.Workflows[0].Source != "test" {
		t.Errorf("workflows: %+v", list)
	}
	got := s.wantStatus(t, 200, asAgent, "GET", "/api/workflows/plain", "")
	if !strings.Contains(string(got.body), "Be brief.") {
		t.Errorf("the definition is missing: %s", got.body)
	}
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/workflows/none", "")
	s.wantCode(t, 422, guideway.CodeInvalidDefinition, asAgent, "GET", "/api/workflows/broken", "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "POST", "/api/runs", `{"workflowId":"none"}`)
	s.wantCode(t, 422, guideway.CodeInvalidDefinition, asAgent, "POST", "/api/runs", `{"workflowId":"broken"}`)
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/runs", ``)
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	p := s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/none", "")
	if p.Error != "Not found" || p.Path != "/api/none" {
		t.Errorf("an unknown path returns %+v", p)
	}
	s.wantCode(t, 405, guideway.CodeInvalid, asAgent, "PUT", "/api/runs", "")
	if got := s.wantStatus(t, 405, asAgent, "DELETE", "/api/runs", "").Header.Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow %q", got)
	}
	s.wantStatus(t, 200, asAgent, "HEAD", "/api/runs", "")
	s.wantStatus(t, 200, asAgent, "HEAD", "/api/events", "")
	s.wantStatus(t, 200, withoutCredential, "GET", "/api/health", "")
	s.wantStatus(t, 200, asAgent, "GET", "/api/openapi.json", "")
}

// A run at a gate has the output that the gate asks about, whichever events are requested.
// A run at another position has none.
func TestRunHasSubmissionAtGate(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, commands := s.loginBrowser(t, "ann")
	a := s.startAtGate(t, callerAnn(), "person", "g")
	var got struct {
		Submission *run.Submission `json:"submission"`
		Events     []run.Event     `json:"events"`
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID+"?limit=0", "").decodeInto(t, &got)
	if got.Submission == nil || got.Submission.Output != "the PLAN" || got.Submission.Step != a.Position.ID || got.Submission.Seq == 0 || len(got.Events) != 0 {
		t.Errorf("at the gate the run is %+v", got)
	}
	s.wantStatus(t, 200, commands, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"revise"}`)
	got.Submission = nil
	s.wantStatus(t, 200, asAgent, "GET", "/api/runs/"+a.RunID, "").decodeInto(t, &got)
	if got.Submission != nil {
		t.Errorf("at a step: %+v", got.Submission)
	}
}
