package migrate_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/migrate"
)

// writeFiles creates files below a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// readFiles returns the files below a directory with their texts.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// checkText returns an error for a text that contains "wrong".
func checkText(file string, data []byte) []guideway.Diagnostic {
	if strings.Contains(string(data), "wrong") {
		return []guideway.Diagnostic{{Severity: guideway.SeverityError, File: file, Message: "the text is wrong"}}
	}
	return nil
}

func outcomesByFile(items []migrate.Item, dir string) map[string]migrate.Outcome {
	got := map[string]migrate.Outcome{}
	for _, item := range items {
		name, _ := filepath.Rel(dir, item.From)
		got[filepath.ToSlash(name)] = item.Outcome
	}
	return got
}

// Definitions and texts are copied with their relative paths. Existing files are kept, and
// broken files, links and other files are not copied but reported. A second run changes
// nothing, and the source is never written.
func TestTree(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "made", "here")
	writeFiles(t, from, map[string]string{
		"a.json": "{}", "deep/er/b.yaml": "b", "guide.md": "# g", "mine.json": "theirs", "same.json": "same",
		"bad.json": "wrong", "README.txt": "t", ".git/x.json": "{}", "big.json": strings.Repeat("x", 1<<20+1),
	})
	outside := filepath.Join(t.TempDir(), "secret.json")
	writeFiles(t, filepath.Dir(outside), map[string]string{"secret.json": "secret"})
	if err := os.Symlink(outside, filepath.Join(from, "link.json")); err != nil {
		t.Skipf("links cannot be created: %v", err)
	}
	writeFiles(t, to, map[string]string{"mine.json": "mine", "same.json": "same"})
	before := readFiles(t, from)
	tree := migrate.Tree{From: from, To: to, Check: checkText}

	dry := tree
	dry.DryRun = true
	planned, err := dry.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"mine.json": "mine", "same.json": "same"}, readFiles(t, to)); diff != "" {
		t.Errorf("a dry run has written (-want +got):\n%s", diff)
	}
	items, err := tree.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]migrate.Outcome{
		"a.json": migrate.Copied, "deep/er/b.yaml": migrate.Copied, "guide.md": migrate.Copied, "mine.json": migrate.Kept,
		"same.json": migrate.Same, "bad.json": migrate.Broken, "README.txt": migrate.Left, "link.json": migrate.Left, "big.json": migrate.Broken,
	}
	if diff := cmp.Diff(want, outcomesByFile(items, from)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(outcomesByFile(planned, from), outcomesByFile(items, from)); diff != "" {
		t.Errorf("planned and done differ (-planned +done):\n%s", diff)
	}
	here := map[string]string{"a.json": "{}", "deep/er/b.yaml": "b", "guide.md": "# g", "mine.json": "mine", "same.json": "same"}
	if diff := cmp.Diff(here, readFiles(t, to)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	again, err := tree.Copy(t.Context())
	if err != nil || migrate.Count(again, migrate.Copied) != 0 {
		t.Errorf("the second run copied %d items: %v", migrate.Count(again, migrate.Copied), err)
	}
	if diff := cmp.Diff(before, readFiles(t, from)); diff != "" {
		t.Errorf("the source has changed (-before +after):\n%s", diff)
	}
}

// Nothing is written through a link in the destination.
func TestLinksInDestination(t *testing.T) {
	t.Parallel()
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	writeFiles(t, from, map[string]string{"sub/a.json": "{}"})
	if err := os.Symlink(outside, filepath.Join(to, "sub")); err != nil {
		t.Skipf("links cannot be created: %v", err)
	}
	items, err := migrate.Tree{From: from, To: to}.Copy(t.Context())
	if err != nil || migrate.Count(items, migrate.Copied) != 0 {
		t.Errorf("%+v %v", items, err)
	}
	if left := readFiles(t, outside); len(left) > 0 {
		t.Errorf("written through a link: %v", left)
	}
}

// TestSessions checks that each session document is passed on with the project, workflow
// and id of its path. A broken file is reported and does not affect others.
func TestSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"sessions/p1/wf/S1.json":   `{"id":"S1","workflowId":"wf","projectId":"p1","createdAt":"2025-01-02T03:04:05Z","data":{"a":1}}`,
		"sessions/p1/wf/S2.json":   `{"data":{}}`,
		"sessions/p1/wf/S3.json":   `{"data":`,
		"sessions/p1/wf/S4.json":   `[]`,
		"sessions/p1/wf/S5.json":   `{"id":"S5"}`,
		"sessions/p1/project.json": `{}`,
	})
	var got []string
	items, err := migrate.Sessions(t.Context(), dir, func(_ context.Context, s migrate.Session) (migrate.Outcome, string, error) {
		got = append(got, s.Project+"/"+s.Workflow+"/"+s.ID)
		return migrate.Copied, s.ID, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p1/wf/S1", "p1/wf/S2"}, got); diff != "" {
		t.Errorf("documents passed to put (-want +got):\n%s", diff)
	}
	if n := migrate.Count(items, migrate.Broken); n != 3 {
		t.Errorf("%d items are broken, want 3: %+v", n, items)
	}
}
