// Package project says which project a directory belongs to. All work trees of
// one repository are one project, two clones are two, and a directory without a
// repository is a project of its own.
//
// It reads the few files of a repository that it needs and runs no program. What
// it reads is untrusted: only regular files are read, up to a bound, and nothing
// of their content gets out but names of branches and commits that look like it.
package project

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway"
)

// Project is a directory under work.
type Project struct {
	// ID is the first 12 hexadecimal digits of the SHA-256 of Root.
	ID string
	// Root is what the project is known by: the repository's main work tree;
	// the repository itself where it has none or none that can be told, as with
	// a bare one; the directory where there is no repository. It is absolute,
	// with symbolic links resolved.
	Root string
	// Path is the top of the work tree that the directory is in, which is Root
	// but for linked work trees; the directory where there is no work tree.
	Path string
	// Branch is the one that is checked out; empty on a detached head.
	Branch string
	// Commit is the one that is checked out, in hexadecimal; empty before the
	// first one, and where the repository keeps its references as reftables.
	Commit string
}

// Detect says which project a directory belongs to. A repository that cannot be
// read or makes no sense is as good as none. Errors have CodeInvalid: there is
// no such directory.
func Detect(dir string) (Project, error) {
	start, err := resolve(dir)
	if err != nil {
		return Project{}, guideway.Errorf(guideway.CodeInvalid, "find the project of %s: %w", dir, err).
			WithFix("give a directory that exists")
	}
	repo, top, ok := discover(start)
	if !ok {
		return Project{ID: ID(start), Root: start, Path: start}, nil
	}
	p := Project{Root: repo.root(), Path: top}
	p.ID = ID(p.Root)
	p.Branch, p.Commit = repo.head()
	return p, nil
}

// ID is the id of the project with a root.
func ID(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:])[:12]
}

// resolve gives the one name of a directory.
func resolve(dir string) (string, error) {
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
		return "", &os.PathError{Op: "open", Path: resolved, Err: os.ErrInvalid}
	}
	return resolved, nil
}

// isDir tells whether a name stands for a directory, through symbolic links.
func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
