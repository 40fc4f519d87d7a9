package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// dumpStore returns the copied tables of a store.
func dumpStore(t *testing.T, url string) (fstest.MapFS, map[string]rows.Copied) {
	t.Helper()
	files := fstest.MapFS{}
	copied, err := postgres.DumpTables(t.Context(), map[string]string{"runs": url}, func(store, table string, copyTo func(io.Writer) error) error {
		var text bytes.Buffer
		err := copyTo(&text)
		files[table+".csv"] = &fstest.MapFile{Data: text.Bytes()}
		return err
	})
	requireNoError(t, err)
	return files, copied
}

func loadStore(t *testing.T, url string, files fs.FS, copied map[string]rows.Copied, suffix string, last func() error) error {
	t.Helper()
	return postgres.LoadTables(t.Context(), map[string]string{"runs": url}, map[string]fs.FS{"runs": files}, copied, suffix, last)
}

// TestCopyTables copies a store into another schema. New rows get numbers that no restored row
// has, and machine runs in progress are taken over by the next process.
func TestCopyTables(t *testing.T) {
	t.Parallel()
	from, to := newSchemaURL(t), newSchemaURL(t)
	if _, copied := dumpStore(t, from); len(copied) > 0 {
		t.Errorf("a store that does not exist was copied: %v", copied)
	}
	s := openStore(t, postgres.Options{URL: from})
	createTestRun(t, s, "r_first")
	createTestRun(t, s, "m_running")
	files, copied := dumpStore(t, from)
	if copied["runs"].Rows["runs"] != 2 || copied["runs"].Schema != postgres.SchemaVersion() {
		t.Errorf("copied %+v", copied["runs"])
	}
	createTestRun(t, s, "r_later")

	failed := errors.New("the files cannot be moved")
	if err := loadStore(t, to, files, copied, "", func() error { return failed }); !errors.Is(err, failed) {
		t.Fatalf("the load does not fail with its last step: %v", err)
	}
	if n := queryNumber(t, to, "select count(*) from pg_namespace where nspname = '"+schemaName(t, to)+"'"); n != 0 {
		t.Error("a failed load left a schema")
	}
	noop := func() error { return nil }
	requireNoError(t, loadStore(t, to, files, copied, "", noop))
	if err := loadStore(t, to, files, copied, "", noop); guideway.ErrorCode(err) != guideway.CodeConflict || guideway.ErrorFix(err) == "" {
		t.Errorf("a second load: %v", err)
	}

	restored := openStore(t, postgres.Options{URL: to})
	for _, id := range []string{"r_first", "m_running"} {
		want, err := s.Events(t.Context(), id, 0, 100)
		requireNoError(t, err)
		got, err := restored.Events(t.Context(), id, 0, 100)
		requireNoError(t, err)
		if len(got) != len(want) || len(got) == 0 || !bytes.Equal(got[len(got)-1].MAC, want[len(want)-1].MAC) {
			t.Errorf("%s: events %v, want %v", id, got, want)
		}
	}
	createTestRun(t, restored, "r_new")
	if _, err := restored.Run(t.Context(), "r_later"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a run from after the copy: %v", err)
	}
	ended, err := restored.HasEndedInstances(t.Context(), time.Hour)
	requireNoError(t, err)
	if n := queryNumber(t, to, "select count(*) from drives where run = 'm_running'"); n != 1 || !ended {
		t.Errorf("a machine run in progress has %d drives, ended: %v", n, ended)
	}
	if n := queryNumber(t, to, "select count(*) from drives"); n != 1 {
		t.Errorf("%d runs have drives, want 1", n)
	}

	requireNoError(t, loadStore(t, to, files, copied, "_old", noop))
	t.Cleanup(func() { execSQL(t, to, "drop schema "+schemaName(t, to)+"_old cascade") })
	if n := queryNumber(t, to, "select count(*) from "+schemaName(t, to)+"_old.runs"); n != 3 {
		t.Errorf("the replaced schema has %d runs, want 3", n)
	}
}

// TestDamagedCopy checks that damaged copies are errors that leave nothing.
func TestDamagedCopy(t *testing.T) {
	t.Parallel()
	to := newSchemaURL(t)
	version := map[string]rows.Copied{"runs": {Schema: 1}}
	for name, file := range map[string]string{
		"no header":       "",
		"unknown columns": "id,nothing\n1,2\n",
		"hostile columns": "id) from program 'id'; --\n1\n",
		"cut row":         "name,value\nkey",
	} {
		err := loadStore(t, to, fstest.MapFS{"facts.csv": {Data: []byte(file)}}, version, "", func() error { return nil })
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := queryNumber(t, to, "select count(*) from pg_namespace where nspname = '"+schemaName(t, to)+"'"); n != 0 {
		t.Error("a failed load left a schema")
	}
}
