//go:build unix

package project

import (
	"os"
	"testing"
)

// TestForeignTop checks that a repository that another user created above a directory is not
// trusted, and that a directory of another user is not owned.
func TestForeignTop(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	const other, third = 12345, 12346
	for name, tt := range map[string]struct {
		top, git, dir int
		trusted       bool
	}{
		"all of this user":          {0, 0, 0, true},
		"all of another user":       {other, other, other, true},
		"the repository of another": {other, other, 0, false},
		"the .git of another":       {0, other, 0, false},
		"two other users":           {other, other, third, false},
		"the directory of another":  {0, 0, other, true},
	} {
		x := newTree(t)
		x.addRepository("shared/.git", "ref: refs/heads/main\n")
		x.makeDir("shared/mine")
		for path, uid := range map[string]int{"shared": tt.top, "shared/.git": tt.git, "shared/mine": tt.dir} {
			if err := os.Lchown(x.pathOf(path), uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		if got := TrustedTop(x.pathOf("shared/mine")); got != "" != tt.trusted {
			t.Errorf("%s: the top is %q", name, got)
		}
	}
	x := newTree(t)
	theirs, mine := x.makeDir("theirs"), x.makeDir("mine")
	if err := os.Lchown(theirs, other, other); err != nil {
		t.Fatal(err)
	}
	if IsOwned(theirs, mine) || !IsOwned(mine, mine) || !IsOwned(theirs, theirs) {
		t.Error("the owner of a directory is not noticed")
	}
}
