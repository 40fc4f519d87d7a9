package app

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
)

const (
	// maxProjects bounds the number of projects whose definitions are kept.
	maxProjects = 8
	// projectTTL is the time for which the definitions of a project are not read again.
	projectTTL = time.Second
)

// ProjectDefinitions provides the definitions that apply in directories other than the
// working directory: those of all other sources, and those of the directory and of the top
// of its repository. They are not trusted, even if the configuration trusts the project of
// the working directory.
type ProjectDefinitions struct {
	app *App
	cfg *config.Config
	own *catalog.Catalog

	mu   sync.Mutex
	open []*projectCatalog // the most recently used first
}

type projectCatalog struct {
	dir     string
	catalog *catalog.Catalog
	mu      sync.Mutex
	loaded  time.Time
}

// NewProjectDefinitions returns the definitions of projects. own are the definitions of the
// working directory.
func (a *App) NewProjectDefinitions(cfg *config.Config, own *catalog.Catalog) *ProjectDefinitions {
	return &ProjectDefinitions{app: a, cfg: cfg, own: own}
}

// Open returns the definitions for a directory of the user of this process.
func (p *ProjectDefinitions) Open(ctx context.Context, dir string) (*catalog.Snapshot, run.Definitions, error) {
	here, err := filepath.EvalSymlinks(p.app.Host.Dir)
	found, foundErr := filepath.EvalSymlinks(dir)
	switch {
	case !p.cfg.Workflows.Project, foundErr != nil, err == nil && found == here:
		return p.own.Snapshot(), StartableDefinitions{Catalog: p.own}, nil
	case !project.IsOwned(found, p.app.Host.Dir):
		return nil, nil, guideway.Errorf(guideway.CodeForbidden, "the directory %s belongs to another user, so its workflows are not read", dir).
			WithFix("copy the workflows into a directory of your own, or name their directory in workflows.paths")
	}
	c := p.catalogOf(found)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := p.app.Host.CurrentTime(); now.Sub(c.loaded) >= projectTTL || now.Before(c.loaded) {
		if err := c.catalog.Load(ctx); err != nil {
			return nil, nil, err
		}
		c.loaded = now
	}
	return c.catalog.Snapshot(), StartableDefinitions{Catalog: c.catalog}, nil
}

// catalogOf returns the catalog for a directory.
func (p *ProjectDefinitions) catalogOf(dir string) *projectCatalog {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.open, func(c *projectCatalog) bool { return c.dir == dir })
	if i < 0 {
		layout := p.app.layoutFor(p.cfg, dir)
		for _, name := range []string{"project", "project-guideway", "project-root", "project-root-guideway"} {
			if layout.Levels[name] == catalog.LevelTrusted {
				delete(layout.Levels, name)
			}
		}
		c := &projectCatalog{dir: dir, catalog: catalog.New(catalog.Standard(layout), catalogOptions(p.cfg))}
		p.open = append(p.open[:min(len(p.open), maxProjects-1)], c)
		i = len(p.open) - 1
	}
	c := p.open[i]
	p.open = slices.Insert(slices.Delete(p.open, i, i+1), 0, c)
	return c
}
