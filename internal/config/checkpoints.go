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

func checkpointDefaults() Checkpoints {
	return Checkpoints{
		AutoSave: true, Max: 100, MaxContext: 64 << 20, MaxSize: 10 << 20, MaxSession: 1 << 30, MaxTotal: 10 << 30,
		WarnAt: 80, CleanAt: 90, Retention: 30 * day,
	}
}

func checkpointSettings() []Setting {
	return []Setting{
		{
			Name: "checkpoints.autoSave", Kind: KindBool, Flag: "checkpoint-auto-save", Env: "GUIDEWAY_CHECKPOINT_AUTO_SAVE",
			Aliases: []Alias{{Name: "WORKRAIL_CHECKPOINT_AUTO_SAVE"}},
			Usage:   "Whether the server saves a checkpoint at the end of each phase, loop and run, and at each gate.",
			field:   func(c *Config) any { return &c.Checkpoints.AutoSave },
		},
		{
			Name: "checkpoints.readOnly", Kind: KindBool, Flag: "checkpoints-read-only", Env: "GUIDEWAY_CHECKPOINTS_READ_ONLY",
			Usage: "Whether checkpoints can be read, but not saved, imported or deleted.",
			field: func(c *Config) any { return &c.Checkpoints.ReadOnly },
		},
		{
			Name: "checkpoints.retention", Kind: KindDuration, Flag: "checkpoint-retention", Env: "GUIDEWAY_CHECKPOINT_RETENTION",
			Usage: "How long the checkpoints of an inactive session are kept, such as \"30d\"; 0 means forever.",
			most:  int64(100 * 365 * day),
			field: func(c *Config) any { return &c.Checkpoints.Retention },
		},
		{
			Name: "checkpoints.dir", Kind: KindPath, Flag: "checkpoints-dir", Env: "GUIDEWAY_CHECKPOINTS_DIR",
			Usage: "Directory of the contents of checkpoints; by default \"contexts\" in the data directory or, with PostgreSQL, the database.",
			field: func(c *Config) any { return &c.Checkpoints.Dir },
		},
		{
			Name: "checkpoints.max", Kind: KindCount, Flag: "max-checkpoints", Env: "GUIDEWAY_MAX_CHECKPOINTS",
			Aliases: []Alias{{Name: "WORKRAIL_MAX_CHECKPOINTS"}},
			Usage:   "Maximum number of checkpoints of a session; the oldest are removed first; 0 means no limit.",
			most:    1_000_000,
			field:   func(c *Config) any { return &c.Checkpoints.Max },
		},
		{
			Name: "checkpoints.maxContext", Kind: KindSize, Flag: "max-context-size", Env: "GUIDEWAY_MAX_CONTEXT_SIZE",
			Usage: "Maximum size of a saved context before compression; 0 means no limit.",
			field: func(c *Config) any { return &c.Checkpoints.MaxContext },
		},
		{
			Name: "checkpoints.maxSize", Kind: KindSize, Flag: "max-checkpoint-size", Env: "GUIDEWAY_MAX_CHECKPOINT_SIZE",
			Usage: "Maximum compressed size of one checkpoint; 0 means no limit.",
			field: func(c *Config) any { return &c.Checkpoints.MaxSize },
		},
		{
			Name: "checkpoints.maxSession", Kind: KindSize, Flag: "max-session-size", Env: "GUIDEWAY_MAX_SESSION_SIZE",
			Usage: "Maximum size of the checkpoints of a session; the oldest are removed first; 0 means no limit.",
			field: func(c *Config) any { return &c.Checkpoints.MaxSession },
		},
		{
			Name: "checkpoints.maxTotal", Kind: KindSize, Flag: "max-total-size", Env: "GUIDEWAY_MAX_TOTAL_SIZE",
			Usage: "Maximum size of all checkpoints; 0 means no limit.",
			field: func(c *Config) any { return &c.Checkpoints.MaxTotal },
		},
		{
			Name: "checkpoints.warnAt", Kind: KindPercent, Flag: "checkpoints-warn-at", Env: "GUIDEWAY_CHECKPOINTS_WARN_AT",
			Usage: "Percentage of checkpoints.max, checkpoints.maxSession or checkpoints.maxTotal at which saving a checkpoint returns a warning.",
			field: func(c *Config) any { return &c.Checkpoints.WarnAt },
		},
		{
			Name: "checkpoints.cleanAt", Kind: KindPercent, Flag: "checkpoints-clean-at", Env: "GUIDEWAY_CHECKPOINTS_CLEAN_AT",
			Usage: "Percentage of checkpoints.maxTotal at which the checkpoints of the least recently used sessions are deleted.",
			field: func(c *Config) any { return &c.Checkpoints.CleanAt },
		},
	}
}
