package catalog

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// Layout says where the sources of an installation are. An empty field is no
// source.
type Layout struct {
	// Bundled are the definitions that come with the program.
	Bundled fs.FS
	// User is the directory of the user's own definitions.
	User string
	// Custom are directories that the configuration names, lowest rank first.
	Custom []string
	// Project is the working directory: definitions are in its directories
	// workflows and, ranking higher, .guideway/workflows.
	Project string
	// Dirs adjusts the sources that are directories.
	Dirs DirOptions
}

// Standard gives the sources of an installation. A directory that is named
// twice is one source, of the higher rank.
func Standard(layout Layout) []Source {
	var infos []SourceInfo
	dir := func(name, location string, rank int, trust Trust, optional bool) {
		infos = append(infos, SourceInfo{
			Name: name, Kind: "dir", Location: filepath.Clean(location), Rank: rank, Trust: trust, Optional: optional,
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
	if layout.Project != "" {
		dir("project", filepath.Join(layout.Project, "workflows"), RankProject, TrustProject, true)
		dir("project-guideway", filepath.Join(layout.Project, ".guideway", "workflows"), RankProject+1, TrustProject, true)
	}
	var sources []Source
	if layout.Bundled != nil {
		sources = append(sources, NewEmbedded(SourceInfo{Name: "bundled", Rank: RankBundled, Trust: TrustBundled}, layout.Bundled))
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
	return sources
}
