package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/git"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
	"github.com/guideway-dev/guideway/internal/catalog/npm"
	"github.com/guideway-dev/guideway/internal/catalog/registry"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Timeouts for remote sources. If there is a copy of the source, the command continues with
// it after updateTimeout.
const (
	firstFetchTimeout = 60 * time.Second
	updateTimeout     = 5 * time.Second
)

// remoteSources returns the configured Git and registry sources, in order of increasing
// rank. A source with an invalid configuration reports the error when it is read.
func (a *App) remoteSources(cfg *config.Config) []catalog.Source {
	names := usedNames{}
	for i := range cfg.Sources {
		if name := cfg.Sources[i].Name; name != "" {
			names[name] = true
		}
	}
	var sources []catalog.Source
	for i := range cfg.Sources {
		s := cfg.Sources[i]
		if s.Disabled {
			continue
		}
		info := catalog.SourceInfo{
			Name: s.Name, Kind: "git", Location: redactedAddress(cmp.Or(s.Git, s.Registry)), Rank: catalog.RankGit + i, Trust: catalog.TrustRemote,
			Level: catalog.Level(cmp.Or(cfg.Workflows.Trust[s.Name], s.Trust)),
		}
		if s.Registry != "" {
			info.Kind, info.Rank = "registry", catalog.RankRegistry+i
			sources = append(sources, a.newRegistrySource(cfg, s, info, names))
			continue
		}
		sources = append(sources, a.newGitSource(cfg, s, info, names))
	}
	return sources
}

// usedNames is the set of names in use.
type usedNames map[string]bool

// reserve returns the name, or the name with a number if it is already used.
func (n usedNames) reserve(name string) string {
	unique := name
	for i := 2; n[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	n[unique] = true
	return unique
}

// redactedAddress returns an address without credentials. It also accepts addresses that
// are not valid URLs.
func redactedAddress(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return OneLine(text)
	}
	host, path, _ := strings.Cut(rest, "/")
	return OneLine(scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path)
}

// newGitSource returns the source of a Git repository.
func (a *App) newGitSource(cfg *config.Config, s config.Source, info catalog.SourceInfo, names usedNames) catalog.Source {
	opts := git.Options{
		URL: s.Git, Branch: s.Branch, Tag: s.Tag, Commit: s.Commit, Path: s.Path, Hosts: cfg.Workflows.Hosts,
		Credentials: func(host string) (user, token string) { return s.User, a.findGitToken(s, host) },
		SSH:         git.SSH{Key: a.expandPath(s.SSHKey), KnownHosts: a.expandPath(s.KnownHosts)},
		Limits:      mirror.Limits{Bytes: s.MaxBytes, Files: s.MaxFiles, FileBytes: s.MaxFileSize},
	}
	fetcher, err := git.New(opts)
	if err != nil {
		info.Name = cmp.Or(info.Name, names.reserve("git"))
		return catalog.NewFailedSource(info, err)
	}
	info.Name = cmp.Or(info.Name, names.reserve(fetcher.Name()))
	info.Location = fetcher.Location()
	info.Level = cmp.Or(info.Level, catalog.Level(cfg.Workflows.Trust[info.Name]))
	return mirror.New(info, mirror.Options{
		Dir: sourceCopyDir(cfg, info.Name, fetcher.Origin()), Origin: fetcher.Origin(), Fetcher: fetcher, Interval: syncInterval(cfg, s),
	})
}

// newRegistrySource returns the source of a registry.
func (a *App) newRegistrySource(cfg *config.Config, s config.Source, info catalog.SourceInfo, names usedNames) catalog.Source {
	client, err := registry.New(registry.Options{
		URL: s.Registry, AllowPrivate: s.AllowPrivate, Timeout: cfg.Workflows.RegistryTimeout,
		Key: func() string {
			key, err := a.secretResolver().Resolve(s.Token)
			if err != nil {
				return ""
			}
			return key
		},
		Limits: mirror.Limits{Bytes: s.MaxBytes, Files: s.MaxFiles, FileBytes: s.MaxFileSize},
	})
	info.Name = cmp.Or(info.Name, names.reserve("registry"))
	if err != nil {
		return catalog.NewFailedSource(info, err)
	}
	info.Location = client.Location()
	info.Level = cmp.Or(info.Level, catalog.Level(cfg.Workflows.Trust[info.Name]))
	return mirror.New(info, mirror.Options{
		Dir: sourceCopyDir(cfg, info.Name, client.Origin()), Origin: client.Origin(), Fetcher: client, Interval: syncInterval(cfg, s),
	})
}

// expandPath returns the absolute path of a configured path, which may begin with ~/.
func (a *App) expandPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && a.Host.Home() != "" {
		return filepath.Join(a.Host.Home(), rest)
	}
	if path == "" {
		return ""
	}
	return a.Host.Abs(path)
}

// findGitToken returns the token of the source or, if it has none, a token for the host
// from the environment. It returns "" if none exists, or if the reference of the source
// does not resolve.
func (a *App) findGitToken(s config.Source, host string) string {
	if s.Token != "" {
		token, err := a.secretResolver().Resolve(s.Token)
		if err != nil {
			return ""
		}
		return token
	}
	for _, name := range git.TokenVariables(host) {
		if token := a.Host.Getenv(name); token != "" {
			return token
		}
	}
	return ""
}

// secretResolver resolves the secret references in the configuration.
func (a *App) secretResolver() upstream.Secrets {
	return upstream.Secrets{Getenv: a.Host.Getenv, Keychain: upstream.Keychain}
}

// syncInterval returns how often a source is synchronized.
func syncInterval(cfg *config.Config, s config.Source) time.Duration {
	interval := cfg.Workflows.SyncInterval
	if s.Interval != nil {
		interval = time.Duration(*s.Interval)
	}
	return max(interval, time.Second)
}

// sourceCopyDir returns the directory of the local copy of a source.
func sourceCopyDir(cfg *config.Config, name, origin string) string {
	return filepath.Join(sourceCacheDir(cfg), name+"-"+digest.Hex(origin)[:12])
}

// sourceCacheDir returns the directory of local copies and of the index of definitions.
func sourceCacheDir(cfg *config.Config) string {
	return cmp.Or(cfg.Workflows.CacheDir, filepath.Join(cfg.DataDir, "sources"))
}

// syncDueSources synchronizes the sources that are due before a command reads them. The
// sources report their errors.
func (a *App) syncDueSources(ctx context.Context, sources []catalog.Source) {
	var fetches sync.WaitGroup
	for _, source := range sources {
		copied, ok := source.(*mirror.Source)
		if !ok || !copied.Due() || copied.Info().Level == catalog.LevelBlocked {
			continue
		}
		wait := updateTimeout
		if copied.Dir() == "" {
			wait = firstFetchTimeout
		}
		fetches.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			_, _ = copied.Sync(ctx) // the source stores and reports the error
		})
	}
	fetches.Wait()
}

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
