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

func ada() guideway.Principal { return guideway.Principal{User: "ada", Client: "test"} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

// open opens checkpoints that are closed with the test.
func open(t *testing.T, o Options) *Checkpoints {
	t.Helper()
	o.patience, o.settle = time.Millisecond, time.Millisecond
	c, err := Open(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func save(t *testing.T, c *Checkpoints, session, text string) *checkpoint.Saved {
	t.Helper()
	saved, err := c.Save(t.Context(), ada(), checkpoint.SaveRequest{Session: session, Context: json.RawMessage(text)})
	must(t, err)
	return saved
}

// wantLast wants the last context of a session.
func wantLast(t *testing.T, c *Checkpoints, session, text string) {
	t.Helper()
	loaded, err := c.Load(t.Context(), ada(), checkpoint.LoadRequest{Session: session})
	must(t, err)
	if string(loaded.Context) != text || loaded.Degraded != nil {
		t.Errorf("the last of %s is %s (%+v), want %s", session, loaded.Context, loaded.Degraded, text)
	}
}

func wantMode(t *testing.T, c *Checkpoints, mode checkpoint.Mode, noted bool) {
	t.Helper()
	if s := c.Store(); s.Mode != mode || (s.Note != "") != noted {
		t.Errorf("the store is %+v, want %s", s, mode)
	}
}

// TestStores: each store keeps what was saved for the next process.
func TestStores(t *testing.T) {
	t.Parallel()
	for store, mode := range map[string]checkpoint.Mode{"": checkpoint.ModeSQLite, StoreSQLite: checkpoint.ModeSQLite, StoreFiles: checkpoint.ModeFiles} {
		t.Run("store "+store, func(t *testing.T) {
			t.Parallel()
			o := Options{DataDir: t.TempDir(), Store: store}
			first := open(t, o)
			wantMode(t, first, mode, false)
			save(t, first, "work", `{"a":1}`)
			wantLast(t, open(t, o), "work", `{"a":1}`)
		})
	}
	_, err := Open(t.Context(), Options{DataDir: t.TempDir(), Store: "redis"})
	if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
		t.Errorf("an unknown store: %v", err)
	}
}

// TestSharedJournal: a store that is open already is used, and stays open.
func TestSharedJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "elsewhere.db")})
	must(t, err)
	defer s.Close()
	c, err := Open(t.Context(), Options{DataDir: dir, Journal: func(context.Context) (checkpoint.Index, error) { return s, nil }})
	must(t, err)
	save(t, c, "work", `{"a":1}`)
	must(t, c.Close())
	totals, err := s.Totals(t.Context())
	must(t, err)
	if totals.Count != 1 {
		t.Errorf("the store has %d checkpoints", totals.Count)
	}
	if _, err := os.Stat(filepath.Join(dir, databaseName)); !os.IsNotExist(err) {
		t.Errorf("another store was opened: %v", err)
	}
}

// TestDamagedDatabase: where SQLite does not open the metadata are files, with
// all that there was, and every answer says so.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"garbage", "another program's", "cut", "zeroed tables"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			o := Options{DataDir: t.TempDir()}
			c, err := Open(t.Context(), o)
			must(t, err)
			for i := range 5 {
				save(t, c, "work", fmt.Sprintf(`{"a":%d}`, i))
			}
			must(t, c.Close())
			damage(t, filepath.Join(o.DataDir, databaseName), how)
			fallen := open(t, o)
			wantMode(t, fallen, checkpoint.ModeFiles, true)
			wantLast(t, fallen, "work", `{"a":4}`)
			saved := save(t, fallen, "work", `{"a":5}`)
			if saved.Store.Mode != checkpoint.ModeFiles || !strings.Contains(saved.Store.Note, "SQLite") || saved.Number != 6 {
				t.Errorf("saved is %+v", saved)
			}
			page, err := fallen.List(t.Context(), ada(), checkpoint.ListRequest{})
			must(t, err)
			if len(page.Checkpoints) != 6 || page.Store.Mode != checkpoint.ModeFiles {
				t.Errorf("the list is %+v", page)
			}
		})
	}
}

// damage makes a database useless.
func damage(t *testing.T, path, how string) {
	t.Helper()
	for _, side := range []string{"-wal", "-shm"} {
		must(t, os.RemoveAll(path+side))
	}
	text, err := os.ReadFile(path)
	must(t, err)
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
	must(t, os.WriteFile(path, text, 0o600))
}

// blocked makes a data directory in which nothing can be written, for root too.
func blocked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, contextsDir), nil, 0o600))
	return dir
}

// TestMemory: where the directory cannot be written everything works until the
// process ends, and every answer says so.
func TestMemory(t *testing.T) {
	t.Parallel()
	for _, source := range []seal.Source{nil, seal.File{Path: filepath.Join(t.TempDir(), "key")}} {
		c := open(t, Options{DataDir: blocked(t), Encryption: source})
		wantMode(t, c, checkpoint.ModeMemory, true)
		saved := save(t, c, "work", `{"a":1}`)
		if len(saved.Warnings) == 0 || saved.Warnings[0].Code != checkpoint.WarnMemory || saved.Store.Mode != checkpoint.ModeMemory {
			t.Errorf("saved is %+v", saved)
		}
		wantLast(t, c, "work", `{"a":1}`)
		if f, ok := source.(seal.File); ok {
			if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
				t.Error("a key was made though nothing can be kept")
			}
		}
	}
}

// TestReadOnly: all that there is can be read, nothing is made, and saving is
// refused, whatever keeps the metadata.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	o := Options{DataDir: t.TempDir()}
	c, err := Open(t.Context(), o)
	must(t, err)
	save(t, c, "work", `{"a":1}`)
	must(t, c.Close())
	must(t, os.RemoveAll(filepath.Join(o.DataDir, contextsDir, "reserve")))
	o.ReadOnly = true
	for _, store := range []string{StoreSQLite, StoreFiles} {
		o.Store = store
		r := open(t, o)
		wantLast(t, r, "work", `{"a":1}`)
		_, err = r.Save(t.Context(), ada(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`)})
		if guideway.ErrorCode(err) != guideway.CodeForbidden {
			t.Errorf("%s: saving where nothing may change: %v", store, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(o.DataDir, contextsDir))
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("in the directory are %v", entries)
	}
	empty := open(t, Options{DataDir: filepath.Join(t.TempDir(), "none"), Store: StoreFiles, ReadOnly: true, Encryption: seal.File{Path: filepath.Join(t.TempDir(), "key")}})
	page, err := empty.List(t.Context(), ada(), checkpoint.ListRequest{})
	must(t, err)
	if len(page.Checkpoints) != 0 {
		t.Errorf("the list is %+v", page)
	}
}

// TestKeys: with encryption on, a missing or another key is no reason to go on
// without, whatever the mode.
func TestKeys(t *testing.T) {
	t.Parallel()
	dir, keys := t.TempDir(), t.TempDir()
	path := filepath.Join(keys, "key")
	for _, store := range []string{StoreSQLite, StoreFiles} {
		o := Options{DataDir: dir, Store: store, Encryption: seal.File{Path: path}}
		c, err := Open(t.Context(), o)
		must(t, err)
		if saved := save(t, c, "work", `{"a":1}`); saved.Key == "" {
			t.Error("it is not encrypted")
		}
		must(t, c.Close())
		must(t, os.Rename(path, path+".away"))
		for _, readOnly := range []bool{false, true} {
			o.ReadOnly = readOnly
			if _, err := Open(t.Context(), o); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
				t.Errorf("%s: without its key: %v", store, err)
			}
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Error("a key was made where one was missing")
		}
		must(t, os.Rename(path+".away", path))
	}
}

// TestListedWithoutTheKey: without its key a store is listed and counted, nothing of a
// content is given or taken, and nothing at all is changed: no key is made, none is
// erased, and with the key everything is as it was.
func TestListedWithoutTheKey(t *testing.T) {
	t.Parallel()
	for _, store := range []string{StoreSQLite, StoreFiles} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			o := Options{DataDir: t.TempDir(), Store: store, Encryption: seal.File{Path: path}}
			c, err := Open(t.Context(), o)
			must(t, err)
			saved := save(t, c, "work", `{"a":1}`)
			must(t, c.Close())
			must(t, os.Rename(path, path+".away"))
			before := tree(t, filepath.Join(o.DataDir, contextsDir, "slots"))

			_, err = Open(t.Context(), o)
			var locked *Locked
			if !errors.As(err, &locked) {
				t.Fatalf("opened without the key: %v", err)
			}
			listed, err := Listed(t.Context(), o, locked.Cause)
			must(t, err)
			page, err := listed.List(t.Context(), ada(), checkpoint.ListRequest{Session: "work"})
			must(t, err)
			if len(page.Checkpoints) != 1 || page.Checkpoints[0].ID != saved.ID || !strings.Contains(page.Store.Note, "no content") {
				t.Errorf("listed %+v", page)
			}
			if stats, err := listed.Stats(t.Context(), ""); err != nil || stats.Count != 1 {
				t.Errorf("counted %+v, %v", stats, err)
			}
			for what, err := range refusals(t.Context(), listed, saved.ID) {
				if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), "key file") || guideway.ErrorFix(err) == "" {
					t.Errorf("%s: %v", what, err)
				}
			}
			must(t, listed.Close())
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Error("a key was made")
			}
			if d := cmp.Diff(before, tree(t, filepath.Join(o.DataDir, contextsDir, "slots"))); d != "" {
				t.Errorf("the slots of keys have changed (-before +after):\n%s", d)
			}
			must(t, os.Rename(path+".away", path))
			wantLast(t, open(t, o), "work", `{"a":1}`)
		})
	}
}

// refusals calls whatever needs a content or changes something.
func refusals(ctx context.Context, c *Checkpoints, id string) map[string]error {
	out := map[string]error{}
	_, out["save"] = c.Save(ctx, ada(), checkpoint.SaveRequest{Session: "new", Context: json.RawMessage(`{}`)})
	_, out["load"] = c.Load(ctx, ada(), checkpoint.LoadRequest{ID: id})
	_, out["keep"] = c.StoreFragment(ctx, ada(), "work", json.RawMessage(`{}`))
	_, out["recall"] = c.LoadFragment(ctx, ada(), "o_00000000000000000000000")
	_, out["diff"] = c.Diff(ctx, ada(), id, id)
	_, out["export"] = c.Export(ctx, ada(), checkpoint.ExportRequest{ID: id})
	_, out["import"] = c.Import(ctx, ada(), checkpoint.ImportRequest{Data: []byte(`{}`)})
	_, out["delete"] = c.Delete(ctx, ada(), checkpoint.DeleteRequest{IDs: []string{id}})
	_, out["cleanup"] = c.Cleanup(ctx, checkpoint.CleanupRequest{})
	_, out["verify"] = c.Verify(ctx)
	_, out["rebuild"] = c.Rebuild(ctx)
	_, out["maintain"] = c.Maintain(ctx)
	_, out["sweep"] = c.Sweep(ctx)
	return out
}

// tree is what lies in a directory, with its bytes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		out[e.Name()] = string(text)
	}
	return out
}

// TestBackFromFiles: what was saved, deleted and noted while the metadata were
// files is there when SQLite opens again, and the files are gone.
func TestBackFromFiles(t *testing.T) {
	t.Parallel()
	o := Options{DataDir: t.TempDir()}
	var ids []string
	use := func(store string, from, to int, gone ...int) {
		t.Helper()
		o.Store = store
		c, err := Open(t.Context(), o)
		must(t, err)
		for i := from; i < to; i++ {
			ids = append(ids, save(t, c, "work", long(i)).ID)
		}
		for _, i := range gone {
			_, err := c.Delete(t.Context(), ada(), checkpoint.DeleteRequest{IDs: []string{ids[i]}})
			must(t, err)
		}
		must(t, c.Close())
	}
	use(StoreSQLite, 0, 6)
	use(StoreFiles, 6, 12, 0, 3, 8)
	use(StoreSQLite, 12, 14, 4)
	use(StoreFiles, 14, 16, 12)
	o.Store = StoreSQLite
	c := open(t, o)
	gone := map[int]bool{0: true, 3: true, 4: true, 8: true, 12: true}
	for i, id := range ids {
		loaded, err := c.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: id})
		switch {
		case gone[i]:
			if guideway.ErrorCode(err) != guideway.CodeNotFound {
				t.Errorf("%d was deleted: %v", i, err)
			}
		case err != nil || string(loaded.Context) != long(i) || loaded.Degraded != nil:
			t.Errorf("%d is %+v, %v", i, loaded, err)
		}
	}
	wantLast(t, c, "work", long(15))
	report, err := c.Verify(t.Context())
	must(t, err)
	if report.Checkpoints != 11 || len(report.Damaged) > 0 || report.Unknown > 0 {
		t.Errorf("verified is %+v", report)
	}
	notes, err := c.Audit(t.Context(), ada(), 1000)
	must(t, err)
	saves := 0
	for _, n := range notes {
		if n.Action == checkpoint.ActionSave {
			saves++
		}
	}
	if saves != 16 {
		t.Errorf("the audit log has %d saves", saves)
	}
	if left, err := filepath.Glob(filepath.Join(o.DataDir, contextsDir, indexDir, "*.json")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestBothAtOnce: a process whose metadata are files goes on when another one has
// taken them over: nothing of both is lost.
func TestBothAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := open(t, Options{DataDir: dir, Store: StoreFiles})
	save(t, files, "work", long(0))
	db := open(t, Options{DataDir: dir})
	wantLast(t, db, "work", long(0))
	save(t, db, "play", long(1))
	wantLast(t, files, "work", long(0))
	wantLast(t, files, "play", long(1))
	save(t, files, "work", long(2))
	again := open(t, Options{DataDir: dir})
	wantLast(t, again, "work", long(2))
	wantLast(t, again, "play", long(1))
}

// long is a context that differs a little from the one before.
func long(n int) string {
	return fmt.Sprintf(`{"log":%q,"step":%d}`, strings.Repeat("the gate was mended ", 100), n)
}
