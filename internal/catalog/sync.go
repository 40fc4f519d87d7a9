package catalog

import (
	"context"
	"time"
)

// Syncer is a Source that serves a copy of remote documents: of a repository or a registry.
// Documents returns the copy, and never waits for the remote side.
type Syncer interface {
	Source
	// Sync updates the copy, whether or not an update is due. It may be called
	// concurrently, also from several processes; one of these calls does the work. After an
	// error the copy is unchanged.
	Sync(ctx context.Context) (Synced, error)
	// SyncState returns the state of the copy.
	SyncState() SyncState
}

// Synced is the result of a synchronization.
type Synced struct {
	// Before and After are the revisions of the copy; Before is "" at the first
	// synchronization.
	Before, After string
	// Changed reports that the served documents changed.
	Changed bool
}

// SyncState is the state of a copy.
type SyncState struct {
	// Revision is the revision of the copy; "" before the first synchronization.
	Revision string `json:"revision,omitempty"`
	// Reference is the followed branch or tag, "commit" for a fixed commit, or "HEAD".
	Reference string `json:"reference,omitempty"`
	// Changed is the time of the last change of the copy, and Checked is the time of the
	// last successful check of the remote side.
	Changed time.Time `json:"changed,omitzero"`
	Checked time.Time `json:"checked,omitzero"`
	// Failure is the error of the last attempt; Failures counts the failed attempts since
	// the last successful one.
	Failure  string `json:"failure,omitempty"`
	Failures int    `json:"failures,omitempty"`
	// Next is the time when the next attempt is due.
	Next time.Time `json:"next,omitzero"`
}
