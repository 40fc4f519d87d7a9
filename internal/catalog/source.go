package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/guideway-dev/guideway"
)

// Source gives documents. The catalog calls it from one goroutine at a time,
// except that Changes may run beside it.
type Source interface {
	// Info names the source. It is the same at every call.
	Info() SourceInfo
	// Documents lists what the source has now, without reading it. What
	// cannot be listed, such as one unreadable file, is a diagnostic. An
	// error means that nothing is known: the catalog keeps what it had.
	// ErrMissing means that the location does not exist: the source is empty.
	Documents(ctx context.Context) ([]Document, []guideway.Diagnostic, error)
}

// Watcher is a Source that notices changes by itself.
type Watcher interface {
	// Changes sends whenever Documents would probably answer otherwise than at
	// its last call, and closes the channel when ctx is done. A receiver that
	// is late misses no change, because sends are merged, never dropped.
	Changes(ctx context.Context) (<-chan struct{}, error)
}

// ErrMissing says that the location of a source does not exist.
var ErrMissing = errors.New("the location does not exist")

// SourceInfo says what a source is.
type SourceInfo struct {
	// Name is unique in a catalog: "bundled", "user", "custom-1".
	Name string `json:"name"`
	// Kind says how it is reached: "embedded", "dir", "git", "registry", "npm".
	Kind string `json:"kind"`
	// Location is the directory or address; "" for what is built in.
	Location string `json:"location,omitempty"`
	// Rank is the precedence: of two definitions with one id the one of the
	// higher rank is served; of equal ranks, the later source's.
	Rank int `json:"rank"`
	// Trust says who answers for the content.
	Trust Trust `json:"trust"`
	// Level is what may be done with the content; "" is the default of Trust.
	Level Level `json:"level,omitempty"`
	// Optional means that a missing location is normal.
	Optional bool `json:"optional,omitempty"`
}

// Level is what may be done with what a source gives, before a person has looked
// at it.
type Level string

// The levels.
const (
	// LevelTrusted is as good as what this user wrote.
	LevelTrusted Level = "trusted"
	// LevelReview is read and served; its scripts run once a person has approved
	// them by their hash, and its hook graphs never take the place of others.
	LevelReview Level = "review"
	// LevelBlocked is not read.
	LevelBlocked Level = "blocked"
)

// WithLevel fills in the level: who answers for the content decides it where
// nobody did.
func (i SourceInfo) WithLevel() SourceInfo {
	if i.Level == "" {
		i.Level = LevelReview
		if i.Trust == TrustBundled || i.Trust == TrustUser {
			i.Level = LevelTrusted
		}
	}
	return i
}

// Trust says who answers for the content of a source.
type Trust string

// The levels of trust.
const (
	// TrustBundled is what comes with the program.
	TrustBundled Trust = "bundled"
	// TrustUser is what this user put into the own configuration, or named.
	TrustUser Trust = "user"
	// TrustProject is what came with the working directory; whoever can write
	// to the project wrote it.
	TrustProject Trust = "project"
	// TrustRemote is what another machine gave.
	TrustRemote Trust = "remote"
)

// The ranks of the kinds of sources, lowest first. Sources of one kind count up
// from its rank in the order of their list.
const (
	RankBundled  = 0
	RankPlugin   = 1_000
	RankUser     = 2_000
	RankCustom   = 3_000
	RankGit      = 1_000_000
	RankRegistry = 2_000_000
	RankProject  = 3_000_000
)

// Document is one document of a source.
type Document struct {
	// Name identifies the document within the source, such as
	// "loops/batch.json", and decides the order.
	Name string
	// Path is where a person finds it; diagnostics name it.
	Path string
	// Revision is what of the source this is: a commit, a version of a package; ""
	// where the source has none.
	Revision string
	// Size is the number of bytes, as far as it is known.
	Size int64
	// Stamp changes whenever the content may have changed; a document with the
	// stamp of the last call is not read again. "" is always read.
	Stamp string
	// Sum is the SHA-256 of the content where the source knows what it must be: a
	// content with another one is refused. nil is not known.
	Sum *[sha256.Size]byte
	// Problem says why the content cannot be read; nil where it can.
	Problem *guideway.Diagnostic
	// Open opens the content. It is not called where there is a problem.
	Open func(context.Context) (io.ReadCloser, error)
}

// problem makes a finding that keeps a document or a source from loading.
func problem(code, file, message, fix string) guideway.Diagnostic {
	return guideway.Diagnostic{Severity: guideway.SeverityError, Code: code, File: file, Message: message, Fix: fix}
}

// notice makes a finding that a person should look at.
func notice(code, file, message, fix string) guideway.Diagnostic {
	return guideway.Diagnostic{Severity: guideway.SeverityWarning, Code: code, File: file, Message: message, Fix: fix}
}
