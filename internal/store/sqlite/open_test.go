package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// execute runs statements on a file, past the store.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", dataSource(path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// wantRefused ends the test where a file is not refused, or was changed by it.
func wantRefused(t *testing.T, path string, words ...string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Path: path})
	if err == nil {
		_ = s.Close()
		t.Fatal("the file was opened")
	}
	if guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("the code is %s", guideway.ErrorCode(err))
	}
	text := err.Error() + " | " + guideway.ErrorFix(err)
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("the error does not say %q: %s", word, text)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed (%v)", err)
	}
}

// TestForeignFiles: what another program has written is never touched.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, statements := range [][]string{
		{"CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('dear diary')"},
		{"PRAGMA application_id = 252006674", "CREATE TABLE places (url)"},
		{"PRAGMA user_version = 1", "CREATE TABLE runs (id)"},
		{"PRAGMA application_id = 7"},
	} {
		path := filepath.Join(dir, fmt.Sprint(i, ".db"))
		execute(t, path, statements...)
		wantRefused(t, path, "another program's", "move that file away")
	}
	path := filepath.Join(dir, "text.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, path, "damaged", "doctor")
}

// TestUnreleasedFile: the error for a store of a development version before the first
// release names what it is, and what to do with it.
func TestUnreleasedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	execute(t, path, "CREATE TABLE runs (id)", "PRAGMA application_id = 1734637433", "PRAGMA user_version = 5") // "gdwy"
	wantRefused(t, path, "before the first release", "cannot open it", "move the file away", "export")
}

// TestNewerFile: a file of a later version is refused, and the error says which
// version to use.
func TestNewerFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	if err := openAt(t, Options{Path: path, Program: "9.8.7"}).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "PRAGMA user_version = 99", "PRAGMA wal_checkpoint(TRUNCATE)")
	wantRefused(t, path, "schema 99", "9.8.7", "or a later one")
}

// TestOlderFile: a file of an earlier version is brought up to date with all
// that is in it, by one of several processes, and each step is whole or not
// done at all.
func TestOlderFile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), testFile)
	old := openAt(t, Options{Path: path, Program: "1.0.0"})
	if err := put(ctx, old, aCommit("r_a", 1, "one")); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	bad := append(schemaSteps(), "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)")
	if s, err := Open(ctx, Options{Path: path, steps: bad}); err == nil {
		_ = s.Close()
		t.Fatal("a step that fails was taken")
	}
	openAt(t, Options{Path: path}) // this version still opens it

	good := append(schemaSteps(), "CREATE TABLE more (x); INSERT INTO more VALUES (1)")
	errs := make(chan error)
	for range 4 {
		go func() {
			s, err := Open(ctx, Options{Path: path, Program: "2.0.0", steps: good})
			if err == nil {
				_, err = s.Run(ctx, "r_a")
				err = errors.Join(err, s.Close())
			}
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	wantRefused(t, path, fmt.Sprint("schema ", len(good)), "2.0.0")
}

func TestModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data", "odd ?#% ünï'name")
	s := openAt(t, Options{Path: filepath.Join(dir, testFile)})
	if err := put(t.Context(), s, aCommit("r_a", 1, "one")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of the directory is %v (%v)", info.Mode().Perm(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Fatalf("there are %d files, want the store, its log, its index and its lock (%v)", len(entries), err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the mode of %s is %v (%v)", entry.Name(), info.Mode().Perm(), err)
		}
	}
}

func TestImpossiblePaths(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]guideway.Code{
		"":                                guideway.CodeInvalid,
		t.TempDir():                       guideway.CodeUnavailable,
		filepath.Join(file, "below", "x"): guideway.CodeUnavailable,
	} {
		if _, err := Open(t.Context(), Options{Path: path}); guideway.ErrorCode(err) != code {
			t.Errorf("%q: %v (%s), want %s", path, err, guideway.ErrorCode(err), code)
		}
	}
}

// TestFeedIsPruned: the feed does not grow for good, and who is too far behind
// is told.
func TestFeedIsPruned(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const keep, total = 100, 400
	s := openAt(t, Options{Path: filepath.Join(t.TempDir(), testFile), KeepFeed: keep})
	for seq := range int64(total) {
		if err := put(ctx, s, aCommit("r_a", seq+1, "")); err != nil {
			t.Fatal(err)
		}
	}
	list, reset, err := s.Changes(ctx, 0, 1000)
	if err != nil || !reset {
		t.Fatalf("reset %v, %v", reset, err)
	}
	if n := len(list); n < keep || n >= keep+pruneEvery || list[n-1].Pos != total {
		t.Errorf("%d changes are left, the last is %d", n, list[n-1].Pos)
	}
	oldest := list[0].Pos
	for after, want := range map[int64]bool{oldest - 1: false, oldest - 2: true, total: false, total + 1: true, oldest + 5: false} {
		list, reset, err := s.Changes(ctx, after, 10)
		if err != nil || reset != want {
			t.Errorf("behind %d: reset %v, want %v (%v)", after, reset, want, err)
		}
		if reset && (len(list) == 0 || list[0].Pos != oldest) {
			t.Errorf("behind %d a reset does not begin at the oldest: %v", after, list)
		}
	}
}

// TestLockIsBounded: where another process holds the lock, a writer waits no
// longer than it was told, and a reader not at all.
func TestLockIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	s := openAt(t, Options{Path: path, LockTimeout: 20 * time.Millisecond})
	if err := put(t.Context(), s, aCommit("r_a", 1, "one")); err != nil {
		t.Fatal(err)
	}
	other := newFileLock(path+".lock", time.Minute)
	release, err := other.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := aCommit("r_a", 2, "two")
	for range 3 { // the second takes over what the first has left behind
		if err := put(t.Context(), s, c); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
			t.Errorf("got %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := put(ctx, s, c); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if r, err := s.Run(t.Context(), "r_a"); err != nil || r.Seq != 1 {
		t.Errorf("a reader gets %+v, %v", r, err)
	}
	release()
	if err := put(t.Context(), s, c); err != nil {
		t.Errorf("behind the lock: %v", err)
	}
	// What was left behind does not hold the lock.
	if release, err = other.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
}

// TestMalformedCommits: commits that contradict themselves and are refused whole.
func TestMalformedCommits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openAt(t, Options{Path: filepath.Join(t.TempDir(), testFile)})
	for _, change := range []func(c *run.Commit){
		func(c *run.Commit) { c.Record.Seq++ },
		func(c *run.Commit) { c.Events[0].Seq++ },
		func(c *run.Commit) { c.Events = nil },
	} {
		c := aCommit("r_a", 1, "one")
		change(&c)
		if err := put(ctx, s, c); err == nil {
			t.Error("a commit that contradicts itself was taken")
		}
	}
	if latest, err := s.Latest(ctx); err != nil || latest != 0 {
		t.Errorf("the feed is at %d (%v)", latest, err)
	}
}
