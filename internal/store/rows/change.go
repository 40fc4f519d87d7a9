package rows

import (
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// deletedRetention is how long a store remembers the id of a deleted checkpoint.
const deletedRetention = 45 * 24 * time.Hour

// CheckCommit returns an error for a commit without events, one that would leave a gap in
// the journal, or one whose record does not end at its last event.
func CheckCommit(c run.Commit) error {
	for i, e := range c.Events {
		if e.Seq != c.Expected+int64(i)+1 {
			return guideway.Errorf(guideway.CodeInternal, "event %d of a commit for run %s must not follow event %d", e.Seq, c.Record.ID, c.Expected+int64(i))
		}
	}
	if len(c.Events) == 0 {
		return guideway.Errorf(guideway.CodeInternal, "a commit for run %s must have an event", c.Record.ID)
	}
	if last := c.Expected + int64(len(c.Events)); c.Record.Seq != last {
		return guideway.Errorf(guideway.CodeInternal, "a commit for run %s must end at event %d, not %d", c.Record.ID, last, c.Record.Seq)
	}
	return nil
}

// Conflictf returns an error with CodeConflict.
func Conflictf(format string, args ...any) error {
	return guideway.Errorf(guideway.CodeConflict, format, args...)
}

// noDocument returns the error for a document that does not exist.
func noDocument(ref session.Ref) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no session document %q of the workflow %q in the project %q", ref.ID, ref.Workflow, ref.Project)
}
