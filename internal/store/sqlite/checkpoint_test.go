package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/indextest"
)

// TestCheckpoints runs the contract tests of the checkpoint index.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	indextest.Exercise(t, func(t *testing.T) indextest.Opener {
		path := filepath.Join(t.TempDir(), testFile)
		return func(t *testing.T) indextest.Index {
			t.Helper()
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}

// TestDiscard checks that the tables of checkpoints are empty after Discard, all of them.
func TestDiscard(t *testing.T) {
	t.Parallel()
	s := openStoreWith(t, Options{})
	tables := queryTexts(t, s, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND name GLOB 'checkpoint*' AND type IN ('table', 'virtual')`)
	if len(tables) < 5 {
		t.Errorf("the tables of checkpoints are %v", tables)
	}
	for _, table := range tables {
		values := queryTexts(t, s, `SELECT group_concat(CASE type WHEN 'INTEGER' THEN '1' WHEN 'BLOB' THEN 'x''''' ELSE '''1''' END) FROM pragma_table_info('`+table+`')`)
		execWriter(t, s, "INSERT INTO %s VALUES (%s)", table, values[0])
	}
	if err := s.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if count := queryTexts(t, s, "SELECT count(*) FROM "+table)[0]; count != "0" {
			t.Errorf("after Discard, %s has %s rows", table, count)
		}
	}
}
