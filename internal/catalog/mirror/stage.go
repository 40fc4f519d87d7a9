package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// The bounds of a version, besides those of a catalog.
const (
	maxFiles    = 5_000
	maxBytes    = 128 << 20
	maxFindings = 50
	maxName     = 400
)

// Stage is a version to come. It belongs to one goroutine.
type Stage struct {
	dir      string
	manifest Manifest
	size     int64
	names    map[string]bool // in lower case
	dirs     []string
	dropped  int // findings beyond the bound
}

// Scratch is a directory for what is only needed to make the version.
func (s *Stage) Scratch() (string, error) {
	dir := s.dir + scratchSuffix
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a directory for what is fetched: %w", err)
	}
	return dir, nil
}

// remove takes the stage away, and what was only needed to make it.
func (s *Stage) remove() {
	_ = os.RemoveAll(s.dir + scratchSuffix) // what stays is swept another time
	_ = os.RemoveAll(s.dir)                 // it is gone where it became a version
}

// same says whether a version would be as another one is.
func (s *Stage) same(other *Manifest) bool {
	return slices.Equal(s.manifest.Files, other.Files) && slices.Equal(s.manifest.Findings, other.Findings)
}

// ErrTooMuch says that a version is larger than its bounds.
var ErrTooMuch = errors.New("there is more than a copy may hold")

// IsSafe says whether a name from elsewhere can be that of a file here: relative,
// with slashes, printable, and nothing that any system takes for something else.
func IsSafe(name string) bool {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || path.Clean(name) != name || strings.HasPrefix(name, "/") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || strings.EqualFold(part, ".git") || strings.TrimRight(part, ". ") != part || isDevice(part) {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r) || strings.ContainsRune(`\:*?"<>|`, r)
	})
}

// isDevice says whether Windows takes a name for a device, whatever its extension.
func isDevice(part string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(part), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '1' && stem[3] <= '9'
}

// Add writes a file of at most limit bytes. A file that cannot be taken is a
// finding; an error means that the version cannot be made.
func (s *Stage) Add(name string, limit int64, content io.Reader) error {
	switch {
	case !IsSafe(name):
		s.Refuse(name, "file-name", "the name cannot be that of a file on every system", "rename the file")
		return nil
	case s.names[strings.ToLower(name)]:
		s.Refuse(name, "file-name", "another file has this name, but for capital letters", "rename one of the two")
		return nil
	case len(s.manifest.Files) >= maxFiles:
		return fmt.Errorf("%w: over %d files", ErrTooMuch, maxFiles)
	}
	target := filepath.Join(s.dir, filesDir, filepath.FromSlash(name))
	if err := s.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(content, limit+1))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if size > limit {
		s.Refuse(name, "file-too-large", fmt.Sprintf("the file is larger than %d bytes", limit), "split it")
		return os.Remove(target)
	}
	if s.size += size; s.size > maxBytes {
		return fmt.Errorf("%w: over %d bytes", ErrTooMuch, maxBytes)
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[strings.ToLower(name)] = true
	s.manifest.Files = append(s.manifest.Files, File{Name: name, Size: size, Sum: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// makeDirs makes the directories of a file.
func (s *Stage) makeDirs(name string) error {
	if name == "." || slices.Contains(s.dirs, name) {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(s.dir, filesDir, filepath.FromSlash(name)), 0o700); err != nil {
		return fmt.Errorf("make the directory %s: %w", name, err)
	}
	s.dirs = append(s.dirs, name)
	return nil
}

// Refuse notes that a file is not in the copy, and why.
func (s *Stage) Refuse(name, code, message, fix string) {
	s.Find(guideway.Diagnostic{Severity: guideway.SeverityError, Code: code, File: clip(name), Message: message, Fix: fix})
}

// Find notes a finding; its file is a name in the source, or "".
func (s *Stage) Find(d guideway.Diagnostic) {
	if len(s.manifest.Findings) < maxFindings {
		s.manifest.Findings = append(s.manifest.Findings, d)
		return
	}
	s.dropped++
}

// clip makes a name from elsewhere fit to be shown.
func clip(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if len(name) > maxName {
		return strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	return name
}

// Keep takes a file over from the version before, if that has one of this content.
func (s *Stage) Keep(have *Have, name, sum string) (bool, error) {
	if have == nil || have.sums[sum] == "" || !IsSafe(name) {
		return false, nil
	}
	root, err := os.OpenRoot(have.dir)
	if err != nil {
		return false, nil // it is fetched instead
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(have.sums[sum]))
	if err != nil {
		return false, nil
	}
	defer file.Close()
	before := len(s.manifest.Files)
	if err := s.Add(name, maxBytes, file); err != nil {
		return false, err
	}
	if len(s.manifest.Files) == before {
		return true, nil // it was refused, with a finding
	}
	if s.manifest.Files[before].Sum != sum {
		return false, fmt.Errorf("%w: %s is not what it was", errCorrupt, name)
	}
	return true, nil
}

var errCorrupt = errors.New("the copy was changed")

// sync makes the directories durable; the files are.
func (s *Stage) sync() error {
	for _, dir := range append([]string{"."}, s.dirs...) {
		if err := atomicfile.SyncDir(filepath.Join(s.dir, filesDir, filepath.FromSlash(dir))); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(s.dir)
}

// finish completes what is known of the version.
func (s *Stage) finish(revision string) {
	if s.dropped > 0 {
		s.manifest.Findings = append(s.manifest.Findings, guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: "findings-more", Message: fmt.Sprintf("%d more findings are not listed", s.dropped),
		})
	}
	slices.SortFunc(s.manifest.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	s.manifest.Revision = revision
}
