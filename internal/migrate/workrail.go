package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

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
