package internal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/requirements.md has a row for each requirement of the five seeds, and no
// other rows.
func TestEveryRequirementHasARow(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "docs", "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	got := rowIDs(text)
	var want []string
	for prefix, n := range map[string]int{"W": 21, "R": 16, "P": 17, "C": 31, "A": 9} {
		for i := range n {
			want = append(want, fmt.Sprintf("%s%d", prefix, i+1))
		}
	}
	compareIDs(t, want, got)
	checkNamedTests(t, text)

	coverage, err := os.ReadFile(filepath.Join("..", "..", "shared", "COVERAGE.md"))
	if err != nil {
		t.Logf("the list of requirements is missing, so only the checks above were made: %v", err)
		return
	}
	compareIDs(t, rowIDs(coverage), got)
}

// checkNamedTests checks that every test that the table names exists. A name that ends in
// … is the beginning of the names of several tests.
func checkNamedTests(t *testing.T, text []byte) {
	t.Helper()
	var tests []byte
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := os.ReadFile(path)
		tests = append(tests, file...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`(Test\\w+)(…?)`").FindAllSubmatch(text, -1) {
		name := "func " + string(m[1])
		if len(m[2]) == 0 {
			name += "("
		}
		if !bytes.Contains(tests, []byte(name)) {
			t.Errorf("docs/requirements.md names a missing test: %s", m[0])
		}
	}
}

func rowIDs(text []byte) []string {
	var ids []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([WRPCA]\d+) \|`).FindAllSubmatch(text, -1) {
		ids = append(ids, string(m[1]))
	}
	return ids
}

func compareIDs(t *testing.T, want, got []string) {
	t.Helper()
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("docs/requirements.md has no row for %s", id)
		}
	}
	for i, id := range got {
		if !slices.Contains(want, id) {
			t.Errorf("docs/requirements.md has a row for %s, which is not a requirement", id)
		}
		if slices.Contains(got[:i], id) {
			t.Errorf("docs/requirements.md has two rows for %s", id)
		}
	}
}
