// Package config reads the settings: built-in defaults, below guideway.json,
// below the environment, below flags. Every problem is reported at once, with
// the line or the variable that it stands in, and each value knows where it
// came from.
//
// A higher layer replaces a setting whole; lists are not merged.
package config

import (
	"log/slog"
	"math"
	"time"

	"github.com/guideway-dev/guideway"
)

// Config is the settings in force. Paths are absolute.
type Config struct {
	// Listen is the host and port of the HTTP server.
	Listen string
	// Toolsets are the toolsets that a client gets if it does not choose.
	Toolsets []string
	// Workflows says where definitions come from.
	Workflows Workflows
	// Log says what is logged and how.
	Log Log
	// AllowOrigins are the browser origins besides our own that may call.
	AllowOrigins []string
	// AllowedHosts are the Host headers that are accepted besides loopback.
	AllowedHosts []string
	// DataDir holds what must not be lost.
	DataDir string
	// TokenFile holds the bearer token.
	TokenFile string
	// Store says where runs, session documents and checkpoints are kept:
	// StoreSQLite, StoreFiles, or the URL of a PostgreSQL database. It may hold a
	// password: RedactedStore is the one to show.
	Store string
	// Journal says where the journal's keys and heads are.
	Journal Journal
	// Gates says who opens gates.
	Gates Gates
	// Context says what is done with contexts.
	Context Context
	// Checkpoints says what is kept of contexts.
	Checkpoints Checkpoints
	// Encryption says how checkpoints are encrypted.
	Encryption Encryption

	// Gateway says how other MCP servers are offered.
	Gateway Gateway
	// Requests says what is kept of the requests to upstreams.
	Requests Requests
	// Upstreams are other MCP servers, by their names.
	Upstreams []Upstream
	// Models are language models, by the levels of roles (base, smart, fast) or
	// by names that roles use.
	Models map[string]Model
	// Sources are repositories and registries of definitions, lowest precedence
	// first. Those of variables may have no name yet.
	Sources []Source

	// Dirs are this user's directories.
	Dirs Dirs
	// File is the configuration file that was read; "" if there was none.
	File string
	// Warnings are findings that do not keep the settings from being used.
	Warnings []guideway.Diagnostic

	origins map[string]Origin
}

// Workflows says where definitions come from.
type Workflows struct {
	// Paths are directories of definitions, lowest precedence first.
	Paths []string
	// Bundled, Plugins, User and Project include the sources of these names.
	Bundled, Plugins, User, Project bool
	// UserDir is the directory of the user source.
	UserDir string
	// CacheTTL is how long a source that cannot be watched is trusted; it is
	// at least a second.
	CacheTTL time.Duration
	// Hosts are those of this user that repositories may be fetched from.
	Hosts []string
	// SyncInterval is how often repositories and registries are looked at.
	SyncInterval time.Duration
	// RegistryTimeout is how long one answer of a registry may take.
	RegistryTimeout time.Duration
	// CacheDir has the copies of repositories and registries.
	CacheDir string
	// Trust is trusted, review or blocked, by the names of sources.
	Trust map[string]string
}

// The stores that are no URL.
const (
	// StoreSQLite keeps all in a file of the data directory, but for the contents
	// of checkpoints, which are files beside it.
	StoreSQLite = "sqlite"
	// StoreFiles keeps checkpoints without a database. Runs and session documents
	// are kept as by StoreSQLite.
	StoreFiles = "files"
)

// UsesPostgres says whether the store is a PostgreSQL database.
func (c *Config) UsesPostgres() bool { return c.Store != StoreSQLite && c.Store != StoreFiles }

// RedactedStore is the store without its password.
func (c *Config) RedactedStore() string { return redactStore(c.Store) }

// Journal says where the parts of the journal are that must not be in its
// database.
type Journal struct {
	// KeyFile holds the key that chains the events.
	KeyFile string
	// HeadsDir holds the last links of the chains. It is apart from the data
	// directory, so that putting back an old copy of that one shows.
	HeadsDir string
}

// Gates says who opens gates.
type Gates struct {
	// Approval is ApprovalAgent or ApprovalHuman.
	Approval string
}

// Who opens gates.
const (
	// ApprovalAgent lets the agent hand on what the person said, unless the
	// workflow wants a person.
	ApprovalAgent = "agent"
	// ApprovalHuman has a person open every gate.
	ApprovalHuman = "human"
)

// Log says what is logged and how.
type Log struct {
	// Level is debug, info, warn, error or off.
	Level string
	// Format is text or json.
	Format string
}

// Threshold is the level for log/slog; "off" is above every level.
func (l Log) Threshold() slog.Level {
	switch l.Level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	case "off":
		return slog.Level(math.MaxInt)
	default:
		return slog.LevelInfo
	}
}

// OriginKind is a layer of settings.
type OriginKind string

// The layers, lowest first.
const (
	OriginDefault OriginKind = "default"
	OriginFile    OriginKind = "file"
	OriginEnv     OriginKind = "env"
	OriginFlag    OriginKind = "flag"
)

// Origin is where a value came from.
type Origin struct {
	Kind OriginKind
	// Name is the variable, the flag with its dashes, or the file and line.
	Name string
}

// String names the origin for a person: "default", "file guideway.json:3",
// "env GUIDEWAY_LISTEN", "flag --listen".
func (o Origin) String() string {
	if o.Name == "" {
		return string(o.Kind)
	}
	return string(o.Kind) + " " + o.Name
}

// Origin says where the value of a setting, such as "log.level", came from.
func (c *Config) Origin(setting string) Origin {
	if origin, ok := c.origins[setting]; ok {
		return origin
	}
	return Origin{Kind: OriginDefault}
}

// Value is one setting as it is in force.
type Value struct {
	Name   string
	Text   string
	Origin Origin
}

// Values are all settings in the order of Settings, for a person to read.
func (c *Config) Values() []Value {
	table := settings()
	values := make([]Value, len(table))
	for i := range table {
		values[i] = Value{Name: table[i].Name, Text: table[i].text(c), Origin: c.Origin(table[i].Name)}
	}
	return values
}
