package server

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
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// MachineResolver finds machines of the catalog by name, and others by the path of their
// file.
type MachineResolver struct {
	Snapshot func() *catalog.Snapshot
	host     *app.Host
	// checkApproval returns an error if a machine of a source may not run. If it is nil,
	// every machine may run.
	checkApproval func(*ResolvedMachine) error
}

var _ driver.Machines = (*MachineResolver)(nil)

// NewMachineResolver returns a resolver on a snapshot of the catalog, for one command.
func NewMachineResolver(ctx context.Context, a *app.App, cfg *config.Config) (*MachineResolver, error) {
	cat, err := a.OpenCatalog(ctx, cfg, false)
	if err != nil {
		return nil, err
	}
	defer cat.Close()
	return &MachineResolver{Snapshot: cat.Snapshot, host: a.Host, checkApproval: newApprovalCheck(a, cfg)}, nil
}

// OpenMachineResolver loads the settings and returns a resolver for one command.
func OpenMachineResolver(ctx context.Context, a *app.App) (*config.Config, *MachineResolver, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	shelf, err := NewMachineResolver(ctx, a, cfg)
	return cfg, shelf, err
}

// ResolvedMachine is a machine from a source or a file.
type ResolvedMachine struct {
	// Definition is nil if the machine does not load. Diagnostics has the reason.
	Definition  *machinedef.Definition
	Diagnostics []guideway.Diagnostic
	Name        string
	Source      string
	Path        string
	Revision    string
	Stale       bool
	Overrides   []catalog.Overridden
	// Lint returns the diagnostics of the linter for a machine that loads.
	Lint func() []guideway.Diagnostic
	// LintAvailableTools returns the diagnostics about the tools of the machine.
	LintAvailableTools func(machinedef.AvailableTools) []guideway.Diagnostic
	// Recording returns the recording for --demo, or CodeNotFound.
	Recording func() ([]byte, error)
	// SourceInfo is nil for a machine that was loaded by path.
	SourceInfo *catalog.SourceInfo
}

func newResolvedMachine(e *catalog.MachineEntry) *ResolvedMachine {
	return &ResolvedMachine{
		Definition: e.Definition, Diagnostics: e.Found, Name: e.Name, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale, Overrides: e.Overrides,
		Lint: e.Lint, LintAvailableTools: e.LintOffers, Recording: e.Recording, SourceInfo: &e.Source,
	}
}

// All returns the machines with a definition, and the machines whose current files have
// errors. A stale machine is in both lists.
func (s *MachineResolver) All() (served, broken []*ResolvedMachine) {
	for _, e := range s.Snapshot().Machines() {
		one := newResolvedMachine(e)
		if len(e.Found) > 0 {
			broken = append(broken, one)
		}
		if e.Definition != nil {
			served = append(served, one)
		}
	}
	return served, broken
}

// Find returns a machine by its name, or by the path of its file or directory. A machine
// that does not load is returned with the error.
func (s *MachineResolver) Find(name string) (*ResolvedMachine, error) {
	if strings.ContainsAny(name, `/\`) || app.HasDefinitionExt(name) {
		return s.loadFile(name)
	}
	e, err := s.Snapshot().Machine(name)
	if e == nil {
		return nil, err
	}
	return newResolvedMachine(e), err
}

// loadFile loads the machine of a file or directory.
func (s *MachineResolver) loadFile(name string) (*ResolvedMachine, error) {
	path := s.host.Abs(name)
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, app.ReadError(name, err)
	}
	defer root.Close()
	files := safeopen.In(root)
	l := machinedef.LoadFile(files, filepath.Dir(name), filepath.Base(path))
	one := &ResolvedMachine{Definition: l.Definition, Diagnostics: l.Found, Name: l.Claims, Source: "file", Path: l.Path, Lint: l.Lint}
	one.LintAvailableTools = func(o machinedef.AvailableTools) []guideway.Diagnostic {
		return machinedef.LintAvailableTools(l.Files(), o)
	}
	if one.Definition == nil {
		return one, loadError(name, one.Diagnostics[0])
	}
	recording, err := fs.ReadFile(files, machinedef.RecordingOf(l, filepath.Dir(name)))
	one.Recording = func() ([]byte, error) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, guideway.Errorf(guideway.CodeNotFound, "the machine %q has no recording", one.Name).
				WithFix("run the machine with a model: guideway machine run %s --model openai:NAME, anthropic:NAME or scripted:FILE", name)
		}
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "read the recording of the machine %q: %w", one.Name, err).
				WithFix("make the recording readable, or run the machine with a model: guideway machine run %s --model openai:NAME, anthropic:NAME or scripted:FILE", name)
		}
		return recording, nil
	}
	return one, nil
}

// loadError returns the error for a machine that does not load, with its first diagnostic.
func loadError(name string, d guideway.Diagnostic) error {
	where := d.File
	if d.Line > 0 {
		where = fmt.Sprintf("%s:%d", d.File, d.Line)
	}
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "the machine %q does not load: %s: %s", name, where, d.Message)
	err.Fix = d.Fix
	return err
}

// Machine implements driver.Machines. It only finds machines of the catalog: the name may
// come from a client or another machine, and a path could name any file, approved or not. A
// command that takes a path from the user passes the definition instead.
func (s *MachineResolver) Machine(_ context.Context, name string) (*machinedef.Definition, error) {
	e, err := s.Snapshot().Machine(name)
	if err != nil {
		return nil, err
	}
	one := newResolvedMachine(e)
	return one.Definition, s.CheckApproval(one)
}

// MachineApprovalKey returns the key of the approval of a machine.
func MachineApprovalKey(from catalog.SourceInfo, name string) approval.Key {
	return approval.Key{Kind: approval.KindMachine, Source: from.Key(), Subject: name}
}

// newApprovalCheck returns a function that returns an error if a machine needs an approval
// and its current version has none.
func newApprovalCheck(a *app.App, cfg *config.Config) func(*ResolvedMachine) error {
	return func(one *ResolvedMachine) error {
		if !NeedsApproval(*one.SourceInfo) {
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
		if records.Approves(MachineApprovalKey(*one.SourceInfo, one.Name), one.Definition.Hash) {
			return nil
		}
		return guideway.Errorf(guideway.CodeForbidden, "the machine %q is from the source %s, and its current version is not approved", one.Name, one.SourceInfo.Name).
			WithFix("review and approve the machine: guideway machine approve %s", one.Name)
	}
}

// NeedsApproval reports whether the scripts of a source need an approval. Scripts of a
// project need one unless the project is configured as trusted, because a project is any
// directory in which the user works.
func NeedsApproval(from catalog.SourceInfo) bool {
	return from.WithLevel().Level == catalog.LevelReview
}

// CheckApproval returns an error if a machine may not run.
func (s *MachineResolver) CheckApproval(one *ResolvedMachine) error {
	if s.checkApproval == nil || one.SourceInfo == nil || one.Definition == nil {
		return nil
	}
	return s.checkApproval(one)
}
