package project

import "testing"

// TestTrustedTop checks that the top of a work tree is found from the directories below it,
// and from those only.
func TestTrustedTop(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.addRepository("app/.git", "ref: refs/heads/main\n")
	x.addWorktree("app/.git", "topic", "ref: refs/heads/topic\n")
	x.addRepository("bare.git", "ref: refs/heads/main\n")
	for _, dir := range []string{"app/a/b", "topic/a", "bare.git/a", "alone/a"} {
		x.makeDir(dir)
	}
	x.makeLink(x.pathOf("app/a"), "into")
	x.makeLink(x.pathOf("app"), "alias")
	for dir, want := range map[string]string{
		"app/a/b": "app", "app/a": "app", "into": "app", "into/b": "app", "alias/a": "app", "topic/a": "topic",
		"app": "", "alias": "", "topic": "", "bare.git/a": "", "alone/a": "", "missing": "",
	} {
		if want != "" {
			want = x.pathOf(want)
		}
		if got := TrustedTop(x.pathOf(dir)); got != want {
			t.Errorf("%s: the top is %q, want %q", dir, got, want)
		}
	}
}
