package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// The size of the store that the tests damage.
const (
	soundRuns   = 20
	soundEvents = 30
)

// soundFile returns the bytes of a closed store with runs, events and documents.
func soundFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), testFile)
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range int64(soundEvents) {
		for i := range soundRuns {
			if err := putCommit(t.Context(), s, newTestCommit(fmt.Sprintf("r_%02d", i), seq+1, strings.Repeat("words ", 40))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range soundRuns {
		d := session.Document{Ref: session.Ref{User: "ada", Project: "p", Workflow: "w", ID: fmt.Sprint("d_", i)}, Data: map[string]any{"text": strings.Repeat("x", 1000)}}
		if err := s.CreateDocument(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Fatal("a closed store has a write-ahead log")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// useStore calls all methods that read and some that write, and returns their errors.
func useStore(ctx context.Context, s *Store) (errs []error) {
	note := func(err error) { errs = append(errs, err) }
	_, err := s.Runs(ctx, run.Filter{User: "ada"})
	note(err)
	_, err = s.Search(ctx, run.Search{Query: words.Parse("gate words note")})
	note(err)
	_, _, err = s.Changes(ctx, 0, 10_000)
	note(err)
	for i := range soundRuns {
		id := fmt.Sprintf("r_%02d", i)
		r, err := s.Run(ctx, id)
		note(err)
		_, err = s.Events(ctx, id, 0, 1000)
		note(err)
		_, err = s.Snapshot(ctx, id)
		note(err)
		_, err = s.Outcome(ctx, id, "", fmt.Sprintf("key %s 2", id))
		note(err)
		if err == nil && i%5 == 0 {
			note(putCommit(ctx, s, newTestCommit(id, r.Seq+1, "after the damage")))
		}
	}
	_, err = s.Documents(ctx, session.Filter{Ref: session.Ref{User: "ada"}})
	note(err)
	_, err = s.Projects(ctx, "ada")
	note(err)
	_, err = s.Check(ctx)
	note(err)
	return errs
}

// checkClearError fails the test unless a damaged file may cause the error.
func checkClearError(t *testing.T, err error) {
	t.Helper()
	switch guideway.ErrorCode(err) {
	case "", guideway.CodeNotFound, guideway.CodeConflict:
	case guideway.CodeUnavailable:
		if guideway.ErrorFix(err) == "" {
			t.Errorf("no fix: %v", err)
		}
	default:
		t.Errorf("not a clear error: %v (%s)", err, guideway.ErrorCode(err))
	}
}

// openAndSalvage opens and salvages a damaged file. Both calls may fail with a clear error.
func openAndSalvage(t *testing.T, path string) (opened bool, salvaged *Salvaged) {
	t.Helper()
	salvaged, err := Salvage(t.Context(), path)
	checkClearError(t, err)
	s, err := Open(t.Context(), Options{Path: path})
	checkClearError(t, err)
	if err != nil {
		return false, salvaged
	}
	for _, err := range useStore(t.Context(), s) {
		checkClearError(t, err)
	}
	checkClearError(t, s.Close())
	return true, salvaged
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	data := soundFile(t)
	random := rand.New(rand.NewPCG(3, 3))
	offsets := []int{1, 15, 16, 99, 100, 101, 512, 4095, 4096, 4097, 8192, len(data) - 4096, len(data) - 1}
	for range 15 {
		offsets = append(offsets, random.IntN(len(data)))
	}
	for _, offset := range offsets {
		t.Run(fmt.Sprint("at ", offset), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), testFile)
			if err := os.WriteFile(path, data[:offset], 0o600); err != nil {
				t.Fatal(err)
			}
			opened, salvaged := openAndSalvage(t, path)
			if offset < 4096 && opened {
				t.Error("a file without its first page was opened")
			}
			if offset >= len(data)-4096 && (salvaged == nil || len(salvaged.Runs)+len(salvaged.Events) < soundRuns) {
				t.Errorf("too little was salvaged of a truncated file: %+v", salvaged)
			}
		})
	}
}

// TestCorrupted overwrites pages with garbage. It checks that no call panics, that errors
// are clear, and that Salvage reports a large loss of events.
func TestCorrupted(t *testing.T) {
	t.Parallel()
	data := soundFile(t)
	const page = 4096
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			broken := bytes.Clone(data)
			pages := 1 + random.IntN(4)
			for range pages {
				start := page * (1 + random.IntN(len(data)/page-1))
				switch random.IntN(3) {
				case 0: // garbage in the whole page
					for i := range page {
						broken[start+i] = byte(random.Uint32())
					}
				case 1: // zeros, as after a lost write
					clear(broken[start : start+page])
				default: // garbage in a few bytes
					for range 20 {
						broken[start+random.IntN(page)] = byte(random.Uint32())
					}
				}
			}
			path := filepath.Join(t.TempDir(), testFile)
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			_, salvaged := openAndSalvage(t, path)
			if salvaged == nil {
				return
			}
			events := 0
			for _, list := range salvaged.Events {
				events += len(list)
			}
			// A page holds a few dozen rows. If more events are lost, a problem must be
			// reported.
			if lost := soundRuns*soundEvents - events; lost > 100*pages && len(salvaged.Problems) == 0 {
				t.Errorf("%d events are lost and not reported", lost)
			}
		})
	}
}

// TestSalvage checks that if pages in the middle of a store are erased, all rows on other
// pages are salvaged.
func TestSalvage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	data := soundFile(t)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := Salvage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Runs) != soundRuns || len(whole.Documents) != soundRuns || len(whole.Definitions) != 1 || len(whole.Problems) != 0 {
		t.Fatalf("intact store: %d runs, %d documents, %d definitions, %v",
			len(whole.Runs), len(whole.Documents), len(whole.Definitions), whole.Problems)
	}
	// Erase the page of an event in the middle.
	marker := []byte(`"run":"r_07","seq":15,`)
	damagedOnce := false
	for i := 0; ; {
		found := bytes.Index(data[i:], marker)
		if found < 0 {
			break
		}
		i += found
		clear(data[i/4096*4096 : i/4096*4096+4096])
		damagedOnce = true
	}
	if !damagedOnce {
		t.Fatal("the event is not in the file")
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	some, err := Salvage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(some.Problems) == 0 {
		t.Error("the lost page is not reported")
	}
	lost := 0
	for id, list := range whole.Events {
		if !slices.IsSortedFunc(some.Events[id], func(a, b run.Event) int { return int(a.Seq - b.Seq) }) {
			t.Errorf("the events of %s are not in order", id)
		}
		for _, e := range list {
			i := slices.IndexFunc(some.Events[id], func(o run.Event) bool { return o.Seq == e.Seq })
			if i < 0 {
				lost++
			} else if !bytes.Equal(some.Events[id][i].Data, e.Data) {
				t.Errorf("event %d of %s has changed", e.Seq, id)
			}
		}
	}
	if lost == 0 || lost > 30 {
		t.Errorf("%d events are lost with one erased page", lost)
	}
	if len(some.Documents) != soundRuns {
		t.Errorf("%d documents are left of %d; none was on that page", len(some.Documents), soundRuns)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("salvaging has changed the file (%v)", err)
	}
	if _, err := Salvage(t.Context(), filepath.Join(t.TempDir(), "none")); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("salvaging a missing file returns %v", err)
	}
}

// TestCheckFindsDamage checks that Check, which the command doctor calls, finds damage.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	data := soundFile(t)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openTestStore(t, Options{Path: path})
	health, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if health.Runs != soundRuns || health.Bytes < int64(len(data)) || health.Schema < 1 || health.SQLite == "" || len(health.Problems) != 0 {
		t.Errorf("intact store: %+v", health)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clear(data[len(data)/2/4096*4096:][:4096])
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openTestStore(t, Options{Path: path})
	if health, err = s.Check(t.Context()); err != nil || len(health.Problems) == 0 {
		t.Errorf("damaged store: %+v, %v", health, err)
	}
}

// TestCheckFindsRenamedColumns checks that CheckCheckpoints finds a flipped bit in the name
// of a column that a save or a repair needs, which no check of the pages finds.
func TestCheckFindsRenamedColumns(t *testing.T) {
	t.Parallel()
	data := soundFile(t)
	for table, column := range map[string]string{"checkpoint_lines": "  workflow TEXT", "checkpoint_audit": "  action     TEXT", "checkpoints": "  problem  TEXT"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			definition := bytes.LastIndex(data, []byte("CREATE TABLE "+table+" (")) // a page may have an earlier copy
			at := definition + bytes.Index(data[max(definition, 0):], []byte(column))
			if definition < 0 || at < definition {
				t.Fatalf("the file does not define %s of %s", column, table)
			}
			broken := bytes.Clone(data)
			broken[at+2] ^= 2
			path := filepath.Join(t.TempDir(), testFile)
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			s := openTestStore(t, Options{Path: path})
			if err := s.CheckCheckpoints(t.Context()); !IsDamaged(err) {
				t.Errorf("the check returned %v, want damage", err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), testFile)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openTestStore(t, Options{Path: path}).CheckCheckpoints(t.Context()); err != nil {
		t.Errorf("the check of an intact file returned %v", err)
	}
}
