// Package migrate copies definitions, texts and session documents from another system. It
// reports what it copies, only reads the files of the other system, and never replaces
// existing data. A second run changes nothing.
package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// Session is a session document of WorkRail in sessions/PROJECT/WORKFLOW/ID.json.
type Session struct {
	ID          string         `json:"id"`
	Workflow    string         `json:"workflowId"`
	Project     string         `json:"projectId"`
	ProjectPath string         `json:"projectPath"`
	CreatedAt   time.Time      `json:"createdAt"`
	UpdatedAt   time.Time      `json:"updatedAt"`
	Data        map[string]any `json:"data"`
}

// Sessions calls put with each session document below a directory of WorkRail. put stores
// it and returns the outcome and the destination.
func Sessions(ctx context.Context, dir string, put func(context.Context, Session) (Outcome, string, error)) ([]Item, error) {
	root, err := os.OpenRoot(filepath.Join(dir, "sessions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "cannot read the session documents in %s: %w", dir, safeopen.Cause(err)).
			WithFix("make the directory %s readable for this user", filepath.Join(dir, "sessions"))
	}
	defer func() { _ = root.Close() }()
	names, err := fs.Glob(root.FS(), "*/*/*.json")
	if err != nil {
		return nil, err
	}
	if len(names) > maxFiles {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "%s has %d session documents, but the limit is %d", dir, len(names), maxFiles).
			WithFix("move some of the directories in %s to PART/sessions, where PART is a new directory; then migrate both, PART with guideway migrate workrail --from PART", filepath.Join(dir, "sessions"))
	}
	var items []Item
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return items, err
		}
		item := Item{Kind: "session", From: filepath.Join(dir, "sessions", filepath.FromSlash(name))}
		s, err := readSession(ctx, root, name)
		if err == nil {
			item.Outcome, item.To, err = put(ctx, s)
		}
		if err != nil {
			item.Outcome, item.Reason, item.Fix = Broken, err.Error(), guideway.ErrorFix(err)
		}
		if item.Outcome == Kept {
			item.Reason = "a document with this name and a different creation time exists"
		}
		items = append(items, item)
	}
	return items, nil
}

// readSession reads a document. Names that the file lacks come from its path.
func readSession(ctx context.Context, root *os.Root, name string) (Session, error) {
	data, err := readFile(ctx, root, name, maxSession)
	if err != nil {
		return Session{}, err
	}
	var s Session
	if err := json.Unmarshal(data, &s); err != nil {
		return s, guideway.Errorf(guideway.CodeInvalid, "the file is not a session document: %w", err).WithFix("correct the JSON of the file, and migrate again")
	}
	parts := strings.Split(name, "/")
	for _, each := range []struct {
		to   *string
		from string
	}{{&s.Project, parts[0]}, {&s.Workflow, parts[1]}, {&s.ID, strings.TrimSuffix(path.Base(name), ".json")}} {
		if *each.to == "" {
			*each.to = each.from
		}
	}
	if s.Data == nil {
		return s, guideway.Errorf(guideway.CodeInvalid, `the file is not a session document: it has no object "data"`).
			WithFix(`add the object "data" to the file and migrate again, or leave the file out`)
	}
	return s, nil
}

// Others lists the files in WorkRail's directory that are not migrated, with the reason.
func Others(dir string) []Item {
	var items []Item
	for _, each := range []struct{ name, reason string }{
		{"data", "runs of later versions: their events have a different format and cannot be verified"},
		{"cache", "copies of other files"},
		{"dashboard.lock", "the lock of a dashboard process"},
	} {
		if _, err := os.Lstat(filepath.Join(dir, each.name)); err == nil {
			items = append(items, Item{Kind: "other", From: filepath.Join(dir, each.name), Outcome: Left, Reason: each.reason})
		}
	}
	return items
}
