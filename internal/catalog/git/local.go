package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// cacheBytes bounds the objects of a repository that are held in memory at a time.
const cacheBytes = 8 << 20

// fetchLocal reads a repository of this machine in place. Nothing is written to it.
func (f *Fetcher) fetchLocal(ctx context.Context, have *mirror.Have, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	dir, err := gitDir(f.address.path)
	if err != nil {
		return mirror.Fetched{}, err
	}
	s := filesystem.NewStorage(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(cacheBytes))
	defer s.Close()
	t, err := f.choose(localRefs{s})
	if err != nil {
		return mirror.Fetched{}, err
	}
	got, known := seen(have, t)
	if known {
		return got, nil
	}
	to, err := stage()
	if err != nil {
		return got, err
	}
	return got, f.export(ctx, s, t, false, to)
}

// gitDir finds the directory of a repository's objects: that of a bare one, or
// .git below it.
func gitDir(dir string) (string, error) {
	for _, candidate := range []string{filepath.Join(dir, ".git"), dir} {
		head, err := os.Lstat(filepath.Join(candidate, "HEAD"))
		objects, objectsErr := os.Stat(filepath.Join(candidate, "objects"))
		if err == nil && objectsErr == nil && head.Mode().IsRegular() && objects.IsDir() {
			return candidate, nil
		}
	}
	err := guideway.Errorf(guideway.CodeNotFound, "%s is not a repository", dir).WithFix("name the directory that has .git in it, or that of a bare repository")
	if data, readErr := os.ReadFile(filepath.Join(dir, ".git")); readErr == nil && strings.HasPrefix(string(data), "gitdir:") {
		err = err.WithFix("it is a worktree: name the repository that it belongs to")
	}
	return "", err
}

// localRefs are the references of a repository of this machine.
type localRefs struct{ *filesystem.Storage }

var _ refs = localRefs{}

func (r localRefs) find(name string) (plumbing.Hash, bool) {
	ref, err := storer.ResolveReference(r, plumbing.ReferenceName(name))
	if err != nil {
		return plumbing.ZeroHash, false
	}
	return peeled(r, ref.Hash()), true
}

func (r localRefs) head() (plumbing.Hash, string, bool) {
	ref, err := storer.ResolveReference(r, plumbing.HEAD)
	if err != nil {
		return plumbing.ZeroHash, "", false
	}
	name := ref.Name().Short()
	if ref.Name() == plumbing.HEAD {
		name = "HEAD"
	}
	return peeled(r, ref.Hash()), name, true
}

// peeled is the commit of an annotated tag, or what was given.
func peeled(s storer.EncodedObjectStorer, hash plumbing.Hash) plumbing.Hash {
	for range 5 {
		tag, err := object.GetTag(s, hash)
		if err != nil {
			return hash
		}
		hash = tag.Target
	}
	return hash
}
