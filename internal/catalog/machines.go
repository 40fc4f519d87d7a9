package catalog

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
)

// MachineEntry is an agent machine that is served, or one that would be if it
// loaded. Machines have names of their own: one may be called as a workflow is.
type MachineEntry struct {
	// Name is the machine's, or the one that it claims.
	Name string
	// Definition is nil where none ever loaded; Problem says why.
	Definition *machinedef.Definition
	Problem    string
	// Found are the errors of what does not load.
	Found  []guideway.Diagnostic
	Source SourceInfo
	// Path is where a person finds the configuration.
	Path string
	// Revision is what of the source this is; "" where the source has none.
	Revision string
	// Stale says that the machine no longer loads, and that this is the last
	// version that did.
	Stale bool
	// Overrides are the machines with the same name that are not served, the
	// nearest one first.
	Overrides []Overridden

	loaded    machinedef.Loaded
	recording func() ([]byte, error)
}

// Lint gives the findings about a machine that loads; of one that is stale,
// nothing.
func (e *MachineEntry) Lint() []guideway.Diagnostic {
	if e.Definition == nil || e.Stale {
		return nil
	}
	return e.loaded.Lint()
}

// LintOffers gives the findings about the tools of a machine that loads, as
// machinedef.LintOffers does; of one that is stale, nothing.
func (e *MachineEntry) LintOffers(o machinedef.AvailableTools) []guideway.Diagnostic {
	if e.Definition == nil || e.Stale {
		return nil
	}
	return machinedef.LintAvailableTools(e.loaded.Files(), o)
}

// Files are what the machine was read from; of one that is stale, what does not
// load.
func (e *MachineEntry) Files() machinedef.Files { return e.loaded.Files() }

// Recording gives the recording that is shipped with the machine: CodeNotFound
// where there is none.
func (e *MachineEntry) Recording() ([]byte, error) {
	if e.recording == nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "the machine %q has no recording", e.Name).
			WithFix("run it with a model: --model openai:NAME, or --model scripted:FILE")
	}
	return e.recording()
}

// HasRecording says whether a recording is shipped with the machine.
func (e *MachineEntry) HasRecording() bool { return e.recording != nil }

// Machines gives the agent machines, in order of their names.
func (s *Snapshot) Machines() []*MachineEntry { return s.machines }

// Machine gives the machine of a name; for "name@source" that of a source, even where
// that of another one is served. If there is none the code of the error is
// CodeInvalidDefinition where one with that name did not load, else CodeNotFound.
func (s *Snapshot) Machine(name string) (*MachineEntry, error) {
	if name, source, at := strings.Cut(name, "@"); at {
		return ofSource("machine", name, source, s.allMachines, func(e *MachineEntry) (string, string) { return e.Name, e.Source.Name })
	}
	var near []string
	for _, e := range s.machines {
		switch {
		case e.Name == name && e.Definition != nil:
			return e, nil
		case e.Name == name:
			err := guideway.Errorf(guideway.CodeInvalidDefinition, "the machine %q does not load: %s", name, e.Problem)
			if len(e.Found) > 0 {
				err.Fix = e.Found[0].Fix
			}
			return e, err
		case looseKey(name) != "" && strings.Contains(looseKey(e.Name), looseKey(name)):
			near = append(near, e.Name)
		}
	}
	err := guideway.Errorf(guideway.CodeNotFound, "there is no machine %q", name).WithFix("guideway machine list")
	if len(near) > 0 {
		err = err.WithFix("did you mean %s?", strings.Join(near, " or "))
	}
	return nil, err
}

// machinesDir has the agent machines of a source.
const machinesDir = "machines"

// isMachineFile says whether a name is of a file of a machine; recording says that
// it is one that only demonstrations read.
func isMachineFile(name string) (is, recording bool) {
	rest, ok := strings.CutPrefix(name, machinesDir+"/")
	if !ok {
		return false, false
	}
	return machinedef.IsFile(rest)
}

// machined is what one configuration of a source has given.
type machined struct {
	loaded machinedef.Loaded
	// good is the last version that loaded.
	good      *machinedef.Definition
	recording func() ([]byte, error)
	revision  string
}

// assemble makes the machines of a source of the files that were read. Those of
// files that are as they were before are kept.
func (c *Catalog) assemble(s *state, before *state) {
	files := map[string]*record{}
	sum := sha256.New()
	for _, r := range s.records {
		if r.machineFile {
			files[strings.TrimPrefix(r.name, machinesDir+"/")] = r
			fmt.Fprintf(sum, "%q %x %t %q\n", r.name, r.sum, r.broken, r.revision)
		}
	}
	s.machineSum = [sha256.Size]byte(sum.Sum(nil))
	if s.machineSum == before.machineSum {
		s.machines = before.machines
		return
	}
	last := map[string]*machinedef.Definition{}
	for _, m := range before.machines {
		last[m.loaded.Path] = m.good
	}
	s.machines = nil
	shown := s.info.Name + ":" + machinesDir
	if s.info.Location != "" {
		shown = path.Join(filepath.ToSlash(s.info.Location), machinesDir)
		if strings.Contains(s.info.Location, "://") { // an address
			shown = strings.TrimSuffix(s.info.Location, "/") + "//" + machinesDir
		}
	}
	for _, l := range machinedef.LoadFiles(names(files), func(name string) ([]byte, error) {
		r := files[name]
		switch {
		case r == nil:
			return nil, fs.ErrNotExist
		case r.broken:
			return nil, fmt.Errorf("%s", r.found[0].Message)
		}
		return r.data, nil
	}, shown) {
		m := &machined{loaded: l, good: l.Definition}
		if m.good == nil {
			m.good = last[l.Path]
		}
		if r := files[strings.TrimPrefix(l.Path, shown+"/")]; r != nil {
			m.revision = r.revision
		}
		if l.Definition != nil {
			served := *l.Definition
			served.Source, served.Revision = s.info.Name, m.revision
			m.good = &served
		}
		if r := files[machinedef.RecordingOf(l, shown)]; r != nil && !r.broken {
			m.recording = func() ([]byte, error) { return r.data, nil }
		}
		s.machines = append(s.machines, m)
	}
}

func names(files map[string]*record) []string {
	out := make([]string, 0, len(files))
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// enlist makes the machines of a snapshot, from states in order of rank.
func (s *Snapshot) enlist(states []state) {
	byName := map[string]*MachineEntry{}
	for i := range states {
		own := map[string]string{}
		for _, m := range states[i].machines {
			s.enlistOne(&states[i], m, byName, own)
		}
	}
	for _, e := range byName {
		s.machines = append(s.machines, e)
	}
	slices.SortFunc(s.machines, func(a, b *MachineEntry) int { return strings.Compare(a.Name, b.Name) })
}

// enlistOne puts a machine above those that are there. own are the names that its
// source has had, with the places.
func (s *Snapshot) enlistOne(source *state, m *machined, byName map[string]*MachineEntry, own map[string]string) {
	e := &MachineEntry{
		Name: m.loaded.Claims, Definition: m.good, Found: m.loaded.Found, Source: source.info, Path: m.loaded.Path, Revision: m.revision,
		Stale: m.loaded.Definition == nil && m.good != nil, loaded: m.loaded, recording: m.recording,
	}
	s.diagnostics = append(s.diagnostics, m.loaded.Found...)
	if m.good != nil {
		e.Name = m.good.Name
	} else {
		e.Problem = firstOf(m.loaded.Found)
	}
	if e.Stale {
		s.diagnostics = append(s.diagnostics, notice("file-stale", e.Path,
			fmt.Sprintf("the last version of the machine %q that loaded goes on serving until this program ends", e.Name),
			"mend the file, or delete it to end the serving"))
	}
	if first, twice := own[e.Name]; twice {
		if e.Definition != nil {
			s.diagnostics = append(s.diagnostics, problem("id-duplicate", e.Path,
				fmt.Sprintf("the name %q is taken by %s, which is served; this machine is not", e.Name, first), "give one of the two another workflow_name"))
		}
		return
	}
	if e.Definition != nil {
		s.allMachines = append(s.allMachines, e)
	}
	below := byName[e.Name]
	switch {
	case below == nil:
	case e.Definition == nil && below.Definition != nil:
		s.diagnostics = append(s.diagnostics, notice("override-broken", e.Path,
			fmt.Sprintf("the machine %q is served from %s (%s), because this one did not load", e.Name, below.Source.Name, below.Path),
			"mend this file to have it served"))
		return
	case below.Definition != nil:
		e.Overrides = append([]Overridden{{
			Source: below.Source, Path: below.Path, Revision: below.Revision, Version: below.Definition.Version, Hash: below.Definition.Hash,
		}}, below.Overrides...)
	}
	own[e.Name], byName[e.Name] = e.Path, e
}

// sameMachines says whether two snapshots have the same machines.
func sameMachines(before, after *Snapshot) bool {
	return slices.EqualFunc(before.machines, after.machines, func(a, b *MachineEntry) bool {
		if a.Name != b.Name || a.Source != b.Source || a.Problem != b.Problem || (a.Definition == nil) != (b.Definition == nil) {
			return false
		}
		return a.Definition == nil || a.Definition.Hash == b.Definition.Hash
	})
}
