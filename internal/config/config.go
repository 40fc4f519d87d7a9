// Package config loads the settings. The layers are, lowest first: built-in defaults, the
// configuration file, the environment, and flags. Load reports all errors together, each
// with its line, variable or flag, and records the origin of each value.
//
// A higher layer replaces a setting completely; lists are not merged. Only the sources in
// variables are added to those of the file.
package config

import (
	"log/slog"
	"math"
	"net/url"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

// Config has the effective settings. Paths are absolute.
type Config struct {
	// Listen is the host and port of the HTTP server.
	Listen string
	// Toolsets are the toolsets of clients, or ToolsetAuto.
	Toolsets []string
	// Answers is the form of the answers of tools: auto, text, structured or both.
	Answers string
	// Workflows are the settings of the sources of definitions.
	Workflows Workflows
	// Log is the settings of logging.
	Log Log
	// AllowOrigins are browser origins that may call, in addition to the server's own.
	AllowOrigins []string
	// AllowedHosts are accepted Host headers, in addition to loopback.
	AllowedHosts []string
	// PublicURL is the URL of the server for people and clients, or "".
	PublicURL string
	// User is the local user, or "" for the user of the operating system.
	User string
	// Identity is the settings of logins through an OpenID provider.
	Identity Identity
	// Projects are the settings of shared projects.
	Projects Projects
	// DataDir stores data that must not be lost.
	DataDir string
	// TokenFile contains the bearer token.
	TokenFile string
	// Store is where runs, session documents and checkpoints are stored: StoreSQLite,
	// StoreFiles, or the URL of a PostgreSQL database. It may contain a password; show
	// RedactedStore instead.
	Store string
	// Journal is where the keys and heads of the journal are stored.
	Journal Journal
	// Gates are the settings of gates.
	Gates Gates
	// ClientHooks are the settings of the hooks of clients.
	ClientHooks ClientHooks
	// Context is the settings of contexts.
	Context Context
	// Checkpoints are the settings of checkpoints.
	Checkpoints Checkpoints
	// Encryption is the settings of the encryption of checkpoints.
	Encryption Encryption

	// Gateway is the settings of the gateway.
	Gateway Gateway
	// Requests are the settings of the request log.
	Requests Requests
	// Upstreams are other MCP servers, by name.
	Upstreams []Upstream
	// Models maps a level of roles (base, smart, fast), or a name that roles use, to a
	// language model.
	Models map[string]Model
	// Machines are the limits of machine runs in one process.
	Machines Machines
	// Notices are the receivers of notices, by name.
	Notices map[string]Receiver
	// Sources are repositories and registries of definitions, lowest precedence first.
	// Sources that a variable defines may have no name yet.
	Sources []Source

	// Dirs are the directories of this user.
	Dirs Dirs
	// File is the configuration file that was read, or "".
	File string
	// Shared is the state that all instances of a deployment share. The command line sets it
	// if the store is PostgreSQL; without it, files of this machine have that state.
	Shared deployment.Shared
	// Warnings are diagnostics that do not prevent the use of the settings.
	Warnings []guideway.Diagnostic

	origins map[string]Origin
}

// Workflows are the settings of the sources of definitions.
type Workflows struct {
	// Paths are directories of definitions, lowest precedence first.
	Paths []string
	// Bundled, Plugins, User and Project enable the sources with these names.
	Bundled, Plugins, User, Project bool
	// UserDir is the directory of the user source.
	UserDir string
	// CacheTTL is the interval at which a source that cannot be watched is read again. It
	// is at least a second.
	CacheTTL time.Duration
	// Hosts are additional hosts that repositories may be fetched from.
	Hosts []string
	// SyncInterval is how often repositories and registries are polled.
	SyncInterval time.Duration
	// RegistryTimeout is the time limit of one response of a registry.
	RegistryTimeout time.Duration
	// CacheDir stores the copies of repositories and registries.
	CacheDir string
	// Trust maps the name of a source to its level: trusted, review or blocked.
	Trust map[string]string
}

// The stores that are not a URL.
const (
	// StoreSQLite stores everything in a file of the data directory, except for the
	// contents of checkpoints, which are separate files.
	StoreSQLite = "sqlite"
	// StoreFiles stores the metadata of checkpoints next to their contents, and runs and
	// session documents like StoreSQLite.
	StoreFiles = "files"
)

// UsesPostgres reports whether the store is a PostgreSQL database.
func (c *Config) UsesPostgres() bool { return c.Store != StoreSQLite && c.Store != StoreFiles }

// RedactedStore returns the store without its password.
func (c *Config) RedactedStore() string { return redactStore(c.Store) }

// Journal has the locations of the parts of the journal that must not be in its database.
type Journal struct {
	// KeyFile contains the key that chains the events.
	KeyFile string
	// HeadsDir stores the last links of the chains. It is separate from the data directory,
	// so that a restored old copy of the data directory is detected.
	HeadsDir string
}

// Gates are the settings of gates.
type Gates struct {
	// Approval is ApprovalAgent or ApprovalHuman.
	Approval string
}

// The callers that can answer gates.
const (
	// ApprovalAgent lets the agent pass on the person's answer, unless the workflow
	// requires human approval.
	ApprovalAgent = "agent"
	// ApprovalHuman requires human approval for every gate.
	ApprovalHuman = "human"
)

// ClientHooks are the settings of the hooks of clients.
type ClientHooks struct {
	// OnError is HookAllow or HookDeny.
	OnError string
}

// The answers to an event that cannot be checked because of an error.
const (
	// HookAllow lets the client go on.
	HookAllow = "allow"
	// HookDeny denies calls of tools, and refuses one stop, in sessions that have a run.
	HookDeny = "deny"
)

// Log is the settings of logging.
type Log struct {
	// Level is debug, info, warn, error or off.
	Level string
	// Format is text or json.
	Format string
}

// Threshold returns the level for log/slog. For "off" it is above every level.
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

// Origin is the origin of a value.
type Origin struct {
	Kind OriginKind
	// Name is the variable, the flag with its dashes, or the file and line.
	Name string
}

// String returns the origin as a text: "default", "file guideway.json:3", "env
// GUIDEWAY_LISTEN", "flag --listen".
func (o Origin) String() string {
	if o.Name == "" {
		return string(o.Kind)
	}
	return string(o.Kind) + " " + o.Name
}

// Origin returns the origin of a setting, such as "log.level".
func (c *Config) Origin(setting string) Origin {
	if origin, ok := c.origins[setting]; ok {
		return origin
	}
	return Origin{Kind: OriginDefault}
}

// Value is the effective value of a setting.
type Value struct {
	Name   string
	Text   string
	Origin Origin
}

// Values returns all settings in the order of Settings, as texts.
func (c *Config) Values() []Value {
	table := Settings()
	values := make([]Value, len(table))
	for i := range table {
		values[i] = Value{Name: table[i].Name, Text: table[i].formatValue(c), Origin: c.Origin(table[i].Name)}
	}
	return values
}

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

// Context is the settings of contexts.
type Context struct {
	// Compression is CompressionBasic or CompressionAdvanced.
	Compression string
	// TokenLimit is the maximum size of a context in tokens. Threshold is the percentage of
	// TokenLimit at which the context is reduced in the background.
	TokenLimit, Threshold int
	// PersonalData treats personal data like secrets; see secret.Detector.
	PersonalData bool
	// EmbeddingsURL is an API for embeddings like that of OpenAI, without /embeddings, that
	// ranks the results of a search. Empty disables it.
	EmbeddingsURL, EmbeddingsModel string
	// EmbeddingsKey is sent as a bearer token. It comes from the environment only.
	EmbeddingsKey string
}

// The ways in which contexts are reduced.
const (
	// CompressionBasic extracts sentences.
	CompressionBasic = "basic"
	// CompressionAdvanced lets a model write summaries, if one is configured.
	CompressionAdvanced = "advanced"
)

// Encryption is the settings of the encryption of checkpoints.
type Encryption struct {
	// Mode is the mode of the encryption, such as EncryptionEnabled.
	Mode string
	// KeyFile contains the key of EncryptionKeyFile, and of EncryptionEnabled if there is
	// no keychain. PassphraseFile contains the passphrase of EncryptionPassphrase; it is
	// not used if Passphrase is set.
	KeyFile, PassphraseFile string
	// Passphrase is the passphrase from the environment, or "".
	Passphrase string
}

// The modes of the encryption.
const (
	EncryptionDisabled = "disabled"
	// EncryptionEnabled lets Guideway choose: the keychain of the system, or the key file
	// if there is no keychain. The choice is permanent.
	EncryptionEnabled    = "enabled"
	EncryptionKeychain   = "keychain"
	EncryptionKeyFile    = "key-file"
	EncryptionPassphrase = "passphrase"
)

// checkEmbeddings accepts the URL of an API. It refuses a user name, a password, a query
// and a fragment, because they may contain a secret and the URL is shown.
func checkEmbeddings(text string) *settingError {
	const fix = `write a URL such as "https://api.openai.com/v1"`
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return newError(fix, "the value is not an http or https URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return newError(fix+"; put a key into "+EnvEmbeddingsKey, "the URL of the API must not have a user name, a query or a fragment")
	}
	return nil
}

// encryptionSwitch converts a switch to a mode. It returns any other text unchanged.
func encryptionSwitch(text string) (string, *settingError) {
	switch text {
	case "true", "1", "on", "yes":
		return EncryptionEnabled, nil
	case "false", "0", "off", "no":
		return EncryptionDisabled, nil
	}
	return text, nil
}

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
