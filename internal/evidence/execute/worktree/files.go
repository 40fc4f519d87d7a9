package worktree

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/run/project"
)

// fileHashes are the hashes of files that were read before, by their paths. A hash is valid
// while the file has the same identity, which includes the time of the last change of its
// inode: a program cannot set that time.
type fileHashes struct {
	mu     sync.Mutex
	hashes map[string]fileHash
}

type fileHash struct {
	identity identity
	hash     string
}

// maxHashes bounds the number of remembered hashes.
const maxHashes = 500_000

// settleTime returns the age of a change after which another change gets another time: some
// file systems have times in units of two seconds.
func settleTime(changed time.Time) time.Duration {
	if changed.Nanosecond() == 0 {
		return 2500 * time.Millisecond
	}
	return 100 * time.Millisecond
}

func (h *fileHashes) find(path string, id identity) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.hashes[path]
	return known.hash, ok && id != (identity{}) && known.identity == id
}

func (h *fileHashes) add(path string, id identity, hash string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hashes == nil || len(h.hashes) >= maxHashes {
		h.hashes = map[string]fileHash{}
	}
	h.hashes[path] = fileHash{id, hash}
}

// readFiles returns the versions of files on the disk. Absent files are not in the result.
func (r *repository) readFiles(ctx context.Context, paths []string) (map[string]Entry, error) {
	if len(paths) == 0 {
		return map[string]Entry{}, nil
	}
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	byDir := map[string][]string{}
	for _, p := range paths {
		byDir[path.Dir(p)] = append(byDir[path.Dir(p)], path.Base(p))
	}
	found := make(map[string]Entry, len(paths))
	var mu sync.Mutex
	var wg sync.WaitGroup
	dirs := make(chan string)
	var failed error
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for dir := range dirs {
				entries, err := r.readDir(ctx, root, dir, byDir[dir])
				mu.Lock()
				for name, e := range entries {
					found[path.Join(dir, name)] = e
				}
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	for dir := range byDir {
		dirs <- dir
	}
	close(dirs)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return found, failed
}

// readDir returns the versions of files of one directory. A directory that is reached
// through a symbolic link has no files, as in Git.
func (r *repository) readDir(ctx context.Context, top *os.Root, dir string, names []string) (map[string]Entry, error) {
	parent, err := openDir(top, dir)
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	defer parent.Close()
	entries := make(map[string]Entry, len(names))
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, nil
		}
		e, err := r.readFile(ctx, parent, dir, name)
		if err = ignoreAbsent(err); err != nil {
			return nil, fmt.Errorf("read %s: %w", path.Join(dir, name), safeopen.Cause(err))
		}
		if e != (Entry{}) {
			entries[name] = e
		}
	}
	return entries, nil
}

// ignoreAbsent returns nil for the error of a file that does not exist.
func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return nil
	}
	return err
}

var errNotDir = errors.New("not a directory")

// openDir opens a directory of a work tree. No part of its path may be a symbolic link.
func openDir(top *os.Root, dir string) (*os.Root, error) {
	at, err := top.OpenRoot(".")
	if err != nil || dir == "." {
		return at, err
	}
	for part := range strings.SplitSeq(dir, "/") {
		info, err := at.Lstat(part)
		if err == nil && !info.IsDir() {
			err = errNotDir
		}
		var next *os.Root
		if err == nil {
			next, err = at.OpenRoot(part)
		}
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// readFile returns the version of one file on the disk.
func (r *repository) readFile(ctx context.Context, parent *os.Root, dir, name string) (Entry, error) {
	info, err := parent.Lstat(name)
	switch {
	case err != nil:
		return Entry{}, err
	case info.IsDir():
		return r.readNested(ctx, path.Join(dir, name))
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := parent.Readlink(name)
		return Entry{modeLink, r.hashText(filepath.ToSlash(target))}, err
	case !info.Mode().IsRegular():
		return Entry{modeFile, strings.ReplaceAll(safeopen.Kind(info.Mode()), " ", "-")}, nil
	}
	mode := modeFile
	if info.Mode()&0o100 != 0 {
		mode = modeExecutable
	}
	full, id := filepath.Join(r.Top, dir, name), identify(info)
	if hash, ok := r.reader.hashes.find(full, id); ok {
		return Entry{mode, hash}, nil
	}
	began := r.reader.now()
	hash, err := r.hashFile(ctx, parent, name)
	if err == nil && began.Sub(id.changed()) > settleTime(id.changed()) {
		r.reader.hashes.add(full, id, hash)
	}
	return Entry{mode, hash}, err
}

// hashFile returns the hash of a file. A file that changes while it is read has a hash that
// no other version has.
func (r *repository) hashFile(ctx context.Context, parent *os.Root, name string) (string, error) {
	file, err := safeopen.OpenIn(parent, name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	h := newHash(r.SHA256)
	fmt.Fprintf(h, "blob %d\x00", info.Size())
	n, err := io.Copy(h, contextReader{ctx, file})
	if err == nil && n != info.Size() {
		return fmt.Sprintf("changing-%d-%d", info.Size(), n), nil
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// contextReader is a reader that fails when its context is done.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

// hashText returns the hash of a text as a blob of Git.
func (r *repository) hashText(text string) string {
	h := newHash(r.SHA256)
	fmt.Fprintf(h, "blob %d\x00%s", len(text), text)
	return hex.EncodeToString(h.Sum(nil))
}

// readNested returns the version of a submodule, or of another repository in the work tree:
// its commit, with the hash of its own changes.
func (r *repository) readNested(ctx context.Context, dir string) (Entry, error) {
	full := filepath.Join(r.Top, filepath.FromSlash(dir))
	found, ok, err := project.FindRepository(full)
	if err != nil || !ok || found.Top != full {
		entries, err := os.ReadDir(full)
		if err != nil || len(entries) == 0 {
			return Entry{}, ignoreAbsent(err)
		}
		return Entry{modeRepository, "files-without-a-repository"}, nil
	}
	state, err := r.reader.Read(ctx, full)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{modeRepository, state.Commit}
	if hash := state.dirtyHash(); hash != "" {
		e.Hash += "+" + hash
	}
	return e, nil
}

// sortedKeys returns the keys of all maps in sorted order.
func sortedKeys[V any](maps ...map[string]V) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
