package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// hostileTests cover unusual and malicious input, large data, and cancelled calls.
func hostileTests() []subtest {
	return []subtest{
		{"texts are stored unchanged or refused", testHostileRuns},
		{"names of documents are stored unchanged or refused", testHostileDocuments},
		{"large data is read byte for byte", testLargeData},
		{"a call whose context has ended does nothing", testCancelledContext},
	}
}

// hostileTexts returns unusual ids, names and words that a client might send.
func hostileTexts() []string {
	return []string{
		"", "'", `"`, "''; DROP TABLE runs; --", "a\x00b", "\x00", "🚀", "é", "e\u0301", "日本語", "\u202etxt", "%", "_", "$1", "?1", "@x",
		"\\", "a\nb", " ", " a ", "A", "a", "null", "NULL", "0", "1e5", "../../etc/passwd", "\xff\xfe", strings.Repeat("x", 5000),
	}
}

// isStored reports whether a store has accepted a hostile text. A store may refuse texts
// with NUL or invalid UTF-8.
func isStored(t *testing.T, err error, text string) bool {
	t.Helper()
	odd := strings.ContainsRune(text, 0) || strings.ToValidUTF8(text, "") != text
	if odd && guideway.ErrorCode(err) == guideway.CodeInvalid {
		return false
	}
	if err != nil {
		t.Fatalf("with %.40q: %v (%s)", text, err, guideway.ErrorCode(err))
	}
	return true
}

func testHostileRuns(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	for _, text := range hostileTexts() {
		r := newRecord("r_"+text, "user "+text)
		r.Client, r.Workflow, r.Name, r.Version, r.Hash, r.Goal = text, text, text, text, "sha256:"+text, text
		r.Project = run.Project{ID: text, Path: text, Branch: text, Commit: text}
		r.Step, r.Title, r.Parent = text, text, text
		c := createCommit(r)
		c.Key = text
		c.Terms = append(c.Terms, words.Of(text)...)
		c.Events[0].Kind, c.Events[0].By = "kind "+text, run.By{User: text, Client: text, Via: run.ViaAgent}
		if !isStored(t, s.Create(ctx, run.Definition{Hash: r.Hash, Text: text}, c), text) {
			_, err := s.Run(ctx, r.ID) // the run cannot be read by its id either
			if code := guideway.ErrorCode(err); code != guideway.CodeNotFound && code != guideway.CodeInvalid {
				t.Fatalf("reading a refused run returns %v (%s)", err, code)
			}
			continue
		}
		got, err := s.Run(ctx, r.ID)
		requireNoError(t, err)
		checkRecord(t, got, r)
		events, err := s.Events(ctx, r.ID, 0, 10)
		requireNoError(t, err)
		checkEqual(t, "events", events, c.Events)
		d, err := s.Definition(ctx, r.Hash)
		requireNoError(t, err)
		checkEqual(t, "definition", d.Text, text)
		h, err := s.Handle(ctx, r.Handle)
		requireNoError(t, err)
		checkEqual(t, "handle", h.Run, r.ID)
		checkRunList(t, s, run.Filter{User: r.User, Project: text, Workflow: text}, r.ID)
		_, err = s.Search(ctx, run.Search{Filter: run.Filter{User: r.User, Project: text}, Query: words.Parse(text)})
		requireNoError(t, err)
		if text != "" {
			h, err = s.Outcome(ctx, "", r.User, text)
			requireNoError(t, err)
			checkEqual(t, "outcome", h.Run, r.ID)
		}
	}
	checkCode(t, s.Append(ctx, appendCommit(newRecord("r_none", "ada"), "x")), guideway.CodeNotFound, "a missing run, after all these calls")
}

func testHostileDocuments(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	for _, text := range hostileTexts() {
		d := newDocument("user "+text, "p"+text, "w"+text, "d"+text)
		d.ProjectPath = text
		d.Data = map[string]any{"key " + strings.ToValidUTF8(text, "?"): strings.ToValidUTF8(text, "?")}
		log := []session.LogEntry{{At: minutesAfter(1), Revision: 1, Pointer: "/" + text, Message: text}}
		if !isStored(t, s.CreateDocument(ctx, d, log), text) {
			continue
		}
		checkEqual(t, "document", readDocument(t, s, d.Ref), d)
		entries, err := s.ValidationLog(ctx, d.Ref, 10)
		requireNoError(t, err)
		checkEqual(t, "log", entries, log)
		requireNoError(t, s.DeleteDocument(ctx, d.Ref, minutesAfter(1)))
		requireNoError(t, s.RestoreDocument(ctx, d.Ref, minutesAfter(2)))
	}
}

func testLargeData(t *testing.T, f *fixture) {
	const size = 1 << 20
	s, ctx := f.openStore(t), t.Context()
	r := newRecord("r_a", "ada")
	c := createCommit(r)
	c.Events[0].Data = []byte(`"` + strings.Repeat("0123456789abcdef", size/16) + `"`)
	c.Terms = words.Of(strings.Repeat("needle haystack ", size/64))
	c.Snapshot = &run.Snapshot{Seq: 1, State: c.Events[0].Data, MAC: []byte("mac")}
	text := run.Definition{Hash: r.Hash, Text: string(c.Events[0].Data)}
	requireNoError(t, s.Create(ctx, text, c))
	events, err := s.Events(ctx, r.ID, 0, 10)
	requireNoError(t, err)
	checkEqual(t, "events", events, c.Events)
	d, err := s.Definition(ctx, r.Hash)
	requireNoError(t, err)
	checkEqual(t, "definition", d, text)
	checkFound(t, s, []string{"needles"}, "r_a")
	doc := newDocument("ada", "0123456789ab", "w", "id")
	doc.Data["text"] = strings.Repeat("é<&>", size/5)
	requireNoError(t, s.CreateDocument(ctx, doc, nil))
	checkEqual(t, "document", readDocument(t, s, doc.Ref), doc)
}

func testCancelledContext(t *testing.T, f *fixture) {
	s := f.openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := newRecord("r_a", "ada")
	err := s.Create(ctx, newDefinition(r), createCommit(r))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled in the chain", err)
	}
	_, err = s.Run(t.Context(), r.ID)
	checkCode(t, err, guideway.CodeNotFound, "the run")
	if _, err = s.Runs(ctx, run.Filter{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled in the chain", err)
	}
	createRun(t, s, r) // the store still works
}
