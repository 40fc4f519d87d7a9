package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
)

func TestIsUntracked(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write("removed")
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	git("rm", "-q", "--cached", "removed")
	write("staged")
	git("add", "staged")
	write("new")
	s, err := worktree.NewReader(nil).Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"removed": false, "staged": false, "new": true} {
		if got := s.IsUntracked(name); got != want {
			t.Errorf("IsUntracked(%s) returned %v", name, got)
		}
	}
	if len(s.Dirty()) != 3 {
		t.Errorf("the dirty paths are %q", s.Dirty())
	}
}
