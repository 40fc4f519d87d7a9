package install

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
)

func writeFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func readTestFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func fileNames(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// applyPlan reads a file, plans a change and applies it.
func applyPlan(t *testing.T, path string, req Request, undo bool) (Change, string) {
	t.Helper()
	f, err := Read(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan
	if undo {
		plan = PlanUndo
	}
	change, err := plan(Env{}, findClient(t, "cursor"), req, f)
	if err != nil {
		t.Fatal(err)
	}
	change.Private = true
	backup, err := Apply(context.Background(), change)
	if err != nil {
		t.Fatal(err)
	}
	return change, backup
}

func TestApplyAndUndo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	const before = "{\n  \"a\": 1\n}"
	writeFile(t, path, before, 0o640)
	writeFile(t, path+".guideway-backup-1", "of the user", 0o600)

	_, backup := applyPlan(t, path, Request{Command: "/a/guideway"}, false)
	if backup != path+".guideway-backup-2" || readTestFile(t, backup) != before {
		t.Errorf("backup = %s", backup)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	if change, backup := applyPlan(t, path, Request{Command: "/a/guideway"}, false); change.Action != ActionNone || backup != "" {
		t.Errorf("again = %s, backup %q", change.Action, backup)
	}
	applyPlan(t, path, Request{Command: "/b/guideway"}, false)
	applyPlan(t, path, Request{}, true)
	if got := readTestFile(t, path); got != before {
		t.Errorf("after undo = %q", got)
	}
	if got := fileNames(t, dir); got != "mcp.json mcp.json.guideway-backup-1" {
		t.Errorf("files = %s", got)
	}
	if got := readTestFile(t, path+".guideway-backup-1"); got != "of the user" {
		t.Errorf("the earlier backup = %q", got)
	}
}

func TestApplyCreates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "mcp.json")
	applyPlan(t, path, Request{Command: binary}, false)
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	applyPlan(t, path, Request{}, true)
	if got := fileNames(t, filepath.Dir(path)); got != "" {
		t.Errorf("files = %q", got)
	}
}

func TestApplyFollowsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, real := filepath.Join(dir, "home", "mcp.json"), filepath.Join(dir, "dotfiles", "mcp.json")
	writeFile(t, real, "{}", 0o644)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "dotfiles", "mcp.json"), path); err != nil {
		t.Skip(err)
	}
	applyPlan(t, path, Request{Command: binary}, false)
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if !strings.Contains(readTestFile(t, real), binary) || fileNames(t, filepath.Dir(real)) != "mcp.json" {
		t.Errorf("real file = %s among %s", readTestFile(t, real), fileNames(t, filepath.Dir(real)))
	}
	applyPlan(t, path, Request{}, true)
	if readTestFile(t, real) != "{}" {
		t.Errorf("after undo = %q", readTestFile(t, real))
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "mcp.json")
	writeFile(t, path, "{}", 0o600)
	f, err := Read(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	change := mustPlan(t, findClient(t, "cursor"), Request{Command: binary}, f)

	writeFile(t, path, `{"a": 1}`, 0o600)
	if _, err := Apply(ctx, change); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("changed file: %v", err)
	}
	writeFile(t, path, "{}", 0o600)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(ctx, change); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("read-only file: %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Apply(done, change); err == nil {
		t.Error("a cancelled context was ignored")
	}
	if got := fileNames(t, filepath.Dir(path)); got != "mcp.json" || readTestFile(t, path) != "{}" {
		t.Errorf("files left: %s", got)
	}
	if _, err := Read(ctx, filepath.Dir(path)); err == nil {
		t.Error("a directory was read as a file")
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := Env{GOOS: "linux", Home: filepath.ToSlash(dir), Dir: filepath.ToSlash(dir), Exists: func(p string) bool {
		_, err := os.Stat(p)
		return err == nil
	}}
	c, req := findClient(t, "cursor"), Request{Command: binary}
	path := filepath.Join(dir, ".cursor", "mcp.json")
	check := func(want State) Status {
		t.Helper()
		s := Inspect(context.Background(), env, c, ScopeUser, req)
		if s.State != want {
			t.Errorf("state = %s (%s), want %s", s.State, s.Reason, want)
		}
		return s
	}
	check(StateNoClient)
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	check(StateNotInstalled)
	applyPlan(t, path, Request{Command: "/other/guideway"}, false)
	check(StateOtherPath)
	applyPlan(t, path, req, false)
	check(StateInstalled)
	writeFile(t, path, "{\n oops", 0o600)
	if s := check(StateUnreadable); !strings.HasPrefix(s.Reason, "line 2, column 2: ") {
		t.Errorf("reason = %q", s.Reason)
	}
}

func TestBinary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	versioned := filepath.Join(dir, "Cellar", "1.2.3", "guideway")
	writeFile(t, versioned, "", 0o755)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(versioned, filepath.Join(bin, "guideway")); err != nil {
		t.Skip(err)
	}
	other := filepath.Join(dir, "other")
	writeFile(t, filepath.Join(other, "guideway"), "", 0o755)
	search := strings.Join([]string{"relative", other, bin}, string(filepath.ListSeparator))
	if got, err := Binary(versioned, search); err != nil || got != filepath.Join(bin, "guideway") {
		t.Errorf("by its link: %s, %v", got, err)
	}
	if got, err := Binary(versioned, other); err != nil || got != versioned {
		t.Errorf("not in the search path: %s, %v", got, err)
	}
	for _, bad := range []string{
		"", "guideway", filepath.Join(dir, "gone"), filepath.Join(dir, "go-build123", "b001", "exe", "guideway"),
		filepath.Join(dir, "go-build", "ab", "guideway"), filepath.Join(dir, "_npx", "1", "guideway"),
	} {
		if got, err := Binary(bad, ""); err == nil || guideway.ErrorFix(err) == "" {
			t.Errorf("Binary(%q) = %q, %v", bad, got, err)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	lines := func(n int) string {
		var out strings.Builder
		for i := range n {
			out.WriteString(string(rune('a'+i)) + "\n")
		}
		return out.String()
	}
	tests := []struct {
		name string
		c    Change
		want string
	}{
		{"none", Change{Action: ActionNone, Existed: true}, ""},
		{"new", Change{Action: ActionInstalled, Path: "f", After: []byte("x\n")}, "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+x\n"},
		{
			"deleted",
			Change{Action: ActionRemoved, Path: "f", Existed: true, Delete: true, Before: []byte("x")},
			"--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n\\ No newline at end of file\n",
		},
		{
			"two places",
			Change{
				Action: ActionUpdated, Path: "f", Existed: true, Before: []byte(lines(20)),
				After: []byte(strings.Replace(strings.Replace(lines(20), "b\n", "B\n", 1), "s\n", "", 1)),
			},
			"--- f\n+++ f\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -16,5 +16,4 @@\n p\n q\n r\n-s\n t\n",
		},
	}
	for _, tt := range tests {
		if got := Diff(tt.c); got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, got, tt.want)
		}
	}
}
