package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
	"github.com/guideway-dev/guideway/internal/hookgraph"
	"github.com/guideway-dev/guideway/internal/record"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that keeps what is written, or fails.
type memory struct {
	record.Store
	mu      sync.Mutex
	batches []record.Batch
	pruned  []time.Time
	fail    error
	// hold keeps writes waiting until it is closed.
	hold chan struct{}
}

func (m *memory) Write(ctx context.Context, b record.Batch) error {
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.batches = append(m.batches, b)
	return nil
}

func (m *memory) Prune(_ context.Context, before time.Time, _ int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = append(m.pruned, before)
	return 0, nil
}

func (m *memory) ids() (ids []string, dropped int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.batches {
		for _, e := range b.Entries {
			ids = append(ids, e.ID)
		}
		dropped += b.Dropped
	}
	return ids, dropped
}

func opening(m *memory) func(context.Context) (record.Store, error) {
	return func(context.Context) (record.Store, error) { return m, nil }
}

// The call's path is never held up: while the store takes forever, entries are
// taken, and those without room are dropped, counted, and told with the next
// batch.
func TestRecorderNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{hold: make(chan struct{})}
		r := record.New(record.Options{Open: opening(store), Queue: 4, Retention: time.Hour})
		r.Add(&record.Entry{ID: "first"})
		<-time.After(time.Second) // the writer holds the first one now
		begun := time.Now()
		for range 10 {
			r.Add(&record.Entry{ID: "more"})
		}
		if time.Since(begun) != 0 {
			t.Error("the call has waited")
		}
		if h := r.Health(); h.Dropped != 6 || h.Waiting != 4 {
			t.Errorf("%+v, want 6 dropped and 4 waiting", h)
		}
		close(store.hold)
		r.Close(t.Context())
		ids, dropped := store.ids()
		if !slices.Equal(ids, []string{"first", "more", "more", "more", "more"}) || dropped != 6 {
			t.Errorf("%v were written, and %d said to be dropped", ids, dropped)
		}
		if len(store.pruned) == 0 || !store.pruned[0].Equal(time.Now().Add(-time.Hour)) && time.Since(store.pruned[0]) > time.Hour+time.Minute {
			t.Errorf("pruned %v", store.pruned)
		}
		r.Add(&record.Entry{ID: "late"})
		if ids, _ := store.ids(); slices.Contains(ids, "late") {
			t.Error("an entry was written behind the end")
		}
	})
}

// Entries that come together are written together; a store that fails loses them,
// which is counted and told once it works again.
func TestRecorderSurvivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{fail: errors.New("the disk is full")}
		r := record.New(record.Options{Open: opening(store)})
		for range 3 {
			r.Add(&record.Entry{ID: "lost"})
		}
		<-time.After(time.Second)
		if h := r.Health(); h.Dropped != 3 || h.Written != 0 || h.Error != "the disk is full" {
			t.Errorf("%+v", h)
		}
		store.mu.Lock()
		store.fail = nil
		store.mu.Unlock()
		r.Add(&record.Entry{ID: "kept"})
		r.Settle("kept", []record.Graph{{ID: "g"}})
		<-time.After(time.Second)
		if h := r.Health(); h.Written != 1 || h.Error != "" {
			t.Errorf("%+v", h)
		}
		if len(store.batches) != 1 || store.batches[0].Dropped != 3 || store.batches[0].Graphs["kept"][0].ID != "g" {
			t.Errorf("the batches are %+v", store.batches)
		}
		r.Close(t.Context())
	})
}

// A recorder that nobody uses starts nothing and opens nothing.
func TestIdleRecorder(t *testing.T) {
	t.Parallel()
	r := record.New(record.Options{Open: func(context.Context) (record.Store, error) {
		t.Error("it was opened")
		return nil, errors.New("no")
	}})
	if h := r.Health(); h != (record.Health{}) {
		t.Errorf("%+v", h)
	}
	r.Close(t.Context())
	r.Add(&record.Entry{ID: "late"})
	if h := r.Health(); h.Dropped != 1 {
		t.Errorf("%+v", h)
	}
}

// keep writes an entry and gives what is kept of it.
func keep(t *testing.T, most int, e *record.Entry) *record.Entry {
	t.Helper()
	store := &memory{}
	r := record.New(record.Options{Open: opening(store), Redact: record.NewRedactor(most), Gather: time.Millisecond})
	r.Add(e)
	r.Close(t.Context())
	if len(store.batches) != 1 {
		t.Fatalf("%d batches", len(store.batches))
	}
	return store.batches[0].Entries[0]
}

func hostile() *record.Entry {
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	inner, _ := json.Marshal(`{"user":"ann","apiKey":"k-1234567890"}`)
	return &record.Entry{
		ID: "q", Method: "resources/read", Tool: "https://ann:hunter2hunter2@example.com/x?sig=hunter2%2Babc&x=1",
		Error:     "the server said Authorization: Bearer abcdefghijklmnop1234 is wrong",
		Arguments: json.RawMessage(`{"path":"/etc/hosts","password":"hunter2","deep":[{"client_secret":{"a":1}}],"text":"use ` + token + ` for it"}`),
		Result:    json.RawMessage(`{"content":[{"type":"text","text":` + string(inner) + `}],"big":12345678901234567890}`),
		Graphs: []record.Graph{{ID: "g", Nodes: []record.Node{{NodeTrace: hookgraph.NodeTrace{
			ID: "h", Kind: hooks.HookNode, Console: []hookgraph.Line{{Level: "log", Text: "the token is " + token + ", yes"}},
			Error: &hookgraph.NodeError{Code: "X", Message: "password=hunter2hunter2"},
			Changes: []hookgraph.Change{
				{Op: "replace", Pointer: "/request/params/arguments/password", Before: json.RawMessage(`"hunter2"`), After: json.RawMessage(`"x"`)},
				{Op: "replace", Pointer: "/request/params/arguments/path", Before: json.RawMessage(`"a"`), After: json.RawMessage(`"b"`)},
			},
		}}}}},
	}
}

// What was sent is not kept unless somebody wants it, whatever way it would get
// into an entry; secrets are never kept, by key and by shape.
func TestNothingSecretIsKept(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 1 << 10} {
		e := keep(t, most, hostile())
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"hunter2", "ghp_", "k-1234567890", "abcdefghijklmnop1234"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("with %d bytes kept, %s is in %s", most, secret, text)
			}
		}
		if kept := strings.Contains(string(text), "/etc/hosts"); kept != (most > 0) {
			t.Errorf("with %d bytes kept: %s", most, text)
		}
		if len(e.Graphs[0].Nodes[0].Changes) != 2 || e.Graphs[0].Nodes[0].Changes[1].Pointer != "/request/params/arguments/path" {
			t.Errorf("what was changed is not told: %+v", e.Graphs)
		}
	}
	e := keep(t, 1<<10, hostile())
	want := `{"content":[{"text":"{\"apiKey\":\"[redacted]\",\"user\":\"ann\"}","type":"text"}],"big":12345678901234567890}`
	var got, expected any
	if json.Unmarshal([]byte(e.Response.Text), &got) != nil || json.Unmarshal([]byte(want), &expected) != nil || !cmp.Equal(got, expected) {
		t.Errorf("the answer is kept as %s", e.Response.Text)
	}
	if !strings.Contains(e.Response.Text, "12345678901234567890") {
		t.Errorf("a number was rounded: %s", e.Response.Text)
	}
	if e.Tool != "https://[redacted: url-password]xample.com/x?sig=[redacted: named]&x=1" && !strings.HasSuffix(e.Tool, "?sig=[redacted: named]&x=1") {
		t.Errorf("the address is kept as %s", e.Tool)
	}
	if !e.Request.Redacted || !strings.Contains(e.Request.Text, "use [redacted: github-token] for it") {
		t.Errorf("the arguments are kept as %s", e.Request.Text)
	}
	if after := string(e.Graphs[0].Nodes[0].Changes[1].After); after != `"b"` {
		t.Errorf("a change is kept as %s", after)
	}
}

// Bodies are bounded, and cut between letters; what is not JSON is not kept.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	e := keep(t, 8, &record.Entry{ID: "q", Arguments: json.RawMessage(`{"a":"ääääääää"}`), Result: json.RawMessage(`{broken`)})
	if e.Request.Text != `{"a":"ä` || !e.Request.Cut || e.Response != nil {
		t.Errorf("%+v, %+v", e.Request, e.Response)
	}
	e = keep(t, 8, &record.Entry{ID: "q", Arguments: json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)})
	if len(e.Request.Text) > 100 || !e.Request.Cut {
		t.Errorf("%d bytes are kept", len(e.Request.Text))
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	list := []record.Entry{{Num: 9}, {Num: 7}, {Num: 4}}
	page := record.PageOf(slices.Clone(list), 2)
	if num, err := record.ParseCursor(page.Next); err != nil || num != 7 || len(page.Entries) != 2 {
		t.Errorf("%+v: %d, %v", page, num, err)
	}
	if page := record.PageOf(list, 3); page.Next != "" {
		t.Errorf("%+v goes on", page)
	}
	for _, text := range []string{"7", "q", "q-1", "q0", "q!", "' OR 1=1"} {
		if _, err := record.ParseCursor(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
