package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/session"
)

// openStoreWith opens a new store.
func openStoreWith(t *testing.T, o Options) *Store {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), testFile)
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// queryTexts returns the texts that a query returns on the connection that writes.
func queryTexts(t *testing.T, s *Store, query string) (texts []string) {
	t.Helper()
	rows, err := s.writer.db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	return texts
}

// execWriter executes a statement on the connection that writes.
func execWriter(t *testing.T, s *Store, format string, values ...any) {
	t.Helper()
	if _, err := s.writer.db.ExecContext(t.Context(), fmt.Sprintf(format, values...)); err != nil {
		t.Fatal(err)
	}
}

// storeWrite is a write to a store that can be repeated with another store.
type storeWrite struct {
	name string
	call func(ctx context.Context, s *Store) error
}

// storeWrites returns writes of runs and documents, each of which needs the writes before
// it.
func storeWrites() []storeWrite {
	ref := session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "d_1"}
	document := session.Document{Ref: ref, Updated: time.UnixMicro(7).UTC(), Data: map[string]any{"text": "a"}}
	entries := []session.LogEntry{{Revision: 1, Pointer: "/text", Message: "unusual"}}
	return []storeWrite{
		{"create a run", func(ctx context.Context, s *Store) error { return putCommit(ctx, s, newTestCommit("r_1", 1, "one")) }},
		{"append to a run", func(ctx context.Context, s *Store) error { return putCommit(ctx, s, newTestCommit("r_1", 2, "two")) }},
		{"create a document", func(ctx context.Context, s *Store) error { return s.CreateDocument(ctx, document, entries) }},
		{"update a document", func(ctx context.Context, s *Store) error {
			_, err := s.UpdateDocument(ctx, ref, func(session.Document) (session.Document, []session.LogEntry, error) { return document, entries, nil })
			return err
		}},
		{"delete a document", func(ctx context.Context, s *Store) error { return s.DeleteDocument(ctx, ref, time.UnixMicro(8)) }},
		{"restore a document", func(ctx context.Context, s *Store) error { return s.RestoreDocument(ctx, ref, time.UnixMicro(9)) }},
	}
}

// TestEachFailedStatementFailsItsWrite makes each statement of each write fail in turn. The
// write then fails and stores nothing, so that no run or document is stored in part; after
// that, the same write succeeds.
func TestEachFailedStatementFailsItsWrite(t *testing.T) {
	t.Parallel()
	probe, s := openStoreWith(t, Options{}), openStoreWith(t, Options{})
	execWriter(t, probe, `CREATE TEMP TABLE executed (statement)`)
	for _, table := range queryTexts(t, probe, `SELECT name FROM main.sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE %' AND name NOT LIKE 'sqlite_%'`) {
		for _, op := range []string{"INSERT", "UPDATE", "DELETE"} {
			// Virtual tables have no triggers, but the tables to which the text index
			// writes do.
			_, _ = probe.writer.db.ExecContext(t.Context(), fmt.Sprintf(
				`CREATE TEMP TRIGGER "watch %[1]s %[2]s" BEFORE %[1]s ON main.%[2]s BEGIN INSERT INTO executed VALUES ('%[1]s ON main.%[2]s'); END`, op, table))
		}
	}
	const stored = `SELECT json_array((SELECT count(*) FROM events), (SELECT total(revision) FROM documents), (SELECT count(*) FROM document_log), (SELECT count(*) FROM feed))`
	for _, w := range storeWrites() {
		execWriter(t, probe, `DELETE FROM executed`)
		if err := w.call(t.Context(), probe); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		statements := queryTexts(t, probe, `SELECT DISTINCT statement FROM executed`)
		if len(statements) < 2 {
			t.Errorf("%s has only the statements %q", w.name, statements)
		}
		before := queryTexts(t, s, stored)[0]
		for _, statement := range statements {
			execWriter(t, s, `CREATE TEMP TRIGGER fail BEFORE %s BEGIN SELECT RAISE(ABORT, 'a test refuses it'); END`, statement)
			err := w.call(t.Context(), s)
			execWriter(t, s, `DROP TRIGGER temp.fail`)
			if err == nil {
				t.Errorf("%s succeeds with a failing %s", w.name, statement)
			}
			if now := queryTexts(t, s, stored)[0]; now != before {
				t.Fatalf("%s, with a failing %s: a part is stored: %s became %s", w.name, statement, before, now)
			}
		}
		if err := w.call(t.Context(), s); err != nil {
			t.Errorf("%s, without a failure: %v", w.name, err)
		}
		if now := queryTexts(t, s, stored)[0]; now == before {
			t.Errorf("%s stores nothing", w.name)
		}
	}
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestPollingWarnsOnce checks that a watch that cannot poll for the changes of other
// processes still notifies at each interval, and logs one warning. A watch that can poll
// logs none.
func TestPollingWarnsOnce(t *testing.T) {
	t.Parallel()
	for _, works := range []bool{true, false} {
		var log lockedBuffer
		s := openStoreWith(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), pollEvery: time.Millisecond})
		if !works {
			if err := s.readers.db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		changed := s.Watch(t.Context())
		for range 5 {
			if works {
				if err := putCommit(t.Context(), s, newTestCommit(fmt.Sprint("r_", time.Now().UnixNano()), 1, "text")); err != nil {
					t.Fatal(err)
				}
			}
			<-changed
		}
		want := 0
		if !works {
			want = 1
		}
		if n := strings.Count(log.String(), "cannot poll for changes"); n != want {
			t.Errorf("polling works: %v, but %d warnings:\n%s", works, n, log.String())
		}
	}
}
