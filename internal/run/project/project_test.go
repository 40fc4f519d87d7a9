package project

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
)

const (
	commitA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	sha256C = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

// tree is a temporary directory with a canonical path.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) tree {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tree{t, root}
}

func (x tree) pathOf(name string) string { return filepath.Join(x.root, filepath.FromSlash(name)) }

// makeDir creates a directory.
func (x tree) makeDir(name string) string {
	x.t.Helper()
	if err := os.MkdirAll(x.pathOf(name), 0o700); err != nil {
		x.t.Fatal(err)
	}
	return x.pathOf(name)
}

func (x tree) writeFile(name, content string) {
	x.t.Helper()
	x.makeDir(filepath.Dir(name))
	if err := os.WriteFile(x.pathOf(name), []byte(content), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// makeLink creates a symbolic link, or skips the test if links are not supported.
func (x tree) makeLink(target, name string) {
	x.t.Helper()
	x.makeDir(filepath.Dir(name))
	if err := os.Symlink(target, x.pathOf(name)); err != nil {
		x.t.Skipf("this system cannot create symbolic links: %v", err)
	}
}

// addRepository creates the files of a Git repository.
func (x tree) addRepository(name, head string) {
	x.t.Helper()
	x.makeDir(name + "/objects")
	x.makeDir(name + "/refs/heads")
	x.writeFile(name+"/HEAD", head)
}

// addWorktree links a work tree to a repository, like git worktree add.
func (x tree) addWorktree(repository, name, head string) {
	x.t.Helper()
	own := repository + "/worktrees/" + filepath.Base(name)
	x.writeFile(own+"/HEAD", head)
	x.writeFile(own+"/commondir", "../..\n")
	x.writeFile(own+"/gitdir", x.pathOf(name+"/.git")+"\n")
	x.writeFile(name+"/.git", "gitdir: "+x.pathOf(own)+"\n")
}

func detectProject(t *testing.T, dir string) Project {
	t.Helper()
	p, err := Detect(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wantProject compares a project with the expected one. The id follows from the root.
func wantProject(t *testing.T, dir string, want Project) {
	t.Helper()
	want.ID = ID(want.Root)
	if diff := cmp.Diff(want, detectProject(t, dir)); diff != "" {
		t.Errorf("of %s (-want +got):\n%s", dir, diff)
	}
}

func TestDirectoryWithoutRepository(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	one, two := x.makeDir("one"), x.makeDir("one/two")
	wantProject(t, one, Project{Root: one, Path: one})
	wantProject(t, two, Project{Root: two, Path: two})
	if id := detectProject(t, one).ID; !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("the id is %q", id)
	}
}

func TestIDIsHashOfPath(t *testing.T) {
	t.Parallel()
	// printf /srv/code/app | sha256sum | cut -c1-12
	if got := ID("/srv/code/app"); got != "99bd4c7cd509" {
		t.Errorf("got %s", got)
	}
}

func TestDirectoriesOfWorkTree(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.addRepository("app/.git", "ref: refs/heads/feature/login\n")
	x.writeFile("app/.git/refs/heads/feature/login", commitA+"\n")
	app := x.pathOf("app")
	for _, dir := range []string{app, x.makeDir("app/a/b"), x.pathOf("app/.git"), x.pathOf("app/.git/refs")} {
		got := detectProject(t, dir)
		if got.Root != app || got.ID != ID(app) || got.Branch != "feature/login" || got.Commit != commitA {
			t.Errorf("the project of %s is %+v", dir, got)
		}
	}
	wantProject(t, x.pathOf("app/a/b"), Project{Root: app, Path: app, Branch: "feature/login", Commit: commitA})
}

func TestWorkTreesShareProject(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.addRepository("app/.git", "ref: refs/heads/main\n")
	x.writeFile("app/.git/packed-refs", "# pack-refs with: peeled fully-peeled sorted \n"+
		commitA+" refs/heads/main\n"+commitB+" refs/heads/other\n^"+commitA+"\n")
	x.addWorktree("app/.git", "linked", "ref: refs/heads/other\n")
	x.addWorktree("app/.git", "elsewhere/detached", sha256C+"\n")
	app := x.pathOf("app")
	wantProject(t, app, Project{Root: app, Path: app, Branch: "main", Commit: commitA})
	wantProject(t, x.makeDir("linked/deep"), Project{Root: app, Path: x.pathOf("linked"), Branch: "other", Commit: commitB})
	wantProject(t, x.pathOf("elsewhere/detached"), Project{Root: app, Path: x.pathOf("elsewhere/detached"), Commit: sha256C})
}

func TestClonesAreSeparateProjects(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.addRepository("one/.git", commitA)
	x.addRepository("two/.git", commitA)
	if detectProject(t, x.pathOf("one")).ID == detectProject(t, x.pathOf("two")).ID {
		t.Error("both directories have the same id")
	}
}

func TestSubmodule(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.addRepository("app/.git", "ref: refs/heads/main\n")
	x.addRepository("app/.git/modules/lib", "ref: refs/heads/lib\n")
	x.writeFile("app/.git/modules/lib/config", "[core]\n\tbare = false\n\tworktree = ../../../vendor/lib\n[other]\n\tworktree = /nowhere\n")
	x.writeFile("app/vendor/lib/.git", "gitdir: ../../.git/modules/lib\n")
	x.addWorktree("app/.git/modules/lib", "lib-linked", "ref: refs/heads/topic\n")
	lib := x.pathOf("app/vendor/lib")
	wantProject(t, lib, Project{Root: lib, Path: lib, Branch: "lib"})
	wantProject(t, x.pathOf("lib-linked"), Project{Root: lib, Path: x.pathOf("lib-linked"), Branch: "topic"})
	wantProject(t, x.pathOf("app/vendor"), Project{Root: x.pathOf("app"), Path: x.pathOf("app"), Branch: "main"})
}

func TestBareRepositories(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.addRepository("app.git", "ref: refs/heads/main\n")
	x.addWorktree("app.git", "linked", "ref: refs/heads/topic\n")
	bare := x.pathOf("app.git")
	wantProject(t, bare, Project{Root: bare, Path: bare, Branch: "main"})
	wantProject(t, x.pathOf("linked"), Project{Root: bare, Path: x.pathOf("linked"), Branch: "topic"})

	// A directory with only a bare repository and work trees.
	x.addRepository("proj/.bare", "ref: refs/heads/main\n")
	x.writeFile("proj/.git", "gitdir: ./.bare\n")
	x.addWorktree("proj/.bare", "proj/topic", "ref: refs/heads/topic\n")
	if a, b := detectProject(t, x.pathOf("proj")), detectProject(t, x.pathOf("proj/topic")); a.ID != b.ID {
		t.Errorf("%+v and %+v are different projects", a, b)
	}
}

func TestSymbolicLinksAreResolved(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.addRepository("app/.git", "ref: refs/heads/main\n")
	x.makeLink(x.pathOf("app"), "alias")
	x.makeLink(x.pathOf("app/.git"), "second/.git")
	app := x.pathOf("app")
	wantProject(t, x.pathOf("alias"), Project{Root: app, Path: app, Branch: "main"})
	wantProject(t, x.pathOf("second"), Project{Root: app, Path: x.pathOf("second"), Branch: "main"})

	// The head of an old repository is a link. Before the first commit its target does not
	// exist.
	x.makeDir("old/.git/objects")
	x.makeDir("old/.git/refs/heads")
	x.makeLink("refs/heads/master", "old/.git/HEAD")
	wantProject(t, x.pathOf("old"), Project{Root: x.pathOf("old"), Path: x.pathOf("old"), Branch: "master"})
}

func TestHeads(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, head     string
		files          map[string]string
		branch, commit string
	}{
		{"before the first commit", "ref: refs/heads/main\n", nil, "main", ""},
		{"loose before packed", "ref: refs/heads/main\n", map[string]string{
			"refs/heads/main": commitB + "\n", "packed-refs": commitA + " refs/heads/main\n",
		}, "main", commitB},
		{"a branch that is an alias", "ref: refs/heads/alias\n", map[string]string{
			"refs/heads/alias": "ref: refs/heads/real\n", "packed-refs": commitA + " refs/heads/real",
		}, "alias", commitA},
		{"branches in a cycle", "ref: refs/heads/a\n", map[string]string{
			"refs/heads/a": "ref: refs/heads/b\n", "refs/heads/b": "ref: refs/heads/a\n",
		}, "a", ""},
		{"not a branch", "ref: refs/remotes/origin/x\n", map[string]string{
			"refs/remotes/origin/x": commitA,
		}, "refs/remotes/origin/x", commitA},
		{"reftable", "ref: refs/heads/.invalid\n", map[string]string{
			"refs/heads": "this repository uses the reftable format\n", "reftable/tables.list": "x\n",
		}, "", ""},
		{"packed after a long line", "ref: refs/heads/main\n", map[string]string{
			"packed-refs": strings.Repeat("x", 200_000) + "\n" + commitA + " refs/heads/main\n",
		}, "main", commitA},
		{"an invalid commit", "ref: refs/heads/main\n", map[string]string{
			"refs/heads/main": "not a commit\n", "packed-refs": "zzz refs/heads/main\n",
		}, "main", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.addRepository("app/.git", tt.head)
			if tt.files["refs/heads"] != "" {
				if err := os.Remove(x.pathOf("app/.git/refs/heads")); err != nil {
					t.Fatal(err)
				}
			}
			for name, content := range tt.files {
				x.writeFile("app/.git/"+name, content)
			}
			app := x.pathOf("app")
			wantProject(t, app, Project{Root: app, Path: app, Branch: tt.branch, Commit: tt.commit})
		})
	}
}

// TestHostileRepositories checks that Detect ignores a damaged or malicious repository: the
// project is the directory itself, without a branch or a commit. The text of another file
// is not disclosed.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	secret := "secret-of-another-file"
	tests := []struct {
		name string
		make func(x tree)
	}{
		{"an empty .git file", func(x tree) { x.writeFile("app/.git", "") }},
		{"a .git file without a path", func(x tree) { x.writeFile("app/.git", "gitdir:   \n") }},
		{"a .git file with a null byte", func(x tree) { x.writeFile("app/.git", "gitdir: a\x00b\n") }},
		{"a .git file that refers to itself", func(x tree) { x.writeFile("app/.git", "gitdir: .git\n") }},
		{"a .git file with a missing target", func(x tree) { x.writeFile("app/.git", "gitdir: ../../../../../../nowhere\n") }},
		{"an endless .git file", func(x tree) {
			x.writeFile("app/.git", "gitdir: "+strings.Repeat("a/", 1<<20)+"\n")
		}},
		{"an empty .git directory", func(x tree) { x.makeDir("app/.git") }},
		{"a .git link in a cycle", func(x tree) { x.makeLink(".git", "app/.git") }},
		{"a .git link to an endless device", func(x tree) { x.makeLink("/dev/zero", "app/.git") }},
		{"a head that is an endless device", func(x tree) {
			x.addRepository("app/.git", "")
			_ = os.Remove(x.pathOf("app/.git/HEAD"))
			x.makeLink("/dev/zero", "app/.git/HEAD")
		}},
		{"a head that refers to another file", func(x tree) {
			x.writeFile("secret", secret)
			x.addRepository("app/.git", "")
			_ = os.Remove(x.pathOf("app/.git/HEAD"))
			x.makeLink(x.pathOf("secret"), "app/.git/HEAD")
		}},
		{"a head outside the repository", func(x tree) {
			x.writeFile("secret", secret)
			x.addRepository("app/.git", "ref: refs/heads/../../../../secret\n")
		}},
		{"a head with an escape sequence", func(x tree) { x.addRepository("app/.git", "ref: refs/heads/\x1b[2J\n") }},
		{"a head with a second line", func(x tree) { x.addRepository("app/.git", "ref: refs/heads/a\nb\n") }},
		{"a commondir with a missing target", func(x tree) {
			x.addRepository("app/.git", commitA)
			x.writeFile("app/.git/commondir", "../../nowhere\n")
		}},
		{"a commondir that is not a repository", func(x tree) {
			x.addRepository("app/.git", commitA)
			x.makeDir("other")
			x.writeFile("app/.git/commondir", "../../other\n")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.makeDir("app")
			tt.make(x)
			app := x.pathOf("app")
			wantProject(t, app, Project{Root: app, Path: app})
		})
	}
}

func TestReferenceDoesNotDiscloseFiles(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.writeFile("secret", "secret-of-another-file\n")
	x.addRepository("app/.git", "ref: refs/heads/main\n")
	x.makeLink(x.pathOf("secret"), "app/.git/refs/heads/main")
	x.makeLink("/dev/zero", "app/.git/packed-refs")
	app := x.pathOf("app")
	wantProject(t, app, Project{Root: app, Path: app, Branch: "main"})
}

func TestMissingDirectory(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.writeFile("file", "")
	for _, dir := range []string{x.pathOf("nowhere"), x.pathOf("file"), "a\x00b"} {
		_, err := Detect(dir)
		if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
			t.Errorf("%q: %v", dir, err)
		}
		if strings.HasSuffix(dir, "file") && !strings.HasSuffix(err.Error(), "file: not a directory") {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

func FuzzGitFiles(f *testing.F) {
	f.Add("gitdir: ../repo\n", "ref: refs/heads/main\n", "../..\n", "[core]\nworktree = \"../x\"\n")
	f.Add("gitdir: /\n", commitA, ".", "[ core ]\n\tworktree=/\n")
	f.Add("", "ref:refs/heads/a..b", "", "[core")
	f.Fuzz(func(t *testing.T, git, head, common, config string) {
		x := newTree(t)
		x.writeFile("app/.git", git)
		x.addRepository("repo", head)
		x.writeFile("repo/commondir", common)
		x.writeFile("repo/config", config)
		for _, dir := range []string{"app", "repo"} {
			p := detectProject(t, x.pathOf(dir))
			if p.ID != ID(p.Root) || !filepath.IsAbs(p.Root) || !filepath.IsAbs(p.Path) {
				t.Errorf("got %+v", p)
			}
			if p.Commit != "" && !hash().MatchString(p.Commit) {
				t.Errorf("the commit is %q", p.Commit)
			}
			if strings.ContainsAny(p.Branch, "\n\x1b\x00") {
				t.Errorf("the branch is %q", p.Branch)
			}
		}
	})
}

func TestNetworkPathsAreNotAccessed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "windows" {
		t.Skip("only Windows has paths to other machines")
	}
	if got := resolvePath(`C:\app`, `\\example.com\share\repo`); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestNetworkPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{`\\server\share`, `//server/share`, `\/server\share\app`, `\\server`, `\\?\UNC\server\share`, `\\.\UNC\server\share`, `\??\UNC\server\share`, `/??/UNC/server/share`} {
		if !IsNetworkPath(path, "windows") || IsNetworkPath(path, "linux") || IsNetworkPath(path, "darwin") {
			t.Errorf("%s: wrong", path)
		}
	}
	for _, path := range []string{"", `\`, `\work`, `C:\work`, `C:/work`, `C:\\work`, `work\\app`, "work", `\?`, `.\x`} {
		if IsNetworkPath(path, "windows") {
			t.Errorf("%s: a path of this machine", path)
		}
	}
}
