package requestlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/secret"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/platform/secret/secrettest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The recorder never delays a call: while the log cannot be opened, it accepts entries,
// drops those without room, counts them, and reports the number with the next batch.
func TestRecorderNeverWaits(t *testing.T) {
	t.Parallel()
	log, _ := newLog(t)
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		r := requestlog.NewRecorder(requestlog.RecorderOptions{Queue: 4, Retention: time.Hour, Open: func(ctx context.Context) (*requestlog.Log, error) {
			select {
			case <-hold:
				return log, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
		r.Add(&requestlog.Entry{ID: "old"})
		<-time.After(time.Second) // the writer now holds the first entry
		begun := time.Now()
		for i := range 10 {
			r.Add(&requestlog.Entry{ID: fmt.Sprint("new-", i), At: begun})
		}
		if time.Since(begun) != 0 {
			t.Error("the call waited")
		}
		if h := r.Health(); h.Dropped != 6 || h.Waiting != 4 {
			t.Errorf("%+v, want 6 dropped and 4 waiting", h)
		}
		close(hold)
		r.Close(t.Context())
		r.Add(&requestlog.Entry{ID: "late", At: begun})
	})
	list, err := log.List(t.Context(), requestlog.Filter{})
	if err != nil || len(list) != 4 || list[3].ID != "new-0" || list[0].ID != "new-3" {
		t.Errorf("the log has %+v, %v, want the 4 entries that had room and are within the retention", list, err)
	}
	if s, err := log.Summary(t.Context()); err != nil || s.Dropped != 6 {
		t.Errorf("%+v, %v, want 6 dropped", s, err)
	}
}

// TestRecorderSurvivesFailures checks that entries are lost and counted while the log
// cannot be opened, and that the number is reported once the log works again.
func TestRecorderSurvivesFailures(t *testing.T) {
	t.Parallel()
	log, _ := newLog(t)
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Bool
		r := requestlog.NewRecorder(requestlog.RecorderOptions{Open: func(context.Context) (*requestlog.Log, error) {
			if !works.Load() {
				return nil, errors.New("the disk is full")
			}
			return log, nil
		}})
		for range 3 {
			r.Add(&requestlog.Entry{ID: "lost"})
		}
		<-time.After(time.Second)
		if h := r.Health(); h.Dropped != 3 || h.Written != 0 || h.Error != "the disk is full" {
			t.Errorf("%+v", h)
		}
		works.Store(true)
		r.Add(&requestlog.Entry{ID: "kept"})
		r.Settle("kept", []requestlog.Graph{{ID: "g"}})
		<-time.After(time.Second)
		if h := r.Health(); h.Written != 1 || h.Error != "" {
			t.Errorf("%+v", h)
		}
		r.Close(t.Context())
	})
	if s, err := log.Summary(t.Context()); err != nil || s.Count != 1 || s.Dropped != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if e, err := log.Get(t.Context(), "", "kept"); err != nil || len(e.Graphs) != 1 || e.Graphs[0].ID != "g" {
		t.Errorf("%+v, %v", e, err)
	}
}

// An unused recorder starts and opens nothing.
func TestIdleRecorder(t *testing.T) {
	t.Parallel()
	r := requestlog.NewRecorder(requestlog.RecorderOptions{Open: func(context.Context) (*requestlog.Log, error) {
		t.Error("the log was opened")
		return nil, errors.New("no")
	}})
	if h := r.Health(); h != (requestlog.Health{}) {
		t.Errorf("%+v", h)
	}
	r.Close(t.Context())
	r.Add(&requestlog.Entry{ID: "late"})
	if h := r.Health(); h.Dropped != 1 {
		t.Errorf("%+v", h)
	}
}

// writeEntry writes an entry and returns its stored form.
func writeEntry(t *testing.T, most int, e *requestlog.Entry) *requestlog.Entry {
	t.Helper()
	log, _ := newLog(t)
	r := requestlog.NewRecorder(requestlog.RecorderOptions{
		Open:   func(context.Context) (*requestlog.Log, error) { return log, nil },
		Redact: requestlog.NewRedactor(most, secret.Detector{}), Gather: time.Millisecond,
	})
	r.Add(e)
	r.Close(t.Context())
	kept, err := log.Get(t.Context(), e.User, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func hostileEntry() *requestlog.Entry {
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	inner, _ := json.Marshal(`{"user":"ann","apiKey":"k-1234567890"}`)
	return &requestlog.Entry{
		ID: "q", Method: "resources/read", Tool: "https://ann:hunter2hunter2@example.com/x?sig=hunter2%2Babc&x=1",
		Error:     "the server said Authorization: Bearer abcdefghijklmnop1234 is wrong",
		Arguments: json.RawMessage(`{"path":"/etc/hosts","password":"hunter2","deep":[{"client_secret":{"a":1}}],"text":"use ` + token + ` for it"}`),
		Result:    json.RawMessage(`{"content":[{"type":"text","text":` + string(inner) + `}],"big":12345678901234567890}`),
		Graphs: []requestlog.Graph{{ID: "g", Nodes: []requestlog.Node{{NodeTrace: hookengine.NodeTrace{
			ID: "h", Kind: hookdef.HookNode, Console: []hookengine.Line{{Level: "log", Text: "the token is " + token + ", yes"}},
			Error: &hookengine.NodeError{Code: "X", Message: "password=hunter2hunter2"},
			Changes: []hookengine.Change{
				{Op: "replace", Pointer: "/request/params/arguments/password", Before: json.RawMessage(`"hunter2"`), After: json.RawMessage(`"x"`)},
				{Op: "replace", Pointer: "/request/params/arguments/path", Before: json.RawMessage(`"a"`), After: json.RawMessage(`"b"`)},
			},
		}}}}},
	}
}

// TestSecretsAreRedacted checks that arguments and results are stored only if enabled, and
// that no part of an entry contains a secret, whether it is recognized by key or by shape.
func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 1 << 10} {
		e := writeEntry(t, most, hostileEntry())
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
			t.Errorf("the changes are missing: %+v", e.Graphs)
		}
	}
	e := writeEntry(t, 1<<10, hostileEntry())
	want := `{"content":[{"text":"{\"apiKey\":\"[redacted]\",\"user\":\"ann\"}","type":"text"}],"big":12345678901234567890}`
	var got, expected any
	if json.Unmarshal([]byte(e.Response.Text), &got) != nil || json.Unmarshal([]byte(want), &expected) != nil || !cmp.Equal(got, expected) {
		t.Errorf("the answer is kept as %s", e.Response.Text)
	}
	if !strings.Contains(e.Response.Text, "12345678901234567890") {
		t.Errorf("a number was rounded: %s", e.Response.Text)
	}
	if e.Tool != "https://ann:[redacted: url-password]@example.com/x?sig=[redacted: named]&x=1" {
		t.Errorf("the address is kept as %s", e.Tool)
	}
	if !e.Request.Redacted || !strings.Contains(e.Request.Text, "use [redacted: github-token] for it") {
		t.Errorf("the arguments are kept as %s", e.Request.Text)
	}
	if after := string(e.Graphs[0].Nodes[0].Changes[1].After); after != `"b"` {
		t.Errorf("a change is kept as %s", after)
	}
}

// TestDetectorInTheLog checks that the cases of the detector are redacted in bodies and errors.
func TestDetectorInTheLog(t *testing.T) {
	t.Parallel()
	rule := regexp.MustCompile(`\[redacted: [a-z-]+\]`)
	for _, c := range secrettest.Cases() {
		result, err := json.Marshal(map[string]any{"text": c.Text})
		if err != nil {
			t.Fatal(err)
		}
		e := writeEntry(t, 1<<20, &requestlog.Entry{ID: "q", Result: result, Error: c.Text})
		var got struct{ Text string }
		if err := json.Unmarshal([]byte(e.Response.Text), &got); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{got.Text, e.Error} {
			if text := rule.ReplaceAllString(text, "[redacted]"); text != c.Redacted {
				t.Errorf("%q is recorded as %q, want %q", c.Text, text, c.Redacted)
			}
		}
		if e.Response.Redacted != (c.Text != c.Redacted) {
			t.Errorf("%q is redacted: %t", c.Text, e.Response.Redacted)
		}
	}
}

// Bodies are limited, and cut between characters; text that is not JSON is not stored.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	e := writeEntry(t, 8, &requestlog.Entry{ID: "q", Arguments: json.RawMessage(`{"a":"ääääääää"}`), Result: json.RawMessage(`{broken`)})
	if e.Request.Text != `{"a":"ä` || !e.Request.Cut || e.Response != nil {
		t.Errorf("%+v, %+v", e.Request, e.Response)
	}
	e = writeEntry(t, 8, &requestlog.Entry{ID: "q", Arguments: json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)})
	if len(e.Request.Text) > 100 || !e.Request.Cut {
		t.Errorf("%d bytes are kept", len(e.Request.Text))
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	list := []requestlog.Entry{{Num: 9}, {Num: 7}, {Num: 4}}
	page := requestlog.PageOf(slices.Clone(list), 2)
	if num, err := requestlog.ParseCursor(page.Next); err != nil || num != 7 || len(page.Entries) != 2 {
		t.Errorf("%+v: %d, %v", page, num, err)
	}
	if page := requestlog.PageOf(list, 3); page.Next != "" {
		t.Errorf("%+v has a next page", page)
	}
	for _, text := range []string{"7", "q", "q-1", "q0", "q!", "' OR 1=1"} {
		if _, err := requestlog.ParseCursor(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
