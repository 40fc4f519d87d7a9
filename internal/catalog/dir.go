package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// Limits of reading a directory.
const (
	// maxDepth is the number of levels of subdirectories that are read.
	maxDepth = 3
	// maxVisited bounds the entries of all kinds in one scan.
	maxVisited = 20_000
	// settleAge is the age from which the time of a file identifies its version. A younger
	// file may change twice within one tick of the clock.
	settleAge = 2 * time.Second
)

// DirOptions configure a Dir; tests change the defaults.
type DirOptions struct {
	// Poll is the interval at which the directory itself is checked: 500 ms. All files are
	// checked every 6 polls if the operating system reports changes, otherwise at each
	// poll. If checking all files takes long, it happens less often, but at least every 20
	// polls.
	Poll time.Duration
	// Debounce is the quiet time after a change: 100 ms.
	Debounce time.Duration
	// NoEvents disables events of the operating system; changes are found by polling.
	NoEvents bool
	// Revision is the revision of all documents, as long as the source exists.
	Revision string
}

// Dir is a source of the documents in a directory, to a depth of three subdirectories:
// *.json, *.yaml and *.yml, the texts of the library (see library.Place), the scripts of
// hook graphs (see hookdef.Place), and below machines only the files of agent machines. It
// skips hidden files and directories, testdata and node_modules. It reads nothing outside
// the directory, not even through links. It follows no links to directories, and only opens
// regular files.
type Dir struct {
	info SourceInfo
	opts DirOptions

	mu       sync.Mutex
	listed   [sha256.Size]byte // listed is the fingerprint of the last scan by Documents.
	rescanAt time.Time         // rescanAt is the time when all files are old enough for a stamp.
}

var (
	_ Source  = (*Dir)(nil)
	_ Watcher = (*Dir)(nil)
)

// NewDir returns a source of the directory info.Location. The directory may be created,
// removed and created again later.
func NewDir(info SourceInfo, opts DirOptions) *Dir {
	if info.Kind == "" {
		info.Kind = "dir"
	}
	if opts.Poll <= 0 {
		opts.Poll = 500 * time.Millisecond
	}
	if opts.Debounce <= 0 {
		opts.Debounce = 100 * time.Millisecond
	}
	return &Dir{info: info, opts: opts}
}

// Info implements Source.
func (d *Dir) Info() SourceInfo { return d.info }

// Documents implements Source.
func (d *Dir) Documents(ctx context.Context) ([]Document, []guideway.Diagnostic, error) {
	found, err := d.scanTree(ctx)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	now := time.Now()
	d.mu.Lock()
	d.listed, d.rescanAt = found.fingerprintOf(err), found.settleTime(now)
	d.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	documents := make([]Document, len(found.files))
	for i, f := range found.files {
		documents[i] = Document{Name: f.name, Path: filepath.Join(d.info.Location, filepath.FromSlash(f.name)), Problem: f.diagnostic, Revision: d.opts.Revision}
		if f.diagnostic != nil {
			continue
		}
		documents[i].Size = f.info.Size()
		documents[i].Open = func(context.Context) (io.ReadCloser, error) { return d.openFile(f.name) }
		if now.Sub(f.info.ModTime()) > settleAge {
			documents[i].Stamp = stampOf(f.info)
		}
	}
	return documents, found.diagnostics, nil
}

// openFile opens a regular file below the directory. It neither blocks on a pipe nor leaves
// the directory, even if the file was replaced since it was listed.
func (d *Dir) openFile(name string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(d.info.Location)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return safeopen.OpenIn(root, name)
}

// scanResult is the result of scanning the directory.
type scanResult struct {
	files       []foundFile
	dirs        []foundFile // dirs starts with the directory itself, as ".".
	diagnostics []guideway.Diagnostic
}

type foundFile struct {
	name string // with slashes
	info fs.FileInfo
	// diagnostic is the reason why the file is not opened; the other fields are then empty.
	diagnostic *guideway.Diagnostic
}

// fingerprintOf returns a hash of the files and diagnostics of a scan, and of its error.
func (f *scanResult) fingerprintOf(err error) [sha256.Size]byte {
	h := sha256.New()
	if err != nil {
		fmt.Fprintln(h, err)
	}
	if f != nil {
		for _, file := range f.files {
			if file.diagnostic != nil {
				fmt.Fprintf(h, "%q %q\n", file.name, file.diagnostic.Message)
				continue
			}
			fmt.Fprintf(h, "%q %s\n", file.name, stampOf(file.info))
		}
		for _, diagnostic := range f.diagnostics {
			fmt.Fprintf(h, "%q %q\n", diagnostic.File, diagnostic.Message)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// settleTime returns the time when all files are old enough for a stamp, or the zero time
// if they already are.
func (f *scanResult) settleTime(now time.Time) (when time.Time) {
	if f == nil {
		return when
	}
	for _, file := range f.files {
		if file.diagnostic != nil {
			continue
		}
		if t := file.info.ModTime().Add(settleAge); !t.Before(now) && t.After(when) {
			when = t
		}
	}
	return when
}

// stampOf returns a text that identifies a version of a file: its size, time and identity.
func stampOf(info fs.FileInfo) string {
	b := strconv.AppendInt(nil, info.Size(), 36)
	b = strconv.AppendInt(append(b, '.'), info.ModTime().UnixNano(), 36)
	b = strconv.AppendUint(append(b, '.'), inodeOf(info), 36)
	return string(b)
}

// scanTree scans the directory.
func (d *Dir) scanTree(ctx context.Context) (*scanResult, error) {
	info, err := os.Stat(d.info.Location)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrMissing
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, guideway.Errorf(guideway.CodeUnavailable, "%s is not a directory", d.info.Location).
			WithFix("replace the file with a directory, or configure a different directory")
	}
	root, err := os.OpenRoot(d.info.Location)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := treeWalk{dir: d, root: root, scanResult: &scanResult{}}
	if err := w.enterDir(ctx, ".", info, 0); err != nil {
		return nil, err
	}
	w.reportLimits()
	return w.scanResult, nil
}

// treeWalk is the state of one scan.
type treeWalk struct {
	dir     *Dir
	root    *os.Root
	visited int
	full    bool
	deep    []string
	*scanResult
}

// addWarning adds a diagnostic about an entry.
func (w *treeWalk) addWarning(name, code, message, fix string) {
	file := filepath.Join(w.dir.info.Location, filepath.FromSlash(name))
	w.diagnostics = append(w.diagnostics, newError(code, file, message, fix))
}

// rejectFile lists a document that is not opened, so that a request for it returns the
// reason.
func (w *treeWalk) rejectFile(name, code, message, fix string) {
	name = strings.ToValidUTF8(name, "\uFFFD")
	found := newError(code, filepath.Join(w.dir.info.Location, filepath.FromSlash(name)), message, fix)
	w.files = append(w.files, foundFile{name: name, diagnostic: &found})
}

// enterDir reads a directory. It returns an error only if ctx is done or the top directory
// cannot be read.
func (w *treeWalk) enterDir(ctx context.Context, name string, info fs.FileInfo, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.dirs = append(w.dirs, foundFile{name: name, info: info})
	entries, err := w.readDir(name)
	if err != nil {
		if name == "." {
			return err
		}
		w.addWarning(name, "dir-unreadable", "the directory cannot be read: "+safeopen.Cause(err).Error(), "make the directory readable, or move it elsewhere")
	}
	for _, entry := range entries {
		if err := w.visitEntry(ctx, path.Join(name, entry.Name()), entry, depth); err != nil {
			return err
		}
	}
	return nil
}

// readDir lists the entries of a directory by name, within the limit of the scan.
func (w *treeWalk) readDir(name string) ([]fs.DirEntry, error) {
	dir, err := w.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var entries []fs.DirEntry
	for {
		batch, err := dir.ReadDir(256)
		w.visited += len(batch)
		entries = append(entries, batch...)
		if w.visited > maxVisited {
			w.full = true
			err = io.EOF
		}
		if err != nil {
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			if err == io.EOF {
				err = nil
			}
			return entries, err
		}
	}
}

// visitEntry handles an entry by its kind.
func (w *treeWalk) visitEntry(ctx context.Context, name string, entry fs.DirEntry, depth int) error {
	base := entry.Name()
	if isSkipped(base) || w.full && entry.IsDir() {
		return nil
	}
	wanted := isDocument(name)
	if !utf8.ValidString(base) {
		if wanted {
			w.rejectFile(name, "file-name", fmt.Sprintf("the file name %q is not UTF-8", base), "rename the file to a name in UTF-8")
		}
		return nil
	}
	switch mode := entry.Type(); {
	case mode.IsDir():
		return w.visitSubdir(ctx, name, entry, depth)
	case mode&fs.ModeSymlink != 0:
		w.visitLink(name, wanted)
	case !wanted:
		if mode.IsRegular() {
			w.diagnostics = append(w.diagnostics, unreadDiagnostics(filepath.Join(w.dir.info.Location, filepath.FromSlash(name)), name)...)
		}
	case !mode.IsRegular():
		w.rejectFile(name, "file-special", "the entry is not a regular file and is not opened: "+safeopen.Kind(mode), "replace the entry with a regular file, or move the entry elsewhere")
	default:
		info, err := entry.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted since it was listed
		case err != nil:
			w.rejectFile(name, "file-unreadable", "the file cannot be read: "+safeopen.Cause(err).Error(), "make the file readable, or move it elsewhere")
		default:
			w.files = append(w.files, foundFile{name: name, info: info})
		}
	}
	return nil
}

func (w *treeWalk) visitSubdir(ctx context.Context, name string, entry fs.DirEntry, depth int) error {
	if depth == maxDepth {
		w.deep = append(w.deep, name)
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return nil // deleted since it was listed; a Root lists a directory with the information, so it has no other error
	}
	return w.enterDir(ctx, name, info, depth+1)
}

// visitLink checks a symbolic link. A link to a file within the directory counts as a file.
func (w *treeWalk) visitLink(name string, wanted bool) {
	tell := w.addWarning
	if wanted {
		tell = w.rejectFile
	}
	info, err := w.root.Stat(filepath.FromSlash(name))
	if err != nil {
		// Other links, such as one to a README, are ignored. A linked directory may be
		// meant to be read.
		outside, outsideErr := os.Stat(filepath.Join(w.dir.info.Location, filepath.FromSlash(name)))
		switch {
		case wanted && errors.Is(outsideErr, fs.ErrNotExist):
			tell(name, "file-link", "the target of the link does not exist", "restore the target, or remove the link")
		case wanted, outsideErr == nil && outside.IsDir():
			tell(name, "file-link", "the link is not followed: "+safeopen.Cause(err).Error(),
				"replace the link with a copy of its target, or configure the target's directory as a workflow directory")
		}
		return
	}
	switch {
	case info.IsDir():
		tell(name, "file-link", "links to directories are not followed", "replace the link with a copy of the directory, or configure the directory as a workflow directory")
	case !wanted:
	case !info.Mode().IsRegular():
		w.rejectFile(name, "file-special", "the link does not lead to a regular file and is not opened: "+safeopen.Kind(info.Mode()),
			"replace the entry with a regular file, or move the entry elsewhere")
	default:
		w.files = append(w.files, foundFile{name: name, info: info})
	}
}

// reportLimits reports the limits that the scan reached.
func (w *treeWalk) reportLimits() {
	if w.full {
		w.addWarning(".", "limit-entries", fmt.Sprintf("the directory has more than %d entries; the remaining entries were not read", maxVisited),
			"move the workflows to a separate directory")
	}
	if len(w.deep) > 0 {
		w.diagnostics = append(w.diagnostics, newWarning("limit-depth",
			filepath.Join(w.dir.info.Location, filepath.FromSlash(w.deep[0])),
			fmt.Sprintf("directories more than %d levels deep are not read (number: %d)", maxDepth, len(w.deep)),
			"move the workflows up, or configure their directory as a workflow directory"))
	}
}

// isSkipped reports whether an entry is skipped because of its name.
func isSkipped(base string) bool {
	return strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules"
}

// isDocument reports whether a source reads a file of this name.
func isDocument(name string) bool {
	if strings.HasPrefix(name, machinesDir+"/") {
		return isMachineFile(name)
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".yaml", ".yml":
		return true
	default:
		return library.PlaceOf(name).Kind != "" || hookdef.PlaceOf(name).Kind != ""
	}
}

// unreadDiagnostics returns the reason why a file that looks like a document is not read.
func unreadDiagnostics(file, name string) []guideway.Diagnostic {
	switch {
	case library.IsToon(name):
		stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
		return []guideway.Diagnostic{newError("format-toon", file, "the file has the format TOON, which is not supported",
			fmt.Sprintf("convert the file, for example by 'npx @toon-format/cli %s.toon --decode -o %s.json'; compare the two files, "+
				"because TOON loses block texts (|) and lines that are indented too far; and delete the TOON file", stem, stem))}
	case library.Misnamed(name):
		return []guideway.Diagnostic{newWarning("file-index", file, "the name of a guide or template must begin with its index; this file is not served",
			"rename the file, for example to 01-"+path.Base(name))}
	default:
		return nil
	}
}

// IsDefinitionFile reports whether a source reads a file with this name; a copy of a source
// needs no other files. The name is relative, with slashes.
func IsDefinitionFile(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if isSkipped(part) {
			return false
		}
	}
	return isDocument(name)
}
