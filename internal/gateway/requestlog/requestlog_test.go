package requestlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/testutil/planted"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func newLog(t *testing.T) (*requestlog.Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data", "requests.db")
	return openLog(t, path), path
}

func openLog(t *testing.T, path string) *requestlog.Log {
	t.Helper()
	l, err := requestlog.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func writeAll(t *testing.T, l *requestlog.Log, entries ...*requestlog.Entry) {
	t.Helper()
	if err := l.Write(t.Context(), requestlog.Batch{Entries: entries}); err != nil {
		t.Fatal(err)
	}
}

func newEntry(i int) *requestlog.Entry {
	e := &requestlog.Entry{
		ID: fmt.Sprintf("q_%03d", i), At: noon.Add(time.Duration(i) * time.Minute), User: "ann", Client: "claude", Method: "tools/call",
		Upstream: "files", Tool: "read_file", Status: requestlog.StatusOK, MS: float64(i), BytesIn: 10, BytesOut: 20,
	}
	switch {
	case i%5 == 1:
		e.Status, e.Error = requestlog.StatusCrash, "the server has gone, 100% sure"
	case i%5 == 2:
		e.Upstream, e.Tool, e.Client = "git", "log", "cursor"
	case i%5 == 3:
		e.Hooks = []string{"redact", "audit"}
	case i%5 == 4:
		e.User = "ben"
	}
	return e
}

func entryIDs(list []requestlog.Entry) []string {
	out := []string{}
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

// An entry is read as it was written, and a user sees no entries of others.
func TestEntriesRoundTrip(t *testing.T) {
	t.Parallel()
	l, path := newLog(t)
	e := newEntry(3)
	e.Project, e.Token, e.TraceID = "site", "laptop", "abc"
	e.Graphs = []requestlog.Graph{{ID: "redact", Outcome: hookengine.StatusChanged, Nodes: []requestlog.Node{{Label: "Redact", NodeTrace: hookengine.NodeTrace{
		ID: "h", Kind: hookdef.HookNode, MS: 1.5, Console: []hookengine.Line{{Level: "log", Text: "hi"}},
		Changes: []hookengine.Change{{Op: "add", Pointer: "/x"}},
	}}}}}
	e.Request = &requestlog.Body{Text: "{}", Redacted: true}
	writeAll(t, l, e)
	want := *e
	want.Num = 1
	got, err := l.Get(t.Context(), "ann", e.ID)
	if err != nil || !cmp.Equal(*got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, *got))
	}
	if _, err := l.Get(t.Context(), "ben", e.ID); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("another user can read %v", err)
	}
	if err := l.Write(t.Context(), requestlog.Batch{Graphs: map[string][]requestlog.Graph{e.ID: {{ID: "later", Nodes: []requestlog.Node{}}}}, Dropped: 4}); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Get(t.Context(), "ann", e.ID); err != nil || got.Graphs[0].ID != "later" {
		t.Errorf("the later effects of hooks are missing: %+v, %v", got, err)
	}
	summary, err := openLog(t, path).Summary(t.Context())
	if err != nil || summary.Count != 1 || summary.Dropped != 4 || !summary.Oldest.Equal(e.At) || summary.Bytes == 0 {
		t.Errorf("%+v, %v", summary, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the file: %v, %v", info.Mode(), err)
	}
}

// A batch of any size is written completely, however its entries are split into statements,
// and an existing entry is not written again.
func TestBatches(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 15, 16, 17, 33, 64} {
		l, _ := newLog(t)
		writeAll(t, l, newEntry(0))
		batch, want := []*requestlog.Entry{}, []string{}
		for i := range size {
			batch = append(batch, newEntry(i))
			want = append(want, newEntry(i).ID)
		}
		writeAll(t, l, batch...)
		list, err := l.List(t.Context(), requestlog.Filter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		got := entryIDs(list)
		slices.Reverse(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %d entries: %s", size, diff)
		}
		last, err := l.Get(t.Context(), batch[size-1].User, want[size-1])
		if err != nil || last.Error != batch[size-1].Error || last.Upstream != batch[size-1].Upstream || last.BytesOut != 20 {
			t.Errorf("the last of %d is %+v, %v", size, last, err)
		}
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	for i := range 10 {
		writeAll(t, l, newEntry(i))
	}
	tests := []struct {
		name   string
		filter requestlog.Filter
		want   string
	}{
		{"all of a user", requestlog.Filter{User: "ann"}, "8 7 6 5 3 2 1 0"},
		{"nobody's", requestlog.Filter{User: "eve"}, ""},
		{"client", requestlog.Filter{Client: "cursor"}, "7 2"},
		{"upstream and tool", requestlog.Filter{User: "ann", Upstream: "files", Tool: "read_*"}, "8 6 5 3 1 0"},
		{"a star is a wildcard only at the end", requestlog.Filter{Tool: "read%"}, ""},
		{"status", requestlog.Filter{Statuses: []requestlog.Status{requestlog.StatusCrash}}, "6 1"},
		{"time", requestlog.Filter{Since: noon.Add(2 * time.Minute), Until: noon.Add(4 * time.Minute)}, "3 2"},
		{"words", requestlog.Filter{Words: []string{"gone", "100%"}}, "6 1"},
		{"a word that no entry contains", requestlog.Filter{Words: []string{"gone", "nowhere"}}, ""},
		{"a percent sign is not a wildcard", requestlog.Filter{Words: []string{"%log%"}}, ""},
		{"slow", requestlog.Filter{Slower: 8 * time.Millisecond}, "9 8"},
		{"graph", requestlog.Filter{Graph: "audit"}, "8 3"},
		{"a part of a graph's id", requestlog.Filter{Graph: "aud"}, ""},
		{"any graph", requestlog.Filter{Hooked: true}, "8 3"},
		{"behind a place", requestlog.Filter{Before: 4, Limit: 2}, "2 1"},
		{"since a place", requestlog.Filter{After: 8}, "9 8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list, err := l.List(t.Context(), tt.filter)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{}
			for _, n := range strings.Fields(tt.want) {
				want = append(want, "q_00"+n)
			}
			if got := entryIDs(list); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// Pages return every entry once and in order, also while entries are added.
func TestPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l, err := requestlog.Open(t.Context(), filepath.Join(t.TempDir(), "requests.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		count := rapid.IntRange(0, 30).Draw(rt, "count")
		limit := rapid.IntRange(1, 12).Draw(rt, "limit")
		want := []string{}
		for i := range count {
			writeAll(t, l, &requestlog.Entry{ID: fmt.Sprint(i), At: noon})
			want = append([]string{fmt.Sprint(i)}, want...)
		}
		got := []string{}
		f := requestlog.Filter{Limit: limit + 1}
		for n := 0; ; n++ {
			list, err := l.List(t.Context(), f)
			if err != nil {
				rt.Fatal(err)
			}
			page := requestlog.PageOf(list, limit)
			got = append(got, entryIDs(page.Entries)...)
			if page.Next == "" {
				break
			}
			if f.Before, err = requestlog.ParseCursor(page.Next); err != nil {
				rt.Fatal(err)
			}
			writeAll(t, l, &requestlog.Entry{ID: fmt.Sprint("new", n), At: noon})
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%v, want %v", got, want)
		}
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	var entries []*requestlog.Entry
	for i := range 200 {
		e := &requestlog.Entry{ID: fmt.Sprint(i), At: noon, User: "ann", Method: "tools/call", Upstream: "files", Tool: "read", Status: requestlog.StatusOK, MS: float64(i + 1), BytesOut: 2}
		if i%10 == 0 {
			e.Status = requestlog.StatusToolError
		}
		if i%2 == 0 {
			failure := (*hookengine.NodeError)(nil)
			if i%20 == 0 {
				failure = &hookengine.NodeError{Code: "X"}
			}
			e.Hooks = []string{"g"}
			e.Graphs = []requestlog.Graph{{ID: "g", Nodes: []requestlog.Node{
				{NodeTrace: hookengine.NodeTrace{ID: "a", MS: float64(i), Error: failure}}, {NodeTrace: hookengine.NodeTrace{ID: "b", Pending: true}},
			}}}
		}
		entries = append(entries, e)
	}
	entries = append(entries, &requestlog.Entry{ID: "other", At: noon, User: "ben", Method: "tools/call", Upstream: "files", Tool: "read", Status: requestlog.StatusOK, MS: 9999})
	writeAll(t, l, entries...)
	tools, err := l.Tools(t.Context(), requestlog.Filter{User: "ann"})
	want := []requestlog.ToolStats{{Method: "tools/call", Upstream: "files", Tool: "read", Count: 200, Errors: 20, P50: 100, P99: 198, BytesOut: 400}}
	if err != nil || !cmp.Equal(tools, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, tools))
	}
	nodes, requests, err := l.Nodes(t.Context(), "ann", "g")
	wantNodes := []requestlog.NodeStats{{ID: "a", Count: 100, Errors: 10, P50: 98, P99: 196}}
	if err != nil || requests != 100 || !cmp.Equal(nodes, wantNodes) {
		t.Errorf("%v, %d\n%s", err, requests, cmp.Diff(wantNodes, nodes))
	}
	few := []float64{3, 1, 700}
	for i, ms := range few {
		writeAll(t, l, &requestlog.Entry{ID: fmt.Sprint("few", i), At: noon, User: "cleo", Method: "tools/call", Upstream: "files", Tool: "read", Status: requestlog.StatusOK, MS: ms, Hooks: []string{"g"}, Graphs: []requestlog.Graph{
			{ID: "g", Nodes: []requestlog.Node{{NodeTrace: hookengine.NodeTrace{ID: "a", MS: ms}}}},
		}})
	}
	tools, err = l.Tools(t.Context(), requestlog.Filter{User: "cleo"})
	if err != nil || len(tools) != 1 || tools[0].P50 != 3 || tools[0].P99 != 700 {
		t.Errorf("the slowest of three calls is missing: %+v, %v", tools, err)
	}
	nodes, _, err = l.Nodes(t.Context(), "cleo", "g")
	if err != nil || len(nodes) != 1 || nodes[0].P50 != 3 || nodes[0].P99 != 700 {
		t.Errorf("the slowest of three executions is missing: %+v, %v", nodes, err)
	}
	if nodes, requests, err := l.Nodes(t.Context(), "ben", "g"); err != nil || requests != 0 || len(nodes) != 0 {
		t.Errorf("another user sees %v of %d, %v", nodes, requests, err)
	}
}

// Old entries are removed first, then the oldest excess entries, and the file shrinks.
func TestPrune(t *testing.T) {
	t.Parallel()
	l, path := newLog(t)
	var entries []*requestlog.Entry
	for i := range 3000 {
		entries = append(entries, &requestlog.Entry{ID: fmt.Sprint(i), At: noon.Add(time.Duration(i) * time.Second), Error: strings.Repeat("e", 500)})
	}
	writeAll(t, l, entries...)
	gone, err := l.Prune(t.Context(), noon.Add(1000*time.Second), 0)
	if err != nil || gone != 1000 {
		t.Fatalf("%d went, %v", gone, err)
	}
	before, err := l.Summary(t.Context())
	if err != nil || before.Count != 2000 {
		t.Fatalf("%+v, %v", before, err)
	}
	if _, err := l.Prune(t.Context(), time.Time{}, before.Bytes/4); err != nil {
		t.Fatal(err)
	}
	after, err := l.Summary(t.Context())
	if err != nil || after.Bytes > before.Bytes/4 || after.Count < 200 {
		t.Errorf("%+v of %+v are left, %v", after, before, err)
	}
	list, err := l.List(t.Context(), requestlog.Filter{Limit: 1})
	if err != nil || list[0].ID != "2999" {
		t.Errorf("the newest entry was removed: %v, %v", list, err)
	}
	if gone, err := l.Prune(t.Context(), time.Time{}, 1); err != nil || gone == 0 {
		t.Errorf("%d went, %v", gone, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > before.Bytes/2 {
		t.Errorf("the file still has %d bytes, %v", info.Size(), err)
	}
}

// TestPrunedWords checks that no file has the bodies of removed entries.
func TestPrunedWords(t *testing.T) {
	t.Parallel()
	l, path := newLog(t)
	words := planted.Words(200)
	for i, word := range words {
		e := newEntry(i)
		e.Request, e.Response = &requestlog.Body{Text: word}, &requestlog.Body{Text: strings.Repeat(word+" ", 200)}
		writeAll(t, l, e)
	}
	if _, err := l.Prune(t.Context(), noon.Add(100*time.Minute), 0); err != nil {
		t.Fatal(err)
	}
	if found := planted.Find(t, filepath.Dir(path), words[:100]); len(found) > 0 {
		t.Errorf("%d words are left: %v", len(found), found[:1])
	}
	if found := planted.Find(t, filepath.Dir(path), words[100:]); len(found) < 100 {
		t.Errorf("of the entries that stay, only %d words are found", len(found))
	}
}

// TestSeveralWriters checks that several logs can be opened on one new file and write to it
// concurrently.
func TestSeveralWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "requests.db")
	const writers, each = 6, 20
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			l, err := requestlog.Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			for i := range each {
				if err := l.Write(context.Background(), requestlog.Batch{Entries: []*requestlog.Entry{{ID: fmt.Sprint(w, "-", i), At: noon}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if s, err := openLog(t, path).Summary(t.Context()); err != nil || s.Count != writers*each {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestForeignFilesAreRefused checks that a file that is not a database is not changed, and
// that the error has a fix.
func TestForeignFilesAreRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "requests.db")
	text := strings.Repeat("no database ", 500)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := requestlog.Open(t.Context(), path)
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "move the damaged file away") {
		t.Errorf("%v: %s", err, guideway.ErrorFix(err))
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != text {
		t.Error("the file was changed")
	}
	if requestlog.Exists(filepath.Join(t.TempDir(), "none")) {
		t.Error("Exists reports a missing file as existing")
	}
	if _, err := requestlog.Open(t.Context(), filepath.Join(path, "below")); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a directory that is a file: %v", err)
	}
}
