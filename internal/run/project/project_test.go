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

// tree is a directory of the test's, under its one name.
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

func (x tree) path(name string) string { return filepath.Join(x.root, filepath.FromSlash(name)) }

// dir makes a directory.
func (x tree) dir(name string) string {
	x.t.Helper()
	if err := os.MkdirAll(x.path(name), 0o700); err != nil {
		x.t.Fatal(err)
	}
	return x.path(name)
}

// file writes a file.
func (x tree) file(name, content string) {
	x.t.Helper()
	x.dir(filepath.Dir(name))
	if err := os.WriteFile(x.path(name), []byte(content), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// link makes a symbolic link, or skips the test where that is not allowed.
func (x tree) link(target, name string) {
	x.t.Helper()
	x.dir(filepath.Dir(name))
	if err := os.Symlink(target, x.path(name)); err != nil {
		x.t.Skipf("this system makes no symbolic links: %v", err)
	}
}

// repository makes what Git keeps a repository in.
func (x tree) repository(name, head string) {
	x.t.Helper()
	x.dir(name + "/objects")
	x.dir(name + "/refs/heads")
	x.file(name+"/HEAD", head)
}

// worktree links a work tree to a repository, as git worktree add does.
func (x tree) worktree(repository, name, head string) {
	x.t.Helper()
	own := repository + "/worktrees/" + filepath.Base(name)
	x.file(own+"/HEAD", head)
	x.file(own+"/commondir", "../..\n")
	x.file(own+"/gitdir", x.path(name+"/.git")+"\n")
	x.file(name+"/.git", "gitdir: "+x.path(own)+"\n")
}

func detect(t *testing.T, dir string) Project {
	t.Helper()
	p, err := Detect(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// want compares a project with what it should be; the id follows from the root.
func want(t *testing.T, dir string, want Project) {
	t.Helper()
	want.ID = ID(want.Root)
	if diff := cmp.Diff(want, detect(t, dir)); diff != "" {
		t.Errorf("of %s (-want +got):\n%s", dir, diff)
	}
}

func TestADirectoryWithoutARepositoryIsAProjectOfItsOwn(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	one, two := x.dir("one"), x.dir("one/two")
	want(t, one, Project{Root: one, Path: one})
	want(t, two, Project{Root: two, Path: two})
	if id := detect(t, one).ID; !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("the id is %q", id)
	}
}

func TestTheIDIsTheHashOfThePath(t *testing.T) {
	t.Parallel()
	// printf /srv/code/app | sha256sum | cut -c1-12
	if got := ID("/srv/code/app"); got != "99bd4c7cd509" {
		t.Errorf("got %s", got)
	}
}

func TestEveryDirectoryOfAWorkTreeIsTheSameProject(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.repository("app/.git", "ref: refs/heads/feature/login\n")
	x.file("app/.git/refs/heads/feature/login", commitA+"\n")
	app := x.path("app")
	for _, dir := range []string{app, x.dir("app/a/b"), x.path("app/.git"), x.path("app/.git/refs")} {
		got := detect(t, dir)
		if got.Root != app || got.ID != ID(app) || got.Branch != "feature/login" || got.Commit != commitA {
			t.Errorf("%s is of %+v", dir, got)
		}
	}
	want(t, x.path("app/a/b"), Project{Root: app, Path: app, Branch: "feature/login", Commit: commitA})
}

func TestAllWorkTreesOfARepositoryAreOneProject(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.repository("app/.git", "ref: refs/heads/main\n")
	x.file("app/.git/packed-refs", "# pack-refs with: peeled fully-peeled sorted \n"+
		commitA+" refs/heads/main\n"+commitB+" refs/heads/other\n^"+commitA+"\n")
	x.worktree("app/.git", "linked", "ref: refs/heads/other\n")
	x.worktree("app/.git", "elsewhere/detached", sha256C+"\n")
	app := x.path("app")
	want(t, app, Project{Root: app, Path: app, Branch: "main", Commit: commitA})
	want(t, x.dir("linked/deep"), Project{Root: app, Path: x.path("linked"), Branch: "other", Commit: commitB})
	want(t, x.path("elsewhere/detached"), Project{Root: app, Path: x.path("elsewhere/detached"), Commit: sha256C})
}

func TestTwoClonesAreTwoProjects(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.repository("one/.git", commitA)
	x.repository("two/.git", commitA)
	if detect(t, x.path("one")).ID == detect(t, x.path("two")).ID {
		t.Error("they have the same id")
	}
}

func TestASubmoduleIsAProjectOfItsOwn(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.repository("app/.git", "ref: refs/heads/main\n")
	x.repository("app/.git/modules/lib", "ref: refs/heads/lib\n")
	x.file("app/.git/modules/lib/config", "[core]\n\tbare = false\n\tworktree = ../../../vendor/lib\n[other]\n\tworktree = /nowhere\n")
	x.file("app/vendor/lib/.git", "gitdir: ../../.git/modules/lib\n")
	x.worktree("app/.git/modules/lib", "lib-linked", "ref: refs/heads/topic\n")
	lib := x.path("app/vendor/lib")
	want(t, lib, Project{Root: lib, Path: lib, Branch: "lib"})
	want(t, x.path("lib-linked"), Project{Root: lib, Path: x.path("lib-linked"), Branch: "topic"})
	want(t, x.path("app/vendor"), Project{Root: x.path("app"), Path: x.path("app"), Branch: "main"})
}

func TestBareRepositories(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.repository("app.git", "ref: refs/heads/main\n")
	x.worktree("app.git", "linked", "ref: refs/heads/topic\n")
	bare := x.path("app.git")
	want(t, bare, Project{Root: bare, Path: bare, Branch: "main"})
	want(t, x.path("linked"), Project{Root: bare, Path: x.path("linked"), Branch: "topic"})

	// A directory with nothing but a bare repository and work trees.
	x.repository("proj/.bare", "ref: refs/heads/main\n")
	x.file("proj/.git", "gitdir: ./.bare\n")
	x.worktree("proj/.bare", "proj/topic", "ref: refs/heads/topic\n")
	if a, b := detect(t, x.path("proj")), detect(t, x.path("proj/topic")); a.ID != b.ID {
		t.Errorf("%+v and %+v are two projects", a, b)
	}
}

func TestSymbolicLinksDoNotMakeAnotherProject(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.repository("app/.git", "ref: refs/heads/main\n")
	x.link(x.path("app"), "alias")
	x.link(x.path("app/.git"), "second/.git")
	app := x.path("app")
	want(t, x.path("alias"), Project{Root: app, Path: app, Branch: "main"})
	want(t, x.path("second"), Project{Root: app, Path: x.path("second"), Branch: "main"})

	// The head of an old repository is a link, before the first commit one to
	// nowhere.
	x.dir("old/.git/objects")
	x.dir("old/.git/refs/heads")
	x.link("refs/heads/master", "old/.git/HEAD")
	want(t, x.path("old"), Project{Root: x.path("old"), Path: x.path("old"), Branch: "master"})
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
		{"a branch that stands for another", "ref: refs/heads/alias\n", map[string]string{
			"refs/heads/alias": "ref: refs/heads/real\n", "packed-refs": commitA + " refs/heads/real",
		}, "alias", commitA},
		{"branches in a circle", "ref: refs/heads/a\n", map[string]string{
			"refs/heads/a": "ref: refs/heads/b\n", "refs/heads/b": "ref: refs/heads/a\n",
		}, "a", ""},
		{"not a branch", "ref: refs/remotes/origin/x\n", map[string]string{
			"refs/remotes/origin/x": commitA,
		}, "refs/remotes/origin/x", commitA},
		{"reftable", "ref: refs/heads/.invalid\n", map[string]string{
			"refs/heads": "this repository uses the reftable format\n", "reftable/tables.list": "x\n",
		}, "", ""},
		{"packed behind a long line", "ref: refs/heads/main\n", map[string]string{
			"packed-refs": strings.Repeat("x", 200_000) + "\n" + commitA + " refs/heads/main\n",
		}, "main", commitA},
		{"a commit that is none", "ref: refs/heads/main\n", map[string]string{
			"refs/heads/main": "not a commit\n", "packed-refs": "zzz refs/heads/main\n",
		}, "main", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.repository("app/.git", tt.head)
			if tt.files["refs/heads"] != "" {
				if err := os.Remove(x.path("app/.git/refs/heads")); err != nil {
					t.Fatal(err)
				}
			}
			for name, content := range tt.files {
				x.file("app/.git/"+name, content)
			}
			app := x.path("app")
			want(t, app, Project{Root: app, Path: app, Branch: tt.branch, Commit: tt.commit})
		})
	}
}

// A directory may come out of an archive that somebody has prepared. Nothing in
// it may block, use up memory, lead to an endless search or put the text of
// another file into an answer.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	secret := "secret-of-another-file"
	tests := []struct {
		name string
		make func(x tree)
	}{
		{"an empty .git file", func(x tree) { x.file("app/.git", "") }},
		{"a .git file without a path", func(x tree) { x.file("app/.git", "gitdir:   \n") }},
		{"a .git file with a null byte", func(x tree) { x.file("app/.git", "gitdir: a\x00b\n") }},
		{"a .git file that leads to itself", func(x tree) { x.file("app/.git", "gitdir: .git\n") }},
		{"a .git file that leads nowhere", func(x tree) { x.file("app/.git", "gitdir: ../../../../../../nowhere\n") }},
		{"a .git file without end", func(x tree) {
			x.file("app/.git", "gitdir: "+strings.Repeat("a/", 1<<20)+"\n")
		}},
		{"an empty .git directory", func(x tree) { x.dir("app/.git") }},
		{"a .git link in a circle", func(x tree) { x.link(".git", "app/.git") }},
		{"a .git link to a device without end", func(x tree) { x.link("/dev/zero", "app/.git") }},
		{"a head that is a device without end", func(x tree) {
			x.repository("app/.git", "")
			_ = os.Remove(x.path("app/.git/HEAD"))
			x.link("/dev/zero", "app/.git/HEAD")
		}},
		{"a head that leads to another file", func(x tree) {
			x.file("secret", secret)
			x.repository("app/.git", "")
			_ = os.Remove(x.path("app/.git/HEAD"))
			x.link(x.path("secret"), "app/.git/HEAD")
		}},
		{"a head that climbs out", func(x tree) {
			x.file("secret", secret)
			x.repository("app/.git", "ref: refs/heads/../../../../secret\n")
		}},
		{"a head with an escape sequence", func(x tree) { x.repository("app/.git", "ref: refs/heads/\x1b[2J\n") }},
		{"a head with a second line", func(x tree) { x.repository("app/.git", "ref: refs/heads/a\nb\n") }},
		{"a commondir that leads nowhere", func(x tree) {
			x.repository("app/.git", commitA)
			x.file("app/.git/commondir", "../../nowhere\n")
		}},
		{"a commondir that is no repository", func(x tree) {
			x.repository("app/.git", commitA)
			x.dir("other")
			x.file("app/.git/commondir", "../../other\n")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.dir("app")
			tt.make(x)
			app := x.path("app")
			want(t, app, Project{Root: app, Path: app})
		})
	}
}

func TestAReferenceGivesAwayNothingOfOtherFiles(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.file("secret", "secret-of-another-file\n")
	x.repository("app/.git", "ref: refs/heads/main\n")
	x.link(x.path("secret"), "app/.git/refs/heads/main")
	x.link("/dev/zero", "app/.git/packed-refs")
	app := x.path("app")
	want(t, app, Project{Root: app, Path: app, Branch: "main"})
}

func TestADirectoryThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.file("file", "")
	for _, dir := range []string{x.path("nowhere"), x.path("file"), "a\x00b"} {
		_, err := Detect(dir)
		if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
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
		x.file("app/.git", git)
		x.repository("repo", head)
		x.file("repo/commondir", common)
		x.file("repo/config", config)
		for _, dir := range []string{"app", "repo"} {
			p := detect(t, x.path(dir))
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

func TestPathsOnOtherMachinesAreNotLookedAt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "windows" {
		t.Skip("only Windows has paths that lead to other machines")
	}
	if got := pathIn(`C:\app`, `\\example.com\share\repo`); got != "" {
		t.Errorf("got %q", got)
	}
}
