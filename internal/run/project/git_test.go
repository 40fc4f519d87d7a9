package project

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// gitRunner runs the real Git, so that the tests do not depend on assumptions about its
// files.
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

// runGit runs git in a directory and returns its output. ok is false if the command fails.
func (g gitRunner) runGit(dir string, args ...string) (output string, ok bool) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "git", args...)
	cmd.Dir = g.pathOf(dir)
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

// mustRun runs a git command that must succeed.
func (g gitRunner) mustRun(dir string, args ...string) string {
	g.t.Helper()
	out, ok := g.runGit(dir, args...)
	if !ok {
		g.t.Fatalf("git %s failed", strings.Join(args, " "))
	}
	return out
}

// dropEmpty removes variables with an empty value, because an empty GIT_DIR differs from an
// unset one.
func dropEmpty(env []string) []string {
	var kept []string
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); value != "" && name != "GIT_DIR" && name != "GIT_WORK_TREE" {
			kept = append(kept, e)
		}
	}
	return kept
}

// wantSame compares a detected project with Git's output for the directory.
func (g gitRunner) wantSame(dir, root string) {
	g.t.Helper()
	got := detectProject(g.t, g.pathOf(dir))
	branch, _ := g.runGit(dir, "symbolic-ref", "--quiet", "--short", "HEAD")
	commit := g.mustRun(dir, "rev-parse", "HEAD")
	want := Project{ID: ID(g.pathOf(root)), Root: g.pathOf(root), Path: g.mustRun(dir, "rev-parse", "--show-toplevel"), Branch: branch, Commit: commit}
	if got != want {
		g.t.Errorf("%s: got %+v, git says %+v", dir, got, want)
	}
}

func TestAgreesWithGit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.makeDir("app")
	g.mustRun("app", "init", "--quiet", "--initial-branch=main")
	if got := detectProject(t, g.pathOf("app")); got.Branch != "main" || got.Commit != "" {
		t.Errorf("before the first commit, the project is %+v", got)
	}
	g.mustRun("app", "commit", "--quiet", "--allow-empty", "-m", "one")
	g.wantSame("app", "app")
	g.mustRun("app", "checkout", "--quiet", "-b", "feature/a-b")
	g.makeDir("app/sub/deep")
	g.wantSame("app/sub/deep", "app")
	g.mustRun("app", "worktree", "add", "--quiet", "../tree", "main")
	g.wantSame("tree", "app")
	g.mustRun("tree", "commit", "--quiet", "--allow-empty", "-m", "two")
	g.wantSame("tree", "app")
	g.mustRun("app", "pack-refs", "--all")
	g.wantSame("app", "app")
	g.wantSame("tree", "app")
	g.mustRun("tree", "checkout", "--quiet", "--detach")
	g.wantSame("tree", "app")

	g.mustRun("", "clone", "--quiet", "app", "clone")
	g.wantSame("clone", "clone")
}

func TestAgreesWithGitOnSubmodules(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.makeDir("lib")
	g.mustRun("lib", "init", "--quiet", "--initial-branch=main")
	g.mustRun("lib", "commit", "--quiet", "--allow-empty", "-m", "one")
	g.makeDir("app")
	g.mustRun("app", "init", "--quiet", "--initial-branch=main")
	g.mustRun("app", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", g.pathOf("lib"), "vendor/lib")
	g.mustRun("app", "commit", "--quiet", "-m", "one")
	g.wantSame("app", "app")
	g.wantSame("app/vendor/lib", "app/vendor/lib")
	g.mustRun("app/vendor/lib", "worktree", "add", "--quiet", "-b", "topic", g.pathOf("libtree"))
	g.wantSame("libtree", "app/vendor/lib")
}

func TestAgreesWithGitOnBareRepositories(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.makeDir("app")
	g.mustRun("app", "init", "--quiet", "--initial-branch=main")
	g.mustRun("app", "commit", "--quiet", "--allow-empty", "-m", "one")
	g.mustRun("", "clone", "--quiet", "--bare", "app", "bare.git")
	if got := detectProject(t, g.pathOf("bare.git")); got.Root != g.pathOf("bare.git") || got.Commit != g.mustRun("app", "rev-parse", "HEAD") {
		t.Errorf("got %+v", got)
	}
	g.mustRun("bare.git", "worktree", "add", "--quiet", "-b", "topic", g.pathOf("tree"))
	g.wantSame("tree", "bare.git")
}

func TestReftables(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.makeDir("app")
	if _, ok := g.runGit("app", "init", "--quiet", "--ref-format=reftable"); !ok {
		t.Skip("this version of git does not support reftables")
	}
	g.mustRun("app", "commit", "--quiet", "--allow-empty", "-m", "one")
	app := g.pathOf("app")
	wantProject(t, app, Project{Root: app, Path: app})
}
