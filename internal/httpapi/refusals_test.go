package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// A body that is not the JSON object of a route is refused, and nothing is executed.
func TestBodiesAreRefused(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	waiting := s.startAtGate(t, callerAnn(), "plain", "wait")
	for _, path := range []string{
		"/api/runs", "/api/runs/" + waiting.RunID + "/abort", "/api/runs/" + waiting.RunID + "/fork", "/api/try", "/api/validate",
		"/api/machine-runs", "/api/sessions/bulk-delete",
	} {
		for _, body := range []string{"nope", "{", `{"goal":`, `[]`, `"text"`, `7`, `{"unknown":1}`, `{} {}`, "{}\x00"} {
			r := s.sendRequest(t, asAgent, "POST", path, body)
			var p httpapi.Problem
			if r.StatusCode == 404 && path != "/api/runs" {
				t.Fatalf("%s: %d %s", path, r.StatusCode, r.body)
			}
			if err := json.Unmarshal(r.body, &p); err != nil || r.StatusCode != 400 || p.Code != guideway.CodeInvalid || p.Fix == "" || strings.Contains(p.Error, "Go ") {
				t.Errorf("%s with the body %q: %d %s", path, body, r.StatusCode, r.body)
			}
		}
		s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", path, `{"workflowId":"plain"}`, "Content-Type", "text/plain")
		s.wantCode(t, 413, guideway.CodeTooLarge, asAgent, "POST", path, `{"`+strings.Repeat("x", 1<<20)+`":1}`)
	}
	list, err := s.runs.List(t.Context(), callerAnn(), run.Filter{Limit: 10})
	if err != nil || len(list) != 1 || list[0].Status != waiting.Status {
		t.Errorf("after the refusals the runs are %+v, %v", list, err)
	}
	s.wantStatus(t, 201, asAgent, "POST", "/api/runs", `{"workflowId":"plain","goal":"go"}`)
}

// textOnlyStore fails the test if it is asked for a name that no document can have.
type textOnlyStore struct {
	session.Store
	t *testing.T
}

func (s textOnlyStore) check(r session.Ref) {
	text := r.Project + r.Workflow + r.ID
	if len(text) >= 1<<10 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		s.t.Errorf("the store was asked for %q", r)
	}
}

func (s textOnlyStore) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	s.check(f.Ref)
	return s.Store.Summaries(ctx, f)
}

// A name of a session document with control characters, with invalid UTF-8 or of at least 1
// KiB does not reach the store.
func TestSessionNames(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(o *httpapi.Options) { o.Sessions = textOnlyStore{o.Sessions, t} })
	s.createDocument(t, "ann", projectA, "bug", "one")
	bad := []string{"one%00", "%0aone", "one%7f", "one%c2%85", "%1b%5b31mone", "one%ff", strings.Repeat("x", 1<<10)}
	for _, name := range bad {
		for _, path := range []string{"/api/sessions/" + name, "/api/sessions/bug/" + name, "/api/sessions/" + name + "/one", "/api/sessions/bug/one?project=" + name} {
			s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", path, "")
		}
		text, err := url.PathUnescape(name)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]any{"sessions": []any{map[string]any{"workflowId": "bug", "sessionId": text}}})
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(text) {
			continue // JSON cannot contain this text.
		}
		var got struct {
			Success bool
			Failed  []struct{ Code guideway.Code }
		}
		s.wantStatus(t, 200, asAgent, "POST", "/api/sessions/bulk-delete", string(body)).decodeInto(t, &got)
		if got.Success || len(got.Failed) != 1 || got.Failed[0].Code != guideway.CodeNotFound {
			t.Errorf("%q is deleted as %+v", text, got)
		}
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/sessions/bug/one", "")
}

// bulkyMachines returns events of the given sizes.
type bulkyMachines struct {
	testMachines

	sizes []int
}

func (m bulkyMachines) Events(context.Context, run.Caller, string) ([]run.Event, error) {
	var list []run.Event
	for i, size := range m.sizes {
		list = append(list, run.Event{Seq: int64(i + 1), Kind: "noted", By: run.ByCaller(callerAnn()), Data: json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)})
	}
	return list, nil
}

// A page of a machine's events has at most 4 MiB of data, but at least one event.
func TestPageOfLargeMachineEvents(t *testing.T) {
	t.Parallel()
	const most = 4 << 20
	s := newRig(t, func(o *httpapi.Options) {
		o.Machines = bulkyMachines{o.Machines.(testMachines), []int{most / 2, most / 2, 10, most + 10, 10, most - 10, 11}}
	})
	for after, want := range map[int][]int64{0: {1, 2}, 2: {3}, 3: {4}, 4: {5, 6}, 5: {6}, 6: {7}, 7: nil} {
		var page struct {
			Events    []run.Event
			NextAfter int64
		}
		s.wantStatus(t, 200, asAgent, "GET", fmt.Sprintf("/api/machine-runs/r_1/events?after=%d", after), "").decodeInto(t, &page)
		var seqs []int64
		for _, e := range page.Events {
			seqs = append(seqs, e.Seq)
		}
		if fmt.Sprint(seqs) != fmt.Sprint(want) {
			t.Errorf("the page after %d has the events %v, want %v", after, seqs, want)
		}
		if next := page.NextAfter; len(want) > 0 && want[len(want)-1] < 7 && next != want[len(want)-1] {
			t.Errorf("the page after %d is followed by the one after %d", after, next)
		}
	}
}

// A trial has at most 500 moves, and moves after a refused one are an error.
func TestTrialBounds(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	text, err := json.Marshal(`{"id":"counted","name":"Counted","description":"d","version":"1.0.0","steps":[{"id":"loop","type":"loop","title":"Loop",
		"loop":{"type":"for","count":600,"maxIterations":600},"body":[{"id":"work","title":"Work","prompt":"Work."}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	body := func(moves int) string {
		return `{"text":` + string(text) + `,"moves":[` + strings.TrimSuffix(strings.Repeat(`{"output":"x"},`, moves), ",") + `]}`
	}
	s.wantStatus(t, 200, asAgent, "POST", "/api/try", body(500))
	s.wantCode(t, 413, guideway.CodeTooLarge, asAgent, "POST", "/api/try", body(501))
	const refused = `{"optionId":"confirm"}`
	p := s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/try", `{"text":`+string(text)+`,"moves":[{"output":"x"},`+refused+`,{"output":"x"}]}`)
	if !strings.HasPrefix(p.Error, "move 2 is refused") {
		t.Errorf("the error is %q", p.Error)
	}
	var got struct{ Refused *struct{ Rule string } }
	s.wantStatus(t, 200, asAgent, "POST", "/api/try", `{"text":`+string(text)+`,"moves":[{"output":"x"},`+refused+`]}`).decodeInto(t, &got)
	if got.Refused == nil {
		t.Error("a refused last move is not reported")
	}
}
