package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/httpapi"
)

// fakeRequests returns a request log, or nil as before the first entry.
type fakeRequests struct{ log *requestlog.Log }

func (r *fakeRequests) Reader(context.Context) (*requestlog.Log, error) {
	if r.log == nil {
		return nil, nil
	}
	return r.log, nil
}

func (r *fakeRequests) Recording() httpapi.Recording {
	return httpapi.Recording{On: true, Bodies: true, Error: "x"}
}

func newRequestsRig(t *testing.T) (*rig, *requestlog.Log) {
	t.Helper()
	log, err := requestlog.Open(t.Context(), filepath.Join(t.TempDir(), "requests.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return newRig(t, func(o *httpapi.Options) { o.Requests = &fakeRequests{log} }), log
}

func recordedEntry(i int) *requestlog.Entry {
	e := &requestlog.Entry{
		ID: fmt.Sprintf("q_%d", i), At: time.Now().Add(-time.Minute), User: "ann", Client: "claude", Token: "laptop", Method: "tools/call",
		Upstream: "files", Project: "site", Tool: "read_file", Status: requestlog.StatusOK, MS: float64(i), BytesIn: 1, BytesOut: 2,
	}
	if i%2 == 1 {
		e.Status, e.Error, e.Hooks, e.TraceID = requestlog.StatusCrash, "gone", []string{"guard"}, "abc"
		e.Graphs = []requestlog.Graph{{ID: "guard", Outcome: hookengine.StatusError, Node: "h", Nodes: []requestlog.Node{{Label: "L", NodeTrace: hookengine.NodeTrace{
			ID: "h", Kind: hookdef.HookNode, MS: 2, FireAndForget: true, Pending: i == 99, Skipped: false, Branch: hookdef.True,
			Error:   &hookengine.NodeError{Code: "X", Message: "m", File: "f", Line: 1, Column: 2},
			Console: []hookengine.Line{{Level: "log", Text: "t"}}, Changes: []hookengine.Change{{Op: "add", Pointer: "/x", After: []byte(`1`)}},
		}}}}}
		e.Request, e.Response = &requestlog.Body{Text: "{}", Cut: true, Redacted: true}, &requestlog.Body{Text: "{}"}
	}
	if i%10 == 0 {
		e.User = "ben"
	}
	return e
}

// A user can read the log in pages, filtered, as one entry with its hooks, and as
// statistics. The rig checks the answers against the OpenAPI document.
func TestRequests(t *testing.T) {
	t.Parallel()
	s, log := newRequestsRig(t)
	for i := 1; i <= 20; i++ {
		if err := log.Write(t.Context(), requestlog.Batch{Entries: []*requestlog.Entry{recordedEntry(i)}, Dropped: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var page struct {
		Requests []requestlog.Entry
		Next     string
		Record   requestlog.Summary
	}
	seen := 0
	for cursor := ""; ; cursor = page.Next {
		page.Next = ""
		s.wantStatus(t, 200, asAgent, "GET", "/api/requests?limit=7&cursor="+cursor, "").decodeInto(t, &page)
		seen += len(page.Requests)
		for _, e := range page.Requests {
			if e.User != "ann" || e.Graphs != nil {
				t.Errorf("%+v", e)
			}
		}
		if page.Next == "" {
			break
		}
	}
	if seen != 18 || page.Record.Dropped != 20 {
		t.Errorf("%d entries were listed, the entry is %+v", seen, page.Record)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/requests?failed=true&q=gone+read&slowerThan=15&hook=guard&upstream=files&tool=read_*&method=tools/call&client=claude", "").decodeInto(t, &page)
	if len(page.Requests) != 3 || page.Requests[0].ID != "q_19" {
		t.Errorf("%+v", page.Requests)
	}
	var one struct{ Request requestlog.Entry }
	s.wantStatus(t, 200, asAgent, "GET", "/api/requests/q_19", "").decodeInto(t, &one)
	if len(one.Request.Graphs) != 1 || one.Request.Graphs[0].Nodes[0].Console[0].Text != "t" {
		t.Errorf("%+v", one)
	}
	s.wantStatus(t, 404, asAgent, "GET", "/api/requests/q_20", "") // This entry belongs to ben.
	s.wantStatus(t, 400, asAgent, "GET", "/api/requests?status=odd", "")
	s.wantStatus(t, 400, asAgent, "GET", "/api/requests?cursor=12", "")
	s.wantStatus(t, 400, asAgent, "GET", "/api/requests?limit=0", "")
	s.wantStatus(t, 400, asAgent, "GET", "/api/requests?since=yesterday", "")
	var figures struct{ Tools []requestlog.ToolStats }
	s.wantStatus(t, 200, asAgent, "GET", "/api/requests/stats", "").decodeInto(t, &figures)
	if len(figures.Tools) != 1 || figures.Tools[0].Count != 18 || figures.Tools[0].Errors != 10 {
		t.Errorf("%+v", figures)
	}
	var stats struct {
		Requests int64
		Nodes    []requestlog.NodeStats
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/hooks/guard/stats", "").decodeInto(t, &stats)
	if stats.Requests != 10 || len(stats.Nodes) != 1 || stats.Nodes[0].Errors != 10 || stats.Nodes[0].P50 != 2 {
		t.Errorf("%+v", stats)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/hooks/none/stats", "").decodeInto(t, &stats)
	if stats.Requests != 0 {
		t.Errorf("%+v", stats)
	}
}

// Before the first entry, the lists and statistics are answered without an error.
func TestRequestsEmpty(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(o *httpapi.Options) { o.Requests = &fakeRequests{} })
	for _, path := range []string{"/api/requests", "/api/requests/stats", "/api/hooks/guard/stats"} {
		s.wantStatus(t, 200, asAgent, "GET", path, "")
	}
	s.wantStatus(t, 404, asAgent, "GET", "/api/requests/q_1", "")
}

// A stream reports new requests. Five entries that are written at once cause at most two
// events.
func TestRequestsEvent(t *testing.T) {
	t.Parallel()
	s, log := newRequestsRig(t)
	read := readStream(t, s)
	read("event: connected")
	for i := range 5 {
		if err := log.Write(t.Context(), requestlog.Batch{Entries: []*requestlog.Entry{recordedEntry(100 + i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(read(`data: {"type":"requests","pos":0}`), "event: requests"); n > 2 {
		t.Errorf("five entries caused %d events", n)
	}
}

// readStream opens the stream of changes. read waits until the text of the stream contains
// want and returns all text so far.
func readStream(t *testing.T, s *rig) (read func(want string) string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	asAgent(r)
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	var text strings.Builder
	buf := make([]byte, 4096)
	return func(want string) string {
		t.Helper()
		for !strings.Contains(text.String(), want) {
			n, err := resp.Body.Read(buf)
			text.Write(buf[:n])
			if err != nil {
				t.Fatalf("%v: %s", err, text.String())
			}
		}
		return text.String()
	}
}
