package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// HookEntry is a hook graph that is served, or one that would be if it loaded.
// Hook graphs have ids of their own, and precedence with a difference: what came
// with a project, or from another machine, never takes the place of what this user
// has, since a graph may be there to guard something.
type HookEntry struct {
	ID string
	// Graph is the graph; nil where none ever loaded.
	Graph *hookdef.Graph
	// Linked is the graph with its scripts; nil where one is missing. Problem
	// says why Graph or Linked is nil.
	Linked  *hookdef.Linked
	Problem string
	Source  SourceInfo
	// Path is where a person finds the document.
	Path string
	// Revision is what of the source this is; "" where the source has none.
	Revision string
	// Stale says that the document no longer loads, and that this is the last
	// version that did.
	Stale bool
	// Overrides are the graphs with the same id that are not served, the nearest
	// one first.
	Overrides []Overridden
}

// Lint gives the findings about a graph that loads. They have no lines: the
// document is not kept.
func (e *HookEntry) Lint() []guideway.Diagnostic {
	if e.Graph == nil {
		return nil
	}
	root, _ := doc.Parse(e.Graph.File, []byte(e.Graph.Canonical), doc.Limits{MaxBytes: len(e.Graph.Canonical)})
	found := hookdef.Lint(e.Graph, root, e.Graph.File)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}

// Own says whether the graph is as good as this user's: it comes with the program,
// lies where this user put it, or its source is trusted as much.
func (e *HookEntry) Own() bool { return e.Source.Own() }

// Own says whether what the source gives is as good as this user's.
func (i SourceInfo) Own() bool { return i.WithLevel().Level == LevelTrusted }

// Key says where definitions come from so that no other place says the same: by
// the name of the source and, where it has one, its location.
func (i SourceInfo) Key() string {
	if i.Location == "" {
		return i.Name
	}
	return i.Name + ":" + i.Location
}

// HookModule is a module of the library of hooks.
type HookModule struct {
	hookdef.Module
	Source SourceInfo
	Path   string
}

// Hooks gives the hook graphs, in order of their ids.
func (s *Snapshot) Hooks() []*HookEntry { return s.hooks }

// HookModules gives the modules of the library of hooks, lowest rank first.
func (s *Snapshot) HookModules() []HookModule { return s.modules }

// Hook gives the hook graph of an id. If there is none the code of the error is
// guideway.CodeNotFound; one that does not load is given as it is.
func (s *Snapshot) Hook(id string) (*HookEntry, error) {
	for _, e := range s.hooks {
		if e.ID == id {
			return e, nil
		}
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no hook graph with the id %q", id).WithFix("guideway hooks list")
}

// HookOf is Hook which also takes "id@source": the graph that a source has, even where
// that of another one is served. It is for looking at; what is not served guards
// nothing.
func (s *Snapshot) HookOf(id string) (*HookEntry, error) {
	if id, source, at := strings.Cut(id, "@"); at {
		return ofSource("hook graph", id, source, s.allHooks, func(e *HookEntry) (string, string) { return e.ID, e.Source.Name })
	}
	return s.Hook(id)
}

// hooked is a document of the dialect that loads.
type hooked struct {
	graph  *hookdef.Graph
	module *hookdef.Module
}

// id is the id of the document.
func (h *hooked) id() string {
	if h.graph != nil {
		return h.graph.ID
	}
	return h.module.ID
}

// parseHook reads a hook graph or a module; nil where it does not load.
func parseHook(p hookdef.Place, file string, data []byte) (*hooked, []guideway.Diagnostic) {
	if p.Plain {
		return &hooked{module: hookdef.PlainModule(p, file, data)}, nil
	}
	document, found := workflow.ParseAs(file, data, workflow.As{Dialect: guideway.DialectHooks, Kind: phases.Kind(p.Kind)})
	if document == nil {
		return nil, found
	}
	return &hooked{graph: document.Graph, module: document.Module}, found
}

// hang makes the hook graphs of a snapshot, and their library, from states in
// order of rank.
func (s *Snapshot) hang(states []state) {
	byID := map[string]*HookEntry{}
	for i := range states {
		source := &states[i]
		s.hangModules(source)
		own := map[string]string{}
		for _, r := range source.records {
			if r.hookPlace.Kind != hookdef.KindGraph {
				continue
			}
			entry := s.hookEntry(source, r)
			if first, twice := own[entry.ID]; twice {
				if entry.Graph != nil {
					s.diagnostics = append(s.diagnostics, problem("id-duplicate", r.path,
						fmt.Sprintf("the id %q is taken by %s, which is served; this file is not", entry.ID, first), "give one of the two another id"))
				}
				continue
			}
			if entry.Graph != nil {
				s.allHooks = append(s.allHooks, entry)
			}
			if s.hangs(entry, byID[entry.ID]) {
				own[entry.ID] = r.path
				byID[entry.ID] = entry
			}
		}
	}
	for _, entry := range byID {
		s.hooks = append(s.hooks, entry)
	}
	slices.SortFunc(s.hooks, func(a, b *HookEntry) int { return strings.Compare(a.ID, b.ID) })
}

// hangs says whether a graph takes the place of the one below it, if there is one.
func (s *Snapshot) hangs(entry, below *HookEntry) bool {
	switch {
	case below == nil:
		return true
	case entry.Graph == nil && below.Graph != nil:
		s.diagnostics = append(s.diagnostics, notice("override-broken", entry.Path,
			fmt.Sprintf("%q is served from %s (%s), because this file did not load", entry.ID, below.Source.Name, below.Path), "mend this file to have it served"))
		return false
	case below.Own() && !entry.Own():
		s.diagnostics = append(s.diagnostics, notice("hook-id-taken", entry.Path,
			fmt.Sprintf("the hook graph %q of %s (%s) is served; what came with a project does not take its place", entry.ID, below.Source.Name, below.Path),
			"give this one another id"))
		return false
	}
	if below.Graph != nil {
		o := Overridden{Source: below.Source, Path: below.Path, Revision: below.Revision, Version: below.Graph.Version}
		if below.Linked != nil {
			o.Hash = below.Linked.Pin
		}
		entry.Overrides = append([]Overridden{o}, below.Overrides...)
	}
	return true
}

// hookEntry makes the entry of a record, linked with the modules that are there so
// far: those of its own source and of lower ranks. A higher rank has no say in the
// scripts of this one.
func (s *Snapshot) hookEntry(source *state, r *record) *HookEntry {
	entry := &HookEntry{ID: r.claims, Source: source.info, Path: r.path, Revision: r.revision, Stale: r.broken}
	if r.hook == nil {
		entry.Stale, entry.Problem = false, firstOf(r.found)
		return entry
	}
	entry.ID, entry.Graph = r.hook.graph.ID, r.hook.graph
	modules := make([]hookdef.Module, 0, len(s.modules))
	for _, m := range slices.Backward(s.modules) {
		modules = append(modules, m.Module)
	}
	linked, found := hookdef.Link(entry.Graph, hookdef.NewLibrary(modules))
	s.diagnostics = append(s.diagnostics, found...)
	if entry.Linked = linked; linked == nil {
		entry.Problem = firstOf(found)
	}
	return entry
}

// firstOf is the first finding, with its line.
func firstOf(found []guideway.Diagnostic) string {
	if len(found) == 0 {
		return ""
	}
	if found[0].Line > 0 {
		return fmt.Sprintf("line %d: %s", found[0].Line, found[0].Message)
	}
	return found[0].Message
}

// hangModules adds the modules of a source to the library.
func (s *Snapshot) hangModules(source *state) {
	own := map[string]string{}
	for _, r := range source.records {
		if r.hook == nil || r.hook.module == nil {
			continue
		}
		id := r.hook.module.ID
		if first, twice := own[id]; twice {
			s.diagnostics = append(s.diagnostics, problem("id-duplicate", r.path,
				fmt.Sprintf("the module %q is %s; this file is not found by that name", id, first), "give one of the two another id"))
			continue
		}
		own[id] = r.path
		s.modules = append(s.modules, HookModule{Module: *r.hook.module, Source: source.info, Path: r.path})
	}
}

// sameHooks says whether two snapshots have the same graphs.
func sameHooks(before, after *Snapshot) bool {
	return slices.EqualFunc(before.hooks, after.hooks, func(a, b *HookEntry) bool {
		if a.ID != b.ID || a.Source != b.Source || a.Problem != b.Problem || (a.Linked == nil) != (b.Linked == nil) {
			return false
		}
		return a.Linked == nil || a.Linked.Pin == b.Linked.Pin && a.Graph.Canonical == b.Graph.Canonical
	})
}
