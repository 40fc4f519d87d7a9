package config

import (
	"slices"
	"strconv"
	"time"
)

// Checkpoints are the settings of checkpoints. A limit of 0 means no limit.
type Checkpoints struct {
	// AutoSave makes the server save at the end of phases and loops and at gates.
	AutoSave bool
	// Max is the maximum number of checkpoints of a session. The oldest are removed first.
	Max int
	// MaxContext is the maximum size of a context, MaxSize of a stored checkpoint,
	// MaxSession of the checkpoints of a session, and MaxTotal of all of them, in bytes.
	MaxContext, MaxSize, MaxSession, MaxTotal int64
	// WarnAt is the percentage of a limit at which saves warn. CleanAt is the percentage of
	// MaxTotal at which the sessions with the oldest activity are removed.
	WarnAt, CleanAt int
	// Retention is how long a session is kept without activity.
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

func checkpointSettings() []setting {
	return slices.Concat([]setting{
		checkpointSwitch(Setting{
			Name: "checkpoints.autoSave", Flag: "checkpoint-auto-save", Env: "GUIDEWAY_CHECKPOINT_AUTO_SAVE",
			Aliases: []Alias{{Name: "WORKRAIL_CHECKPOINT_AUTO_SAVE"}},
			Usage:   "Whether the server saves a checkpoint at the end of each phase and loop and at each gate.",
		}, func(c *Checkpoints) *bool { return &c.AutoSave }),
		checkpointSwitch(Setting{
			Name: "checkpoints.readOnly", Flag: "checkpoints-read-only", Env: "GUIDEWAY_CHECKPOINTS_READ_ONLY",
			Usage: "Whether checkpoints can be read only.",
		}, func(c *Checkpoints) *bool { return &c.ReadOnly }),
		{
			Setting: Setting{
				Name: "checkpoints.retention", Kind: KindDuration, Flag: "checkpoint-retention", Env: "GUIDEWAY_CHECKPOINT_RETENTION",
				Usage: "How long the checkpoints of a session are kept without activity, such as \"30d\"; 0 is forever.",
			},
			most: int64(100 * 365 * day),
			set:  func(c *Config, v value) { c.Checkpoints.Retention = v.duration },
			text: func(c *Config) string { return DurationText(c.Checkpoints.Retention) },
		},
		{
			Setting: Setting{
				Name: "checkpoints.dir", Kind: KindPath, Flag: "checkpoints-dir", Env: "GUIDEWAY_CHECKPOINTS_DIR",
				Usage: "Directory of the contents of checkpoints; by default \"contexts\" in the data directory, or the database of the store.",
			},
			set:  func(c *Config, v value) { c.Checkpoints.Dir = v.text },
			text: func(c *Config) string { return c.Checkpoints.Dir },
		},
	}, checkpointLimits())
}

func checkpointLimits() []setting {
	return []setting{
		checkpointCount(KindCount, Setting{
			Name: "checkpoints.max", Flag: "max-checkpoints", Env: "GUIDEWAY_MAX_CHECKPOINTS",
			Aliases: []Alias{{Name: "WORKRAIL_MAX_CHECKPOINTS"}},
			Usage:   "Maximum number of checkpoints of a session; the oldest are removed first; 0 is no limit.",
		}, func(c *Checkpoints) *int { return &c.Max }),
		checkpointSize(Setting{
			Name: "checkpoints.maxContext", Flag: "max-context-size", Env: "GUIDEWAY_MAX_CONTEXT_SIZE",
			Usage: "Maximum size of a saved context before compression; 0 is no limit.",
		}, func(c *Checkpoints) *int64 { return &c.MaxContext }),
		checkpointSize(Setting{
			Name: "checkpoints.maxSize", Flag: "max-checkpoint-size", Env: "GUIDEWAY_MAX_CHECKPOINT_SIZE",
			Usage: "Maximum compressed size of one checkpoint; 0 is no limit.",
		}, func(c *Checkpoints) *int64 { return &c.MaxSize }),
		checkpointSize(Setting{
			Name: "checkpoints.maxSession", Flag: "max-session-size", Env: "GUIDEWAY_MAX_SESSION_SIZE",
			Usage: "Maximum size of the checkpoints of a session; the oldest are removed first; 0 is no limit.",
		}, func(c *Checkpoints) *int64 { return &c.MaxSession }),
		checkpointSize(Setting{
			Name: "checkpoints.maxTotal", Flag: "max-total-size", Env: "GUIDEWAY_MAX_TOTAL_SIZE",
			Usage: "Maximum size of all checkpoints; 0 is no limit.",
		}, func(c *Checkpoints) *int64 { return &c.MaxTotal }),
		checkpointCount(KindPercent, Setting{
			Name: "checkpoints.warnAt", Flag: "checkpoints-warn-at", Env: "GUIDEWAY_CHECKPOINTS_WARN_AT",
			Usage: "Percentage of a limit at which saves warn.",
		}, func(c *Checkpoints) *int { return &c.WarnAt }),
		checkpointCount(KindPercent, Setting{
			Name: "checkpoints.cleanAt", Flag: "checkpoints-clean-at", Env: "GUIDEWAY_CHECKPOINTS_CLEAN_AT",
			Usage: "Percentage of the limit of all checkpoints at which the sessions with the oldest activity are removed.",
		}, func(c *Checkpoints) *int { return &c.CleanAt }),
	}
}

func checkpointSwitch(s Setting, field func(*Checkpoints) *bool) setting {
	s.Kind = KindBool
	return setting{
		Setting: s,
		set:     func(c *Config, v value) { *field(&c.Checkpoints) = v.flag },
		text:    func(c *Config) string { return strconv.FormatBool(*field(&c.Checkpoints)) },
	}
}

func checkpointCount(kind Kind, s Setting, field func(*Checkpoints) *int) setting {
	s.Kind = kind
	return setting{
		Setting: s,
		most:    1_000_000,
		set:     func(c *Config, v value) { *field(&c.Checkpoints) = int(v.number) },
		text:    func(c *Config) string { return strconv.Itoa(*field(&c.Checkpoints)) },
	}
}

func checkpointSize(s Setting, field func(*Checkpoints) *int64) setting {
	s.Kind = KindSize
	return setting{
		Setting: s,
		set:     func(c *Config, v value) { *field(&c.Checkpoints) = v.number },
		text:    func(c *Config) string { return SizeText(*field(&c.Checkpoints)) },
	}
}
