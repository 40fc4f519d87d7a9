package catalog

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/guideway-dev/guideway"
)

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
