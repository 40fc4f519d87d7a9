package project

import (
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
)

// repository is a Git repository, seen from one of its work trees. Both directories are
// resolved.
type repository struct {
	// dir contains the head of the work tree, common the files that all work trees share.
	dir, common string
}

// Repository is the repository of a directory. All paths are absolute, with symbolic links
// resolved.
type Repository struct {
	// Top is the top of the work tree, or empty in a bare repository.
	Top string
	// Dir contains the head and the index of the work tree, Common the objects and the files
	// that all work trees share.
	Dir, Common string
	// Commit is the checked out commit. It is empty before the first commit, and if the
	// repository uses reftables.
	Commit string
	// Reftables and SHA256 are the formats of references and objects.
	Reftables, SHA256 bool
}

// FindRepository returns the repository of a directory. ok is false if none exists. The
// error has CodeInvalid and means that the directory does not exist.
func FindRepository(dir string) (r Repository, ok bool, err error) {
	start, err := resolveDir(dir)
	if err != nil {
		return Repository{}, false, guideway.Errorf(guideway.CodeInvalid, "find the repository of %s: %w", dir, err).
			WithFix("pass an existing directory")
	}
	repo, top, ok := discoverRepository(start)
	if !ok {
		return Repository{}, false, nil
	}
	r = Repository{Top: top, Dir: repo.dir, Common: repo.common}
	if top == repo.dir {
		r.Top = ""
	}
	_, r.Commit = repo.checkedOut()
	if text, found := readSmall(filepath.Join(repo.common, "config")); found {
		r.Reftables, r.SHA256 = reftables().MatchString(text), sha256Objects().MatchString(text)
	}
	return r, true, nil
}

var (
	reftables     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?mi)^\s*refstorage\s*=\s*"?reftable`) })
	sha256Objects = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?mi)^\s*objectformat\s*=\s*"?sha256`) })
)

// discoverRepository finds the repository of a directory in its parents, and returns the
// top of the work tree. Like Git, it ignores an invalid .git.
func discoverRepository(start string) (repo repository, top string, ok bool) {
	for dir := start; ; {
		if repo, ok := openRepository(gitDir(dir)); ok {
			return repo, dir, true
		}
		// A bare repository, or a directory in a repository.
		if repo, ok := openRepository(dir); ok {
			return repo, dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return repository{}, "", false
		}
		dir = parent
	}
}

// gitDir returns the directory that the .git of a directory refers to, or "".
func gitDir(dir string) string {
	name := filepath.Join(dir, ".git")
	if isDir(name) {
		return name
	}
	text, ok := readSmall(name)
	if !ok {
		return ""
	}
	target, ok := strings.CutPrefix(text, "gitdir:")
	if !ok {
		return ""
	}
	return resolvePath(dir, target)
}

// resolvePath returns the path in a line of a file, relative to a directory, or "" if it is
// not a path.
func resolvePath(dir, line string) string {
	line = strings.TrimRight(strings.TrimLeft(line, " "), "\r\n")
	if line == "" || strings.ContainsAny(line, "\x00\n") {
		return ""
	}
	line = filepath.FromSlash(line)
	if IsNetworkPath(line, runtime.GOOS) {
		return ""
	}
	if filepath.IsAbs(line) {
		return line
	}
	return filepath.Join(dir, line)
}

// IsNetworkPath reports whether a path is a network share or a device path, which may name a
// share, on the operating system with a name of GOOS. A path that others chose must not be
// accessed then: Windows would send the user's name and a hash of the password to the share's
// server.
func IsNetworkPath(path, system string) bool {
	path = strings.ReplaceAll(path, "/", `\`)
	return system == "windows" && (strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, `\??\`))
}

// openRepository returns the repository in a directory, if the directory is one.
func openRepository(dir string) (repository, bool) {
	if dir == "" {
		return repository{}, false
	}
	if _, ok := readHead(dir); !ok {
		return repository{}, false
	}
	dir, err := resolveDir(dir)
	if err != nil {
		return repository{}, false
	}
	repo := repository{dir: dir, common: dir}
	if text, ok := readSmall(filepath.Join(dir, "commondir")); ok {
		common, err := resolveDir(resolvePath(dir, text))
		if err != nil {
			return repository{}, false
		}
		repo.common = common
	}
	valid := isDir(filepath.Join(repo.common, "objects")) && isDir(filepath.Join(repo.common, "refs"))
	return repo, valid
}

// mainRoot returns the main work tree or its substitute. It is the same for every work tree
// of a repository.
func (r repository) mainRoot() string {
	if filepath.Base(r.common) == ".git" {
		return filepath.Dir(r.common)
	}
	// A submodule's repository is inside its parent's and names its work tree. With linked
	// work trees, Git moves that name to config.worktree.
	for _, name := range []string{"config.worktree", "config"} {
		text, ok := readSmall(filepath.Join(r.common, name))
		if !ok {
			continue
		}
		if tree := resolvePath(r.common, coreWorktree(text)); tree != "" {
			if resolved, err := resolveDir(tree); err == nil {
				return resolved
			}
		}
	}
	return r.common
}

// coreWorktree returns core.worktree of a configuration, or "".
func coreWorktree(text string) string {
	value, inCore := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			inCore = strings.EqualFold(strings.ReplaceAll(line, " ", ""), "[core]")
			continue
		}
		key, given, ok := strings.Cut(line, "=")
		if !inCore || !ok || !strings.EqualFold(strings.TrimSpace(key), "worktree") {
			continue
		}
		value = strings.TrimSpace(given)
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
	}
	return value
}
