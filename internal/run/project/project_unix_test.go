//go:build unix

package project

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipesDoNotBlock checks that Detect does not open pipes in a repository, because
// opening a pipe without a writer blocks.
func TestPipesDoNotBlock(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"app/.git", "repo/.git/HEAD", "repo/.git/refs/heads/main", "repo/.git/packed-refs"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.makeDir("app")
			x.addRepository("repo/.git", "ref: refs/heads/main\n")
			_ = os.Remove(x.pathOf(name))
			if err := syscall.Mkfifo(x.pathOf(name), 0o600); err != nil {
				t.Skipf("this system cannot create pipes in the directory: %v", err)
			}
			for _, dir := range []string{"app", "repo"} {
				if got := detectProject(t, x.pathOf(dir)); got.Root != x.pathOf(dir) || got.Commit != "" {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}
