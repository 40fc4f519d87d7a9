package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the form of a setting's value.
type Kind string

// The kinds.
const (
	KindText     Kind = "text"
	KindBool     Kind = "bool"
	KindDuration Kind = "duration"
	// KindPath is a file or directory. A relative one is below the
	// configuration file's directory there, and below the working directory
	// in a variable or flag.
	KindPath Kind = "path"
	// KindList is separated by commas in a variable or flag.
	KindList Kind = "list"
	// KindCount is a whole number.
	KindCount Kind = "count"
	// KindPercent is a whole number from 1 to 100, with or without a percent sign
	// in a variable or flag.
	KindPercent Kind = "percent"
	// KindSize is a number of bytes, or a text with a unit, such as "10MB".
	KindSize Kind = "size"
	// KindPaths is separated as PATH is in a variable, and not at all in a
	// flag, which can be repeated.
	KindPaths Kind = "paths"
)

// Setting describes one setting to the command line and the documentation.
type Setting struct {
	// Name is the place in guideway.json, such as "log.level".
	Name string
	Kind Kind
	// Flag is the flag's name without dashes; FlagAlias is the name that another
	// system has for it, or empty.
	Flag      string
	FlagAlias string
	// Env is the variable; Aliases are variables of other systems with the
	// same meaning, which Env overrides.
	Env     string
	Aliases []Alias
	// Usage is one line for --help and the JSON Schema.
	Usage string
	// Allowed are the values of a text or of a list's elements; empty means
	// that other rules decide.
	Allowed []string
}

// Alias is a variable of another system.
type Alias struct {
	Name string
	// convert turns its value into ours.
	convert func(string) (string, *fault)
}

// setting is a Setting with the way into and out of a Config.
type setting struct {
	Setting
	// nonEmpty refuses an empty list.
	nonEmpty bool
	// least and most bound a number; a most of 0 does not. most bounds a duration,
	// too, and is a day there where it is 0.
	least, most int64
	// check judges one text; nil takes any.
	check func(string) *fault
	// set stores a checked value.
	set func(*Config, value)
	// text is the value in force.
	text func(*Config) string
}

// value is a decoded value; its kind says which field counts.
type value struct {
	text     string
	list     []string
	flag     bool
	number   int64
	duration time.Duration
}

// fault is what is wrong with a value, without its place.
type fault struct{ message, fix string }

func faultf(fix, format string, args ...any) *fault {
	return &fault{message: fmt.Sprintf(format, args...), fix: fix}
}

// The variables that are no settings.
const (
	// EnvConfig names the configuration file.
	EnvConfig = "GUIDEWAY_CONFIG"
	// EnvPassphrase is the passphrase that checkpoints are encrypted with. It
	// stands in no file of settings and in no flag, where others would see it.
	EnvPassphrase = "GUIDEWAY_ENCRYPTION_PASSPHRASE" //nolint:gosec // the name of a variable
	// EnvEmbeddingsKey is the key for the service of embeddings.
	EnvEmbeddingsKey = "GUIDEWAY_EMBEDDINGS_KEY"
)

// Toolsets are the toolsets that exist, those of DefaultToolsets first.
func Toolsets() []string { return append(DefaultToolsets(), "phases", "gateway", "machines") }

// DefaultToolsets are the toolsets that are on where nobody chooses.
func DefaultToolsets() []string { return []string{"steps", "runs", "sessions", "context"} }

// Settings describes every setting in a fixed order.
func Settings() []Setting {
	table := settings()
	described := make([]Setting, len(table))
	for i := range table {
		described[i] = table[i].Setting
	}
	return described
}

// settings is the one table of settings, variables, aliases and flags.
func settings() []setting {
	return slices.Concat(serverSettings(), dataSettings(), runSettings(), contextSettings(), checkpointSettings(),
		encryptionSettings(), workflowSettings(), sourceSettings(), gatewaySettings(), requestSettings(), logSettings())
}

func serverSettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "listen", Kind: KindText, Flag: "listen", Env: "GUIDEWAY_LISTEN",
				Usage: "Host and port that the HTTP server listens on.",
			},
			check: checkListen,
			set:   func(c *Config, v value) { c.Listen = v.text },
			text:  func(c *Config) string { return c.Listen },
		},
		{
			Setting: Setting{
				Name: "toolsets", Kind: KindList, Flag: "toolsets", Env: "GUIDEWAY_TOOLSETS",
				Usage: "Toolsets that a client gets if it does not choose.", Allowed: Toolsets(),
			},
			nonEmpty: true,
			set:      func(c *Config, v value) { c.Toolsets = v.list },
			text:     func(c *Config) string { return strings.Join(c.Toolsets, ",") },
		},
		{
			Setting: Setting{
				Name: "allowOrigins", Kind: KindList, Flag: "allow-origin", Env: "GUIDEWAY_ALLOW_ORIGINS",
				Usage: "Browser origins besides our own that may call the server.",
			},
			check: checkOrigin,
			set:   func(c *Config, v value) { c.AllowOrigins = v.list },
			text:  func(c *Config) string { return strings.Join(c.AllowOrigins, ",") },
		},
		{
			Setting: Setting{
				Name: "allowedHosts", Kind: KindList, Flag: "allowed-host", Env: "GUIDEWAY_ALLOWED_HOSTS",
				Usage: "Host names besides loopback that requests may be addressed to.",
			},
			check: checkHost,
			set:   func(c *Config, v value) { c.AllowedHosts = v.list },
			text:  func(c *Config) string { return strings.Join(c.AllowedHosts, ",") },
		},
	}
}

func dataSettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "dataDir", Kind: KindPath, Flag: "data-dir", FlagAlias: "storage-path", Env: "GUIDEWAY_DATA_DIR",
				Aliases: []Alias{{Name: "WORKRAIL_DATA_DIR"}, {Name: "WORKRAIL_STORAGE_PATH"}},
				Usage:   "Directory of everything that must not be lost.",
			},
			set:  func(c *Config, v value) { c.DataDir = v.text },
			text: func(c *Config) string { return c.DataDir },
		},
		{
			Setting: Setting{
				Name: "tokenFile", Kind: KindPath, Flag: "token-file", Env: "GUIDEWAY_TOKEN_FILE",
				Usage: "File of the bearer token; by default \"token\" in the data directory.",
			},
			set:  func(c *Config, v value) { c.TokenFile = v.text },
			text: func(c *Config) string { return c.TokenFile },
		},
	}
}

func runSettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "store", Kind: KindText, Flag: "store", Env: "GUIDEWAY_STORE",
				Usage: "Where runs, session documents and checkpoints are kept: \"sqlite\", a file in the data directory; \"files\", the same with checkpoints in files alone; or a URL postgres://….",
			},
			check: checkStore,
			set:   func(c *Config, v value) { c.Store = v.text },
			text:  (*Config).RedactedStore,
		},
		{
			Setting: Setting{
				Name: "journal.keyFile", Kind: KindPath, Flag: "journal-key-file", Env: "GUIDEWAY_JOURNAL_KEY_FILE",
				Usage: "File of the key that chains the events of runs; by default \"journal.key\" in the data directory.",
			},
			set:  func(c *Config, v value) { c.Journal.KeyFile = v.text },
			text: func(c *Config) string { return c.Journal.KeyFile },
		},
		{
			Setting: Setting{
				Name: "journal.headsDir", Kind: KindPath, Flag: "journal-heads-dir", Env: "GUIDEWAY_JOURNAL_HEADS_DIR",
				Usage: "Directory that remembers how far each run has come, so that an old copy of the data shows; apart from the data directory.",
			},
			set:  func(c *Config, v value) { c.Journal.HeadsDir = v.text },
			text: func(c *Config) string { return c.Journal.HeadsDir },
		},
		{
			Setting: Setting{
				Name: "gates.approval", Kind: KindText, Flag: "gate-approval", Env: "GUIDEWAY_GATES_APPROVAL",
				Usage:   "Who opens gates: the agent, with what the person told it, or a human alone.",
				Allowed: []string{ApprovalAgent, ApprovalHuman},
			},
			set:  func(c *Config, v value) { c.Gates.Approval = v.text },
			text: func(c *Config) string { return c.Gates.Approval },
		},
	}
}

func workflowSettings() []setting {
	include := func(name, what string, field func(*Config) *bool) setting {
		upper := strings.ToUpper(name)
		return setting{
			Setting: Setting{
				Name: "workflows." + name, Kind: KindBool, Flag: "include-" + name, Env: "GUIDEWAY_INCLUDE_" + upper,
				Aliases: []Alias{{Name: "WORKFLOW_INCLUDE_" + upper, convert: truthful}},
				Usage:   "Whether " + what + " are in the catalog.",
			},
			set:  func(c *Config, v value) { *field(c) = v.flag },
			text: func(c *Config) string { return strconv.FormatBool(*field(c)) },
		}
	}
	return []setting{
		{
			Setting: Setting{
				Name: "workflows.paths", Kind: KindPaths, Flag: "workflows", Env: "GUIDEWAY_WORKFLOW_PATHS",
				Aliases: []Alias{{Name: "WORKFLOW_STORAGE_PATH"}},
				Usage:   "Directories of workflows, lowest precedence first.",
			},
			set:  func(c *Config, v value) { c.Workflows.Paths = v.list },
			text: func(c *Config) string { return strings.Join(c.Workflows.Paths, ", ") },
		},
		include("bundled", "the workflows that come with Guideway", func(c *Config) *bool { return &c.Workflows.Bundled }),
		include("plugins", "the workflows of npm packages", func(c *Config) *bool { return &c.Workflows.Plugins }),
		include("user", "the workflows of the user's configuration directory", func(c *Config) *bool { return &c.Workflows.User }),
		include("project", "the workflows of the working directory", func(c *Config) *bool { return &c.Workflows.Project }),
		{
			Setting: Setting{
				Name: "workflows.cacheTtl", Kind: KindDuration, Flag: "cache-ttl", Env: "GUIDEWAY_CACHE_TTL",
				Aliases: []Alias{{Name: "CACHE_TTL", convert: milliseconds}},
				Usage:   "How long a source of workflows that cannot be watched is trusted, such as \"5m\".",
			},
			set:  func(c *Config, v value) { c.Workflows.CacheTTL = max(v.duration, time.Second) },
			text: func(c *Config) string { return c.Workflows.CacheTTL.String() },
		},
	}
}

func logSettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "log.level", Kind: KindText, Flag: "log-level", Env: "GUIDEWAY_LOG_LEVEL",
				Aliases: []Alias{{Name: "WORKRAIL_LOG_LEVEL", convert: logLevel}},
				Usage:   "What is logged.", Allowed: []string{"debug", "info", "warn", "error", "off"},
			},
			set:  func(c *Config, v value) { c.Log.Level = v.text },
			text: func(c *Config) string { return c.Log.Level },
		},
		{
			Setting: Setting{
				Name: "log.format", Kind: KindText, Flag: "log-format", Env: "GUIDEWAY_LOG_FORMAT",
				Aliases: []Alias{{Name: "WORKRAIL_LOG_FORMAT", convert: logFormat}},
				Usage:   "How a log line is written.", Allowed: []string{"text", "json"},
			},
			set:  func(c *Config, v value) { c.Log.Format = v.text },
			text: func(c *Config) string { return c.Log.Format },
		},
	}
}

// truthful reads a switch that is on for "true" and "1" and off for all else.
func truthful(text string) (string, *fault) {
	return strconv.FormatBool(text == "true" || text == "1"), nil
}

// milliseconds reads a duration that is a number of milliseconds.
func milliseconds(text string) (string, *fault) {
	ms, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || ms < 0 || ms > int64(maxDuration/time.Millisecond) {
		return "", faultf(`give milliseconds, such as 300000, or use GUIDEWAY_CACHE_TTL=5m`,
			"%q is not a number of milliseconds from 0 to %d", text, maxDuration/time.Millisecond)
	}
	return (time.Duration(ms) * time.Millisecond).String(), nil
}

// logLevel reads the levels DEBUG, INFO, WARN, ERROR and SILENT.
func logLevel(text string) (string, *fault) {
	level := strings.ToLower(strings.TrimSpace(text))
	if level == "silent" {
		level = "off"
	}
	return level, nil
}

// logFormat reads a format that is JSON for "json" and text for all else.
func logFormat(text string) (string, *fault) {
	if strings.EqualFold(strings.TrimSpace(text), "json") {
		return "json", nil
	}
	return "text", nil
}
