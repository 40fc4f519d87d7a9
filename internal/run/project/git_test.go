package project

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// gitRunner runs the real Git, so that the tests above do not rest on what we
// think that it writes.
type gitRunner struct {
	tree
}

func newGit(t *testing.T) gitRunner {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	return gitRunner{newTree(t)}
}

// run runs git in a directory and gives its output. ok is false where this
// version does not know the command.
func (g gitRunner) run(dir string, args ...string) (output string, ok bool) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "git", args...)
	cmd.Dir = g.path(dir)
	cmd.Env = append(os.Environ(),
		"HOME="+g.root, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_DIR=", "GIT_WORK_TREE=")
	cmd.Env = dropEmpty(cmd.Env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Logf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err == nil
}

// must is run for commands that every version knows.
func (g gitRunner) must(dir string, args ...string) string {
	g.t.Helper()
	out, ok := g.run(dir, args...)
	if !ok {
		g.t.Fatalf("git %s failed", strings.Join(args, " "))
	}
	return out
}

// dropEmpty takes variables without a value out of an environment: an empty
// GIT_DIR is not the same as none.
func dropEmpty(env []string) []string {
	var kept []string
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); value != "" && name != "GIT_DIR" && name != "GIT_WORK_TREE" {
			kept = append(kept, e)
		}
	}
	return kept
}

// same holds a detected project against what Git says of the directory.
func (g gitRunner) same(dir, root string) {
	g.t.Helper()
	got := detect(g.t, g.path(dir))
	branch, _ := g.run(dir, "symbolic-ref", "--quiet", "--short", "HEAD")
	commit := g.must(dir, "rev-parse", "HEAD")
	want := Project{ID: ID(g.path(root)), Root: g.path(root), Path: g.must(dir, "rev-parse", "--show-toplevel"), Branch: branch, Commit: commit}
	if got != want {
		g.t.Errorf("%s: got %+v, git says %+v", dir, got, want)
	}
}

func TestAgreesWithGit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.dir("app")
	g.must("app", "init", "--quiet", "--initial-branch=main")
	if got := detect(t, g.path("app")); got.Branch != "main" || got.Commit != "" {
		t.Errorf("before the first commit: %+v", got)
	}
	g.must("app", "commit", "--quiet", "--allow-empty", "-m", "one")
	g.same("app", "app")
	g.must("app", "checkout", "--quiet", "-b", "feature/a-b")
	g.dir("app/sub/deep")
	g.same("app/sub/deep", "app")
	g.must("app", "worktree", "add", "--quiet", "../tree", "main")
	g.same("tree", "app")
	g.must("tree", "commit", "--quiet", "--allow-empty", "-m", "two")
	g.same("tree", "app")
	g.must("app", "pack-refs", "--all")
	g.same("app", "app")
	g.same("tree", "app")
	g.must("tree", "checkout", "--quiet", "--detach")
	g.same("tree", "app")

	g.must("", "clone", "--quiet", "app", "clone")
	g.same("clone", "clone")
}

func TestAgreesWithGitOnSubmodules(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.dir("lib")
	g.must("lib", "init", "--quiet", "--initial-branch=main")
	g.must("lib", "commit", "--quiet", "--allow-empty", "-m", "one")
	g.dir("app")
	g.must("app", "init", "--quiet", "--initial-branch=main")
	g.must("app", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", g.path("lib"), "vendor/lib")
	g.must("app", "commit", "--quiet", "-m", "one")
	g.same("app", "app")
	g.same("app/vendor/lib", "app/vendor/lib")
	g.must("app/vendor/lib", "worktree", "add", "--quiet", "-b", "topic", g.path("libtree"))
	g.same("libtree", "app/vendor/lib")
}

func TestAgreesWithGitOnBareRepositories(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.dir("app")
	g.must("app", "init", "--quiet", "--initial-branch=main")
	g.must("app", "commit", "--quiet", "--allow-empty", "-m", "one")
	g.must("", "clone", "--quiet", "--bare", "app", "bare.git")
	if got := detect(t, g.path("bare.git")); got.Root != g.path("bare.git") || got.Commit != g.must("app", "rev-parse", "HEAD") {
		t.Errorf("got %+v", got)
	}
	g.must("bare.git", "worktree", "add", "--quiet", "-b", "topic", g.path("tree"))
	g.same("tree", "bare.git")
}

func TestReftablesHideTheCommit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.dir("app")
	if _, ok := g.run("app", "init", "--quiet", "--ref-format=reftable"); !ok {
		t.Skip("this version of git knows no reftables")
	}
	g.must("app", "commit", "--quiet", "--allow-empty", "-m", "one")
	app := g.path("app")
	want(t, app, Project{Root: app, Path: app})
}
