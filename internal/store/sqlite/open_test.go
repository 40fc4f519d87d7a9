package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// execStatements runs statements on a file without the store.
func execStatements(t *testing.T, path string, statements ...string) {
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

// checkRefused fails the test if a file can be opened, if the attempt changes it, or if the
// error lacks one of the words.
func checkRefused(t *testing.T, path string, words ...string) {
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
			t.Errorf("the error does not contain %q: %s", word, text)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed (%v)", err)
	}
}

// TestForeignFiles checks that files of other programs are refused and not changed.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, statements := range [][]string{
		{"CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('dear diary')"},
		{"PRAGMA application_id = 252006674", "CREATE TABLE places (url)"},
		{"PRAGMA user_version = 1", "CREATE TABLE runs (id)"},
		{"PRAGMA application_id = 7"},
		{"PRAGMA application_id = 1734637427; PRAGMA user_version = 4"}, // a file from before the first release
	} {
		path := filepath.Join(dir, fmt.Sprint(i, ".db"))
		execStatements(t, path, statements...)
		checkRefused(t, path, "database of another program", "move the file away")
	}
	path := filepath.Join(dir, "text.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, path, "damaged", "doctor")
}

// TestNewerFile checks that a file of a later version is refused and that the error names a
// version that can read it.
func TestNewerFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	if err := openTestStore(t, Options{Path: path, Program: "9.8.7"}).Close(); err != nil {
		t.Fatal(err)
	}
	execStatements(t, path, "PRAGMA user_version = 99", "PRAGMA wal_checkpoint(TRUNCATE)")
	checkRefused(t, path, "schema 99", "9.8.7", "or a later one")
}

// TestOlderFile checks that a file of an earlier version is migrated with its content while
// several callers open it, and that a failing migration changes nothing.
func TestOlderFile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), testFile)
	old := openTestStore(t, Options{Path: path, Program: "1.0.0"})
	if err := putCommit(ctx, old, newTestCommit("r_a", 1, "one")); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	bad := append(migrations(), "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)")
	if s, err := Open(ctx, Options{Path: path, migrations: bad}); err == nil {
		_ = s.Close()
		t.Fatal("a failing migration was applied")
	}
	openTestStore(t, Options{Path: path}) // the current version can still open the file

	good := append(migrations(), "CREATE TABLE more (x); INSERT INTO more VALUES (1)")
	errs := make(chan error)
	for range 4 {
		go func() {
			s, err := Open(ctx, Options{Path: path, Program: "2.0.0", migrations: good})
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
	checkRefused(t, path, fmt.Sprint("schema ", len(good)), "2.0.0")
}

func TestModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data", "odd ?#% ünï'name")
	s := openTestStore(t, Options{Path: filepath.Join(dir, testFile)})
	if err := putCommit(t.Context(), s, newTestCommit("r_a", 1, "one")); err != nil {
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

// TestFeedIsPruned checks that the feed stays bounded and that a reader whose position was
// pruned is told to start again.
func TestFeedIsPruned(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const keep, total = 100, 400
	s := openTestStore(t, Options{Path: filepath.Join(t.TempDir(), testFile), KeepFeed: keep})
	for seq := range int64(total) {
		if err := putCommit(ctx, s, newTestCommit("r_a", seq+1, "")); err != nil {
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
			t.Errorf("a reset after %d does not begin at the oldest change: %v", after, list)
		}
	}
}

// TestLockIsBounded checks that a write fails with a fix if another process holds the lock
// for longer than the timeout, and that a read succeeds.
func TestLockIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	s := openTestStore(t, Options{Path: path, LockTimeout: 20 * time.Millisecond})
	if err := putCommit(t.Context(), s, newTestCommit("r_a", 1, "one")); err != nil {
		t.Fatal(err)
	}
	other := newFileLock(path+".lock", time.Minute)
	release, err := other.acquireLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := newTestCommit("r_a", 2, "two")
	for range 3 { // the later writers take over the attempt of the first writer
		if err := putCommit(t.Context(), s, c); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
			t.Errorf("got %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := putCommit(ctx, s, c); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if r, err := s.Run(t.Context(), "r_a"); err != nil || r.Seq != 1 {
		t.Errorf("the reader got the run %+v, %v", r, err)
	}
	release()
	err = putCommit(t.Context(), s, c)
	for range 200 { // a busy machine may give the lock to the writer after the short timeout only
		if guideway.ErrorCode(err) != guideway.CodeUnavailable {
			break
		}
		err = putCommit(t.Context(), s, c)
	}
	if err != nil {
		t.Errorf("after the lock was released: %v", err)
	}
	// An abandoned attempt does not hold the lock.
	if release, err = other.acquireLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
}

// TestOpenNeedsTheLock checks that a store is neither opened nor created while another process
// holds the lock for longer than the timeout.
func TestOpenNeedsTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	other := newFileLock(path+".lock", time.Minute)
	release, err := other.acquireLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Path: path, LockTimeout: 20 * time.Millisecond}
	if _, err := Open(t.Context(), o); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("Open returned %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was created: %v", err)
	}
	release()
	o.LockTimeout = time.Minute
	openTestStore(t, o)
}

// TestMalformedCommits checks that inconsistent commits are refused and that nothing of
// them is stored.
func TestMalformedCommits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openTestStore(t, Options{Path: filepath.Join(t.TempDir(), testFile)})
	for _, change := range []func(c *run.Commit){
		func(c *run.Commit) { c.Record.Seq++ },
		func(c *run.Commit) { c.Events[0].Seq++ },
		func(c *run.Commit) { c.Events = nil },
	} {
		c := newTestCommit("r_a", 1, "one")
		change(&c)
		if err := putCommit(ctx, s, c); err == nil {
			t.Error("an inconsistent commit was accepted")
		}
	}
	if latest, err := s.Latest(ctx); err != nil || latest != 0 {
		t.Errorf("the feed is at %d (%v)", latest, err)
	}
}
