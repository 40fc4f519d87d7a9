package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

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

// Syncer is a Source that serves a copy of remote documents: of a repository or a registry.
// Documents returns the copy, and never waits for the remote side.
type Syncer interface {
	Source
	// Sync updates the copy, whether or not an update is due. It may be called
	// concurrently, also from several processes; one of these calls does the work. After an
	// error the copy is unchanged.
	Sync(ctx context.Context) (Synced, error)
	// SyncState returns the state of the copy.
	SyncState() SyncState
}

// Synced is the result of a synchronization.
type Synced struct {
	// Before and After are the revisions of the copy; Before is "" at the first
	// synchronization.
	Before, After string
	// Changed reports that the served documents changed.
	Changed bool
}

// SyncState is the state of a copy.
type SyncState struct {
	// Revision is the revision of the copy; "" before the first synchronization.
	Revision string `json:"revision,omitempty"`
	// Reference is the followed branch or tag, "commit" for a fixed commit, or "HEAD".
	Reference string `json:"reference,omitempty"`
	// Changed is the time of the last change of the copy, and Checked is the time of the
	// last successful check of the remote side.
	Changed time.Time `json:"changed,omitzero"`
	Checked time.Time `json:"checked,omitzero"`
	// Failure is the error of the last attempt; Failures counts the failed attempts since
	// the last successful one.
	Failure  string `json:"failure,omitempty"`
	Failures int    `json:"failures,omitempty"`
	// Next is the time when the next attempt is due.
	Next time.Time `json:"next,omitzero"`
}

// Embedded is a source of documents that are built into the program.
type Embedded struct {
	info SourceInfo
	fsys fs.FS
}

var _ Source = (*Embedded)(nil)

// NewEmbedded returns a source of the documents in fsys, at any depth. They never change
// while the program runs.
func NewEmbedded(info SourceInfo, fsys fs.FS) *Embedded {
	if info.Kind == "" {
		info.Kind = "embedded"
	}
	return &Embedded{info: info, fsys: fsys}
}

// Info implements Source.
func (e *Embedded) Info() SourceInfo { return e.info }

// Documents implements Source.
func (e *Embedded) Documents(ctx context.Context) ([]Document, []guideway.Diagnostic, error) {
	var documents []Document
	err := fs.WalkDir(e.fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			if name != "." && isSkipped(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case isSkipped(entry.Name()) || !isDocument(name):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		documents = append(documents, Document{
			Name: name, Path: e.info.Name + ":" + name, Size: info.Size(), Stamp: "embedded",
			Open: func(context.Context) (io.ReadCloser, error) { return e.fsys.Open(name) },
		})
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", e.info.Name, err)
	}
	return documents, nil, nil
}

// Layout has the locations of an installation's sources. An empty field means no source.
type Layout struct {
	// Bundled are the definitions that come with the program.
	Bundled fs.FS
	// User is the directory of the user's own definitions.
	User string
	// Custom are directories that the configuration names, lowest rank first.
	Custom []string
	// Project is the working directory. Its definitions are in its directories workflows
	// and, with a higher rank, .guideway/workflows.
	Project string
	// ProjectRoot is the top of the repository that contains Project, if it is another
	// directory. Its definitions are in the same directories, with a lower rank.
	ProjectRoot string
	// More are other sources of any rank.
	More []Source
	// Levels maps names of sources to levels other than the default.
	Levels map[string]Level
	// Dirs configures the sources that are directories.
	Dirs DirOptions
}

// Standard returns the sources of an installation. A directory that is named twice is one
// source with the higher rank.
func Standard(layout Layout) []Source {
	var infos []SourceInfo
	dir := func(name, location string, rank int, trust Trust, optional bool) {
		infos = append(infos, SourceInfo{
			Name: name, Kind: "dir", Location: filepath.Clean(location), Rank: rank, Trust: trust, Optional: optional,
			Level: layout.Levels[name],
		})
	}
	if layout.User != "" {
		dir("user", layout.User, RankUser, TrustUser, true)
	}
	for i, path := range layout.Custom {
		name := "custom"
		if len(layout.Custom) > 1 {
			name = fmt.Sprintf("custom-%d", i+1)
		}
		dir(name, path, RankCustom+i, TrustUser, false)
	}
	if layout.ProjectRoot != "" {
		dir("project-root", filepath.Join(layout.ProjectRoot, "workflows"), RankProject-2, TrustProject, true)
		dir("project-root-guideway", filepath.Join(layout.ProjectRoot, ".guideway", "workflows"), RankProject-1, TrustProject, true)
	}
	if layout.Project != "" {
		dir("project", filepath.Join(layout.Project, "workflows"), RankProject, TrustProject, true)
		dir("project-guideway", filepath.Join(layout.Project, ".guideway", "workflows"), RankProject+1, TrustProject, true)
	}
	var sources []Source
	if layout.Bundled != nil {
		sources = append(sources, NewEmbedded(SourceInfo{Name: "bundled", Rank: RankBundled, Trust: TrustBundled, Level: layout.Levels["bundled"]}, layout.Bundled))
	}
	last := map[string]int{}
	for i, info := range infos {
		last[info.Location] = i
	}
	for i, info := range infos {
		if last[info.Location] == i {
			sources = append(sources, NewDir(info, layout.Dirs))
		}
	}
	return append(sources, layout.More...)
}

// FailedSource is a source with an invalid configuration. It returns only the error.
type FailedSource struct {
	info SourceInfo
	err  error
}

var _ Source = (*FailedSource)(nil)

// NewFailedSource returns a source that always returns err.
func NewFailedSource(info SourceInfo, err error) *FailedSource {
	return &FailedSource{info: info, err: err}
}

// Info implements Source.
func (f *FailedSource) Info() SourceInfo { return f.info }

// Documents implements Source.
func (f *FailedSource) Documents(context.Context) ([]Document, []guideway.Diagnostic, error) {
	return nil, nil, f.err
}
