package config

import (
	"strconv"
	"time"
)

// Requests are the settings of the log of requests to upstreams.
type Requests struct {
	// Record enables the log.
	Record bool
	// Bodies stores arguments and results too, with likely secrets removed. MaxBody is the
	// maximum size of each.
	Bodies  bool
	MaxBody int64
	// Retention is how long an entry is kept, and MaxSize the maximum size of all of them.
	// 0 means no limit.
	Retention time.Duration
	MaxSize   int64
}

func requestDefaults() Requests {
	return Requests{Record: true, MaxBody: 16 << 10, Retention: 14 * day, MaxSize: 256 << 20}
}

func requestSettings() []setting {
	toggle := func(s Setting, field func(*Requests) *bool) setting {
		s.Kind = KindBool
		return setting{
			Setting: s,
			set:     func(c *Config, v value) { *field(&c.Requests) = v.flag },
			text:    func(c *Config) string { return strconv.FormatBool(*field(&c.Requests)) },
		}
	}
	size := func(s Setting, field func(*Requests) *int64) setting {
		s.Kind = KindSize
		return setting{
			Setting: s,
			set:     func(c *Config, v value) { *field(&c.Requests) = v.number },
			text:    func(c *Config) string { return SizeText(*field(&c.Requests)) },
		}
	}
	return []setting{
		toggle(Setting{
			Name: "requests.record", Flag: "record-requests", Env: "GUIDEWAY_RECORD_REQUESTS",
			Usage: "Whether each request to an upstream is logged: caller, tool, duration and outcome.",
		}, func(r *Requests) *bool { return &r.Record }),
		toggle(Setting{
			Name: "requests.bodies", Flag: "record-bodies", Env: "GUIDEWAY_RECORD_BODIES",
			Usage: "Whether log entries contain arguments and results too, with likely secrets removed.",
		}, func(r *Requests) *bool { return &r.Bodies }),
		size(Setting{
			Name: "requests.maxBody", Flag: "record-max-body", Env: "GUIDEWAY_RECORD_MAX_BODY",
			Usage: "Maximum logged size of the arguments, and of the result.",
		}, func(r *Requests) *int64 { return &r.MaxBody }),
		{
			Setting: Setting{
				Name: "requests.retention", Kind: KindDuration, Flag: "record-retention", Env: "GUIDEWAY_RECORD_RETENTION",
				Usage: "How long a log entry is kept, such as \"14d\"; 0 is forever.",
			},
			most: int64(100 * 365 * day),
			set:  func(c *Config, v value) { c.Requests.Retention = v.duration },
			text: func(c *Config) string { return DurationText(c.Requests.Retention) },
		},
		size(Setting{
			Name: "requests.maxSize", Flag: "record-max-size", Env: "GUIDEWAY_RECORD_MAX_SIZE",
			Usage: "Maximum size of the request log; the oldest entries are removed first; 0 is no limit.",
		}, func(r *Requests) *int64 { return &r.MaxSize }),
	}
}
