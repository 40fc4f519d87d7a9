package config

import "time"

// Checkpoints are the settings of checkpoints. A limit of 0 means no limit.
type Checkpoints struct {
	// AutoSave reports whether the server saves at the end of phases and loops and at
	// gates.
	AutoSave bool
	// Max is the maximum number of checkpoints of a session. The oldest are removed first.
	Max int
	// MaxContext is the maximum size of a context, MaxSize the maximum size of a stored
	// checkpoint, MaxSession the maximum size of all checkpoints of a session, and MaxTotal
	// the maximum size of all checkpoints, in bytes.
	MaxContext, MaxSize, MaxSession, MaxTotal int64
	// WarnAt is the percentage of a limit at which saves warn. CleanAt is the percentage of
	// MaxTotal at which the checkpoints of the least recently used sessions are deleted.
	WarnAt, CleanAt int
	// Retention is how long the checkpoints of a session are kept without activity.
	Retention time.Duration
	// ReadOnly refuses changes of checkpoints.
	ReadOnly bool
	// Dir stores the contents. If it is empty, they are in the data directory, or in the
	// database of the store.
	Dir string
}
