// Package project finds the project of a directory. All work trees of a repository are one
// project, two clones are two, and a directory without a repository is its own project.
//
// It reads a few files of a repository and runs no program. These files are untrusted: it
// reads only regular files of bounded size, and returns nothing of their content except
// valid names of branches and commits, and paths of existing directories.
package project

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Project is a working directory.
type Project struct {
	// ID is the first 12 hexadecimal digits of the SHA-256 of Root.
	ID string
	// Root identifies the project: the repository's main work tree; the repository itself
	// if it has no main work tree or that is unknown, as with a bare one; or the directory
	// if there is no repository. It is absolute, with symbolic links resolved.
	Root string
	// Path is the top of the work tree that contains the directory, or the directory if
	// there is no work tree. It differs from Root in linked work trees.
	Path string
	// Branch is the checked out branch. It is empty on a detached head, and if the
	// repository uses reftables.
	Branch string
	// Commit is the checked out commit in hexadecimal. It is empty before the first commit,
	// and if the repository uses reftables.
	Commit string
}

// Detect returns the project of a directory. It ignores a repository that cannot be read or
// is invalid. It returns an error with CodeInvalid if the directory does not exist.
func Detect(dir string) (Project, error) {
	start, err := resolveDir(dir)
	if err != nil {
		return Project{}, guideway.Errorf(guideway.CodeInvalid, "find the project of %s: %w", dir, err).
			WithFix("pass an existing directory")
	}
	repo, top, ok := discoverRepository(start)
	if !ok {
		return Project{ID: ID(start), Root: start, Path: start}, nil
	}
	p := Project{Root: repo.mainRoot(), Path: top}
	p.ID = ID(p.Root)
	p.Branch, p.Commit = repo.checkedOut()
	return p, nil
}

// ID returns the id of the project with a root.
func ID(root string) string {
	return digest.Hex(root)[:12]
}

// resolveDir returns the canonical path of a directory.
func resolveDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", errors.New("not a directory")
	}
	return resolved, nil
}

// isDir reports whether a name is a directory or a symbolic link to one.
func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// IsOwned reports whether a directory and the top of its repository, if it is in one, belong
// to the user of this process, or to the owner of the directory like.
func IsOwned(dir, like string) bool {
	names := []string{dir}
	if top := TrustedTop(dir); top != "" {
		names = append(names, top)
	}
	return isOwnedLike(like, names...)
}

// TrustedTop returns the top of the work tree below which a directory is, with symbolic
// links resolved. It returns "" if the directory is a top itself or in no work tree, and if
// the top or its .git belongs to another user than this process and the directory: other
// users of the machine may create a repository in a shared parent directory.
func TrustedTop(dir string) string {
	start, err := resolveDir(dir)
	if err != nil {
		return ""
	}
	repo, top, ok := discoverRepository(start)
	if !ok || top == repo.dir || top == start || !isOwnedLike(start, top, filepath.Join(top, ".git")) {
		return ""
	}
	return top
}
