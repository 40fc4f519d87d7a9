package checkpoints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testPrincipal() guideway.Principal { return guideway.Principal{User: "ada", Client: "test"} }

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

// openTest opens a checkpoint service that is closed after the test.
func openTest(t *testing.T, o Options) *Checkpoints {
	t.Helper()
	o.patience, o.settle = time.Millisecond, time.Millisecond
	c, err := Open(t.Context(), o)
	requireNoError(t, err)
	t.Cleanup(func() { requireNoError(t, c.Close()) })
	return c
}

func saveText(t *testing.T, c *Checkpoints, session, text string) *checkpoint.Saved {
	t.Helper()
	saved, err := c.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: session, Context: json.RawMessage(text)})
	requireNoError(t, err)
	return saved
}

// checkLast fails the test unless the last context of a session has the text.
func checkLast(t *testing.T, c *Checkpoints, session, text string) {
	t.Helper()
	loaded, err := c.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: session})
	requireNoError(t, err)
	if string(loaded.Context) != text || loaded.Degraded != nil {
		t.Errorf("the last context of %s is %s (%+v), want %s", session, loaded.Context, loaded.Degraded, text)
	}
}

func checkMode(t *testing.T, c *Checkpoints, mode checkpoint.Mode, noted bool) {
	t.Helper()
	if s := c.Store(); s.Mode != mode || (s.Note != "") != noted {
		t.Errorf("the store is %+v, want %s", s, mode)
	}
}

// TestStores checks for each store that a second service loads the saved checkpoints. An
// unknown store is refused.
func TestStores(t *testing.T) {
	t.Parallel()
	for store, mode := range map[string]checkpoint.Mode{"": checkpoint.ModeSQLite, StoreSQLite: checkpoint.ModeSQLite, StoreFiles: checkpoint.ModeFiles} {
		t.Run("store "+store, func(t *testing.T) {
			t.Parallel()
			o := Options{DataDir: t.TempDir(), Store: store}
			first := openTest(t, o)
			checkMode(t, first, mode, false)
			saveText(t, first, "work", `{"a":1}`)
			checkLast(t, openTest(t, o), "work", `{"a":1}`)
		})
	}
	_, err := Open(t.Context(), Options{DataDir: t.TempDir(), Store: "redis"})
	if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
		t.Errorf("an unknown store returns %v", err)
	}
}

// TestSharedJournal checks that a store opened by the caller is used and not closed.
func TestSharedJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "elsewhere.db")})
	requireNoError(t, err)
	defer s.Close()
	c, err := Open(t.Context(), Options{DataDir: dir, Journal: func(context.Context) (checkpoint.Index, error) { return s, nil }})
	requireNoError(t, err)
	saveText(t, c, "work", `{"a":1}`)
	requireNoError(t, c.Close())
	totals, err := s.Totals(t.Context())
	requireNoError(t, err)
	if totals.Count != 1 {
		t.Errorf("the store has %d checkpoints", totals.Count)
	}
	if _, err := os.Stat(filepath.Join(dir, databaseName)); !os.IsNotExist(err) {
		t.Errorf("another store was opened: %v", err)
	}
}

// TestDamagedDatabase checks that if SQLite cannot be opened, a database next to the
// contents has all checkpoints instead, and that every answer reports it.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"garbage", "another program's", "cut", "zeroed tables"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			o := Options{DataDir: t.TempDir()}
			c, err := Open(t.Context(), o)
			requireNoError(t, err)
			for i := range 5 {
				saveText(t, c, "work", fmt.Sprintf(`{"a":%d}`, i))
			}
			requireNoError(t, c.Close())
			damageFile(t, filepath.Join(o.DataDir, databaseName), how)
			fallen := openTest(t, o)
			checkMode(t, fallen, checkpoint.ModeFiles, true)
			checkLast(t, fallen, "work", `{"a":4}`)
			saved := saveText(t, fallen, "work", `{"a":5}`)
			if saved.Store.Mode != checkpoint.ModeFiles || !strings.Contains(saved.Store.Note, "SQLite") || saved.Number != 6 {
				t.Errorf("the saved checkpoint is %+v", saved)
			}
			page, err := fallen.List(t.Context(), testPrincipal(), checkpoint.ListRequest{})
			requireNoError(t, err)
			if len(page.Checkpoints) != 6 || page.Store.Mode != checkpoint.ModeFiles {
				t.Errorf("the list is %+v", page)
			}
		})
	}
}

// damageFile makes a database unusable.
func damageFile(t *testing.T, path, how string) {
	t.Helper()
	for _, side := range []string{"-wal", "-shm"} {
		requireNoError(t, os.RemoveAll(path+side))
	}
	text, err := os.ReadFile(path)
	requireNoError(t, err)
	switch how {
	case "garbage":
		text = []byte(strings.Repeat("no database ", 1000))
	case "another program's":
		copy(text[68:72], "else")
	case "cut":
		text = text[:100]
	default:
		clear(text[4096:])
	}
	requireNoError(t, os.WriteFile(path, text, 0o600))
}

// blockedDir returns a data directory that not even root can write.
func blockedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	requireNoError(t, os.WriteFile(filepath.Join(dir, contextsDir), nil, 0o600))
	return dir
}

// TestMemory checks that checkpoints are kept in memory if the directory cannot be written,
// that the answer to a save reports it, and that no key is created.
func TestMemory(t *testing.T) {
	t.Parallel()
	for _, source := range []seal.Source{nil, seal.File{Path: filepath.Join(t.TempDir(), "key")}} {
		c := openTest(t, Options{DataDir: blockedDir(t), Encryption: source})
		checkMode(t, c, checkpoint.ModeMemory, true)
		saved := saveText(t, c, "work", `{"a":1}`)
		if len(saved.Warnings) == 0 || saved.Warnings[0].Code != checkpoint.WarnMemory || saved.Store.Mode != checkpoint.ModeMemory {
			t.Errorf("the saved checkpoint is %+v", saved)
		}
		checkLast(t, c, "work", `{"a":1}`)
		if f, ok := source.(seal.File); ok {
			if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
				t.Error("a key was created although nothing can be stored")
			}
		}
	}
}

// TestReadOnly checks for each kind of metadata that everything can be read, nothing is
// created, and saving is refused.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	o := Options{DataDir: t.TempDir()}
	c, err := Open(t.Context(), o)
	requireNoError(t, err)
	saveText(t, c, "work", `{"a":1}`)
	requireNoError(t, c.Close())
	requireNoError(t, os.RemoveAll(filepath.Join(o.DataDir, contextsDir, "reserve")))
	o.ReadOnly = true
	for _, store := range []string{StoreSQLite, StoreFiles} {
		o.Store = store
		r := openTest(t, o)
		checkLast(t, r, "work", `{"a":1}`)
		_, err = r.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`)})
		if guideway.ErrorCode(err) != guideway.CodeForbidden {
			t.Errorf("%s: saving in read-only mode: %v", store, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(o.DataDir, contextsDir))
	requireNoError(t, err)
	if len(entries) != 2 {
		t.Errorf("the directory has %v", entries)
	}
	empty := openTest(t, Options{DataDir: filepath.Join(t.TempDir(), "none"), Store: StoreFiles, ReadOnly: true, Encryption: seal.File{Path: filepath.Join(t.TempDir(), "key")}})
	page, err := empty.List(t.Context(), testPrincipal(), checkpoint.ListRequest{})
	requireNoError(t, err)
	if len(page.Checkpoints) != 0 {
		t.Errorf("the list is %+v", page)
	}
}

// TestKeys checks that no store with encrypted checkpoints can be opened without the key,
// and that the missing key is not replaced.
func TestKeys(t *testing.T) {
	t.Parallel()
	dir, keys := t.TempDir(), t.TempDir()
	path := filepath.Join(keys, "key")
	for _, store := range []string{StoreSQLite, StoreFiles} {
		o := Options{DataDir: dir, Store: store, Encryption: seal.File{Path: path}}
		c, err := Open(t.Context(), o)
		requireNoError(t, err)
		if saved := saveText(t, c, "work", `{"a":1}`); saved.Key == "" {
			t.Error("the checkpoint is not encrypted")
		}
		requireNoError(t, c.Close())
		requireNoError(t, os.Rename(path, path+".away"))
		for _, readOnly := range []bool{false, true} {
			o.ReadOnly = readOnly
			if _, err := Open(t.Context(), o); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
				t.Errorf("%s: Open without the key: %v", store, err)
			}
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Error("a missing key was replaced")
		}
		requireNoError(t, os.Rename(path+".away", path))
	}
}

// TestListedWithoutTheKey checks that a store without its key can be listed and counted,
// but that its contents can be neither read nor changed. No key is created or erased, and
// everything is readable with the key again.
func TestListedWithoutTheKey(t *testing.T) {
	t.Parallel()
	for _, store := range []string{StoreSQLite, StoreFiles} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			o := Options{DataDir: t.TempDir(), Store: store, Encryption: seal.File{Path: path}}
			c, err := Open(t.Context(), o)
			requireNoError(t, err)
			saved := saveText(t, c, "work", `{"a":1}`)
			requireNoError(t, c.Close())
			requireNoError(t, os.Rename(path, path+".away"))
			before := readTree(t, filepath.Join(o.DataDir, contextsDir, "slots"))

			_, err = Open(t.Context(), o)
			var locked *Locked
			if !errors.As(err, &locked) {
				t.Fatalf("opened without the key: %v", err)
			}
			listed, err := OpenLocked(t.Context(), o, locked.Cause)
			requireNoError(t, err)
			page, err := listed.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Session: "work"})
			requireNoError(t, err)
			if len(page.Checkpoints) != 1 || page.Checkpoints[0].ID != saved.ID || !strings.Contains(page.Store.Note, "contents cannot be") {
				t.Errorf("listed %+v", page)
			}
			if stats, err := listed.Stats(t.Context(), ""); err != nil || stats.Count != 1 {
				t.Errorf("counted %+v, %v", stats, err)
			}
			for what, err := range callRefused(t.Context(), listed, saved.ID) {
				if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), "key file") || guideway.ErrorFix(err) == "" {
					t.Errorf("%s: %v", what, err)
				}
			}
			requireNoError(t, listed.Close())
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Error("a key was created")
			}
			if d := cmp.Diff(before, readTree(t, filepath.Join(o.DataDir, contextsDir, "slots"))); d != "" {
				t.Errorf("the key slots have changed (-before +after):\n%s", d)
			}
			requireNoError(t, os.Rename(path+".away", path))
			checkLast(t, openTest(t, o), "work", `{"a":1}`)
		})
	}
}

// callRefused makes all calls that need a content or change something, and returns their
// errors by the name of the call.
func callRefused(ctx context.Context, c *Checkpoints, id string) map[string]error {
	out := map[string]error{}
	_, out["save"] = c.Save(ctx, testPrincipal(), checkpoint.SaveRequest{Session: "new", Context: json.RawMessage(`{}`)})
	_, out["load"] = c.Load(ctx, testPrincipal(), checkpoint.LoadRequest{ID: id})
	_, out["keep"] = c.StoreFragment(ctx, testPrincipal(), "work", json.RawMessage(`{}`))
	_, out["recall"] = c.Load(ctx, testPrincipal(), checkpoint.LoadRequest{ID: "o_00000000000000000000000"})
	_, out["diff"] = c.Diff(ctx, testPrincipal(), id, id)
	_, out["export"] = c.Export(ctx, testPrincipal(), checkpoint.ExportRequest{ID: id})
	_, out["import"] = c.Import(ctx, testPrincipal(), checkpoint.ImportRequest{Data: []byte(`{}`)})
	_, out["delete"] = c.Delete(ctx, testPrincipal(), checkpoint.DeleteRequest{IDs: []string{id}})
	_, out["cleanup"] = c.Cleanup(ctx, checkpoint.CleanupRequest{})
	_, out["verify"] = c.Verify(ctx)
	_, out["rebuild"] = c.Rebuild(ctx)
	_, out["maintain"] = c.Maintain(ctx)
	return out
}

// readTree returns the files below a directory with their contents.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	requireNoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		requireNoError(t, err)
		out[e.Name()] = string(text)
	}
	return out
}

// TestBackFromFiles checks that everything that was saved, deleted and logged while the
// metadata was stored next to the contents is in the run store once the run store can be
// opened again, and that the metadata next to the contents is removed.
func TestBackFromFiles(t *testing.T) {
	t.Parallel()
	o := Options{DataDir: t.TempDir()}
	var ids []string
	use := func(store string, from, to int, gone ...int) {
		t.Helper()
		o.Store = store
		c, err := Open(t.Context(), o)
		requireNoError(t, err)
		for i := from; i < to; i++ {
			ids = append(ids, saveText(t, c, "work", longText(i)).ID)
		}
		for _, i := range gone {
			_, err := c.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: []string{ids[i]}})
			requireNoError(t, err)
		}
		requireNoError(t, c.Close())
	}
	use(StoreSQLite, 0, 6)
	use(StoreFiles, 6, 12, 0, 3, 8)
	use(StoreSQLite, 12, 14, 4)
	use(StoreFiles, 14, 16, 12)
	o.Store = StoreSQLite
	c := openTest(t, o)
	gone := map[int]bool{0: true, 3: true, 4: true, 8: true, 12: true}
	for i, id := range ids {
		loaded, err := c.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
		switch {
		case gone[i]:
			if guideway.ErrorCode(err) != guideway.CodeNotFound {
				t.Errorf("the deleted checkpoint %d returns %v", i, err)
			}
		case err != nil || string(loaded.Context) != longText(i) || loaded.Degraded != nil:
			t.Errorf("%d is %+v, %v", i, loaded, err)
		}
	}
	checkLast(t, c, "work", longText(15))
	report, err := c.Verify(t.Context())
	requireNoError(t, err)
	if report.Checkpoints != 11 || len(report.Damaged) > 0 || report.Unknown > 0 {
		t.Errorf("the verification found %+v", report)
	}
	notes, err := c.Audit(t.Context(), testPrincipal(), 1000)
	requireNoError(t, err)
	saves := 0
	for _, n := range notes {
		if n.Action == checkpoint.ActionSave {
			saves++
		}
	}
	if saves != 16 {
		t.Errorf("the audit log has %d saves", saves)
	}
	own, err := o.openOwnIndex(t.Context(), false)
	requireNoError(t, err)
	defer own.Close()
	if left, err := own.Notes(t.Context(), "", 1); err != nil || len(left) > 0 || !own.Lost(t.Context()) {
		t.Errorf("the imported metadata was not removed: %v, %v", left, err)
	}
}

// TestDamagedOwnIndex checks that a damaged database next to the contents is renamed and
// rebuilt from the contents.
func TestDamagedOwnIndex(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"garbage", "cut", "zeroed tables"} {
		o := Options{DataDir: t.TempDir(), Store: StoreFiles}
		c, err := Open(t.Context(), o)
		requireNoError(t, err)
		saveText(t, c, "work", longText(1))
		requireNoError(t, c.Close())
		damageFile(t, o.ownIndexPath(), how)
		c = openTest(t, o)
		checkMode(t, c, checkpoint.ModeFiles, false)
		checkLast(t, c, "work", longText(1))
		if _, err := os.Stat(o.ownIndexPath() + ".bad"); err != nil {
			t.Errorf("%s: the damaged file was not kept: %v", how, err)
		}
	}
}

// TestFilesAlone checks that checkpoints survive a restart where no database can be opened
// at all: the files with the contents have the metadata too.
func TestFilesAlone(t *testing.T) {
	t.Parallel()
	o := Options{DataDir: t.TempDir(), Store: StoreFiles}
	requireNoError(t, os.MkdirAll(filepath.Join(o.ownIndexPath(), "not a database"), 0o700))
	for i, want := range []string{`{"a":1}`, longText(1)} {
		c, err := Open(t.Context(), o)
		requireNoError(t, err)
		checkMode(t, c, checkpoint.ModeFiles, true)
		page, err := c.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Session: "work"})
		requireNoError(t, err)
		if len(page.Checkpoints) != i {
			t.Errorf("after %d restarts the list has %d checkpoints", i, len(page.Checkpoints))
		}
		saveText(t, c, "work", want)
		checkLast(t, c, "work", want)
		requireNoError(t, c.Close())
	}
	c := openTest(t, o)
	checkLast(t, c, "work", longText(1))
}

// TestBothAtOnce checks that a process that stores the metadata next to the contents loses
// nothing if another process imports it.
func TestBothAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := openTest(t, Options{DataDir: dir, Store: StoreFiles})
	saveText(t, files, "work", longText(0))
	db := openTest(t, Options{DataDir: dir})
	checkLast(t, db, "work", longText(0))
	saveText(t, db, "play", longText(1))
	checkLast(t, files, "work", longText(0))
	checkLast(t, files, "play", longText(1))
	saveText(t, files, "work", longText(2))
	again := openTest(t, Options{DataDir: dir})
	checkLast(t, again, "work", longText(2))
	checkLast(t, again, "play", longText(1))
}

// longText returns a context that differs slightly from the context of the previous number.
func longText(n int) string {
	return fmt.Sprintf(`{"log":%q,"step":%d}`, strings.Repeat("the gate was repaired ", 100), n)
}
