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

// Maximum sizes of the files read. Git's own files are smaller in practice: a reference is
// a line, a configuration a page; a packed file of 32 MiB has half a million references.
const (
	smallBytes  = 256 << 10
	packedBytes = 32 << 20
	// maxHops is the maximum length of a chain of references, as in Git.
	maxHops = 5
)

// hash matches a commit hash, SHA-1 or SHA-256.
var hash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`) })

// readHead reads the checked out reference or commit of a repository's directory. ok is
// false if the content is neither.
func readHead(dir string) (content string, ok bool) {
	name := filepath.Join(dir, "HEAD")
	// Old repositories have a symbolic link. Its target may not exist yet.
	if target, err := os.Readlink(name); err == nil && strings.HasPrefix(target, "refs/") {
		return target, validRef(target)
	}
	text, ok := readSmall(name)
	if !ok {
		return "", false
	}
	return parseRef(text)
}

// parseRef parses the text of a reference.
func parseRef(text string) (content string, ok bool) {
	text = strings.TrimRight(text, " \t\r\n")
	if target, symbolic := strings.CutPrefix(text, "ref:"); symbolic {
		target = strings.TrimLeft(target, " \t")
		return target, validRef(target)
	}
	return text, hash().MatchString(text)
}

// validRef reports whether name obeys the rules of Git for reference names that keep the
// file inside the directory and the name printable.
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

// checkedOut returns the branch and the commit that are checked out.
func (r repository) checkedOut() (branch, commit string) {
	content, ok := readHead(r.dir)
	if !ok {
		return "", ""
	}
	if hash().MatchString(content) {
		return "", content
	}
	// A repository with reftables has this name in its HEAD, for readers that do not
	// support them.
	if content == "refs/heads/.invalid" {
		return "", ""
	}
	branch, _ = strings.CutPrefix(content, "refs/heads/")
	return branch, r.resolveRef(content)
}

// resolveRef returns the commit of a reference, or "".
func (r repository) resolveRef(ref string) string {
	for range maxHops {
		content, ok := r.looseRef(ref)
		if !ok {
			return r.packedRef(ref)
		}
		if hash().MatchString(content) {
			return content
		}
		ref = content
	}
	return ""
}

// looseRef reads a reference that has its own file. A work tree has its own references in
// addition to the shared ones.
func (r repository) looseRef(ref string) (content string, ok bool) {
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

// packedRef finds a reference among the packed ones.
func (r repository) packedRef(ref string) string {
	file, err := safeopen.Open(filepath.Join(r.common, "packed-refs"))
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.LimitReader(file, packedBytes), 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		// An overlong line is read in pieces, none of which matches.
		if commit, name, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), " "); ok &&
			name == ref && hash().MatchString(commit) {
			return commit
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return ""
		}
	}
}

// readSmall reads a regular file. It refuses a file of more than smallBytes.
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
