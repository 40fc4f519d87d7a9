package project

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// Bounds of what is read. Git itself has no longer ones in use: a reference is
// a line, a configuration a page; a packed file of 32 MiB has half a million
// references.
const (
	smallBytes  = 256 << 10
	packedBytes = 32 << 20
	// maxHops bounds references that stand for references, as in Git.
	maxHops = 5
)

// hash is a commit's name, by SHA-1 or SHA-256.
var hash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`) })

// headOf reads what is checked out in a repository's directory: the name of a
// reference or a commit. ok says whether it looks like either.
func headOf(dir string) (content string, ok bool) {
	name := filepath.Join(dir, "HEAD")
	// Old repositories have a symbolic link; its target may not exist yet.
	if target, err := os.Readlink(name); err == nil && strings.HasPrefix(target, "refs/") {
		return target, validRef(target)
	}
	text, ok := readSmall(name)
	if !ok {
		return "", false
	}
	return parseRef(text)
}

// parseRef reads the text of a reference.
func parseRef(text string) (content string, ok bool) {
	text = strings.TrimRight(text, " \t\r\n")
	if target, symbolic := strings.CutPrefix(text, "ref:"); symbolic {
		target = strings.TrimLeft(target, " \t")
		return target, validRef(target)
	}
	return text, hash().MatchString(text)
}

// validRef tells whether a text may name a reference: by Git's own rules as far
// as they keep the name inside the directory and fit for a screen.
func validRef(name string) bool {
	if !strings.HasPrefix(name, "refs/") || len(name) > 1024 || !utf8.ValidString(name) {
		return false
	}
	if strings.Contains(name, "..") || strings.ContainsAny(name, `\:?*[~^ `) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." {
			return false
		}
	}
	return true
}

// head gives the branch and the commit that are checked out.
func (r repository) head() (branch, commit string) {
	content, ok := headOf(r.dir)
	if !ok {
		return "", ""
	}
	if hash().MatchString(content) {
		return "", content
	}
	// A repository with reftables has this name in its HEAD, for the sake of
	// readers like this one.
	if content == "refs/heads/.invalid" {
		return "", ""
	}
	branch, _ = strings.CutPrefix(content, "refs/heads/")
	return branch, r.commit(content)
}

// commit gives the commit that a reference stands for, or "".
func (r repository) commit(ref string) string {
	for range maxHops {
		content, ok := r.loose(ref)
		if !ok {
			return r.packed(ref)
		}
		if hash().MatchString(content) {
			return content
		}
		ref = content
	}
	return ""
}

// loose reads a reference that has a file of its own. A work tree has some of
// its own beside the shared ones.
func (r repository) loose(ref string) (content string, ok bool) {
	dir := r.common
	for _, own := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(ref, own) {
			dir = r.dir
		}
	}
	text, ok := readSmall(filepath.Join(dir, filepath.FromSlash(ref)))
	if !ok {
		return "", false
	}
	return parseRef(text)
}

// packed looks a reference up among the packed ones.
func (r repository) packed(ref string) string {
	file, err := safeopen.Open(filepath.Join(r.common, "packed-refs"))
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.LimitReader(file, packedBytes), 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		// A line that does not fit comes in pieces; none of them matches.
		if commit, name, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), " "); ok &&
			name == ref && hash().MatchString(commit) {
			return commit
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return ""
		}
	}
}

// readSmall reads a regular file. A longer one than any that Git writes is not
// one of Git's.
func readSmall(name string) (text string, ok bool) {
	file, err := safeopen.Open(name)
	if err != nil {
		return "", false
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, smallBytes+1))
	if err != nil || len(content) > smallBytes {
		return "", false
	}
	return string(content), true
}
