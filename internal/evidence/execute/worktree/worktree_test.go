package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
)

// repo is a repository for a test.
type repo struct {
	t   *testing.T
	dir string
	r   *worktree.Reader
}

// newRepo returns a repository with a commit of some files.
func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := repo{t, dir, worktree.NewReader(nil)}
	r.git("init", "-q", "-b", "main")
	r.write("src/a.go", "package a\n")
	r.write("src/a_test.go", "package a // test\n")
	r.write(".gitignore", "ignored/\n*.log\n")
	r.commit("first")
	return r
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repo) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r repo) write(name, text string) {
	r.t.Helper()
	check(r.t, os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	check(r.t, os.WriteFile(r.path(name), []byte(text), 0o644))
}

func (r repo) commit(message string) {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--no-verify", "-m", message)
}

func (r repo) read() *worktree.State {
	r.t.Helper()
	s, err := r.r.Read(r.t.Context(), r.dir)
	check(r.t, err)
	return s
}

func (r repo) start() *evidence.Workspace { return r.read().Workspace("host") }

// changed returns the descriptions of the changes since a start.
func (r repo) changed(start *evidence.Workspace, globs ...string) []string {
	r.t.Helper()
	changes, err := r.r.Changes(r.t.Context(), r.read(), start, globs)
	check(r.t, err)
	var out []string
	for _, c := range changes {
		out = append(out, c.String())
	}
	return out
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWorkspace compares the record of a work tree with git.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	w := r.start()
	if w.Root != r.dir || w.Host != "host" || w.Commit != r.git("rev-parse", "HEAD") || w.Tree != r.git("rev-parse", "HEAD^{tree}") || w.WorkTree != w.Tree || w.DirtyCount != 0 || w.DirtyHash != "" {
		t.Errorf("a clean work tree is %+v", w)
	}
	r.write("src/a.go", "package b\n")
	r.write("src/deep/new.go", "package c\n")
	r.write("src.txt", "between src and src/\n")
	r.write("ignored/x", "x")
	r.write("src/x.log", "x")
	r.write(".cache/.gitignore", "*\n")
	r.write(".cache/x", "x")
	check(t, os.Remove(r.path("src/a_test.go")))
	check(t, os.Chmod(r.path(".gitignore"), 0o755))
	check(t, os.Symlink("src", r.path("link")))
	w = r.start()
	want := []string{".gitignore", "link", "src.txt", "src/a.go", "src/a_test.go", "src/deep/new.go"}
	if runtime.GOOS == "windows" {
		want = want[1:]
	}
	if d := cmp.Diff(want, w.Dirty); d != "" || w.DirtyCount != len(want) || len(w.DirtyStates) != len(want) {
		t.Errorf("%+v: %s", w, d)
	}
	r.git("add", "-A")
	if staged := r.start(); staged.WorkTree != r.git("write-tree") || staged.WorkTree != w.WorkTree {
		t.Errorf("the tree of all files is %s and %s, git has %s", w.WorkTree, staged.WorkTree, r.git("write-tree"))
	}
	again := r.start()
	r.write("src/a.go", "package d\n")
	if again.DirtyHash == "" || r.start().DirtyHash == again.DirtyHash {
		t.Errorf("the hash of the dirty files does not depend on their content: %s", again.DirtyHash)
	}
}

// TestWorkspacePlaces reads subdirectories, linked work trees, a directory without a
// repository, a repository before its first commit, a bare one and one with SHA-256.
func TestWorkspacePlaces(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	other := filepath.Join(filepath.Dir(r.dir), filepath.Base(r.dir)+"-linked")
	r.git("worktree", "add", "-q", "-b", "topic", other)
	linked := repo{t, other, r.r}
	linked.write("linked.txt", "x")
	for dir, want := range map[string]string{r.path("src"): r.dir, other: other, filepath.Join(other, "src"): other} {
		s, err := r.r.Read(t.Context(), dir)
		check(t, err)
		if s.Root != want || !s.Git || s.Commit != r.git("rev-parse", "HEAD") {
			t.Errorf("%s: %+v", dir, s)
		}
	}
	if d := cmp.Diff([]string{"linked.txt"}, linked.start().Dirty); d != "" {
		t.Error(d)
	}
	plain, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	s, err := r.r.Read(t.Context(), plain)
	check(t, err)
	if w := s.Workspace(""); s.Git || w.Root != plain || w.Commit != "" || w.DirtyCount != 0 {
		t.Errorf("without a repository: %+v", s)
	}
	if _, err := r.r.Read(t.Context(), filepath.Join(plain, "missing")); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("a missing directory: %v", err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"init", "-q", "--object-format=sha256"}, {"init", "-q", "--bare"}} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		check(t, err)
		fresh := repo{t, dir, r.r}
		fresh.git(args...)
		if args[len(args)-1] == "--bare" {
			if _, err := r.r.Read(t.Context(), dir); guideway.ErrorCode(err) != guideway.CodeUnavailable {
				t.Errorf("a bare repository: %v", err)
			}
			continue
		}
		fresh.write("a", "a")
		if w := fresh.start(); w.Commit != "" || !slices.Equal(w.Dirty, []string{"a"}) {
			t.Errorf("%v: before the first commit: %+v", args, w)
		}
		unborn := fresh.start()
		fresh.commit("first")
		if w := fresh.start(); w.Commit != fresh.git("rev-parse", "HEAD") || w.DirtyCount != 0 || w.WorkTree != unborn.WorkTree {
			t.Errorf("%v: after the first commit: %+v, the tree was %s", args, w, unborn.WorkTree)
		}
		fresh.write("b", "b")
		if d := cmp.Diff([]string{"b (added)"}, fresh.changed(unborn)); d != "" {
			t.Error(d)
		}
	}
}

// TestChanges checks each way to change a file after the start of a run.
func TestChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(r repo)
		want   []string
	}{
		"nothing":  {func(repo) {}, nil},
		"content":  {func(r repo) { r.write("src/a_test.go", "package b") }, []string{"src/a_test.go (modified)"}},
		"deletion": {func(r repo) { _ = os.Remove(r.path("src/a_test.go")) }, []string{"src/a_test.go (deleted)"}},
		"mode":     {func(r repo) { _ = os.Chmod(r.path("src/a_test.go"), 0o755) }, []string{"src/a_test.go (mode 100755, was 100644)"}},
		"rename": {
			func(r repo) { r.git("mv", "src/a_test.go", "src/b_test.go") },
			[]string{"src/a_test.go (deleted)", "src/b_test.go (added)"},
		},
		"a rename out of the globs":  {func(r repo) { r.git("mv", "src/a_test.go", "src/b.txt") }, []string{"src/a_test.go (deleted)"}},
		"an untracked file":          {func(r repo) { r.write("new/x_test.go", "x") }, []string{"new/x_test.go (added)"}},
		"a file that is not matched": {func(r repo) { r.write("src/a.go", "x") }, nil},
		"a committed change": {
			func(r repo) { r.write("src/a_test.go", "x"); r.commit("weaken") }, []string{"src/a_test.go (modified)"},
		},
		"a commit whose file was restored": {
			func(r repo) {
				r.write("src/a_test.go", "x")
				r.commit("weaken")
				r.write("src/a_test.go", "package a // test\n")
			},
			[]string{"src/a_test.go (committed or staged)"},
		},
		"a staged change whose file was restored": {
			func(r repo) {
				r.write("src/a_test.go", "x")
				r.git("add", "-A")
				r.write("src/a_test.go", "package a // test\n")
			},
			[]string{"src/a_test.go (committed or staged)"},
		},
		"different commits, stages and files": {
			func(r repo) {
				r.write("src/a_test.go", "x")
				r.commit("weaken")
				r.write("src/a_test.go", "y")
				r.git("add", "-A")
				r.write("src/a_test.go", "z")
			},
			[]string{"src/a_test.go (modified)", "src/a_test.go (committed or staged)", "src/a_test.go (committed or staged)"},
		},
		"a commit that was reverted": {
			func(r repo) { r.write("src/a_test.go", "x"); r.commit("weaken"); r.git("revert", "--no-edit", "HEAD") }, nil,
		},
		"assume-unchanged": {
			func(r repo) {
				r.git("update-index", "--assume-unchanged", "src/a_test.go")
				r.write("src/a_test.go", "x")
			},
			[]string{"src/a_test.go (modified)"},
		},
		"skip-worktree": {
			func(r repo) {
				r.git("update-index", "--skip-worktree", "src/a_test.go")
				_ = os.Remove(r.path("src/a_test.go"))
			},
			[]string{"src/a_test.go (deleted)"},
		},
		"a personal list of ignored files": {
			func(r repo) { r.write(".git/info/exclude", "*_test.go\n"); r.write("src/z_test.go", "x") }, []string{"src/z_test.go (added)"},
		},
		"core.excludesFile": {
			func(r repo) {
				r.write(".git/hidden", "*_test.go\n")
				r.git("config", "core.excludesFile", r.path(".git/hidden"))
				r.write("src/z_test.go", "x")
			},
			[]string{"src/z_test.go (added)"},
		},
		"a changed .gitignore": {
			func(r repo) {
				r.write(".gitignore", "ignored/\n*.log\nz_test.go\n")
				r.write("src/z_test.go", "x")
				r.write("ignored/y_test.go", "was ignored at the start")
			},
			[]string{"src/z_test.go (added)"},
		},
		"a new .gitignore": {
			func(r repo) { r.write("src/.gitignore", "*\n"); r.write("src/z_test.go", "x") }, []string{"src/z_test.go (added)"},
		},
		"a tool's directory": {
			func(r repo) {
				r.write(".cache/.gitignore", "*\n")
				r.write(".cache/z.txt", "x")
				r.write("ignored/z_test.go", "x")
			}, nil,
		},
		"a directory that became a link": {
			func(r repo) { _ = os.Rename(r.path("src"), r.path("other")); _ = os.Symlink("other", r.path("src")) },
			[]string{"other/a_test.go (added)", "src/a_test.go (deleted)"},
		},
		"a file that became a link": {
			func(r repo) {
				_ = os.Rename(r.path("src/a_test.go"), r.path("src/a.txt"))
				_ = os.Symlink("a.txt", r.path("src/a_test.go"))
			},
			[]string{"src/a_test.go (mode 120000, was 100644)"},
		},
		"a new repository": {
			func(r repo) { r.git("init", "-q", "nested"); r.write("nested/z_test.go", "x") }, []string{"nested (added)"},
		},
		"a forged index": {
			func(r repo) {
				old := r.git("rev-parse", "HEAD:src/a_test.go")
				r.write("src/a_test.go", "x")
				r.git("add", "-A")
				r.git("update-index", "--cacheinfo", "100644,"+old+",src/a_test.go")
			},
			[]string{"src/a_test.go (modified)"},
		},
		"a removed index":   {func(r repo) { _ = os.Remove(r.path(".git/index")); r.write("src/a_test.go", "x") }, []string{"src/a_test.go (modified)", "src/a_test.go (committed or staged)"}},
		"a replaced commit": {func(r repo) { replaceCommit(r) }, []string{"src/a_test.go (modified)"}},
		"a commit elsewhere": {func(r repo) {
			r.git("checkout", "-q", "--orphan", "other")
			r.write("src/a_test.go", "x")
			r.commit("other")
		}, []string{"src/a_test.go (modified)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			start := r.start()
			tt.change(r)
			got := r.changed(start, "**/*_test.go")
			if runtime.GOOS == "windows" && name == "mode" {
				tt.want = nil
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// replaceCommit makes git show another tree for the first commit.
func replaceCommit(r repo) {
	first := r.git("rev-parse", "HEAD")
	r.write("src/a_test.go", "x")
	r.commit("weaken")
	r.git("replace", first, r.git("rev-parse", "HEAD"))
	r.git("reset", "-q", "--soft", first)
}

// TestForgedTree checks that a tree whose content does not have its hash is refused.
func TestForgedTree(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	start := r.start()
	old := r.git("rev-parse", "HEAD:src")
	r.write("src/a_test.go", "x")
	r.git("add", "-A")
	forged := r.git("write-tree")
	forged = r.git("rev-parse", forged+":src")
	object := func(hash string) string { return r.path(".git/objects/" + hash[:2] + "/" + hash[2:]) }
	check(t, os.Chmod(object(old), 0o644))
	content, err := os.ReadFile(object(forged))
	check(t, err)
	check(t, os.WriteFile(object(old), content, 0o644))
	r.r = worktree.NewReader(nil)
	if s, err := r.r.Read(t.Context(), r.dir); err == nil {
		changes, err := r.r.Changes(t.Context(), s, start, nil)
		t.Errorf("a forged tree is accepted: %v, %v", changes, err)
	}
}

// TestDirtyStart checks that a file that was dirty at the start must stay as it was, and may
// be committed.
func TestDirtyStart(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("src/a_test.go", "draft")
	r.write("src/b_test.go", "new draft")
	r.write("src/c_test.go", "staged")
	r.git("add", "src/c_test.go")
	r.write("src/c_test.go", "draft after staged")
	start := r.start()
	if got := r.changed(start); got != nil {
		t.Errorf("nothing changed: %v", got)
	}
	r.commit("the draft")
	if got := r.changed(start); got != nil {
		t.Errorf("the draft was committed: %v", got)
	}
	r.git("checkout", "-q", "HEAD~1", "--", "src/a_test.go")
	r.write("src/b_test.go", "other")
	check(t, os.Remove(r.path("src/c_test.go")))
	want := []string{"src/a_test.go (modified)", "src/b_test.go (modified)", "src/c_test.go (deleted)"}
	if d := cmp.Diff(want, r.changed(start)); d != "" {
		t.Error(d)
	}
}

// TestManyDirtyFiles checks a start with more dirty files than are recorded.
func TestManyDirtyFiles(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for i := range evidence.MaxDirty + 3 {
		r.write("drafts/"+strings.Repeat("x", i+1)+"_test.go", "draft")
	}
	start := r.start()
	if start.DirtyCount != evidence.MaxDirty+3 || len(start.Dirty) != evidence.MaxDirty {
		t.Fatalf("%d of %d are recorded", len(start.Dirty), start.DirtyCount)
	}
	if got := r.changed(start, "**/*_test.go"); got != nil {
		t.Errorf("nothing changed: %v", got)
	}
	r.write("src/a_test.go", "x")
	if got := r.changed(start, "**/*_test.go"); !slices.Contains(got, "src/a_test.go (modified)") {
		t.Errorf("the change is not in %v", got)
	}
}

// TestSubmodule checks that changes in a submodule are changes of its path.
func TestSubmodule(t *testing.T) {
	t.Parallel()
	r, lib := newRepo(t), newRepo(t)
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "vendor/lib")
	r.commit("add lib")
	start := r.start()
	if start.DirtyCount != 0 {
		t.Fatalf("%+v", start)
	}
	r.write("vendor/lib/src/a_test.go", "x")
	if d := cmp.Diff([]string{"vendor/lib (modified)"}, r.changed(start, "vendor/lib/src/*_test.go")); d != "" {
		t.Error(d)
	}
	if got := r.changed(start, "src/**"); got != nil {
		t.Errorf("globs that cannot match in the submodule match %v", got)
	}
	r.write("vendor/lib/src/a_test.go", "package a // test\n")
	if got := r.changed(start); got != nil {
		t.Errorf("the submodule is as it was: %v", got)
	}
	check(t, os.RemoveAll(r.path("vendor/lib/.git")))
	if d := cmp.Diff([]string{"vendor/lib (modified)"}, r.changed(start)); d != "" {
		t.Error(d)
	}
}

// TestUnknownStart checks the errors for a recorded start with which the work tree cannot
// be compared.
func TestUnknownStart(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	start := r.start()
	check(t, os.RemoveAll(r.path(".git")))
	r.git("init", "-q")
	r.commit("another repository")
	s, err := worktree.NewReader(nil).Read(t.Context(), r.dir)
	check(t, err)
	gone := *start
	gone.Commit = strings.Repeat("1", 40)
	for name, w := range map[string]*evidence.Workspace{"nil": nil, "another repository": &gone, "no states": {Dirty: []string{"a"}}} {
		if _, err := worktree.NewReader(nil).Changes(t.Context(), s, w, nil); guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingIsExecuted reads a repository whose settings, attributes and hooks name
// programs everywhere.
func TestNothingIsExecuted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this test needs shell scripts")
	}
	r := newRepo(t)
	start := r.start()
	touched := filepath.Join(t.TempDir(), "touched")
	evil := filepath.Join(t.TempDir(), "evil")
	check(t, os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >>"+touched+"\ncat\nexit 1\n"), 0o755))
	hooks := filepath.Join(r.dir, ".git", "hooks")
	check(t, os.RemoveAll(hooks))
	check(t, os.MkdirAll(hooks, 0o755))
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout", "pre-auto-gc", "query-watchman"} {
		check(t, os.Symlink(evil, filepath.Join(hooks, hook)))
	}
	settings := [][2]string{
		{"core.fsmonitor", evil},
		{"core.hooksPath", hooks},
		{"core.sshCommand", evil},
		{"core.pager", evil},
		{"pager.ls-files", evil},
		{"core.editor", evil},
		{"core.gitProxy", evil},
		{"core.alternateRefsCommand", evil},
		{"core.askPass", evil},
		{"credential.helper", "!" + evil},
		{"filter.evil.clean", evil},
		{"filter.evil.smudge", evil},
		{"filter.evil.process", evil},
		{"filter.evil.required", "true"},
		{"diff.external", evil},
		{"diff.evil.command", evil},
		{"diff.evil.textconv", evil},
		{"merge.evil.driver", evil},
		{"gpg.program", evil},
		{"gpg.ssh.program", evil},
		{"alias.ls-files", "!" + evil},
		{"alias.cat-file", "!" + evil},
		{"trace2.eventTarget", touched},
		{"uploadpack.packObjectsHook", evil},
		{"extensions.partialClone", "origin"},
		{"remote.origin.promisor", "true"},
		{"remote.origin.url", "ext::" + evil},
		{"remote.origin.vcs", evil},
		{"protocol.allow", "always"},
		{"core.worktree", t.TempDir()},
		{"include.path", filepath.Join(r.dir, "included")},
		{"submodule.recurse", "true"},
		{"core.untrackedCache", "true"},
		{"feature.manyFiles", "true"},
	}
	r.write("included", "[core]\n\tfsmonitor = "+evil+"\n")
	r.write(".gitattributes", "* filter=evil diff=evil merge=evil text working-tree-encoding=UTF-16 ident\n")
	for _, s := range settings {
		r.setting(s[0], s[1])
	}
	r.write(".git/info/attributes", "* filter=evil diff=evil\n")
	user := filepath.Join(t.TempDir(), "gitconfig")
	check(t, os.WriteFile(user, []byte("[core]\n\tfsmonitor = "+evil+"\n[filter \"evil\"]\n\tclean = "+evil+"\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", user)
	t.Setenv("GIT_EXTERNAL_DIFF", evil)
	t.Setenv("GIT_SSH_COMMAND", evil)
	t.Setenv("GIT_DIR", t.TempDir())
	r.write("src/a_test.go", "x")
	r.write("src/.gitignore", "nothing")
	fresh := repo{t, r.dir, worktree.NewReader(nil)}
	want := []string{".gitattributes (added)", "included (added)", "src/.gitignore (added)", "src/a_test.go (modified)"}
	if d := cmp.Diff(want, fresh.changed(start)); d != "" {
		t.Error(d)
	}
	// A partial clone would fetch this object.
	missing := worktree.Change{Path: "none", Start: "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}
	if before, _, err := fresh.r.Content(t.Context(), fresh.read(), missing); err != nil || before != nil {
		t.Errorf("a missing object has the content %q, %v", before, err)
	}
	if text, err := os.ReadFile(touched); err == nil {
		t.Errorf("programs were executed:\n%s", text)
	}
	// The same reads with these settings do execute a program.
	cmd := exec.CommandContext(t.Context(), "git", "-C", r.dir, "-c", "core.worktree="+r.dir, "status", "--short")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GIT_DIR=") })
	_ = cmd.Run()
	if _, err := os.Stat(touched); err != nil {
		t.Errorf("the settings have no effect on git status: %v", err)
	}
}

// setting appends a setting to the configuration of the repository.
func (r repo) setting(key, value string) {
	r.t.Helper()
	section, name := key[:strings.LastIndex(key, ".")], key[strings.LastIndex(key, ".")+1:]
	if first, rest, ok := strings.Cut(section, "."); ok {
		section = first + " \"" + rest + "\""
	}
	file, err := os.OpenFile(r.path(".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	check(r.t, err)
	_, err = file.WriteString("[" + section + "]\n\t" + name + " = \"" + value + "\"\n")
	check(r.t, err)
	check(r.t, file.Close())
}

// TestSpecialFiles checks that named pipes, also in the place of git's own files, do not make
// a read wait.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"src/a_test.go": true, ".git/config": true, ".git/info/exclude": true, ".git/info/attributes": true, ".git/index": false} {
		r := newRepo(t)
		start := r.start()
		_ = os.Remove(r.path(name))
		if err := mkfifo(r.path(name)); err != nil {
			t.Skip(err)
		}
		s, err := r.r.Read(t.Context(), r.dir)
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if name != "src/a_test.go" {
			continue
		}
		changes, err := r.r.Changes(t.Context(), s, start, nil)
		if err != nil || len(changes) != 1 || !strings.Contains(changes[0].Now, "a-named-pipe") {
			t.Errorf("%v, %v", changes, err)
		}
	}
}

// TestToolDirectories checks that a directory that was ignored by its own list at the start
// stays ignored, and that a changed list does not hide files.
func TestToolDirectories(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write(".venv/.gitignore", "*\n")
	r.write(".venv/x_test.go", "x")
	start := r.start()
	r.write("tool/.gitignore", "*\n")
	r.write("tool/x.txt", "x")
	if got := r.changed(start, "**/*_test.go"); start.DirtyCount != 0 || len(start.IgnoreFiles) != 1 || got != nil {
		t.Errorf("%v at the start, %v", start, got)
	}
	r.write("tool/x_test.go", "x")
	if d := cmp.Diff([]string{"tool/x_test.go (added)"}, r.changed(start, "**/*_test.go")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string(nil), r.changed(start)); d != "" {
		t.Error(d)
	}
}

// TestContentOfAnotherVersion checks that the content of a changed file is never that of a
// later version, because a person approves it.
func TestContentOfAnotherVersion(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1\n")
	r.commit("one")
	start := r.start()
	r.write("a", "2\n")
	reader := worktree.NewReader(nil)
	s, err := reader.Read(t.Context(), r.dir)
	check(t, err)
	changes, err := reader.Changes(t.Context(), s, start, nil)
	check(t, err)
	if before, now, err := reader.Content(t.Context(), s, changes[0]); err != nil || string(before) != "1\n" || string(now) != "2\n" {
		t.Fatalf("%q, %q, %v", before, now, err)
	}
	r.write("a", "3\n")
	if _, now, err := reader.Content(t.Context(), s, changes[0]); guideway.ErrorCode(err) != guideway.CodeConflict || now != nil {
		t.Errorf("%q, %v", now, err)
	}
}

// TestSameTimes checks that a file is read again after a change that keeps its size and its
// time of modification.
func TestSameTimes(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	old := time.Now().Add(-time.Hour)
	r.write("src/a_test.go", "package a // one!\n")
	check(t, os.Chtimes(r.path("src/a_test.go"), old, old))
	r.commit("one")
	// At a later time, the hash of the file is remembered.
	r.r = worktree.NewReader(func() time.Time { return time.Now().Add(time.Minute) })
	start := r.start()
	if got := r.changed(start); got != nil {
		t.Fatal(got)
	}
	r.write("src/a_test.go", "package a // two!\n")
	check(t, os.Chtimes(r.path("src/a_test.go"), old, old))
	if d := cmp.Diff([]string{"src/a_test.go (modified)"}, r.changed(start)); d != "" {
		t.Error(d)
	}
}
