package catalog

import (
	"context"
	"time"
)

// Follower is a Source that serves a copy of what is elsewhere: a repository, a
// registry. Documents gives the copy, and never waits for the other side.
type Follower interface {
	Source
	// Sync brings the copy up to date, whether or not it is time to. It may be
	// called beside everything else, from other processes too: one of them does
	// the work. With an error the copy stays as it was.
	Sync(ctx context.Context) (Synced, error)
	// SyncState says how up to date the copy is.
	SyncState() SyncState
}

// Synced is what came of a synchronisation.
type Synced struct {
	// Before and After are revisions; Before is "" at the first time.
	Before, After string
	// Changed says that other documents are served than before.
	Changed bool
}

// SyncState says how up to date a copy is.
type SyncState struct {
	// Revision is what the copy is of; "" where there is none yet.
	Revision string `json:"revision,omitempty"`
	// Reference is what is followed: a branch, a tag.
	Reference string `json:"reference,omitempty"`
	// Changed is when the copy became what it is, and Checked when the other side
	// was last heard of.
	Changed time.Time `json:"changed,omitzero"`
	Checked time.Time `json:"checked,omitzero"`
	// Failure says why the last attempt failed; Failures counts the attempts since
	// the last one that did not.
	Failure  string `json:"failure,omitempty"`
	Failures int    `json:"failures,omitempty"`
	// Next is when it is time for another attempt.
	Next time.Time `json:"next,omitzero"`
}
