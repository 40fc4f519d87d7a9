package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/npm"
	"github.com/guideway-dev/guideway/internal/config"
)

// npmSources returns the sources of npm packages: one for each directory of definitions,
// and one that fails for each package with a problem.
func (a *App) npmSources(cfg *config.Config) []catalog.Source {
	if !cfg.Workflows.Plugins || cfg.Workflows.Trust["plugins"] == string(catalog.LevelBlocked) {
		return nil
	}
	roots := a.globalModuleRoots()
	if cfg.Workflows.Project {
		roots = append(roots, npm.Root{Dir: filepath.Join(a.Host.Dir, "node_modules"), Project: a.Host.Dir})
	}
	var sources []catalog.Source
	for _, p := range npm.Find(roots) {
		info := catalog.SourceInfo{
			Name: p.Name, Kind: "npm", Rank: catalog.RankPlugin + len(sources), Trust: catalog.TrustRemote, Optional: true,
			Level: catalog.Level(cmp.Or(cfg.Workflows.Trust[p.Name], cfg.Workflows.Trust["plugins"])),
		}
		if p.Problem != nil {
			sources = append(sources, catalog.NewFailedSource(info, p.Problem))
			continue
		}
		for i, dir := range p.Dirs {
			if i > 0 {
				info.Name = fmt.Sprintf("%s#%d", p.Name, i+1)
			}
			info.Location, info.Rank = dir, catalog.RankPlugin+len(sources)
			sources = append(sources, catalog.NewDir(info, catalog.DirOptions{Revision: p.Revision()}))
		}
	}
	return sources
}

// globalModuleRoots returns the directories of globally installed packages: in %APPDATA% on
// Windows, relative to each node executable in PATH, and from the npm variables.
func (a *App) globalModuleRoots() []npm.Root {
	below := func(prefix string) string {
		if runtime.GOOS == "windows" {
			return filepath.Join(prefix, "node_modules")
		}
		return filepath.Join(prefix, "lib", "node_modules")
	}
	var dirs []string
	if appData := a.Host.Getenv("APPDATA"); appData != "" && runtime.GOOS == "windows" {
		dirs = append(dirs, filepath.Join(appData, "npm", "node_modules"))
	}
	for _, dir := range filepath.SplitList(a.Host.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, program := range []string{"node", "node.exe"} {
			if info, err := os.Stat(filepath.Join(dir, program)); err == nil && info.Mode().IsRegular() {
				prefix := filepath.Dir(dir)
				if runtime.GOOS == "windows" {
					prefix = dir
				}
				dirs = append(dirs, below(prefix))
			}
		}
	}
	for _, name := range []string{"npm_config_prefix", "NPM_CONFIG_PREFIX"} {
		if prefix := a.Host.Getenv(name); filepath.IsAbs(prefix) {
			dirs = append(dirs, below(prefix))
		}
	}
	var roots []npm.Root
	for _, dir := range dirs {
		roots = append(roots, npm.Root{Dir: dir})
	}
	return roots
}
