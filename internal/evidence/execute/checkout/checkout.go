// Package checkout compares commits of a repository and checks them out in directories of
// their own. Git executes no hook, filter or other program that a repository or a user's
// settings name.
package checkout

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/gitrun"
	"github.com/guideway-dev/guideway/internal/run/project"
)

const (
	// gitLimit is the time limit of one git command.
	gitLimit = 5 * time.Minute
	// maxListing bounds the bytes of a list of changed paths, and of a file.
	maxListing = 64 << 20
)

// ErrUnknown is wrapped by the error for a commit or a tree that the repository does not
// have.
var ErrUnknown = errors.New("not in the repository")

// Repository is the repository of a directory.
type Repository struct {
	found project.Repository
	path  string
}

// Commit is a commit with its tree.
type Commit struct{ ID, Tree string }

// Open returns the repository that contains a directory.
func Open(dir string) (*Repository, error) {
	found, ok, err := project.FindRepository(dir)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "%s is not in a Git repository", dir).WithFix("run the command in a clone of the repository")
	}
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "git is required to compare commits, but is not on PATH").
			WithFix("install git 2.31 or newer and put it on PATH")
	}
	return &Repository{found: found, path: path}, nil
}

// run runs git in a repository directory and returns its output.
func (r *Repository) run(ctx context.Context, dir, workTree string, args ...string) (text string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitLimit, errors.New("git took more than "+gitLimit.String()))
	defer cancel()
	env := append(gitrun.MakeEnvironment(nil, "", nil),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1")
	if workTree != "" {
		env = append(env, "GIT_WORK_TREE="+workTree)
	}
	err = gitrun.Program{Path: r.path, Dir: dir, Env: env}.Run(ctx, nil, func(out *bufio.Reader) error {
		all, err := io.ReadAll(io.LimitReader(out, maxListing+1))
		if len(all) > maxListing {
			return fmt.Errorf("the output has more than %d bytes", maxListing)
		}
		text = string(all)
		return err
	}, args...)
	return text, err
}

func (r *Repository) read(ctx context.Context, args ...string) (string, error) {
	return r.run(ctx, r.found.Dir, "", args...)
}

// Find returns the commit of a name, such as a branch.
func (r *Repository) Find(ctx context.Context, name string) (Commit, error) {
	var ids []string
	for _, kind := range []string{"^{commit}", "^{tree}"} {
		id, err := r.read(ctx, "rev-parse", "--verify", "-q", "--end-of-options", name+kind)
		if err != nil {
			return Commit{}, r.unknown(ctx, err, "the commit %s", name)
		}
		ids = append(ids, strings.TrimSpace(id))
	}
	return Commit{ID: ids[0], Tree: ids[1]}, nil
}

const fixShallow = "if the clone is shallow, fetch the whole history: git fetch --unshallow origin; in actions/checkout, set fetch-depth: 0"

// unknown returns the error for something that git does not find.
func (r *Repository) unknown(ctx context.Context, cause error, format string, args ...any) error {
	var failure *gitrun.Failure
	if ctx.Err() != nil || !errors.As(cause, &failure) {
		return guideway.Errorf(guideway.CodeUnavailable, "run git: %w", cause)
	}
	e := guideway.Errorf(guideway.CodeNotFound, format+" is not in the repository", args...).WithFix("correct the name; " + fixShallow)
	e.Err = ErrUnknown
	return e
}

// MergeBase returns the best common ancestor of two commits.
func (r *Repository) MergeBase(ctx context.Context, a, b string) (string, error) {
	id, err := r.read(ctx, "merge-base", a, b)
	if err != nil {
		return "", r.unknown(ctx, err, "a common ancestor of %s and %s", a, b)
	}
	return strings.TrimSpace(id), nil
}

// ChangedPaths returns the paths that differ between two commits or trees, sorted. A moved
// file counts as two paths.
func (r *Repository) ChangedPaths(ctx context.Context, from, to string) ([]string, error) {
	text, err := r.read(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--end-of-options", from, to)
	if err != nil {
		return nil, r.unknown(ctx, err, "%s or %s", from, to)
	}
	text = strings.TrimSuffix(text, "\x00")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\x00"), nil
}

// ReadFile returns the content of a file of a commit. The error wraps ErrUnknown if there is
// no such file.
func (r *Repository) ReadFile(ctx context.Context, commit, path string) ([]byte, error) {
	text, err := r.read(ctx, "cat-file", "blob", commit+":"+path)
	if err != nil {
		err = r.unknown(ctx, err, "the file %s of the commit %s", path, commit)
		var missing *guideway.Error
		if errors.Is(err, ErrUnknown) && errors.As(err, &missing) {
			missing.Fix = "correct the path, or add the file in a commit; " + fixShallow
		}
		return nil, err
	}
	return []byte(text), nil
}

// CheckOut writes the files of a commit into a new directory, which is a work tree of a new
// repository: it has the history, but no settings, hooks, branches or remotes. Submodules
// are left out.
func (r *Repository) CheckOut(ctx context.Context, commit, dir string) error {
	git := filepath.Join(dir, ".git")
	format := "--object-format=sha1"
	if r.found.SHA256 {
		format = "--object-format=sha256"
	}
	steps := []func() error{
		func() error { return os.Mkdir(dir, 0o700) },
		func() error {
			_, err := r.run(ctx, git, "", "init", "-q", "--template=", format)
			return err
		},
		func() error { return r.shareObjects(git) },
		func() error {
			_, err := r.run(ctx, git, dir, "update-ref", "--no-deref", "HEAD", commit)
			return err
		},
		func() error {
			_, err := r.run(ctx, git, dir, "read-tree", "--reset", "-u", "HEAD")
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "check out the commit %s: %w", commit, err).
				WithFix("check that the clone is complete: git fsck")
		}
	}
	return nil
}

// shareObjects lets a new repository read the objects of this one.
func (r *Repository) shareObjects(git string) error {
	info := filepath.Join(git, "objects", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	objects := filepath.ToSlash(filepath.Join(r.found.Common, "objects"))
	if err := os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o600); err != nil {
		return err
	}
	shallow, err := os.ReadFile(filepath.Join(r.found.Common, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the history is complete
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(git, "shallow"), shallow, 0o600) //nolint:gosec // G703: a file of the new repository
}
