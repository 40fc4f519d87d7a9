package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/guideway-dev/guideway"
)

// Source provides documents. The catalog makes one call at a time, except for Changes,
// which may run in parallel.
type Source interface {
	// Info describes the source. The result never changes.
	Info() SourceInfo
	// Documents lists the current documents without reading them. An entry that cannot be
	// listed, such as an unreadable file, is a diagnostic. After an error the catalog keeps
	// the previous documents. ErrMissing means that the location does not exist, and
	// empties the source.
	Documents(ctx context.Context) ([]Document, []guideway.Diagnostic, error)
}

// Watcher is a Source that reports changes.
type Watcher interface {
	// Changes sends a value whenever the result of Documents has probably changed since its
	// last call, and closes the channel when ctx is done. A slow receiver misses no change,
	// because several changes are sent as one value.
	Changes(ctx context.Context) (<-chan struct{}, error)
}

// ErrMissing means that the location of a source does not exist.
var ErrMissing = errors.New("the location does not exist")

// SourceInfo describes a source.
type SourceInfo struct {
	// Name is unique in a catalog: "bundled", "user", "custom-1".
	Name string `json:"name"`
	// Kind is the kind of access: "embedded", "dir", "git", "registry", "npm".
	Kind string `json:"kind"`
	// Location is the directory or URL; "" for embedded documents.
	Location string `json:"location,omitempty"`
	// Rank is the precedence: of two definitions with the same id, the one from the source
	// with the higher rank is served. If the ranks are equal, the definition of the source
	// that is later in the list is served.
	Rank int `json:"rank"`
	// Trust is the origin of the content.
	Trust Trust `json:"trust"`
	// Level limits the use of the content; "" is the default of Trust.
	Level Level `json:"level,omitempty"`
	// Optional means that a missing location is normal.
	Optional bool `json:"optional,omitempty"`
}

// Level limits the use of a source's content before a person has reviewed it.
type Level string

// The levels.
const (
	// LevelTrusted means that the content is trusted like files of this user.
	LevelTrusted Level = "trusted"
	// LevelReview means that the content is read and served; its scripts run after a person has approved them by
	// their hash, and its hook graphs never replace trusted ones.
	LevelReview Level = "review"
	// LevelBlocked means that the source is not read.
	LevelBlocked Level = "blocked"
)

// WithLevel fills in the default level of the trust.
func (i SourceInfo) WithLevel() SourceInfo {
	if i.Level == "" {
		i.Level = LevelReview
		if i.Trust == TrustBundled || i.Trust == TrustUser {
			i.Level = LevelTrusted
		}
	}
	return i
}

// Trust is the origin of a source's content, which determines how far it is trusted.
type Trust string

// The values of Trust.
const (
	// TrustBundled means that the content comes with the program.
	TrustBundled Trust = "bundled"
	// TrustUser means that the content is in the user's configuration directory, or named in the configuration.
	TrustUser Trust = "user"
	// TrustProject means that the content comes with the working directory; anyone with write access to the
	// project may have written it.
	TrustProject Trust = "project"
	// TrustRemote means that the content comes from another machine.
	TrustRemote Trust = "remote"
)

// The ranks of the kinds of sources, lowest first. The first source of a kind has the rank
// of the kind, and the following sources of the kind have the next ranks, in the order of
// their list.
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
	// Path is the location of the document for a person; diagnostics name it.
	Path string
	// Revision is the revision of the source, such as a commit or the version of a package;
	// "" if the source has no revision.
	Revision string
	// Size is the number of bytes, if it is known.
	Size int64
	// Stamp changes whenever the content may have changed. A document with an unchanged
	// stamp is not read again, but a document with the stamp "" always is.
	Stamp string
	// Sum is the expected SHA-256 of the content, or nil if it is unknown. Other content is
	// refused.
	Sum *[sha256.Size]byte
	// Problem is the reason why the content cannot be read, or nil.
	Problem *guideway.Diagnostic
	// Open opens the content. It is not called if Problem is set.
	Open func(context.Context) (io.ReadCloser, error)
}

func newError(code, file, message, fix string) guideway.Diagnostic {
	return guideway.Diagnostic{Severity: guideway.SeverityError, Code: code, File: file, Message: message, Fix: fix}
}

func newWarning(code, file, message, fix string) guideway.Diagnostic {
	return guideway.Diagnostic{Severity: guideway.SeverityWarning, Code: code, File: file, Message: message, Fix: fix}
}
