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

// The bounds of a walk through a directory.
const (
	// maxDepth is how many levels of subdirectories are read.
	maxDepth = 3
	// maxVisited bounds the entries of all kinds that one walk looks at.
	maxVisited = 20_000
	// settled is how old a file must be for its time to say whether it
	// changed: a file can change twice within one tick of the clock.
	settled = 2 * time.Second
)

// DirOptions adjust a Dir; the zero value is right outside of tests.
type DirOptions struct {
	// Poll is how often the directory itself is looked at: 500 ms. All files
	// are looked at every 6 polls, or at every poll where the operating system
	// reports no changes; less often, up to every 20, where that takes long.
	Poll time.Duration
	// Debounce is how long a directory must be quiet after a change: 100 ms.
	Debounce time.Duration
	// NoEvents leaves the notice of changes to polling alone.
	NoEvents bool
	// Revision is that of all documents, as long as the source is there.
	Revision string
}

// Dir is a source of the documents in a directory: *.json, *.yaml and *.yml, to
// a depth of three subdirectories, and the texts of the library (see
// library.Place). Hidden files and directories, testdata and
// node_modules are passed over. Nothing outside of the directory is read, by a
// link neither; links to directories are not followed at all, and only regular
// files are opened.
type Dir struct {
	info SourceInfo
	opts DirOptions

	mu     sync.Mutex
	listed [sha256.Size]byte // fingerprint of what Documents saw last
	again  time.Time         // when files that were too young to tell are not
}

var (
	_ Source  = (*Dir)(nil)
	_ Watcher = (*Dir)(nil)
)

// NewDir makes a source of the directory info.Location. The directory may
// appear later, vanish and come back.
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
	found, err := d.scan(ctx)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	now := time.Now()
	d.mu.Lock()
	d.listed, d.again = found.fingerprint(err), found.settles(now)
	d.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	documents := make([]Document, len(found.files))
	for i, f := range found.files {
		documents[i] = Document{Name: f.name, Path: filepath.Join(d.info.Location, filepath.FromSlash(f.name)), Problem: f.problem, Revision: d.opts.Revision}
		if f.problem != nil {
			continue
		}
		documents[i].Size = f.info.Size()
		documents[i].Open = func(context.Context) (io.ReadCloser, error) { return d.open(f.name) }
		if now.Sub(f.info.ModTime()) > settled {
			documents[i].Stamp = stamp(f.info)
		}
	}
	return documents, found.diagnostics, nil
}

// open opens a regular file below the directory. It neither waits for the
// other end of a pipe nor leaves the directory, whatever took the place of the
// file since it was listed.
func (d *Dir) open(name string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(d.info.Location)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return safeopen.OpenIn(root, name)
}

// found is what a walk through the directory saw.
type found struct {
	files       []foundFile
	dirs        []foundFile // the directory itself is "."
	diagnostics []guideway.Diagnostic
}

type foundFile struct {
	name string // with slashes
	info fs.FileInfo
	// problem says why it is not opened; then nothing else is known of it.
	problem *guideway.Diagnostic
}

// fingerprint changes with everything that a walk can see.
func (f *found) fingerprint(err error) [sha256.Size]byte {
	h := sha256.New()
	if err != nil {
		fmt.Fprintln(h, err)
	}
	if f != nil {
		for _, file := range f.files {
			if file.problem != nil {
				fmt.Fprintf(h, "%q %q\n", file.name, file.problem.Message)
				continue
			}
			fmt.Fprintf(h, "%q %s\n", file.name, stamp(file.info))
		}
		for _, diagnostic := range f.diagnostics {
			fmt.Fprintf(h, "%q %q\n", diagnostic.File, diagnostic.Message)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// settles says when all files that are too young for a stamp have one; it is
// zero if none is.
func (f *found) settles(now time.Time) (when time.Time) {
	if f == nil {
		return when
	}
	for _, file := range f.files {
		if file.problem != nil {
			continue
		}
		if t := file.info.ModTime().Add(settled); !t.Before(now) && t.After(when) {
			when = t
		}
	}
	return when
}

// stamp tells versions of a file apart: by size, time and identity.
func stamp(info fs.FileInfo) string {
	b := strconv.AppendInt(nil, info.Size(), 36)
	b = strconv.AppendInt(append(b, '.'), info.ModTime().UnixNano(), 36)
	b = strconv.AppendUint(append(b, '.'), inode(info), 36)
	return string(b)
}

// scan walks through the directory.
func (d *Dir) scan(ctx context.Context) (*found, error) {
	info, err := os.Stat(d.info.Location)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrMissing
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", d.info.Location)
	}
	root, err := os.OpenRoot(d.info.Location)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := walk{dir: d, root: root, found: &found{}}
	if err := w.enter(ctx, ".", info, 0); err != nil {
		return nil, err
	}
	w.finish()
	return w.found, nil
}

// walk is one walk through a directory.
type walk struct {
	dir     *Dir
	root    *os.Root
	visited int
	full    bool
	deep    []string
	*found
}

// report adds a finding about an entry.
func (w *walk) report(name, code, message, fix string) {
	file := filepath.Join(w.dir.info.Location, filepath.FromSlash(name))
	w.diagnostics = append(w.diagnostics, problem(code, file, message, fix))
}

// refuse lists a document that is not opened, so that whoever asks for it learns
// the reason.
func (w *walk) refuse(name, code, message, fix string) {
	name = strings.ToValidUTF8(name, "\uFFFD")
	found := problem(code, filepath.Join(w.dir.info.Location, filepath.FromSlash(name)), message, fix)
	w.files = append(w.files, foundFile{name: name, problem: &found})
}

// enter reads a directory. Only a failure of the first one is an error.
func (w *walk) enter(ctx context.Context, name string, info fs.FileInfo, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.dirs = append(w.dirs, foundFile{name: name, info: info})
	entries, err := w.read(name)
	if err != nil {
		if name == "." {
			return err
		}
		w.report(name, "dir-unreadable", "the directory cannot be read: "+safeopen.Cause(err).Error(), "make it readable, or move it away")
	}
	for _, entry := range entries {
		if err := w.entry(ctx, path.Join(name, entry.Name()), entry, depth); err != nil {
			return err
		}
	}
	return nil
}

// read lists a directory in the order of names, within the bound of the walk.
func (w *walk) read(name string) ([]fs.DirEntry, error) {
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

// entry decides what an entry is to the catalog.
func (w *walk) entry(ctx context.Context, name string, entry fs.DirEntry, depth int) error {
	base := entry.Name()
	if isSkipped(base) || w.full && entry.IsDir() {
		return nil
	}
	wanted := isDocument(name)
	if !utf8.ValidString(base) {
		if wanted {
			w.refuse(name, "file-name", fmt.Sprintf("the file name %q is not UTF-8", base), "rename the file")
		}
		return nil
	}
	switch mode := entry.Type(); {
	case mode.IsDir():
		return w.subdirectory(ctx, name, entry, depth)
	case mode&fs.ModeSymlink != 0:
		w.link(name, wanted)
	case !wanted:
		if mode.IsRegular() {
			w.diagnostics = append(w.diagnostics, unread(filepath.Join(w.dir.info.Location, filepath.FromSlash(name)), name)...)
		}
	case !mode.IsRegular():
		w.refuse(name, "file-special", "this is no regular file and is not opened: "+safeopen.Kind(mode), "replace it by a regular file, or move it away")
	default:
		info, err := entry.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone since it was listed
		case err != nil:
			w.refuse(name, "file-unreadable", "the file cannot be read: "+safeopen.Cause(err).Error(), "make it readable, or move it away")
		default:
			w.files = append(w.files, foundFile{name: name, info: info})
		}
	}
	return nil
}

func (w *walk) subdirectory(ctx context.Context, name string, entry fs.DirEntry, depth int) error {
	if depth == maxDepth {
		w.deep = append(w.deep, name)
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return nil // gone since it was listed
	}
	return w.enter(ctx, name, info, depth+1)
}

// link judges a symbolic link. One that stays within the directory and leads to
// a file is as good as a file.
func (w *walk) link(name string, wanted bool) {
	tell := w.report
	if wanted {
		tell = w.refuse
	}
	info, err := w.root.Stat(filepath.FromSlash(name))
	if err != nil {
		// Links to other things than documents, such as a README, are nobody's
		// concern; a directory that is linked in could be meant to be read.
		outside, outsideErr := os.Stat(filepath.Join(w.dir.info.Location, filepath.FromSlash(name)))
		if wanted || (outsideErr == nil && outside.IsDir()) {
			tell(name, "file-link", "the link is not followed: "+safeopen.Cause(err).Error(),
				"put a copy here, or name the directory that it leads to as a directory of workflows")
		}
		return
	}
	switch {
	case info.IsDir():
		tell(name, "file-link", "links to directories are not followed", "put a directory here")
	case !wanted:
	case !info.Mode().IsRegular():
		w.refuse(name, "file-special", "this leads to no regular file and is not opened: "+safeopen.Kind(info.Mode()),
			"replace it by a regular file, or move it away")
	default:
		w.files = append(w.files, foundFile{name: name, info: info})
	}
}

// finish reports the bounds that were met.
func (w *walk) finish() {
	if w.full {
		w.report(".", "limit-entries", fmt.Sprintf("the directory has more than %d entries; the others were not looked at", maxVisited),
			"give the workflows a directory of their own")
	}
	if len(w.deep) > 0 {
		w.diagnostics = append(w.diagnostics, notice("limit-depth",
			filepath.Join(w.dir.info.Location, filepath.FromSlash(w.deep[0])),
			fmt.Sprintf("directories more than %d levels down are not read: %d of them", maxDepth, len(w.deep)),
			"move the workflows up, or name their directory as a directory of workflows"))
	}
}

// isSkipped says whether an entry is passed over without a word.
func isSkipped(base string) bool {
	return strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules"
}

// isDocument says whether a source reads what has this name in it.
func isDocument(name string) bool {
	if strings.HasPrefix(name, machinesDir+"/") {
		is, _ := isMachineFile(name)
		return is
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".yaml", ".yml":
		return true
	default:
		return library.PlaceOf(name).Kind != "" || hookdef.PlaceOf(name).Kind != ""
	}
}

// unread says what keeps a file from being read that somebody may take for a
// document.
func unread(file, name string) []guideway.Diagnostic {
	switch {
	case library.IsToon(name):
		stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
		return []guideway.Diagnostic{problem("format-toon", file, "the file is in the notation TOON, which is not read",
			fmt.Sprintf("convert it, by 'npx @toon-format/cli %s.toon --decode -o %s.json' for example, compare the two, and delete this one: "+
				"block texts (|) and lines that are indented too far get lost in TOON", stem, stem))}
	case library.Misnamed(name):
		return []guideway.Diagnostic{notice("file-index", file, "the name of a guide or template begins with its index; this file is not served",
			"name it 01-"+path.Base(name)+" or so")}
	default:
		return nil
	}
}
