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

// The limits of a version, in addition to those of a catalog.
const (
	maxFiles    = 5_000
	maxBytes    = 128 << 20
	maxFindings = 50
	maxName     = 400
)

// Stage is an incomplete new version. It is not safe for concurrent use.
type Stage struct {
	dir      string
	manifest Manifest
	size     int64
	names    map[string]bool // in lower case
	dirs     []string
	omitted  int // diagnostics beyond the limit
}

// Scratch returns a temporary directory for making the version.
func (s *Stage) Scratch() (string, error) {
	dir := s.dir + scratchSuffix
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create a directory for the fetched files: %w", err)
	}
	return dir, nil
}

// discard removes the stage and its temporary directory.
func (s *Stage) discard() {
	_ = os.RemoveAll(s.dir + scratchSuffix) // the next sweep tries again
	_ = os.RemoveAll(s.dir)                 // the directory does not exist if the stage became a version
}

// equals reports whether the version has the same content as another one.
func (s *Stage) equals(other *Manifest) bool {
	return slices.Equal(s.manifest.Files, other.Files) && slices.Equal(s.manifest.Findings, other.Findings)
}

// ErrTooMuch means that a version exceeds its limits.
var ErrTooMuch = errors.New("the copy is too large")

// IsSafe reports whether a remote name can be used as a file name in a copy: relative, with
// slashes, printable, and without special meaning on any system.
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

// isDevice reports whether Windows treats a name as a device, with any extension.
func isDevice(part string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(part), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '1' && stem[3] <= '9'
}

// Add writes a file of at most limit bytes. A file that cannot be accepted is a diagnostic;
// an error means that the version cannot be made.
func (s *Stage) Add(name string, limit int64, content io.Reader) error {
	switch {
	case !IsSafe(name):
		s.Reject(name, "file-name", "the name is not a valid file name on every system", "rename the file")
		return nil
	case s.names[strings.ToLower(name)]:
		s.Reject(name, "file-name", "another file has the same name, or one that differs only in case", "rename one of the two files")
		return nil
	case len(s.manifest.Files) >= maxFiles:
		return fmt.Errorf("%w: more than %d files", ErrTooMuch, maxFiles)
	}
	target := filepath.Join(s.dir, filesDir, filepath.FromSlash(name))
	if err := s.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	atomicfile.KeepOwner(file)
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(content, limit+1))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if size > limit {
		s.Reject(name, "file-too-large", fmt.Sprintf("the file is larger than %d bytes", limit), "split the document, or raise maxFileSize of the source (at most 1 MiB)")
		return os.Remove(target)
	}
	if s.size += size; s.size > maxBytes {
		return fmt.Errorf("%w: more than %d bytes", ErrTooMuch, maxBytes)
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[strings.ToLower(name)] = true
	s.manifest.Files = append(s.manifest.Files, File{Name: name, Size: size, Sum: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// makeDirs creates the directories of a file.
func (s *Stage) makeDirs(name string) error {
	if name == "." || slices.Contains(s.dirs, name) {
		return nil
	}
	if err := atomicfile.MakeDir(filepath.Join(s.dir, filesDir, filepath.FromSlash(name))); err != nil {
		return fmt.Errorf("create the directory %s: %w", name, err)
	}
	s.dirs = append(s.dirs, name)
	return nil
}

// Reject records why a file is not in the copy.
func (s *Stage) Reject(name, code, message, fix string) {
	s.AddDiagnostic(guideway.Diagnostic{Severity: guideway.SeverityError, Code: code, File: clipName(name), Message: message, Fix: fix})
}

// AddDiagnostic adds a diagnostic; its file is a name in the source, or "".
func (s *Stage) AddDiagnostic(d guideway.Diagnostic) {
	if len(s.manifest.Findings) < maxFindings {
		s.manifest.Findings = append(s.manifest.Findings, d)
		return
	}
	s.omitted++
}

// clipName makes a remote name safe to show.
func clipName(name string) string {
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

// Reuse copies a file from the previous version if the previous version has a file with
// this content. It returns false if the file must be fetched instead.
func (s *Stage) Reuse(have *Previous, name, sum string) (bool, error) {
	if have == nil || have.sums[sum] == "" || !IsSafe(name) {
		return false, nil
	}
	root, err := os.OpenRoot(have.dir)
	if err != nil {
		return false, nil // the file is fetched instead
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
		return true, nil // the file was rejected with a diagnostic
	}
	if s.manifest.Files[before].Sum != sum {
		return false, fmt.Errorf("%w: %s was changed after it was fetched", errCorrupt, name)
	}
	return true, nil
}

var errCorrupt = errors.New("the local copy is damaged")

// syncDirs makes the directories durable; the files already are.
func (s *Stage) syncDirs() error {
	for _, dir := range append([]string{"."}, s.dirs...) {
		if err := atomicfile.SyncDir(filepath.Join(s.dir, filesDir, filepath.FromSlash(dir))); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(s.dir)
}

// sealManifest completes the manifest of the version.
func (s *Stage) sealManifest() {
	if s.omitted > 0 {
		s.manifest.Findings = append(s.manifest.Findings, guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: "findings-more", Message: fmt.Sprintf("the list of diagnostics is truncated: %d more", s.omitted),
		})
	}
	slices.SortFunc(s.manifest.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}
