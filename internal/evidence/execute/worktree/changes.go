package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/platform/gitrun"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// Change is a path that differs from the start of a run.
type Change struct {
	Path string
	// Start and Now describe the versions of the file in the work tree, as in
	// evidence.Workspace.DirtyStates.
	Start, Now string
	// Elsewhere is set if the file in the work tree is unchanged, but another version is
	// committed or staged. Now is that version then.
	Elsewhere bool
}

// String describes the change.
func (c Change) String() string {
	switch {
	case c.Elsewhere:
		return c.Path + " (committed or staged)"
	case c.IsAddition():
		return c.Path + " (added)"
	case c.Now == absent:
		return c.Path + " (deleted)"
	}
	from, _, _ := strings.Cut(c.Start, " ")
	if to, _, _ := strings.Cut(c.Now, " "); from != to {
		return fmt.Sprintf("%s (mode %s, was %s)", c.Path, to, from)
	}
	return c.Path + " (modified)"
}

var absent = Entry{}.String()

// Changes returns the paths that changed since the start of a run and that one of the globs
// matches: committed, staged, unstaged and untracked changes all count, and so do added files
// that only a change of a .gitignore hides. Without globs, all changed paths are returned
// except hidden ones. A file that was dirty at the start must be as it was then; its
// content may have been committed.
//
// The error has the code guideway.CodeInvalid if the start is not known well enough.
func (r *Reader) Changes(ctx context.Context, s *State, start *evidence.Workspace, globs []string) ([]Change, error) {
	if err := checkStart(s, start); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, gitLimit, errors.New("git took more than "+gitLimit.String()))
	defer cancel()
	base, err := r.findStart(ctx, s, start.Commit)
	if errors.Is(err, errMissing) {
		return nil, unknownStart("the commit %s, at which the run started, is no longer in the repository", start.Commit)
	}
	if err != nil {
		return nil, err
	}
	recorded := map[string]string{}
	for i, p := range start.Dirty {
		recorded[p] = start.DirtyStates[i]
	}
	ignores := map[string]string{}
	for _, line := range start.IgnoreFiles {
		mode, rest, _ := strings.Cut(line, " ")
		hash, p, _ := strings.Cut(rest, " ")
		ignores[p] = mode + " " + hash
	}
	c := &comparison{now: s, base: base.files, recorded: recorded, ignores: ignores}
	changes := c.list(globs)
	if len(globs) > 0 && c.ignoresChanged() {
		hidden, err := r.findHidden(ctx, c, globs)
		if err != nil {
			return nil, err
		}
		changes = append(changes, hidden...)
	}
	if len(changes) > 0 && start.DirtyCount > len(start.Dirty) && s.dirtyHash() == start.DirtyHash && s.Commit == start.Commit {
		return nil, nil
	}
	return changes, nil
}

// findStart returns the tree of the commit at the start of a run.
func (r *Reader) findStart(ctx context.Context, s *State, commit string) (t *tree, err error) {
	if t = r.knownTree(commit); t != nil {
		return t, nil
	}
	repo, closeRepo, err := r.open(ctx, s.repo.Repository)
	if err != nil {
		return nil, err
	}
	defer closeRepo()
	if t, err = repo.findTree(ctx, commit); err != nil && !errors.Is(err, errMissing) {
		err = explain(err, s.Root)
	}
	return t, err
}

func unknownStart(format string, args ...any) error {
	return guideway.Errorf(guideway.CodeInvalid, format, args...).WithFix("start a new run in a work tree of Git")
}

// checkStart returns an error if the state cannot be compared with the start of a run.
func checkStart(s *State, start *evidence.Workspace) error {
	switch {
	case !s.Git:
		return unknownStart("%s is not a work tree of Git, so changed files are unknown", s.Root)
	case start == nil:
		return unknownStart("the state of the work tree at the start of the run was not recorded")
	case len(start.Dirty) != len(start.DirtyStates):
		return unknownStart("the state of the uncommitted files at the start of the run was not recorded")
	}
	return nil
}

// comparison compares a state with the start of a run.
type comparison struct {
	now  *State
	base map[string]Entry
	// recorded are the states of the paths that were dirty at the start.
	recorded map[string]string
	// ignores are the states of the .gitignore files at the start that ignored themselves.
	ignores map[string]string
}

// ignoresChanged reports whether a list of ignored files changed.
func (c *comparison) ignoresChanged() bool {
	for p, e := range c.now.ignores {
		if c.ignores[p] != e.String() {
			return true
		}
	}
	return len(c.list([]string{"**/.gitignore"})) > 0
}

// list returns the changes of the paths that one of the globs matches, sorted by path.
func (c *comparison) list(globs []string) (changes []Change) {
	for _, p := range c.candidates() {
		found := c.compare(p)
		if found != nil && (len(globs) == 0 || MatchesAny(globs, p) || c.isRepository(p) && mayContain(globs, p)) {
			changes = append(changes, found...)
		}
	}
	return changes
}

// candidates returns the paths whose versions are not all the same, sorted.
func (c *comparison) candidates() []string {
	paths := sortedKeys(c.recorded)
	now := c.now
	for p, e := range c.base {
		if now.head[p] != e || now.index[p] != e || now.disk[p] != e {
			paths = append(paths, p)
		}
	}
	for _, files := range []map[string]Entry{now.head, now.index, now.disk} {
		for p := range files {
			if _, ok := c.base[p]; !ok {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// compare returns the changed versions of one path: the one in the work tree, and others that
// are committed or staged.
func (c *comparison) compare(p string) (changes []Change) {
	committed := c.base[p].String()
	before, staged := committed, committed
	if state, ok := c.recorded[p]; ok {
		before, staged, ok = strings.Cut(state, ", index ")
		if !ok {
			staged = before
		}
	}
	known := []string{before}
	if now := c.now.disk[p].String(); now != before {
		changes = append(changes, Change{Path: p, Start: before, Now: now})
		known = append(known, now)
	}
	known = append(known, committed, staged)
	for _, e := range []Entry{c.now.head[p], c.now.index[p]} {
		if text := e.String(); !slices.Contains(known, text) {
			changes = append(changes, Change{Path: p, Start: before, Now: text, Elsewhere: true})
			known = append(known, text)
		}
	}
	return changes
}

// isRepository reports whether a path is or was a repository in the work tree.
func (c *comparison) isRepository(p string) bool {
	return c.base[p].Mode == modeRepository || c.now.disk[p].Mode == modeRepository
}

// MatchesAny reports whether a glob matches a path: ** matches directories, and braces and
// brackets have their usual meaning.
func MatchesAny(globs []string, p string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return doublestar.MatchUnvalidated(glob, p) })
}

// mayContain reports whether a glob can match a path below a directory.
func mayContain(globs []string, dir string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		if strings.Contains(glob, "{") { // braces can contain slashes
			return true
		}
		parts := strings.Split(glob, "/")
		for i, name := range strings.Split(dir, "/") {
			switch {
			case i >= len(parts):
				return false
			case strings.Contains(parts[i], "**"):
				return true
			case !doublestar.MatchUnvalidated(parts[i], name):
				return false
			}
		}
		return true
	})
}

// findHidden returns the added files that one of the globs matches and that only a change of
// a .gitignore since the start of the run hides.
func (r *Reader) findHidden(ctx context.Context, c *comparison, globs []string) (changes []Change, err error) {
	repo, closeRepo, err := r.open(ctx, c.now.repo.Repository)
	if err != nil {
		return nil, err
	}
	defer closeRepo()
	list, err := repo.listFiles(ctx, "--") // no list of ignored files is applied
	if err != nil {
		return nil, explain(err, c.now.Root)
	}
	candidates := slices.DeleteFunc(append(list.untracked, list.nested...), func(p string) bool {
		return c.now.disk[p] != Entry{} || len(globs) > 0 && !MatchesAny(globs, p)
	})
	ignored, err := repo.listIgnored(ctx, c, candidates)
	if err != nil {
		return nil, explain(err, c.now.Root)
	}
	for _, p := range candidates {
		if _, known := c.recorded[p]; !ignored[p] && !known && c.base[p] == (Entry{}) {
			changes = append(changes, Change{Path: p, Start: absent, Now: hiddenFile})
		}
	}
	return changes, nil
}

// listIgnored returns the paths that the lists of ignored files at the start of the run
// ignore. A list that was dirty at the start counts only if it is unchanged.
func (r *repository) listIgnored(ctx context.Context, c *comparison, paths []string) (ignored map[string]bool, err error) {
	dir, err := os.MkdirTemp("", "guideway-ignore-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, p := range slices.Concat(sortedKeys(c.base), sortedKeys(c.recorded), sortedKeys(c.ignores)) {
		if path.Base(p) != ".gitignore" {
			continue
		}
		text, err := r.readStart(ctx, c, p)
		if err != nil {
			return nil, err
		}
		name := filepath.FromSlash(p)
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o700), root.WriteFile(name, text, 0o600)); err != nil {
			return nil, err
		}
	}
	git := r.git
	git.Env = append(slices.Clip(git.Env), "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+filepath.Join(git.Dir, "no-index"))
	ignored = map[string]bool{}
	var input strings.Builder
	for _, p := range paths {
		input.WriteString("./" + p + "\x00") // a path that begins with a colon has another meaning
	}
	err = git.Run(ctx, strings.NewReader(input.String()), func(out *bufio.Reader) error {
		text, err := io.ReadAll(io.LimitReader(out, maxListing))
		for name := range strings.SplitSeq(string(text), "\x00") {
			ignored[strings.TrimPrefix(name, "./")] = true
		}
		return err
	}, "check-ignore", "-z", "--no-index", "--stdin")
	if len(ignored) <= 1 { // git exits with 1 if no path is ignored
		err = nil
	}
	return ignored, err
}

// readStart returns the content of a file at the start of the run, or nil if it is unknown.
func (r *repository) readStart(ctx context.Context, c *comparison, p string) ([]byte, error) {
	committed := c.base[p]
	state, dirty := c.recorded[p]
	switch {
	case c.ignores[p] != "" && c.now.ignores[p].String() == c.ignores[p], dirty && c.now.disk[p].String() == strings.Split(state, ", ")[0]:
		root, err := os.OpenRoot(r.Top)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.ReadFile(filepath.FromSlash(p))
	case committed.Mode == modeFile || committed.Mode == modeExecutable:
		return r.readBlob(ctx, committed.Hash)
	}
	return nil, nil
}

// readBlob returns the content of a file in a commit.
func (r *repository) readBlob(ctx context.Context, hash string) (text []byte, err error) {
	err = r.git.Run(ctx, strings.NewReader(hash+"\n"), func(out *bufio.Reader) error {
		text, err = r.readObject(out, hash, "blob")
		return err
	}, "cat-file", "--batch")
	return text, err
}

// maxContent is the maximum size of a file whose content is returned.
const maxContent = 1 << 20

// Content returns the contents of a changed file at the start of the run and now. Either is
// nil if the file was absent, is no regular file, is too large, or its content is not in the
// repository. A file whose content is no longer that of the change is an error.
func (r *Reader) Content(ctx context.Context, s *State, c Change) (before, now []byte, err error) {
	repo, closeRepo, err := r.open(ctx, s.repo.Repository)
	if err != nil {
		return nil, nil, err
	}
	defer closeRepo()
	if before, err = repo.readVersion(ctx, c.Start); err != nil {
		return nil, nil, err
	}
	if c.Elsewhere {
		now, err = repo.readVersion(ctx, c.Now)
		return before, now, err
	}
	mode, digest, _ := strings.Cut(c.Now, " ")
	if c.HasVersion() && mode != modeFile && mode != modeExecutable {
		return before, nil, nil
	}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	file, err := safeopen.OpenIn(root, c.Path)
	if err != nil {
		return before, nil, nil
	}
	defer file.Close()
	now, err = safeopen.Read(ctx, file, maxContent)
	if err != nil || len(now) > maxContent {
		return before, nil, err
	}
	if c.HasVersion() && repo.hashText(string(now)) != digest {
		return nil, nil, guideway.Errorf(guideway.CodeConflict, "the file %s changed while it was read", c.Path).
			WithFix("end the programs that write to it, and try again")
	}
	return before, now, nil
}

// readVersion returns the content of a version of a file, or nil.
func (r *repository) readVersion(ctx context.Context, version string) ([]byte, error) {
	mode, hash, _ := strings.Cut(version, " ")
	if mode != modeFile && mode != modeExecutable {
		return nil, nil
	}
	text, err := r.readBlob(ctx, hash)
	if errors.Is(err, errMissing) || len(text) > maxContent {
		return nil, nil
	}
	return text, err
}

// IsAddition reports whether the file did not exist at the start.
func (c Change) IsAddition() bool { return c.Start == absent }

// IsDeletion reports whether the file does not exist now.
func (c Change) IsDeletion() bool { return c.Now == absent }

// HasVersion reports whether Now identifies the content, or that there is no file.
func (c Change) HasVersion() bool { return c.Now != hiddenFile }

// hiddenFile is the version of an added file that only a change of a .gitignore hides.
const hiddenFile = "hidden by a changed .gitignore"

// commitName matches the name of a commit: its hash or the beginning of it.
var commitName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`) })

// CheckCommit returns an issue if a commit does not exist or is not part of the checked out
// branch.
func (r *Reader) CheckCommit(ctx context.Context, s *State, name string) (issue string, err error) {
	if !commitName().MatchString(name) {
		return fmt.Sprintf("%q is not the hash of a commit", name), nil
	}
	repo, closeRepo, err := r.open(ctx, s.repo.Repository)
	if err != nil {
		return "", err
	}
	defer closeRepo()
	ctx, cancel := context.WithTimeoutCause(ctx, gitLimit, errors.New("git took more than "+gitLimit.String()))
	defer cancel()
	hash := ""
	err = repo.git.Run(ctx, strings.NewReader(name+"^{commit}\n"), func(out *bufio.Reader) error {
		line, err := out.ReadString('\n')
		if fields := strings.Fields(line); len(fields) == 3 && fields[1] == "commit" {
			hash = fields[0]
		}
		return err
	}, "cat-file", "--batch-check")
	switch {
	case err != nil:
		return "", explain(err, s.Root)
	case hash == "":
		return fmt.Sprintf("the commit %s does not exist", name), nil
	case s.Commit == hash:
		return "", nil
	case s.Commit == "":
		return fmt.Sprintf("the commit %s is not part of the checked out branch", name), nil
	}
	err = repo.git.Run(ctx, nil, func(out *bufio.Reader) error { _, err := io.Copy(io.Discard, out); return err }, "merge-base", "--is-ancestor", hash, s.Commit)
	var failure *gitrun.Failure
	if errors.As(err, &failure) {
		return fmt.Sprintf("the commit %s is not part of the checked out branch", name), nil
	}
	if err != nil {
		return "", explain(err, s.Root)
	}
	return "", nil
}
