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

func requestDefaults() Requests {
	return Requests{Record: true, MaxBody: 16 << 10, Retention: 14 * day, MaxSize: 256 << 20}
}

func requestSettings() []Setting {
	return []Setting{
		{
			Name: "requests.record", Kind: KindBool, Flag: "record-requests", Env: "GUIDEWAY_RECORD_REQUESTS",
			Usage: "Whether each request to an upstream is logged: caller, tool, duration and outcome.",
			field: func(c *Config) any { return &c.Requests.Record },
		},
		{
			Name: "requests.bodies", Kind: KindBool, Flag: "record-bodies", Env: "GUIDEWAY_RECORD_BODIES",
			Usage: "Whether log entries also contain arguments and results, with likely secrets removed.",
			field: func(c *Config) any { return &c.Requests.Bodies },
		},
		{
			Name: "requests.maxBody", Kind: KindSize, Flag: "record-max-body", Env: "GUIDEWAY_RECORD_MAX_BODY",
			Usage: "Maximum size of the logged arguments of a request, and of its logged result.",
			field: func(c *Config) any { return &c.Requests.MaxBody },
		},
		{
			Name: "requests.retention", Kind: KindDuration, Flag: "record-retention", Env: "GUIDEWAY_RECORD_RETENTION",
			Usage: "How long a log entry is kept, such as \"14d\"; 0 means forever.",
			most:  int64(100 * 365 * day),
			field: func(c *Config) any { return &c.Requests.Retention },
		},
		{
			Name: "requests.maxSize", Kind: KindSize, Flag: "record-max-size", Env: "GUIDEWAY_RECORD_MAX_SIZE",
			Usage: "Maximum size of the request log; the oldest entries are removed first; 0 means no limit.",
			field: func(c *Config) any { return &c.Requests.MaxSize },
		},
	}
}
