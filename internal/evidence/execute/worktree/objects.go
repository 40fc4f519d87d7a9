package worktree

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the hash of Git's objects
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// Entry is a version of a file: its mode and the hash of its content, as in a tree of Git.
// The zero Entry is an absent file.
type Entry struct{ Mode, Hash string }

// String returns the entry in the form of evidence.Workspace.DirtyStates.
func (e Entry) String() string {
	if e == (Entry{}) {
		return "absent"
	}
	return e.Mode + " " + e.Hash
}

const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeLink       = "120000"
	// modeRepository is the mode of a submodule and of any other repository in the work tree.
	modeRepository = "160000"
	modeTree       = "40000"
)

// tree has the files of a commit by their paths.
type tree struct {
	// hash is the hash of the tree.
	hash  string
	files map[string]Entry
}

// maxObject bounds the size of a commit and of a tree.
const maxObject = 64 << 20

// errMissing is wrapped by the error for an object that the repository does not have.
var errMissing = errors.New("not in the repository")

// newHash returns the hash function of objects.
func newHash(sha256Objects bool) hash.Hash {
	if sha256Objects {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // the hash of Git's objects
}

// readTree reads the tree of a commit. It verifies the hash of each object, because git does
// not verify all objects that it reads.
func (r *repository) readTree(ctx context.Context, commit string) (*tree, error) {
	if commit == "" {
		return &tree{}, nil
	}
	names, input := io.Pipe()
	defer input.Close()
	var t *tree
	err := r.git.Run(ctx, names, func(out *bufio.Reader) (err error) {
		defer input.Close()
		t, err = r.walkTrees(commit, out, input)
		return err
	}, "cat-file", "--batch")
	return t, err
}

// walkTrees reads a commit and its trees, level by level.
func (r *repository) walkTrees(commit string, out *bufio.Reader, input io.Writer) (*tree, error) {
	ask := func(hashes []string) {
		// An error means that git has exited, which the reader of its output notices.
		_, _ = io.WriteString(input, strings.Join(hashes, "\n")+"\n")
	}
	go ask([]string{commit})
	text, err := r.readObject(out, commit, "commit")
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	root, ok := strings.CutPrefix(first, "tree ")
	if !ok {
		return nil, fmt.Errorf("the commit %s has no tree", commit)
	}
	t := &tree{hash: root, files: map[string]Entry{}}
	type directory struct{ path, hash string }
	for level := []directory{{"", root}}; len(level) > 0; {
		hashes := lists.Map(level, func(d directory) string { return d.hash })
		go ask(hashes)
		var next []directory
		for _, d := range level {
			text, err := r.readObject(out, d.hash, "tree")
			if err != nil {
				return nil, err
			}
			err = r.parseTree(text, func(name string, e Entry) {
				if name = path.Join(d.path, name); e.Mode == modeTree {
					next = append(next, directory{name, e.Hash})
				} else {
					t.files[name] = e
				}
			})
			if err != nil {
				return nil, err
			}
		}
		level = next
	}
	return t, nil
}

// readObject reads an answer of git cat-file --batch and verifies its hash.
func (r *repository) readObject(out *bufio.Reader, want, kind string) ([]byte, error) {
	header, err := out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(header)
	if len(fields) != 3 || fields[0] != want || fields[1] != kind {
		return nil, fmt.Errorf("the %s %s is %w", kind, want, errMissing)
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil || size < 0 || size > maxObject {
		return nil, fmt.Errorf("the %s %s has %s bytes; at most %d are allowed", kind, want, fields[2], maxObject)
	}
	text := make([]byte, size+1)
	if _, err := io.ReadFull(out, text); err != nil {
		return nil, err
	}
	text = text[:size]
	h := newHash(r.SHA256)
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	h.Write(text)
	if hex.EncodeToString(h.Sum(nil)) != want {
		return nil, fmt.Errorf("the %s %s of the repository is damaged or forged: its content has another hash", kind, want)
	}
	return text, nil
}

// parseTree passes each entry of a tree to add. It refuses names that are not file names.
func (r *repository) parseTree(text []byte, add func(name string, e Entry)) error {
	size := newHash(r.SHA256).Size()
	for len(text) > 0 {
		head, rest, found := bytes.Cut(text, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !found || !spaced || len(rest) < size {
			return errors.New("a tree of the repository is damaged")
		}
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || strings.EqualFold(name, ".git") {
			return fmt.Errorf("a tree of the repository has the file name %q, which is not allowed", name)
		}
		add(name, Entry{Mode: mode, Hash: hex.EncodeToString(rest[:size])})
		text = rest[size:]
	}
	return nil
}

// hashTree returns the hash of the tree of files on the disk below a directory, or "" if a
// file cannot be a part of a tree. The paths are sorted.
func (s *State) hashTree(dir string, paths []string) string {
	type child struct{ key, text string }
	var children []child
	for len(paths) > 0 {
		name, _, isDir := strings.Cut(paths[0][len(dir):], "/")
		e, n, key := s.disk[paths[0]], 1, name
		if isDir {
			key += "/"
			n = len(paths)
			if i := slices.IndexFunc(paths, func(p string) bool { return !strings.HasPrefix(p, dir+key) }); i >= 0 {
				n = i
			}
			e = Entry{modeTree, s.hashTree(dir+key, paths[:n])}
		}
		raw, err := hex.DecodeString(e.Hash)
		if err != nil || len(raw) != newHash(s.repo.SHA256).Size() {
			return ""
		}
		children = append(children, child{key, e.Mode + " " + name + "\x00" + string(raw)})
		paths = paths[n:]
	}
	slices.SortFunc(children, func(a, b child) int { return strings.Compare(a.key, b.key) })
	var text strings.Builder
	for _, c := range children {
		text.WriteString(c.text)
	}
	h := newHash(s.repo.SHA256)
	fmt.Fprintf(h, "tree %d\x00%s", text.Len(), text.String())
	return hex.EncodeToString(h.Sum(nil))
}
