// Package migrate copies definitions, texts and session documents from another system. It
// reports what it copies, only reads the files of the other system, and never replaces
// existing data. A second run changes nothing.
package migrate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// Outcome is the outcome of one item.
type Outcome string

// The outcomes.
const (
	// Copied means that the item was copied, or would be without DryRun.
	Copied Outcome = "copied"
	// Same means that the item exists with the same content.
	Same Outcome = "same"
	// Kept means that the item exists with different content, which is kept.
	Kept Outcome = "kept"
	// Broken means that the item cannot be copied, for the given reason.
	Broken Outcome = "broken"
	// Left means that such an item is never copied, for the given reason.
	Left Outcome = "left"
)

// Item is one file or document.
type Item struct {
	// Kind is workflow, text, session, settings or other.
	Kind string `json:"kind"`
	// From is the source file, To the result.
	From    string  `json:"from"`
	To      string  `json:"to,omitempty"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Fix     string  `json:"fix,omitempty"`
	// Diagnostics are the diagnostics of a definition.
	Diagnostics []guideway.Diagnostic `json:"diagnostics,omitempty"`
}

// Count returns the number of items with an outcome.
func Count(items []Item, o Outcome) int {
	n := 0
	for _, item := range items {
		if item.Outcome == o {
			n++
		}
	}
	return n
}

const (
	// maxFile is the maximum size of a definition or a text, as in the catalog.
	maxFile = 1 << 20
	// maxSession is the maximum size of a session document's file.
	maxSession = 16 << 20
	// maxFiles is the maximum number of files below a directory.
	maxFiles = 20_000
)

// Tree is a directory of definitions to copy and its destination.
type Tree struct {
	From, To string
	// Check returns the diagnostics of a definition. A file with an error is not copied.
	Check func(file string, data []byte) []guideway.Diagnostic
	// DryRun writes nothing.
	DryRun bool
}

// Copy copies the definitions (JSON and YAML) and texts (Markdown) below a directory with
// their relative paths. It never follows links, in the source or the destination.
func (t Tree) Copy(ctx context.Context) ([]Item, error) {
	from, err := os.OpenRoot(t.From)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "cannot read the directory %s: %w", t.From, safeopen.Cause(err)).
			WithFix("name an existing directory that this user can read")
	}
	defer func() { _ = from.Close() }()
	files, items, err := t.listFiles(ctx, from)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return items, err
		}
		items = append(items, t.copyFile(ctx, from, name))
	}
	return items, nil
}

// listFiles returns the regular files that can be copied, and reports the others. It skips
// hidden directories and node_modules.
func (t Tree) listFiles(ctx context.Context, from *os.Root) (files []string, others []Item, err error) {
	err = fs.WalkDir(from.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		shown := filepath.Join(t.From, filepath.FromSlash(name))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			others = append(others, Item{Kind: "other", From: shown, Outcome: Broken, Reason: safeopen.Cause(err).Error()})
			return nil
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case kindOf(name) == "":
			others = append(others, Item{Kind: "other", From: shown, Outcome: Left, Reason: "not a JSON, YAML or Markdown file"})
		case !d.Type().IsRegular():
			others = append(others, Item{Kind: kindOf(name), From: shown, Outcome: Left, Reason: "not a regular file; links are not followed"})
		default:
			files = append(files, name)
		}
		if len(files)+len(others) > maxFiles {
			return guideway.Errorf(guideway.CodeTooLarge, "%s has more than %d files", t.From, maxFiles).
				WithFix("migrate the directories below %s one after the other", t.From)
		}
		return nil
	})
	return files, others, err
}

func kindOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".yaml", ".yml":
		return "workflow"
	case ".md":
		return "text"
	}
	return ""
}

// copyFile copies one file.
func (t Tree) copyFile(ctx context.Context, from *os.Root, name string) Item {
	item := Item{Kind: kindOf(name), From: filepath.Join(t.From, filepath.FromSlash(name)), To: filepath.Join(t.To, filepath.FromSlash(name))}
	data, err := readFile(ctx, from, name, maxFile)
	if err != nil {
		item.Outcome, item.Reason, item.Fix = Broken, err.Error(), guideway.ErrorFix(err)
		return item
	}
	if item.Kind == "workflow" && t.Check != nil {
		item.Diagnostics = t.Check(item.From, data)
		if i := slices.IndexFunc(item.Diagnostics, func(d guideway.Diagnostic) bool { return d.Severity == guideway.SeverityError }); i >= 0 {
			item.Outcome, item.Reason, item.Fix = Broken, item.Diagnostics[i].Message, "fix the file, check it with guideway validate "+item.From+", and migrate again"
			return item
		}
	}
	item.Outcome, err = Put(ctx, t.To, name, data, t.DryRun)
	if err != nil {
		item.Outcome, item.Reason, item.Fix = Broken, err.Error(), guideway.ErrorFix(err)
	}
	if item.Outcome == Kept {
		item.Reason = "the destination already has a different or unreadable file with this name"
	}
	return item
}

// readFile reads a complete regular file.
func readFile(ctx context.Context, root *os.Root, name string, most int64) ([]byte, error) {
	f, err := safeopen.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := safeopen.Read(ctx, f, most)
	if err == nil && int64(len(data)) > most {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the file is larger than %d MiB", most>>20).WithFix("split or shorten the file, and migrate again")
	}
	return data, err
}

// Put atomically creates a file below a directory, unless it exists, and returns the
// outcome.
func Put(ctx context.Context, dir, name string, data []byte, dryRun bool) (Outcome, error) {
	outcome := Copied
	switch there, err := os.OpenRoot(dir); {
	case err == nil:
		defer func() { _ = there.Close() }()
		old, err := readFile(ctx, there, name, maxFile)
		switch {
		case err == nil && string(old) == string(data):
			return Same, nil
		case err == nil:
			return Kept, nil
		case !errors.Is(err, fs.ErrNotExist):
			return Kept, nil //nolint:nilerr // whatever is there stays
		}
	case !errors.Is(err, fs.ErrNotExist):
		return Broken, guideway.Errorf(guideway.CodeUnavailable, "cannot write into %s: %w", dir, safeopen.Cause(err)).
			WithFix("check that %s is a directory that this user can read and write, and migrate again", dir)
	}
	if dryRun {
		return outcome, nil
	}
	if err := writeFile(dir, name, data); err != nil {
		return Broken, guideway.Errorf(guideway.CodeUnavailable, "cannot write %s: %w", filepath.Join(dir, name), safeopen.Cause(err)).
			WithFix("check that %s is a directory that this user can read and write, and migrate again", dir)
	}
	return outcome, nil
}

func writeFile(dir, name string, data []byte) error {
	if err := atomicfile.MakeDir(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if parent := path.Dir(name); parent != "." {
		if err := root.MkdirAll(filepath.FromSlash(parent), 0o700); err != nil {
			return err
		}
	}
	part := name + ".part"
	_ = root.Remove(part) // left by a killed program
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	atomicfile.KeepOwner(f)
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Link(part, name) // unlike a rename, a link replaces nothing
	}
	return errors.Join(err, root.Remove(part))
}
