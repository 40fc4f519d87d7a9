package project

import (
	"path/filepath"
	"strconv"
	"strings"
)

// repository is what Git calls a repository, from one of its work trees. Both
// directories are resolved.
type repository struct {
	// dir has the head of the work tree, common what all work trees share.
	dir, common string
}

// discover goes up from a directory to the repository that it is in, and gives
// the top of the work tree that it passed. Like Git, it takes no notice of a
// .git that is none.
func discover(start string) (repo repository, top string, ok bool) {
	for dir := start; ; {
		if repo, ok := openRepository(gitDir(dir)); ok {
			return repo, dir, true
		}
		// A bare repository, or the inside of one.
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

// gitDir gives the directory that the .git of a directory stands for, or "".
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
	return pathIn(dir, target)
}

// pathIn gives the path that a line of a file stands for, relative to a
// directory; "" if it is none.
func pathIn(dir, line string) string {
	line = strings.TrimRight(strings.TrimLeft(line, " "), "\r\n")
	if line == "" || strings.ContainsAny(line, "\x00\n") {
		return ""
	}
	line = filepath.FromSlash(line)
	// Looking at a share of the network would send the user's name there.
	if strings.HasPrefix(filepath.VolumeName(line), `\\`) {
		return ""
	}
	if filepath.IsAbs(line) {
		return line
	}
	return filepath.Join(dir, line)
}

// openRepository looks whether a directory is what Git keeps a repository in.
func openRepository(dir string) (repository, bool) {
	if dir == "" {
		return repository{}, false
	}
	if _, ok := headOf(dir); !ok {
		return repository{}, false
	}
	dir, err := resolve(dir)
	if err != nil {
		return repository{}, false
	}
	repo := repository{dir: dir, common: dir}
	if text, ok := readSmall(filepath.Join(dir, "commondir")); ok {
		common, err := resolve(pathIn(dir, text))
		if err != nil {
			return repository{}, false
		}
		repo.common = common
	}
	valid := isDir(filepath.Join(repo.common, "objects")) && isDir(filepath.Join(repo.common, "refs"))
	return repo, valid
}

// root gives the main work tree, or what stands for it. Every work tree of a
// repository has the same answer.
func (r repository) root() string {
	if filepath.Base(r.common) == ".git" {
		return filepath.Dir(r.common)
	}
	// A submodule's repository stands inside its parent's and names its work
	// tree. Linked work trees make Git move that name to config.worktree.
	for _, name := range []string{"config.worktree", "config"} {
		text, ok := readSmall(filepath.Join(r.common, name))
		if !ok {
			continue
		}
		if tree := pathIn(r.common, coreWorktree(text)); tree != "" {
			if resolved, err := resolve(tree); err == nil {
				return resolved
			}
		}
	}
	return r.common
}

// coreWorktree reads core.worktree from the text of a configuration; "" if it
// is not there.
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
