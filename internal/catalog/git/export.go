package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// The bounds of a walk through a commit.
const (
	maxDepth   = 6
	maxEntries = 50_000
	// maxTree bounds the listing of one directory.
	maxTree = 4 << 20
)

// export takes the documents out of a commit.
type export struct {
	storer storer.EncodedObjectStorer
	limits Limits
	stage  *mirror.Stage
	// filtered says that the other side left out what is too large.
	filtered bool

	visited, files int
}

// run exports the directory of a commit.
func (e *export) run(ctx context.Context, hash plumbing.Hash, dir string) error {
	commit, err := object.GetCommit(e.storer, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return guideway.Errorf(guideway.CodeNotFound, "the repository has no commit %s", hash)
	}
	if err != nil {
		return err
	}
	root, err := e.tree(commit.TreeHash)
	if err != nil {
		return err
	}
	if dir != "" {
		tree, err := e.below(root, dir)
		if err != nil {
			return err
		}
		if tree == nil {
			return guideway.Errorf(guideway.CodeNotFound, "the repository has no directory %q at %s", dir, hash.String()[:12])
		}
		return e.walk(ctx, tree, "", 0)
	}
	for _, usual := range []string{"workflows", ".guideway/workflows"} {
		tree, err := e.below(root, usual)
		if err != nil {
			return err
		}
		if tree != nil {
			return e.walk(ctx, tree, "", 0)
		}
	}
	return e.walk(ctx, root, "", 0)
}

// tree reads the listing of a directory.
func (e *export) tree(hash plumbing.Hash) (*object.Tree, error) {
	size, err := e.storer.EncodedObjectSize(hash)
	if err != nil {
		return nil, err
	}
	if size > maxTree {
		return nil, fmt.Errorf("%w: a directory of %d bytes", mirror.ErrTooMuch, size)
	}
	return object.GetTree(e.storer, hash)
}

// below finds a directory; nil where there is none.
func (e *export) below(tree *object.Tree, dir string) (*object.Tree, error) {
	for part := range strings.SplitSeq(dir, "/") {
		var next *object.Tree
		for _, entry := range tree.Entries {
			if entry.Name == part && entry.Mode == filemode.Dir {
				found, err := e.tree(entry.Hash)
				if err != nil {
					return nil, err
				}
				next = found
			}
		}
		if next == nil {
			return nil, nil
		}
		tree = next
	}
	return tree, nil
}

// walk exports a directory and those below it.
func (e *export) walk(ctx context.Context, tree *object.Tree, prefix string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, entry := range tree.Entries {
		if e.visited++; e.visited > maxEntries {
			return fmt.Errorf("%w: over %d entries", mirror.ErrTooMuch, maxEntries)
		}
		name := prefix + entry.Name
		if err := e.entry(ctx, name, entry, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry exports one entry of a directory.
func (e *export) entry(ctx context.Context, name string, entry object.TreeEntry, depth int) error {
	// A name is refused before anything is made of it: a tree that somebody wrote by
	// hand can have slashes and dots in its names.
	bad := !mirror.IsSafe(name) || strings.Contains(entry.Name, "/")
	switch entry.Mode {
	case filemode.Dir:
		switch {
		case bad:
			if !strings.HasPrefix(entry.Name, ".") {
				e.stage.Refuse(name, "file-name", "the directory has a name that is not one on every system", "rename it")
			}
			return nil
		case depth == maxDepth || strings.HasPrefix(entry.Name, ".") || entry.Name == "node_modules" || entry.Name == "testdata":
			return nil
		}
		tree, err := e.tree(entry.Hash)
		if err != nil {
			return err
		}
		return e.walk(ctx, tree, name+"/", depth+1)
	case filemode.Submodule:
		e.stage.Find(guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: "git-submodule", File: name,
			Message: "submodules are not fetched", Fix: "name the repository of the submodule as a source of its own",
		})
		return nil
	}
	if !catalog.Wanted(name) && !(bad && catalog.Wanted(path.Base(name))) {
		return nil
	}
	switch {
	case bad:
		e.stage.Refuse(name, "file-name", "the name cannot be that of a file on every system", "rename the file")
	case entry.Mode == filemode.Symlink:
		e.stage.Refuse(name, "file-link", "links of a repository are not followed", "put a copy here")
	case entry.Mode != filemode.Regular && entry.Mode != filemode.Executable && entry.Mode != filemode.Deprecated:
		e.stage.Refuse(name, "file-special", "this is no regular file", "replace it by one")
	default:
		return e.file(name, entry.Hash)
	}
	return nil
}

// file exports a document.
func (e *export) file(name string, hash plumbing.Hash) error {
	tooLarge := func(message string) error {
		e.stage.Refuse(name, "file-too-large", message, "split it")
		return nil
	}
	size, err := e.storer.EncodedObjectSize(hash)
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound) && e.filtered:
		return tooLarge(fmt.Sprintf("the file is larger than %d bytes", e.limits.FileBytes))
	case err != nil:
		return err
	case size > e.limits.FileBytes:
		return tooLarge(fmt.Sprintf("the file has %d bytes; the limit is %d", size, e.limits.FileBytes))
	}
	if e.files++; e.files > e.limits.Files {
		return guideway.Errorf(guideway.CodeTooLarge, "the repository has more than %d documents", e.limits.Files).
			WithFix("name a directory of it as path, or allow more with maxFiles")
	}
	blob, err := object.GetBlob(e.storer, hash)
	if err != nil {
		return err
	}
	r, err := blob.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	return e.stage.Add(name, e.limits.FileBytes, io.Reader(r))
}
