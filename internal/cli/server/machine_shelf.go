package server

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// MachineShelf finds machines: those of the catalog by their names, others by the
// paths of their files.
type MachineShelf struct {
	Snapshot func() *catalog.Snapshot
	// dir is the working directory.
	dir string
	// gate says whether a machine of a source may run; nil lets all.
	gate func(*Shelved) error
}

var _ driver.Machines = (*MachineShelf)(nil)

// NewMachineShelf reads the catalog for one command.
func NewMachineShelf(ctx context.Context, a *app.App, cfg *config.Config) (*MachineShelf, error) {
	cat, err := a.OpenCatalog(ctx, cfg, false)
	if err != nil {
		return nil, err
	}
	defer cat.Close()
	return &MachineShelf{Snapshot: cat.Snapshot, dir: a.Host.Dir, gate: machineGate(a, cfg)}, nil
}

// OpenShelf loads the settings and reads the catalog for one command.
func OpenShelf(ctx context.Context, a *app.App) (*config.Config, *MachineShelf, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	shelf, err := NewMachineShelf(ctx, a, cfg)
	return cfg, shelf, err
}

// Shelved is a machine of a source.
type Shelved struct {
	// Definition is nil where it does not load; Found says why.
	Definition *machinedef.Definition
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
	LintOffers func(machinedef.AvailableTools) []guideway.Diagnostic
	// Demonstration gives what is shipped for a demonstration; CodeNotFound where
	// there is nothing.
	Demonstration func() ([]byte, error)
	// From is the source; nil where a file was named.
	From *catalog.SourceInfo
}

func shelvedOf(e *catalog.MachineEntry) *Shelved {
	return &Shelved{
		Definition: e.Definition, Found: e.Found, Name: e.Name, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale, Overrides: e.Overrides,
		Lint: e.Lint, LintOffers: e.LintOffers, Demonstration: e.Recording, From: &e.Source,
	}
}

// All gives the machines that are served, in order of their names, and all that
// does not load.
func (s *MachineShelf) All() (served, broken []*Shelved) {
	for _, e := range s.Snapshot().Machines() {
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

// Find gives a machine by its name, or by the path of its file or directory. One
// that does not load is given with the error.
func (s *MachineShelf) Find(name string) (*Shelved, error) {
	if strings.ContainsAny(name, `/\`) || app.HasDefinitionExt(name) {
		return s.open(name)
	}
	e, err := s.Snapshot().Machine(name)
	if e == nil {
		return nil, err
	}
	return shelvedOf(e), err
}

// open reads the machine of a file or directory.
func (s *MachineShelf) open(name string) (*Shelved, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "read %s: %w", name, errors.Unwrap(err))
	}
	defer root.Close()
	files := safeopen.In(root)
	l := machinedef.LoadFile(files, filepath.Dir(name), filepath.Base(path))
	one := &Shelved{Definition: l.Definition, Found: l.Found, Name: l.Claims, Source: "file", Path: l.Path, Lint: l.Lint}
	one.LintOffers = func(o machinedef.AvailableTools) []guideway.Diagnostic {
		return machinedef.LintAvailableTools(l.Files(), o)
	}
	if one.Definition == nil {
		return one, doesNotLoad(name, one.Found[0])
	}
	recording, err := fs.ReadFile(files, machinedef.RecordingOf(l, filepath.Dir(name)))
	one.Demonstration = func() ([]byte, error) {
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
func (s *MachineShelf) Machine(_ context.Context, name string) (*machinedef.Definition, error) {
	e, err := s.Snapshot().Machine(name)
	if err != nil {
		return nil, err
	}
	one := shelvedOf(e)
	return one.Definition, s.MayRun(one)
}

// MachineKey is what an approval of a machine is of.
func MachineKey(from catalog.SourceInfo, name string) approval.Key {
	return approval.Key{Kind: approval.KindMachine, Source: from.Key(), Subject: name}
}

// machineGate says whether the script of a machine may run: one that came from
// elsewhere, or with a project, when a person has approved it.
func machineGate(a *app.App, cfg *config.Config) func(*Shelved) error {
	return func(one *Shelved) error {
		if !IsReviewed(*one.From) {
			return nil
		}
		store, err := app.OpenApprovals(cfg, a.Host.CurrentTime)
		if err != nil {
			return err
		}
		records, err := store.List()
		if err != nil {
			return err
		}
		if records.Approves(MachineKey(*one.From, one.Name), one.Definition.Hash) {
			return nil
		}
		return guideway.Errorf(guideway.CodeForbidden, "the machine %q came with %s, and nobody has approved its script as it is now", one.Name, one.From.Name).
			WithFix("have a person read it: guideway machine approve %s", one.Name)
	}
}

// IsReviewed says whether scripts of a source wait for an approval: those of a project do,
// which is whatever directory one happens to work in, unless it is said to be trusted.
func IsReviewed(from catalog.SourceInfo) bool {
	return from.WithLevel().Level == catalog.LevelReview
}

// MayRun says whether the script of a machine may run.
func (s *MachineShelf) MayRun(one *Shelved) error {
	if s.gate == nil || one.From == nil || one.Definition == nil {
		return nil
	}
	return s.gate(one)
}
