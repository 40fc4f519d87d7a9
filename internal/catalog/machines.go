package catalog

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
)

// MachineEntry is a served agent machine, or one that would be served if it loaded.
// Machines have their own names; a workflow may have the same name.
type MachineEntry struct {
	// Name is the name of the machine; for a broken one, the name in its file.
	Name string
	// Definition is nil if no version loaded; Problem is then the reason.
	Definition *machinedef.Definition
	Problem    string
	// Found are the errors of a machine that does not load.
	Found  []guideway.Diagnostic
	Source SourceInfo
	// Path is the location of the configuration for a person.
	Path string
	// Revision is the revision of the source; "" if it has none.
	Revision string
	// Stale reports that the machine no longer loads, and that this is its last good
	// version.
	Stale bool
	// Overrides are the machines with the same name that are not served, in order of
	// precedence.
	Overrides []Overridden

	loaded    machinedef.Loaded
	recording func() ([]byte, error)
}

// Lint returns the diagnostics of a loaded machine. A stale machine has none.
func (e *MachineEntry) Lint() []guideway.Diagnostic {
	if e.Definition == nil || e.Stale {
		return nil
	}
	return e.loaded.Lint()
}

// LintOffers returns the diagnostics about the tools of a loaded machine, as
// machinedef.LintOffers does; none for a stale one.
func (e *MachineEntry) LintOffers(o machinedef.AvailableTools) []guideway.Diagnostic {
	if e.Definition == nil || e.Stale {
		return nil
	}
	return machinedef.LintAvailableTools(e.loaded.Files(), o)
}

// Files returns the files that the machine was read from. For a stale machine these are the
// broken files.
func (e *MachineEntry) Files() machinedef.Files { return e.loaded.Files() }

// Recording returns the recording that is shipped with the machine, or an error with
// CodeNotFound.
func (e *MachineEntry) Recording() ([]byte, error) {
	if e.recording == nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "the machine %q has no recording", e.Name).
			WithFix("run the machine with a model: guideway machine run %s --model openai:NAME, anthropic:NAME or scripted:FILE", e.Name)
	}
	return e.recording()
}

// HasRecording reports whether a recording is shipped with the machine.
func (e *MachineEntry) HasRecording() bool { return e.recording != nil }

// Machines returns the agent machines, sorted by name.
func (s *Snapshot) Machines() []*MachineEntry { return s.machines }

// Machine returns the machine with a name, or for "name@source" the machine of a source,
// even if another source's machine is served. The error has CodeInvalidDefinition if the
// machine did not load, and CodeNotFound if none exists.
func (s *Snapshot) Machine(name string) (*MachineEntry, error) {
	if name, source, at := strings.Cut(name, "@"); at {
		return findBySource(name, source, s.allMachines, func(e *MachineEntry) (string, string) { return e.Name, e.Source.Name },
			guideway.Errorf(guideway.CodeNotFound, "there is no machine %q in the source %q", name, source).WithFix("guideway machine list"))
	}
	var near []string
	for _, e := range s.machines {
		switch {
		case e.Name == name && e.Definition != nil:
			return e, nil
		case e.Name == name:
			err := guideway.Errorf(guideway.CodeInvalidDefinition, "the machine %q cannot be loaded: %s", name, e.Problem)
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

// machinesDir is the directory of a source with its agent machines.
const machinesDir = "machines"

// isMachineFile reports whether a name belongs to a machine.
func isMachineFile(name string) bool {
	rest, ok := strings.CutPrefix(name, machinesDir+"/")
	is, _ := machinedef.IsFile(rest)
	return ok && is
}

// loadedMachine is the machine of one configuration of a source.
type loadedMachine struct {
	loaded machinedef.Loaded
	// good is the last version that loaded.
	good      *machinedef.Definition
	recording func() ([]byte, error)
	revision  string
}

// assembleMachines builds the machines of a source from its files. It keeps the machines
// whose files are unchanged.
func (c *Catalog) assembleMachines(s *state, before *state) {
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
		if strings.Contains(s.info.Location, "://") { // The location is a URL.
			shown = strings.TrimSuffix(s.info.Location, "/") + "//" + machinesDir
		}
	}
	for _, l := range machinedef.LoadFiles(slices.Sorted(maps.Keys(files)), func(name string) ([]byte, error) {
		r := files[name]
		switch {
		case r == nil:
			return nil, fs.ErrNotExist
		case r.broken:
			return nil, fmt.Errorf("%s", r.found[0].Message)
		}
		return r.data, nil
	}, shown) {
		m := &loadedMachine{loaded: l, good: l.Definition}
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

// addMachines adds the machines of all sources to a snapshot; states are in order of rank.
func (s *Snapshot) addMachines(states []state) {
	byName := map[string]*MachineEntry{}
	for i := range states {
		own := map[string]string{}
		for _, m := range states[i].machines {
			s.addMachine(&states[i], m, byName, own)
		}
	}
	s.machines = slices.SortedFunc(maps.Values(byName), func(a, b *MachineEntry) int { return strings.Compare(a.Name, b.Name) })
}

// addMachine adds a machine on top of those already added. own maps the names in its source
// to their paths.
func (s *Snapshot) addMachine(source *state, m *loadedMachine, byName map[string]*MachineEntry, own map[string]string) {
	e := &MachineEntry{
		Name: m.loaded.Claims, Definition: m.good, Found: m.loaded.Found, Source: source.info, Path: m.loaded.Path, Revision: m.revision,
		Stale: m.loaded.Definition == nil && m.good != nil, loaded: m.loaded, recording: m.recording,
	}
	s.diagnostics = append(s.diagnostics, m.loaded.Found...)
	if m.good != nil {
		e.Name = m.good.Name
	} else {
		e.Problem = firstMessage(m.loaded.Found)
	}
	if e.Stale {
		s.diagnostics = append(s.diagnostics, newWarning("file-stale", e.Path,
			fmt.Sprintf("the last valid version of the machine %q is served until this program exits", e.Name),
			"fix the file, or delete it"))
	}
	if first, twice := own[e.Name]; twice {
		if e.Definition != nil {
			s.diagnostics = append(s.diagnostics, newError("id-duplicate", e.Path,
				fmt.Sprintf("the name %q is already used by %s, which is served; this machine is not", e.Name, first), "give one of the two machines a different workflow_name"))
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
		s.diagnostics = append(s.diagnostics, newWarning("override-broken", e.Path,
			fmt.Sprintf("the machine %q is served from %s (%s), because this machine did not load", e.Name, below.Source.Name, below.Path),
			"fix this machine"))
		return
	case below.Definition != nil:
		e.Overrides = append([]Overridden{{
			Source: below.Source, Path: below.Path, Revision: below.Revision, Version: below.Definition.Version, Hash: below.Definition.Hash,
		}}, below.Overrides...)
	}
	own[e.Name], byName[e.Name] = e.Path, e
}

// sameMachines reports whether two snapshots have the same machines.
func sameMachines(before, after *Snapshot) bool {
	return slices.EqualFunc(before.machines, after.machines, func(a, b *MachineEntry) bool {
		if a.Name != b.Name || a.Source != b.Source || a.Problem != b.Problem || (a.Definition == nil) != (b.Definition == nil) {
			return false
		}
		return a.Definition == nil || a.Definition.Hash == b.Definition.Hash
	})
}
