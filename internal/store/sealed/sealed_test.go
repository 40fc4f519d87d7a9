package sealed_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/sealed"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/store/storetest"
	"github.com/guideway-dev/guideway/internal/testutil/planted"
)

func openSealed(t *testing.T, dir string) *sealed.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "guideway.db")})
	if err != nil {
		t.Fatal(err)
	}
	return sealed.New(db, true, func(ctx context.Context) (*seal.Keys, error) {
		slots, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(dir, "contexts")})
		if err != nil {
			return nil, err
		}
		return seal.Open(ctx, slots, seal.File{Path: filepath.Join(dir, "config", "key")})
	})
}

// TestContract checks that an encrypted store keeps the contract of stores.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T) storetest.Opener {
		dir := t.TempDir()
		return func(t *testing.T) storetest.Store { return openSealed(t, dir) }
	})
}

// startRun stores a run with a goal and an event for each text, chained with a key of zeros.
func startRun(t *testing.T, s *sealed.Store, id string, plain []string) run.Record {
	t.Helper()
	key := make(run.Key, run.KeySize)
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := run.Record{
		ID: id, User: "ada", Workflow: "w", Hash: "sha256:1", Goal: plain[0], Title: plain[1], Created: now, Updated: now, Seq: 1,
	}
	event := func(kind, data string) []run.Event {
		return []run.Event{{Kind: kind, At: now, By: run.By{User: "ada", Via: run.ViaAgent}, Data: []byte(data)}}
	}
	events := event(run.KindCreated, `{"workflowId":"w","hash":"sha256:1","goal":"`+plain[0]+`"}`)
	var err error
	r.Head, err = key.ChainEvents(t.Context(), s, id, 0, key.Root(id), events)
	requireNoError(t, err)
	requireNoError(t, s.Create(t.Context(), run.Definition{Hash: r.Hash, Text: "{}"}, run.Commit{Record: r, Events: events, Terms: words.Of(r.SearchText())}))
	for _, word := range plain[2:] {
		events = event("step_completed", `{"output":"`+word+`"}`)
		r.Head, err = key.ChainEvents(t.Context(), s, id, r.Seq, r.Head, events)
		requireNoError(t, err)
		r.Seq++
		requireNoError(t, s.Append(t.Context(), run.Commit{
			Record: r, Expected: r.Seq - 1, Events: events, Terms: words.Of("it " + word), Snapshot: &run.Snapshot{Seq: r.Seq, Head: r.Head, State: []byte(`{"v":"` + word + `"}`)},
		}))
	}
	return r
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlantedWords checks that no file has a word that was written to a run or to a session
// document, that the words find their run, and that all is read as it was written.
func TestPlantedWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir)
	defer s.Close()
	plain := planted.Words(200)
	absent := func(after string) {
		t.Helper()
		if found := planted.Find(t, dir, plain); len(found) > 0 {
			t.Errorf("after %s: %d words are readable: %v", after, len(found), found[:1])
		}
	}
	startRun(t, s, "r_1", plain[:100])
	absent("a run")
	now := time.Now().UTC().Truncate(time.Microsecond)
	d := session.Document{
		Ref: session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "d"}, Created: now, Updated: now,
		Data: map[string]any{"dashboard": plain[100], "notes": strings.Join(plain[101:150], " ")},
	}
	log := []session.LogEntry{{At: now, Revision: 1, Pointer: "/" + plain[150], Message: plain[151]}}
	requireNoError(t, s.CreateDocument(t.Context(), d, log))
	absent("a document")
	_, err := s.UpdateDocument(t.Context(), d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d.Data["more"] = strings.Join(plain[152:], " ")
		return d, nil, nil
	})
	requireNoError(t, err)
	absent("an update")

	hits, err := s.Search(t.Context(), run.Search{Query: words.Parse(strings.ToUpper(plain[50]))})
	if err != nil || len(hits) != 1 || hits[0].Record.Goal != plain[0] || hits[0].Record.Title != plain[1] {
		t.Errorf("the search found %+v, %v", hits, err)
	}
	snap, err := s.Snapshot(t.Context(), "r_1")
	if err != nil || string(snap.State) != `{"v":"`+plain[99]+`"}` {
		t.Errorf("the snapshot is %+v, %v", snap, err)
	}
	entries, err := s.ValidationLog(t.Context(), d.Ref, 10)
	if err != nil || len(entries) != 1 || entries[0] != log[0] {
		t.Errorf("the log is %+v, %v", entries, err)
	}
	list, err := s.Summaries(t.Context(), session.Filter{Ref: session.Ref{User: "ada"}})
	if err != nil || len(list) != 1 || string(list[0].Dashboard) != `"`+plain[100]+`"` {
		t.Errorf("the summary is %+v, %v", list, err)
	}
}

// execute changes the database directly, without the store.
func execute(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "guideway.db"))
	requireNoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), statement)
	requireNoError(t, err)
}

// TestMovedCiphertexts checks that a ciphertext is refused where another belongs: another
// event, another run, or another document.
func TestMovedCiphertexts(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"event": `UPDATE events SET data = (SELECT data FROM events WHERE run = 'r_1' AND seq = 2) WHERE run = 'r_1' AND seq = 3`,
		"run":   `UPDATE events SET data = (SELECT data FROM events WHERE run = 'r_2' AND seq = 3) WHERE run = 'r_1' AND seq = 3`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openSealed(t, dir)
			defer s.Close()
			startRun(t, s, "r_1", []string{"goal", "title", "one", "two"})
			startRun(t, s, "r_2", []string{"goal", "title", "three", "four"})
			execute(t, dir, statement)
			if list, err := s.Events(t.Context(), "r_1", 0, 10); !errors.Is(err, seal.ErrTampered) {
				t.Errorf("the events are %v, %v", list, err)
			}
		})
	}
	dir := t.TempDir()
	s := openSealed(t, dir)
	defer s.Close()
	for _, id := range []string{"a", "b"} {
		requireNoError(t, s.CreateDocument(t.Context(), session.Document{Ref: session.Ref{User: "ada", Project: "p", Workflow: "w", ID: id}, Data: map[string]any{"x": id}}, nil))
	}
	execute(t, dir, `UPDATE documents SET data = (SELECT data FROM documents WHERE id = 'a') WHERE id = 'b'`)
	if list, err := s.Documents(t.Context(), session.Filter{Ref: session.Ref{User: "ada"}}); !errors.Is(err, seal.ErrTampered) {
		t.Errorf("the documents are %v, %v", list, err)
	}
}

// verifyRuns verifies the chains.
func verifyRuns(t *testing.T, s *sealed.Store) *run.Report {
	t.Helper()
	v := run.Verifier{
		Journal: s, Key: make(run.Key, run.KeySize), Now: time.Now,
		Follow: func(context.Context, run.Record) (run.Follower, error) { return anyEvent{}, nil },
	}
	report, err := v.Verify(t.Context(), "")
	requireNoError(t, err)
	return report
}

type anyEvent struct{}

func (anyEvent) Event(e run.Event) error {
	if len(e.Data) == 0 {
		return errors.New("the event has no data")
	}
	return nil
}

func (anyEvent) Describe(r *run.Record) { r.Title = "title" }

// TestErasedKey checks that a run whose key is erased is unreadable, is listed without its
// texts, and can still be verified; so can runs when the master key is missing. A changed
// ciphertext is found without a key.
func TestErasedKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := openSealed(t, dir)
	startRun(t, first, "r_1", []string{"goal", "title", "one", "two"})
	if report := verifyRuns(t, first); len(report.Faults) > 0 || report.Events != 3 {
		t.Errorf("with the key: %+v", report)
	}
	requireNoError(t, first.Close())
	slots, err := filepath.Glob(filepath.Join(dir, "contexts", "slots", "key-run-*"))
	if err != nil || len(slots) != 1 {
		t.Fatal(slots, err)
	}
	requireNoError(t, os.Remove(slots[0]))
	s := openSealed(t, dir)
	defer s.Close()
	if _, err := s.Events(t.Context(), "r_1", 0, 10); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("the events of an erased run: %v", err)
	}
	if r, err := s.Run(t.Context(), "r_1"); err != nil || r.Goal != "(encrypted)" || r.Title != "(encrypted)" {
		t.Errorf("the record is %+v, %v", r, err)
	}
	requireNoError(t, os.RemoveAll(filepath.Join(dir, "config")))
	locked := openSealed(t, dir)
	defer locked.Close()
	for name, store := range map[string]*sealed.Store{"erased": s, "locked": locked} {
		if report := verifyRuns(t, store); len(report.Faults) > 0 || report.Events != 3 {
			t.Errorf("%s: %+v", name, report)
		}
	}
	if err := locked.CreateDocument(t.Context(), session.Document{Ref: session.Ref{User: "ada", ID: "d"}}, nil); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("a write without the master key returned %v", err)
	}
	execute(t, dir, `UPDATE events SET data = CAST(substr(data, 1, 20) AS BLOB) WHERE seq = 2`)
	if report := verifyRuns(t, locked); len(report.Faults) != 1 || report.Faults[0].Seq != 2 {
		t.Errorf("a changed ciphertext: %+v", report)
	}
}
