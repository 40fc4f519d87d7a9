package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the kind of a setting's value.
type Kind string

// The kinds.
const (
	KindText     Kind = "text"
	KindBool     Kind = "bool"
	KindDuration Kind = "duration"
	// KindPath is a file or directory. A relative path is resolved in the directory of the
	// configuration file, or for a variable or flag in the working directory.
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
	// KindPaths is separated like PATH in a variable. A flag has one path and can be
	// repeated.
	KindPaths Kind = "paths"
)

// Setting describes a setting.
type Setting struct {
	// Name is the position in guideway.json, such as "log.level".
	Name string
	Kind Kind
	// Flag is the flag's name without dashes. FlagAlias is the flag's name in another
	// system, or empty.
	Flag      string
	FlagAlias string
	// Env is the variable. Aliases are variables of other systems with the same meaning.
	// Env overrides them.
	Env     string
	Aliases []Alias
	// Usage is the description in --help and the JSON Schema, in one line.
	Usage string
	// Allowed are the values of a text or of a list's elements. If it is empty, other rules
	// apply.
	Allowed []string

	// nonEmpty refuses an empty list.
	nonEmpty bool
	// most is the maximum of a number or a duration. 0 means no bound for a number, and a
	// day for a duration.
	most int64
	// check validates one text. Nil accepts any text.
	check func(string) *settingError
	// raise returns the effective duration for a given one. Nil means that the given
	// duration is effective.
	raise func(time.Duration) time.Duration
	// redact removes the secrets of a text. Nil means that the text has no secrets.
	redact func(string) string
	// field returns a pointer to the field of a Config.
	field func(*Config) any
}

// Alias is a variable of another system.
type Alias struct {
	Name string
	// convert converts the variable's value to a value of the setting. Nil means no
	// conversion.
	convert func(string) (string, *settingError)
}

// value is a decoded value. The kind of the setting determines which field is set.
type value struct {
	text     string
	list     []string
	flag     bool
	number   int64
	duration time.Duration
}

// Description returns the usage, with the allowed values unless the usage names all of them.
func (s *Setting) Description() string {
	isMissing := func(value string) bool { return !strings.Contains(s.Usage, `"`+value+`"`) }
	if !slices.ContainsFunc(s.Allowed, isMissing) {
		return s.Usage
	}
	return strings.TrimSuffix(s.Usage, ".") + "; values: " + strings.Join(s.Allowed, ", ") + "."
}

// Default returns the default as text. It is empty if the default is empty or depends on
// the environment.
func (s *Setting) Default() string {
	l := newLoader(Options{Getenv: func(string) string { return "" }, Dir: "/"})
	l.applyDefaults()
	return s.formatValue(l.config)
}

// storeValue stores a validated value in its field.
func (s *Setting) storeValue(c *Config, v value) {
	switch field := s.field(c).(type) {
	case *string:
		*field = v.text
	case *bool:
		*field = v.flag
	case *int:
		*field = int(v.number)
	case *int64:
		*field = v.number
	case *time.Duration:
		*field = v.duration
		if s.raise != nil {
			*field = s.raise(v.duration)
		}
	case *[]string:
		*field = v.list
	case *map[string]string:
		*field = map[string]string{}
		for _, text := range v.list {
			key, item, _ := strings.Cut(text, "=")
			(*field)[key] = item
		}
	}
}

// formatValue returns the effective value as a text.
func (s *Setting) formatValue(c *Config) string {
	switch field := s.field(c).(type) {
	case *string:
		if s.redact != nil {
			return s.redact(*field)
		}
		return *field
	case *bool:
		return strconv.FormatBool(*field)
	case *int:
		return strconv.Itoa(*field)
	case *int64:
		return SizeText(*field)
	case *time.Duration:
		return DurationText(*field)
	case *[]string:
		if s.Kind == KindPaths {
			return strings.Join(*field, ", ")
		}
		return strings.Join(*field, ",")
	case *map[string]string:
		var items []string
		for key, item := range *field {
			items = append(items, key+"="+item)
		}
		slices.Sort(items)
		return strings.Join(items, ",")
	}
	return ""
}

// settingError is the error of a value, without its position.
type settingError struct{ message, fix string }

func newError(fix, format string, args ...any) *settingError {
	return &settingError{message: fmt.Sprintf(format, args...), fix: fix}
}

// Variables without a setting.
const (
	// EnvConfig names the configuration file.
	EnvConfig = "GUIDEWAY_CONFIG"
	// EnvPassphrase is the passphrase for the encryption of checkpoints. It has no setting
	// in the file and no flag, where others could read it.
	EnvPassphrase = "GUIDEWAY_ENCRYPTION_PASSPHRASE" //nolint:gosec // the name of a variable
	// EnvEmbeddingsKey is the key for the embeddings service.
	EnvEmbeddingsKey = "GUIDEWAY_EMBEDDINGS_KEY"
)

// ToolsetAuto is the default of the setting "toolsets": steps, runs, sessions and context,
// gateway as soon as an upstream is configured, and phases and machines as soon as a source
// other than the bundled one has such a definition.
const ToolsetAuto = "auto"

// Toolsets returns all toolsets, starting with the default toolsets.
func Toolsets() []string { return append(DefaultToolsets(), "phases", "gateway", "machines") }

// DefaultToolsets returns the toolsets that are always on by default.
func DefaultToolsets() []string { return []string{"steps", "runs", "sessions", "context"} }

// OffersUpstreams reports whether agents get the tools of configured upstreams.
func (c *Config) OffersUpstreams() bool {
	return slices.Contains(c.Toolsets, "gateway") || slices.Contains(c.Toolsets, ToolsetAuto)
}

// Settings returns all settings in a fixed order.
func Settings() []Setting {
	return slices.Concat(serverSettings(), dataSettings(), runSettings(), contextSettings(), checkpointSettings(),
		encryptionSettings(), workflowSettings(), sourceSettings(), gatewaySettings(), requestSettings(), logSettings())
}

func serverSettings() []Setting {
	return []Setting{
		{
			Name: "listen", Kind: KindText, Flag: "listen", Env: "GUIDEWAY_LISTEN",
			Usage: "Host and port of the HTTP server.",
			check: checkListen,
			field: func(c *Config) any { return &c.Listen },
		},
		{
			Name: "toolsets", Kind: KindList, Flag: "toolsets", Env: "GUIDEWAY_TOOLSETS",
			Usage: "Toolsets offered to clients. \"auto\" stands for steps, runs, sessions and context, gateway as soon as an upstream is configured, and phases and machines as soon as a source other than the bundled one has such a definition.", Allowed: append([]string{ToolsetAuto}, Toolsets()...),
			nonEmpty: true,
			field:    func(c *Config) any { return &c.Toolsets },
		},
		{
			Name: "answers", Kind: KindText, Flag: "answers", Env: "GUIDEWAY_ANSWERS",
			Usage:   "Form of the answers of tools: \"text\", \"structured\" (for programs), \"both\", or with \"auto\" the form that fits the client.",
			Allowed: []string{"auto", "text", "structured", "both"},
			field:   func(c *Config) any { return &c.Answers },
		},
		{
			Name: "allowOrigins", Kind: KindList, Flag: "allow-origin", Env: "GUIDEWAY_ALLOW_ORIGINS",
			Usage: "Additional browser origins that may call the server.",
			check: checkOrigin,
			field: func(c *Config) any { return &c.AllowOrigins },
		},
		{
			Name: "allowedHosts", Kind: KindList, Flag: "allowed-host", Env: "GUIDEWAY_ALLOWED_HOSTS",
			Usage: "Additional host names, besides loopback names, that are accepted in requests.",
			check: checkHost,
			field: func(c *Config) any { return &c.AllowedHosts },
		},
	}
}

func dataSettings() []Setting {
	return []Setting{
		{
			Name: "dataDir", Kind: KindPath, Flag: "data-dir", FlagAlias: "storage-path", Env: "GUIDEWAY_DATA_DIR",
			Aliases: []Alias{{Name: "WORKRAIL_DATA_DIR"}, {Name: "WORKRAIL_STORAGE_PATH"}},
			Usage:   "Directory of the persistent data.",
			field:   func(c *Config) any { return &c.DataDir },
		},
		{
			Name: "tokenFile", Kind: KindPath, Flag: "token-file", Env: "GUIDEWAY_TOKEN_FILE",
			Usage: "File of the bearer token; by default \"token\" in the data directory.",
			field: func(c *Config) any { return &c.TokenFile },
		},
	}
}

func runSettings() []Setting {
	return []Setting{
		{
			Name: "store", Kind: KindText, Flag: "store", Env: "GUIDEWAY_STORE",
			Usage:  "Where runs, session documents and checkpoints are stored: \"sqlite\", a database in the data directory; \"files\", a database for runs and session documents and files for checkpoints; or a URL postgres://….",
			check:  checkStore,
			redact: redactStore,
			field:  func(c *Config) any { return &c.Store },
		},
		{
			Name: "journal.keyFile", Kind: KindPath, Flag: "journal-key-file", Env: "GUIDEWAY_JOURNAL_KEY_FILE",
			Usage: "File of the key that chains the events of runs; by default \"journal.key\" in the data directory.",
			field: func(c *Config) any { return &c.Journal.KeyFile },
		},
		{
			Name: "journal.headsDir", Kind: KindPath, Flag: "journal-heads-dir", Env: "GUIDEWAY_JOURNAL_HEADS_DIR",
			Usage: "Directory that records the last event of each run, to detect a restored old copy of the data; separate from the data directory.",
			field: func(c *Config) any { return &c.Journal.HeadsDir },
		},
		{
			Name: "gates.approval", Kind: KindText, Flag: "gate-approval", Env: "GUIDEWAY_GATES_APPROVAL",
			Usage:   "Who answers gates: with \"agent\", the agent passes on the answer of a person; with \"human\", only a person can answer.",
			Allowed: []string{ApprovalAgent, ApprovalHuman},
			field:   func(c *Config) any { return &c.Gates.Approval },
		},
		{
			Name: "clientHooks.onError", Kind: KindText, Flag: "client-hooks-on-error", Env: "GUIDEWAY_CLIENT_HOOKS_ON_ERROR",
			Usage:   "What a client hook does in a session with a run if it cannot read the run: \"allow\" the event, or \"deny\" calls of tools and the first stop.",
			Allowed: []string{HookAllow, HookDeny},
			field:   func(c *Config) any { return &c.ClientHooks.OnError },
		},
	}
}

func workflowSettings() []Setting {
	include := func(name, what string, field func(*Config) any) Setting {
		upper := strings.ToUpper(name)
		return Setting{
			Name: "workflows." + name, Kind: KindBool, Flag: "include-" + name, Env: "GUIDEWAY_INCLUDE_" + upper,
			Aliases: []Alias{{Name: "WORKFLOW_INCLUDE_" + upper, convert: convertSwitch}},
			Usage:   "Whether " + what + " are in the catalog.",
			field:   field,
		}
	}
	return []Setting{
		{
			Name: "workflows.paths", Kind: KindPaths, Flag: "workflows", Env: "GUIDEWAY_WORKFLOW_PATHS",
			Aliases: []Alias{{Name: "WORKFLOW_STORAGE_PATH"}},
			Usage:   "Directories of workflows, lowest precedence first.",
			field:   func(c *Config) any { return &c.Workflows.Paths },
		},
		include("bundled", "the workflows that come with Guideway", func(c *Config) any { return &c.Workflows.Bundled }),
		include("plugins", "the workflows of npm packages", func(c *Config) any { return &c.Workflows.Plugins }),
		include("user", "the workflows of the user's configuration directory", func(c *Config) any { return &c.Workflows.User }),
		include("project", "the workflows of the working directory, of the top of its repository, and of the projects of clients", func(c *Config) any { return &c.Workflows.Project }),
		{
			Name: "workflows.cacheTtl", Kind: KindDuration, Flag: "cache-ttl", Env: "GUIDEWAY_CACHE_TTL",
			Aliases: []Alias{{Name: "CACHE_TTL", convert: convertMilliseconds("GUIDEWAY_CACHE_TTL=5m")}},
			Usage:   "How long a workflow source that cannot be watched is cached, such as \"5m\"; at least 1s.",
			raise:   func(d time.Duration) time.Duration { return max(d, time.Second) },
			field:   func(c *Config) any { return &c.Workflows.CacheTTL },
		},
	}
}

func logSettings() []Setting {
	return []Setting{
		{
			Name: "log.level", Kind: KindText, Flag: "log-level", Env: "GUIDEWAY_LOG_LEVEL",
			Aliases: []Alias{{Name: "WORKRAIL_LOG_LEVEL", convert: logLevel}},
			Usage:   "Log level.", Allowed: []string{"debug", "info", "warn", "error", "off"},
			field: func(c *Config) any { return &c.Log.Level },
		},
		{
			Name: "log.format", Kind: KindText, Flag: "log-format", Env: "GUIDEWAY_LOG_FORMAT",
			Aliases: []Alias{{Name: "WORKRAIL_LOG_FORMAT", convert: logFormat}},
			Usage:   "Format of log lines.", Allowed: []string{"text", "json"},
			field: func(c *Config) any { return &c.Log.Format },
		},
	}
}

// convertSwitch converts a switch that is on for "true" and "1" and off for all other
// values.
func convertSwitch(text string) (string, *settingError) {
	return strconv.FormatBool(text == "true" || text == "1"), nil
}

// convertMilliseconds returns a function that converts a duration in milliseconds. instead
// is the variable of Guideway with an example, for the suggestion.
func convertMilliseconds(instead string) func(text string) (string, *settingError) {
	return func(text string) (string, *settingError) {
		ms, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || ms < 0 || ms > int64(maxDuration/time.Millisecond) {
			return "", newError("set milliseconds, such as 10000, or use "+instead,
				"%q is not a number of milliseconds from 0 to %d", text, maxDuration/time.Millisecond)
		}
		return (time.Duration(ms) * time.Millisecond).String(), nil
	}
}

// logLevel converts a level of WorkRail, such as DEBUG or SILENT, to one of Guideway.
func logLevel(text string) (string, *settingError) {
	level := strings.ToLower(strings.TrimSpace(text))
	if level == "silent" {
		level = "off"
	}
	return level, nil
}

// logFormat converts a format: "json" is JSON, and all other values mean text.
func logFormat(text string) (string, *settingError) {
	if strings.EqualFold(strings.TrimSpace(text), "json") {
		return "json", nil
	}
	return "text", nil
}
