package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// hostileTests are about input that is chosen to do harm.
func hostileTests() []subtest {
	return []subtest{
		{"texts are kept as they are or refused, never half", hostileRuns},
		{"documents' names are kept as they are or refused", hostileDocuments},
		{"large data comes back byte for byte", large},
		{"a call whose context has ended does nothing", cancelled},
	}
}

// oddTexts are what a client might send as an id, a name or a word.
func oddTexts() []string {
	return []string{
		"", "'", `"`, "''; DROP TABLE runs; --", "a\x00b", "\x00", "🚀", "é", "e\u0301", "日本語", "\u202etxt", "%", "_", "$1", "?1", "@x",
		"\\", "a\nb", " ", " a ", "A", "a", "null", "NULL", "0", "1e5", "../../etc/passwd", "\xff\xfe", strings.Repeat("x", 5000),
	}
}

// kept says whether a store has taken odd text; it may refuse as invalid what no
// store must keep: NUL and what is not UTF-8.
func kept(t *testing.T, err error, text string) bool {
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

func hostileRuns(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	for _, text := range oddTexts() {
		r := newRecord("r_"+text, "user "+text)
		r.Client, r.Workflow, r.Name, r.Version, r.Hash, r.Goal = text, text, text, text, "sha256:"+text, text
		r.Project = run.Project{ID: text, Path: text, Branch: text, Commit: text}
		r.Step, r.Title, r.Parent = text, text, text
		c := first(r)
		c.Key, c.Words = text, text
		c.Events[0].Kind, c.Events[0].By = "kind "+text, run.By{User: text, Client: text, Via: run.ViaAgent}
		if !kept(t, s.Create(ctx, run.Definition{Hash: r.Hash, Text: text}, c), text) {
			_, err := s.Run(ctx, r.ID) // no detour either
			if code := guideway.ErrorCode(err); code != guideway.CodeNotFound && code != guideway.CodeInvalid {
				t.Fatalf("a run that was refused: %v (%s)", err, code)
			}
			continue
		}
		got, err := s.Run(ctx, r.ID)
		must(t, err)
		wantRecord(t, got, r)
		events, err := s.Events(ctx, r.ID, 0, 10)
		must(t, err)
		want(t, "events", events, c.Events)
		d, err := s.Definition(ctx, r.Hash)
		must(t, err)
		want(t, "definition", d.Text, text)
		h, err := s.Handle(ctx, r.Handle)
		must(t, err)
		want(t, "handle", h.Run, r.ID)
		wantRuns(t, s, run.Filter{User: r.User, Project: text, Workflow: text}, r.ID)
		_, err = s.Search(ctx, run.Search{Filter: run.Filter{User: r.User, Project: text}, Words: []string{text}})
		must(t, err)
		if text != "" {
			h, err = s.Outcome(ctx, "", r.User, text)
			must(t, err)
			want(t, "outcome", h.Run, r.ID)
		}
	}
	wantCode(t, s.Append(ctx, next(newRecord("r_none", "ada"), "x")), guideway.CodeNotFound, "a run that is not there, after all this")
}

func hostileDocuments(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	for _, text := range oddTexts() {
		d := newDocument("user "+text, "p"+text, "w"+text, "d"+text)
		d.ProjectPath = text
		d.Data = map[string]any{"key " + strings.ToValidUTF8(text, "?"): strings.ToValidUTF8(text, "?")}
		log := []session.LogEntry{{At: at(1), Revision: 1, Pointer: "/" + text, Message: text}}
		if !kept(t, s.CreateDocument(ctx, d, log), text) {
			continue
		}
		want(t, "document", one(t, s, d.Ref), d)
		entries, err := s.ValidationLog(ctx, d.Ref, 10)
		must(t, err)
		want(t, "log", entries, log)
		must(t, s.DeleteDocument(ctx, d.Ref, at(1)))
		must(t, s.RestoreDocument(ctx, d.Ref, at(2)))
	}
}

func large(t *testing.T, f *fixture) {
	const size = 1 << 20
	s, ctx := f.open(t), t.Context()
	r := newRecord("r_a", "ada")
	c := first(r)
	c.Events[0].Data = []byte(`"` + strings.Repeat("0123456789abcdef", size/16) + `"`)
	c.Words = strings.Repeat("needle haystack ", size/64)
	c.Snapshot = &run.Snapshot{Seq: 1, State: c.Events[0].Data, MAC: []byte("mac")}
	text := run.Definition{Hash: r.Hash, Text: string(c.Events[0].Data)}
	must(t, s.Create(ctx, text, c))
	events, err := s.Events(ctx, r.ID, 0, 10)
	must(t, err)
	want(t, "events", events, c.Events)
	d, err := s.Definition(ctx, r.Hash)
	must(t, err)
	want(t, "definition", d, text)
	wantFound(t, s, []string{"needles"}, "r_a")
	doc := newDocument("ada", "0123456789ab", "w", "id")
	doc.Data["text"] = strings.Repeat("é<&>", size/5)
	must(t, s.CreateDocument(ctx, doc, nil))
	want(t, "document", one(t, s, doc.Ref), doc)
}

func cancelled(t *testing.T, f *fixture) {
	s := f.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := newRecord("r_a", "ada")
	err := s.Create(ctx, definitionOf(r), first(r))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled in the chain", err)
	}
	_, err = s.Run(t.Context(), r.ID)
	wantCode(t, err, guideway.CodeNotFound, "the run")
	if _, err = s.Runs(ctx, run.Filter{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled in the chain", err)
	}
	create(t, s, r) // the store goes on working
}
