package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
)

// TestSalvageWithoutTheListOfTables checks that all rows are salvaged if any page of the
// schema table is lost, and that the problem is reported.
func TestSalvageWithoutTheListOfTables(t *testing.T) {
	t.Parallel()
	data := soundFile(t)
	pages := append(childPages(data[:pageSize]), 1)
	if len(pages) < 2 {
		t.Fatalf("the schema table has the pages %v; the test needs more", pages)
	}
	for _, page := range pages {
		for what, filler := range map[string]string{"zeros": "\x00", "nonsense": "damaged!"} {
			t.Run(fmt.Sprint(what, " on page ", page), func(t *testing.T) {
				t.Parallel()
				broken := bytes.Clone(data)
				copy(broken[(page-1)*pageSize:], bytes.Repeat([]byte(filler), pageSize/len(filler)))
				path := filepath.Join(t.TempDir(), testFile)
				if err := os.WriteFile(path, broken, 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := Salvage(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				events := 0
				for _, list := range got.Events {
					events += len(list)
				}
				if len(got.Runs) != soundRuns || len(got.Documents) != soundRuns || len(got.Definitions) != 1 || events != soundRuns*soundEvents {
					t.Errorf("%d runs, %d documents, %d definitions, %d events", len(got.Runs), len(got.Documents), len(got.Definitions), events)
				}
				if len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "the schema table") {
					t.Errorf("the problems are %v", got.Problems)
				}
				if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, broken) {
					t.Errorf("salvaging has changed the file (%v)", err)
				}
			})
		}
	}
}

// TestSalvageOfTheFirstPages checks that the rows on the first pages are salvaged if the
// rest of the file is lost.
func TestSalvageOfTheFirstPages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	s := openTestStore(t, Options{Path: path})
	for _, id := range []string{"r_a", "r_b"} {
		for seq := range int64(2) {
			if err := putCommit(t.Context(), s, newTestCommit(id, seq+1, "words")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 10*pageSize); err != nil {
		t.Fatal(err)
	}
	got, err := Salvage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 2 || len(got.Events["r_a"]) != 2 || len(got.Events["r_b"]) != 2 || len(got.Problems) == 0 {
		t.Errorf("salvaged from the first pages: %+v", got)
	}
	// With fewer pages nothing is readable, and the fix must not be to salvage.
	if err := os.Truncate(path, pageSize); err != nil {
		t.Fatal(err)
	}
	_, err = Salvage(t.Context(), path)
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || strings.Contains(guideway.ErrorFix(err), "salvage") || guideway.ErrorFix(err) == "" {
		t.Errorf("%v (%s), try %s", err, guideway.ErrorCode(err), guideway.ErrorFix(err))
	}
}
