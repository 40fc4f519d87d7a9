package checkout_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/execute/checkout"
)

// repository is a repository of a test.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T, args ...string) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := repository{t, t.TempDir()}
	r.git(append([]string{"init", "-q", "-b", "trunk"}, args...)...)
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change")
	return r.git("rev-parse", "HEAD")
}

func (r repository) open() *checkout.Repository {
	r.t.Helper()
	repo, err := checkout.Open(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return repo
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		r := newRepository(t, "--object-format="+format)
		r.write("a.txt", "1")
		r.write("dir/moved.txt", "2")
		first := r.commit()
		r.git("checkout", "-q", "-b", "change")
		r.write("a.txt", "3")
		r.git("mv", "dir/moved.txt", "dir/with\nbreak")
		last := r.commit()
		r.git("checkout", "-q", "trunk")
		r.write("other.txt", "4")
		r.commit()
		repo, ctx := r.open(), t.Context()
		head, err := repo.Find(ctx, "change")
		if err != nil || head.ID != last || head.Tree != r.git("rev-parse", "change^{tree}") {
			t.Fatalf("%s: the commit is %v, %v", format, head, err)
		}
		base, err := repo.MergeBase(ctx, "trunk", head.ID)
		if err != nil || base != first {
			t.Fatalf("%s: the common ancestor is %s, %v", format, base, err)
		}
		changed, err := repo.ChangedPaths(ctx, base, head.Tree)
		if diff := cmp.Diff([]string{"a.txt", "dir/moved.txt", "dir/with\nbreak"}, changed); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", format, err, diff)
		}
		if changed, err := repo.ChangedPaths(ctx, head.Tree, head.ID); err != nil || len(changed) != 0 {
			t.Errorf("%s: a tree and its commit differ in %q, %v", format, changed, err)
		}
		text, err := repo.ReadFile(ctx, head.ID, "dir/with\nbreak")
		if err != nil || string(text) != "2" {
			t.Errorf("%s: the file contains %q, %v", format, text, err)
		}
		if _, err := repo.ReadFile(ctx, head.ID, "dir"); !errors.Is(err, checkout.ErrUnknown) {
			t.Errorf("%s: a directory is read as a file: %v", format, err)
		}
		dir := filepath.Join(t.TempDir(), "clean")
		if err := repo.CheckOut(ctx, head.ID, dir); err != nil {
			t.Fatal(err)
		}
		clone := repository{t, dir}
		if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "3" {
			t.Errorf("%s: the file contains %q, %v", format, text, err)
		}
		if got := clone.git("rev-parse", "HEAD") + clone.git("status", "--porcelain") + clone.git("rev-list", "--count", "HEAD"); got != last+"2" {
			t.Errorf("%s: the work tree is %q", format, got)
		}
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("a", "1")
	r.commit()
	r.git("checkout", "-q", "--orphan", "alone")
	r.write("b", "1")
	r.commit()
	repo, ctx := r.open(), t.Context()
	for name, err := range map[string]error{
		"branch":   find(t, repo, "nothing"),
		"option":   find(t, repo, "--all"),
		"object":   find(t, repo, strings.Repeat("0", 40)),
		"ancestor": mergeBase(t, repo, "trunk", "alone"),
	} {
		if !errors.Is(err, checkout.ErrUnknown) || guideway.ErrorCode(err) != guideway.CodeNotFound || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := repo.ChangedPaths(ctx, strings.Repeat("0", 40), "alone"); !errors.Is(err, checkout.ErrUnknown) {
		t.Errorf("an unknown tree: %v", err)
	}
	if _, err := checkout.Open(t.TempDir()); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("no repository: %v", err)
	}
}

// TestUnreadableShallowFile checks that CheckOut returns an error if it cannot determine
// whether the history is complete.
func TestUnreadableShallowFile(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("a", "1")
	commit := r.commit()
	if err := os.Mkdir(filepath.Join(r.dir, ".git", "shallow"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := r.open().CheckOut(t.Context(), commit, filepath.Join(t.TempDir(), "clean"))
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("a directory in place of the file: %v", err)
	}
}

func find(t *testing.T, repo *checkout.Repository, name string) error {
	t.Helper()
	_, err := repo.Find(t.Context(), name)
	return err
}

func mergeBase(t *testing.T, repo *checkout.Repository, a, b string) error {
	t.Helper()
	_, err := repo.MergeBase(t.Context(), a, b)
	return err
}

// TestNothingIsExecuted checks that neither a hook nor a filter of the repository runs.
func TestNothingIsExecuted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("this test needs shell scripts")
	}
	r := newRepository(t)
	marker, evil := filepath.Join(t.TempDir(), "marker"), filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write(".gitattributes", "*.txt filter=evil diff=evil\n")
	r.write("a.txt", "1")
	first := r.commit()
	r.write("a.txt", "2")
	last := r.commit()
	for _, setting := range [][2]string{
		{"filter.evil.smudge", evil},
		{"filter.evil.required", "true"},
		{"diff.evil.command", evil},
		{"diff.evil.textconv", evil},
		{"core.fsmonitor", evil},
		{"core.hooksPath", filepath.Dir(evil)},
		{"core.alternateRefsCommand", evil},
	} {
		r.git("config", setting[0], setting[1])
	}
	if err := os.Link(evil, filepath.Join(filepath.Dir(evil), "post-checkout")); err != nil {
		t.Fatal(err)
	}
	repo, ctx := r.open(), t.Context()
	if _, err := repo.ChangedPaths(ctx, first, last); err != nil {
		t.Fatal(err)
	}
	if err := repo.CheckOut(ctx, last, filepath.Join(t.TempDir(), "clean")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the repository was executed")
	}
}
