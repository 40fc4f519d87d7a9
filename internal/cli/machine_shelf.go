package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/approval"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/definition/machines"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/regularfile"
)

// machineShelf finds machines: those of the catalog by their names, others by the
// paths of their files.
type machineShelf struct {
	snapshot func() *catalog.Snapshot
	// dir is the working directory.
	dir string
	// gate says whether a machine of a source may run; nil lets all.
	gate func(*shelved) error
}

var _ driver.Machines = (*machineShelf)(nil)

// newMachineShelf reads the catalog for one command.
func (a *app) newMachineShelf(ctx context.Context, cfg *config.Config) (*machineShelf, error) {
	cat, err := a.openCatalog(ctx, cfg, false)
	if err != nil {
		return nil, err
	}
	defer cat.Close()
	return &machineShelf{snapshot: cat.Snapshot, dir: a.host.Dir, gate: a.machineGate(cfg)}, nil
}

// openShelf loads the settings and reads the catalog for one command.
func (a *app) openShelf(ctx context.Context) (*config.Config, *machineShelf, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	shelf, err := a.newMachineShelf(ctx, cfg)
	return cfg, shelf, err
}

// shelved is a machine of a source.
type shelved struct {
	// Definition is nil where it does not load; Found says why.
	Definition *machines.Definition
	Found      []guideway.Diagnostic
	Name       string
	Source     string
	Path       string
	Revision   string
	Stale      bool
	Overrides  []catalog.Overridden
	// Lint gives what a linter says of a machine that loads.
	Lint func() []guideway.Diagnostic
	// LintOffers gives what there is to say of its tools.
	LintOffers func(machines.AvailableTools) []guideway.Diagnostic
	// demonstration gives what is shipped for a demonstration; CodeNotFound where
	// there is nothing.
	demonstration func() ([]byte, error)
	// from is the source; nil where a file was named.
	from *catalog.SourceInfo
}

func shelvedOf(e *catalog.MachineEntry) *shelved {
	return &shelved{
		Definition: e.Definition, Found: e.Found, Name: e.Name, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale, Overrides: e.Overrides,
		Lint: e.Lint, LintOffers: e.LintOffers, demonstration: e.Recording, from: &e.Source,
	}
}

// all gives the machines that are served, in order of their names, and all that
// does not load.
func (s *machineShelf) all() (served, broken []*shelved) {
	for _, e := range s.snapshot().Machines() {
		one := shelvedOf(e)
		if len(e.Found) > 0 {
			broken = append(broken, one)
		}
		if e.Definition != nil {
			served = append(served, one)
		}
	}
	return served, broken
}

// find gives a machine by its name, or by the path of its file or directory. One
// that does not load is given with the error.
func (s *machineShelf) find(name string) (*shelved, error) {
	if strings.ContainsAny(name, `/\`) || isDefinitionName(name) {
		return s.open(name)
	}
	e, err := s.snapshot().Machine(name)
	if e == nil {
		return nil, err
	}
	return shelvedOf(e), err
}

// open reads the machine of a file or directory.
func (s *machineShelf) open(name string) (*shelved, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "read %s: %w", name, errors.Unwrap(err))
	}
	defer root.Close()
	files := regularfile.In(root)
	l := machines.LoadFile(files, filepath.Dir(name), filepath.Base(path))
	one := &shelved{Definition: l.Definition, Found: l.Found, Name: l.Claims, Source: "file", Path: l.Path, Lint: l.Lint}
	one.LintOffers = func(o machines.AvailableTools) []guideway.Diagnostic {
		return machines.LintAvailableTools(l.Files(), o)
	}
	if one.Definition == nil {
		return one, doesNotLoad(name, one.Found[0])
	}
	recording, err := fs.ReadFile(files, machines.RecordingOf(l, filepath.Dir(name)))
	one.demonstration = func() ([]byte, error) {
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeNotFound, "the machine %q has no recording", one.Name).
				WithFix("run it with a model: --model openai:NAME, or --model scripted:FILE")
		}
		return recording, nil
	}
	return one, nil
}

// doesNotLoad tells the first thing that is wrong with a machine.
func doesNotLoad(name string, d guideway.Diagnostic) error {
	where := d.File
	if d.Line > 0 {
		where = fmt.Sprintf("%s:%d", d.File, d.Line)
	}
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "the machine %q does not load: %s: %s", name, where, d.Message)
	err.Fix = d.Fix
	return err
}

// Machine implements driver.Machines. It gives those of the catalog alone: the name
// may be a client's, or another machine's, and a path would lead to any file, whether
// or not somebody has approved what is in it. Who names a file at a terminal hands
// over the definition.
func (s *machineShelf) Machine(_ context.Context, name string) (*machines.Definition, error) {
	e, err := s.snapshot().Machine(name)
	if err != nil {
		return nil, err
	}
	one := shelvedOf(e)
	return one.Definition, s.mayRun(one)
}

// machineKey is what an approval of a machine is of.
func machineKey(from catalog.SourceInfo, name string) approval.Key {
	return approval.Key{Kind: approval.KindMachine, Source: from.Key(), Subject: name}
}

// machineGate says whether the script of a machine may run: one that came from
// elsewhere, or with a project, when a person has approved it.
func (a *app) machineGate(cfg *config.Config) func(*shelved) error {
	return func(one *shelved) error {
		if !isReviewed(*one.from) {
			return nil
		}
		store, err := openApprovals(cfg, a.host.currentTime)
		if err != nil {
			return err
		}
		records, err := store.List()
		if err != nil {
			return err
		}
		if records.Approves(machineKey(*one.from, one.Name), one.Definition.Hash) {
			return nil
		}
		return guideway.Errorf(guideway.CodeForbidden, "the machine %q came with %s, and nobody has approved its script as it is now", one.Name, one.from.Name).
			WithFix("have a person read it: guideway machine approve %s", one.Name)
	}
}

// isReviewed says whether scripts of a source wait for an approval: those of a project do,
// which is whatever directory one happens to work in, unless it is said to be trusted.
func isReviewed(from catalog.SourceInfo) bool {
	return from.WithLevel().Level == catalog.LevelReview
}

// mayRun says whether the script of a machine may run.
func (s *machineShelf) mayRun(one *shelved) error {
	if s.gate == nil || one.from == nil || one.Definition == nil {
		return nil
	}
	return s.gate(one)
}
