package config

import "time"

// Requests are the settings of the log of requests to upstreams.
type Requests struct {
	// Record enables the log.
	Record bool
	// Bodies reports whether arguments and results are also stored, with likely secrets
	// removed. MaxBody is the maximum size of the stored arguments, and of the stored
	// result, of one call.
	Bodies  bool
	MaxBody int64
	// Retention is how long an entry is kept, and MaxSize is the maximum size of all
	// entries. 0 means no limit.
	Retention time.Duration
	MaxSize   int64
}
