// Package worktree reads the state of a Git work tree without trust in the repository: an
// agent can write the index, the configuration and the objects.
//
// It reads each file that a commit, the index or the work tree has, and compares contents.
// The flags and times of the index, the configuration of the repository and of the user, and
// lists of ignored files other than .gitignore have no effect; git executes nothing. A file
// that a filter such as LFS or a line ending other than the repository's changes differs
// from its commit.
package worktree

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/platform/gitrun"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/run/project"
)

// gitLimit is the time limit of one git command. A repository can have named pipes for git
// to read.
const gitLimit = time.Minute

// maxTrees is the number of trees that a Reader remembers.
const maxTrees = 8

// Reader reads work trees. It remembers hashes of files and trees of commits.
type Reader struct {
	now    func() time.Time
	hashes fileHashes

	mu    sync.Mutex
	trees map[string]*tree
}

// NewReader returns a reader. If now is nil, it is time.Now.
func NewReader(now func() time.Time) *Reader {
	if now == nil {
		now = time.Now
	}
	return &Reader{now: now, trees: map[string]*tree{}}
}

// State is the state of a work tree.
type State struct {
	// Root is the top of the work tree, or the directory itself without a repository.
	Root string
	// Git is set if there is a repository.
	Git bool
	// Commit is the checked out commit, and Tree its tree; both are empty before the first
	// commit.
	Commit, Tree string

	repo *repository
	// head, index and disk are the versions of the files.
	head, index, disk map[string]Entry
	// ignores are the untracked .gitignore files that ignore themselves. They are not in disk.
	ignores map[string]Entry
	dirty   []string
}

// repository is a repository that git reads. git has a directory of its own, which refers to
// the objects of the repository, so that it does not read the configuration.
type repository struct {
	project.Repository
	reader *Reader
	git    gitrun.Program
}

// Root returns the top of the work tree that contains a directory, or the directory without
// a repository.
func Root(dir string) (string, error) {
	found, ok, err := project.FindRepository(dir)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "%w", err).WithFix("start the server on the computer that has the project")
	}
	switch {
	case !ok:
		p, err := project.Detect(dir)
		return p.Path, err
	case found.Top == "":
		return "", guideway.Errorf(guideway.CodeUnavailable, "the repository %s has no work tree", dir).WithFix("start the run in a work tree of the repository")
	}
	return found.Top, nil
}

// Read reads the work tree that contains a directory.
func (r *Reader) Read(ctx context.Context, dir string) (*State, error) {
	root, err := Root(dir)
	if err != nil {
		return nil, err
	}
	found, ok, err := project.FindRepository(root)
	if err != nil || !ok {
		return &State{Root: root}, err
	}
	repo, closeRepo, err := r.open(ctx, found)
	if err != nil {
		return nil, err
	}
	defer closeRepo()
	s := &State{Root: root, Git: true, Commit: repo.Commit, repo: repo}
	if err := s.read(ctx); err != nil {
		return nil, explain(err, root)
	}
	return s, nil
}

// explain returns the error of a work tree that cannot be read.
func explain(err error, root string) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("read the work tree %s: %w", root, err)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "read the work tree %s: %w", root, err).WithFix("check that this user can read the files, and run git fsck in %s", root)
}

// open prepares a directory for git, which the returned function removes.
func (r *Reader) open(ctx context.Context, found project.Repository) (repo *repository, closeRepo func(), err error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "git is required to read a work tree, but is not on PATH").
			WithFix("install git 2.31 or newer and put it on PATH")
	}
	dir, err := os.MkdirTemp("", "guideway-git-")
	if err != nil {
		return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "create a temporary directory: %w", err).
			WithFix("make %s writable for this user, and check that its disk is not full", os.TempDir())
	}
	closeRepo = func() { _ = os.RemoveAll(dir) }
	repo = &repository{Repository: found, reader: r, git: gitrun.Program{Path: program, Dir: dir, Env: environment(found, dir)}}
	if err := repo.writeDir(dir); err != nil {
		closeRepo()
		return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "prepare the temporary directory %s for git: %w", dir, err).
			WithFix("make %s writable for this user, and check that its disk is not full", os.TempDir())
	}
	if repo.Reftables && repo.Commit == "" {
		repo.Commit = repo.readHead(ctx)
	}
	return repo, closeRepo, nil
}

// environment returns the environment of git for a repository.
func environment(found project.Repository, dir string) []string {
	env := gitrun.MakeEnvironment(regexp.MustCompile(`^GIT_EXEC_PATH$`), "", [][2]string{
		{"core.excludesFile", os.DevNull}, {"core.attributesFile", os.DevNull}, {"core.untrackedCache", "false"}, {"core.commitGraph", "false"},
	})
	env = append(
		env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "XDG_CONFIG_HOME="+dir,
		"GIT_WORK_TREE="+found.Top, "GIT_INDEX_FILE="+filepath.Join(found.Dir, "index"), "GIT_OBJECT_DIRECTORY="+filepath.Join(found.Common, "objects"),
	)
	if shallow := filepath.Join(found.Common, "shallow"); isRegular(shallow) {
		env = append(env, "GIT_SHALLOW_FILE="+shallow)
	}
	return env
}

func isRegular(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// writeDir writes the files that git requires in a directory of a repository.
func (r *repository) writeDir(dir string) error {
	config := "[core]\n\trepositoryformatversion = 1\n"
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		config += "\tignorecase = true\n\tprecomposeunicode = true\n"
	}
	if r.SHA256 {
		config += "[extensions]\n\tobjectformat = sha256\n"
	}
	for name, text := range map[string]string{"config": config, "HEAD": "ref: refs/heads/none\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	// The index may be split into two files.
	shared, err := filepath.Glob(filepath.Join(r.Dir, "sharedindex.*"))
	for _, name := range shared {
		err = errors.Join(err, os.Symlink(name, filepath.Join(dir, filepath.Base(name))))
	}
	return errors.Join(err, os.Mkdir(filepath.Join(dir, "refs"), 0o700))
}

// readHead returns the checked out commit of a repository whose references only git can
// read, or "".
func (r *repository) readHead(ctx context.Context) (commit string) {
	git := r.git
	git.Dir = r.Dir
	_ = git.Run(ctx, nil, func(out *bufio.Reader) error {
		line, err := out.ReadString('\n')
		commit = strings.TrimSpace(line)
		return err
	}, "rev-parse", "--verify", "-q", "HEAD^{commit}") // The command fails before the first commit.
	return commit
}

// read reads the versions of all files.
func (s *State) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gitLimit, errors.New("git took more than "+gitLimit.String()))
	defer cancel()
	var list listing
	var listErr error
	var wg sync.WaitGroup
	wg.Go(func() { list, listErr = s.repo.listFiles(ctx) })
	head, err := s.repo.findTree(ctx, s.Commit)
	if err == nil { // most files are in the commit
		s.Tree, s.head = head.hash, head.files
		s.disk, err = s.repo.readFiles(ctx, slices.Collect(maps.Keys(s.head)))
	}
	wg.Wait()
	if err = cmp.Or(err, listErr); err != nil {
		return err
	}
	s.index = list.index
	more := slices.Clone(list.untracked)
	for p := range s.index {
		if _, read := s.head[p]; !read {
			more = append(more, p)
		}
	}
	found, err := s.repo.readFiles(ctx, more)
	if err != nil {
		return err
	}
	maps.Copy(s.disk, found)
	s.ignores = map[string]Entry{}
	for _, p := range list.untracked {
		if path.Base(p) == ".gitignore" && s.repo.ignoresItself(p) {
			s.ignores[p] = s.disk[p]
			delete(s.disk, p)
		}
	}
	for _, dir := range list.nested {
		// The changes of another repository do not belong to this one.
		nested, ok, err := project.FindRepository(filepath.Join(s.Root, filepath.FromSlash(dir)))
		if ok && err == nil {
			s.disk[dir] = Entry{modeRepository, nested.Commit}
		}
	}
	if runtime.GOOS == "windows" { // files have no mode on Windows
		for p, e := range s.disk {
			if known := cmp.Or(s.index[p], s.head[p]); e.Mode == modeFile && known.Mode == modeExecutable {
				s.disk[p] = Entry{known.Mode, e.Hash}
			}
		}
	}
	s.dirty = s.findDirty()
	return nil
}

// ignoresItself reports whether a .gitignore file ignores itself, as the ones that tools
// write into their directories do.
func (r *repository) ignoresItself(p string) (ignored bool) {
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return false
	}
	defer root.Close()
	file, err := safeopen.OpenIn(root, p)
	if err != nil {
		return false
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10))
	for line := range strings.Lines(string(text)) {
		pattern, negated := strings.CutPrefix(strings.TrimSpace(line), "!")
		if slices.Contains([]string{"*", "/*", "**", ".*", "/.*", ".gitignore", "/.gitignore"}, pattern) {
			ignored = !negated
		}
	}
	return ignored && err == nil
}

// knownTree returns the tree of a commit that was read before, or nil.
func (r *Reader) knownTree(commit string) *tree {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trees[commit]
}

// findTree returns the tree of a commit.
func (r *repository) findTree(ctx context.Context, commit string) (*tree, error) {
	if known := r.reader.knownTree(commit); known != nil {
		return known, nil
	}
	t, err := r.readTree(ctx, commit)
	if err != nil {
		return nil, err
	}
	r.reader.mu.Lock()
	defer r.reader.mu.Unlock()
	if len(r.reader.trees) >= maxTrees {
		clear(r.reader.trees)
	}
	r.reader.trees[commit] = t
	return t, nil
}

// listing has the paths that git lists.
type listing struct {
	index map[string]Entry
	// untracked are files that neither the index nor .gitignore names. nested are the
	// directories of other repositories.
	untracked, nested []string
}

// maxListing bounds the bytes of a listing.
const maxListing = 256 << 20

// listFiles lists the index and the untracked files. A file that is not ignored is listed.
func (r *repository) listFiles(ctx context.Context, args ...string) (listing, error) {
	if len(args) == 0 {
		args = []string{"--cached", "--stage", "--exclude-per-directory=.gitignore", "--exclude=!.gitignore"}
	}
	l := listing{index: map[string]Entry{}}
	if index := filepath.Join(r.Dir, "index"); !isRegular(index) {
		if _, err := os.Lstat(index); err == nil {
			return l, errors.New("the index is not a regular file")
		}
	}
	err := r.git.Run(ctx, nil, func(out *bufio.Reader) error {
		lines := bufio.NewReader(io.LimitReader(out, maxListing))
		for total := 0; ; {
			line, err := lines.ReadString(0)
			if total += len(line); total >= maxListing {
				return fmt.Errorf("the file names take more than %d bytes", maxListing)
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil || len(line) < 3 {
				return fmt.Errorf("the list of files is damaged: %w", cmp.Or(err, io.ErrUnexpectedEOF))
			}
			l.add(line[:1], strings.TrimSuffix(line[2:], "\x00"))
		}
	}, append([]string{"ls-files", "-z", "-t", "--others"}, args...)...)
	slices.Sort(l.untracked)
	return l, err
}

// add adds a line of git ls-files, without its tag.
func (l *listing) add(tag, line string) {
	if tag == "?" {
		if dir, ok := strings.CutSuffix(line, "/"); ok {
			l.nested = append(l.nested, dir)
		} else {
			l.untracked = append(l.untracked, line)
		}
		return
	}
	meta, name, _ := strings.Cut(line, "\t")
	fields := strings.Fields(meta)
	if len(fields) != 3 {
		return
	}
	e := Entry{fields[0], fields[1]}
	if fields[2] != "0" {
		e.Hash = "unmerged"
	}
	l.index[name] = e
}

// Dirty returns the paths that differ from the commit, in the index or in the work tree,
// sorted.
func (s *State) Dirty() []string { return s.dirty }

// findDirty returns the paths that differ from the commit.
func (s *State) findDirty() []string {
	var dirty []string
	for p, e := range s.head {
		if s.index[p] != e || s.disk[p] != e {
			dirty = append(dirty, p)
		}
	}
	for _, files := range []map[string]Entry{s.index, s.disk} {
		for p := range files {
			if _, ok := s.head[p]; !ok {
				dirty = append(dirty, p)
			}
		}
	}
	slices.Sort(dirty)
	return slices.Compact(dirty)
}

// IsUntracked reports whether neither the commit nor the index has a path.
func (s *State) IsUntracked(path string) bool {
	return s.head[path] == Entry{} && s.index[path] == Entry{}
}

// stateOf describes a path that differs from the commit: its version in the work tree, and
// the version in the index if it is another one.
func (s *State) stateOf(path string) string {
	text := s.disk[path].String()
	if i := s.index[path]; i != s.disk[path] && i != s.head[path] {
		text += ", index " + i.String()
	}
	return text
}

// dirtyHash returns the hash of the paths that differ from the commit and of their content,
// or "" without such paths.
func (s *State) dirtyHash() string {
	dirty := s.Dirty()
	if len(dirty) == 0 {
		return ""
	}
	h := sha256.New()
	for _, p := range dirty {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00", p, s.disk[p], s.index[p])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Workspace returns the record of the state.
func (s *State) Workspace(host string) *evidence.Workspace {
	w := &evidence.Workspace{Root: s.Root, Host: host, Commit: s.Commit, Tree: s.Tree, DirtyHash: s.dirtyHash()}
	dirty := s.Dirty()
	w.DirtyCount, w.WorkTree = len(dirty), s.Tree
	if len(dirty) > 0 {
		w.WorkTree = s.hashTree("", sortedKeys(s.disk))
	}
	w.Dirty = dirty[:min(len(dirty), evidence.MaxDirty)]
	for _, p := range w.Dirty {
		w.DirtyStates = append(w.DirtyStates, s.stateOf(p))
	}
	for _, p := range sortedKeys(s.ignores) {
		if len(w.IgnoreFiles) < evidence.MaxDirty {
			w.IgnoreFiles = append(w.IgnoreFiles, s.ignores[p].String()+" "+p)
		}
	}
	return w
}
