package clienthook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The limits of the stored sessions.
const (
	maxRunsOfSession = 16
	maxSessions      = 500
	maxSessionFile   = 64 << 10
	maxSessionAge    = 30 * 24 * time.Hour
	// lockRetry is the time between two attempts to lock the sessions.
	lockRetry = 2 * time.Millisecond
)

// Session is the session of a client with its runs.
type Session struct {
	Client string `json:"client"`
	// Prefix is the part of the names of Guideway's tools before the tool, such as
	// "mcp__guideway__".
	Prefix string     `json:"prefix"`
	Runs   []BoundRun `json:"runs"`
	// Restate reports that the position must be restated after the next call.
	Restate bool `json:"restate,omitempty"`
}

// BoundRun is a run that a session has started or continued.
type BoundRun struct {
	ID string `json:"runId"`
	// Agent is the subagent that called the run first, or empty.
	Agent string `json:"agent,omitempty"`
	// Handle is the handle of the position at which stops were refused, and Refused is
	// their number. Recorded reports that a stop was recorded at this position.
	Handle   string `json:"handle,omitempty"`
	Refused  int    `json:"refused,omitempty"`
	Recorded bool   `json:"recorded,omitempty"`
}

// Sessions stores the sessions of a data directory, each in a file.
type Sessions struct {
	// Dir is the directory of the files. It is created when the first run is bound.
	Dir string
	// Now returns the current time.
	Now func() time.Time
}

// file returns the path of the file of a session. A session id is text of a client, so the
// name has its hash.
func (s *Sessions) file(client, id string) string {
	return filepath.Join(s.Dir, client+"-"+digest.Hex(client + "\x00" + id)[:24]+".json")
}

// Load returns a session, or nil if it has no runs.
func (s *Sessions) Load(client, id string) (*Session, error) {
	if id == "" {
		return nil, nil
	}
	return s.read(s.file(client, id))
}

func (s *Sessions) read(path string) (*Session, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var session Session
	if err == nil && (info.Size() > maxSessionFile || !info.Mode().IsRegular()) {
		err = fmt.Errorf("not a regular file of at most %d bytes", maxSessionFile)
	}
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil // another process has removed the last run
		}
		if err == nil {
			err = json.Unmarshal(text, &session)
		}
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "cannot read the runs of the session in %s: %w", path, err).
			WithFix("remove %s; the next call of workflow_continue binds the session again", path)
	}
	return &session, nil
}

// Update changes a session, which is created or, without runs, removed. Concurrent updates
// are made one after another.
func (s *Sessions) Update(ctx context.Context, client, id string, change func(*Session)) error {
	if err := atomicfile.MakeDir(s.Dir); err != nil {
		return s.writeError(err)
	}
	lock := flock.New(filepath.Join(s.Dir, "lock"), flock.SetPermissions(0o600))
	if locked, err := lock.TryLockContext(ctx, lockRetry); err != nil || !locked {
		return s.writeError(err)
	}
	defer func() { _ = lock.Close() }()
	path := s.file(client, id)
	session, err := s.read(path)
	if err != nil {
		return err
	}
	created := session == nil
	if created {
		session = &Session{Client: client}
	}
	change(session)
	if len(session.Runs) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.writeError(err)
		}
		return nil
	}
	text, err := jsontext.Marshal(session)
	if err == nil {
		err = atomicfile.Replace(path, string(text))
	}
	if err != nil {
		return s.writeError(err)
	}
	if created {
		s.prune()
	}
	return nil
}

func (s *Sessions) writeError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "cannot store the runs of the session in %s: %w", s.Dir, err).
		WithFix("check the free space and your write permission in %s", s.Dir)
}

// prune removes the files that have not changed for a long time, and the oldest if there
// are too many. It ignores errors, and the next call tries again.
func (s *Sessions) prune() {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && (strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".")) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for i, info := range files {
		if i >= maxSessions || s.Now().Sub(info.ModTime()) > maxSessionAge {
			_ = os.Remove(filepath.Join(s.Dir, info.Name()))
		}
	}
}

// bind adds a run that an agent has called. It reports false if there is no room. The first
// prefix stays, because another server can have a tool of the same name. A run that the
// main agent calls belongs to the main agent from then on.
func (s *Session) bind(id, agent, prefix string) bool {
	i := slices.IndexFunc(s.Runs, func(r BoundRun) bool { return r.ID == id })
	switch {
	case i >= 0 && agent == "":
		s.Runs[i].Agent = ""
	case i >= 0:
	case len(s.Runs) >= maxRunsOfSession:
		return false
	default:
		s.Runs = append(s.Runs, BoundRun{ID: id, Agent: agent})
	}
	s.Prefix = cmp.Or(s.Prefix, prefix)
	return true
}
