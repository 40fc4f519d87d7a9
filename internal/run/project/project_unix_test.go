//go:build unix

package project

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe that nobody writes to waits for good.
func TestPipesDoNotBlock(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"app/.git", "repo/.git/HEAD", "repo/.git/refs/heads/main", "repo/.git/packed-refs"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.dir("app")
			x.repository("repo/.git", "ref: refs/heads/main\n")
			_ = os.Remove(x.path(name))
			if err := syscall.Mkfifo(x.path(name), 0o600); err != nil {
				t.Skipf("this system makes no pipes here: %v", err)
			}
			for _, dir := range []string{"app", "repo"} {
				if got := detect(t, x.path(dir)); got.Root != x.path(dir) || got.Commit != "" {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}
