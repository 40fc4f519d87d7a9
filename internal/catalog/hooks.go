package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// HookEntry is a served hook graph, or one that would be served if it loaded. Hook graphs
// have their own ids and a stricter precedence: a graph from a project or another machine
// never replaces one of this user, since the user's graph may be a guard.
type HookEntry struct {
	ID string
	// Graph is the graph; nil if no version loaded.
	Graph *hookdef.Graph
	// Linked is the graph with its scripts; nil if the graph cannot be linked. Problem is
	// the reason why Graph or Linked is nil.
	Linked  *hookdef.Linked
	Problem string
	Source  SourceInfo
	// Path is the location of the document for a person.
	Path string
	// Revision is the revision of the source; "" if it has none.
	Revision string
	// Stale reports that the document no longer loads, and that this is its last good
	// version.
	Stale bool
	// Overrides are the graphs with the same id that are not served, in order of
	// precedence.
	Overrides []Overridden
}

// Lint returns the diagnostics of a loaded graph. They have no lines, because the document
// is not kept.
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

// isCopyOf reports whether both graphs have the same text and scripts.
func (e *HookEntry) isCopyOf(other *HookEntry) bool {
	return e.Linked != nil && other.Linked != nil && e.Graph.Canonical == other.Graph.Canonical && e.Linked.Pin == other.Linked.Pin
}

// Own reports whether the source of the graph has the level trusted.
func (e *HookEntry) Own() bool { return e.Source.Own() }

// Own reports whether the source has the level trusted: its content is trusted like files of
// this user.
func (i SourceInfo) Own() bool { return i.WithLevel().Level == LevelTrusted }

// Key identifies a source uniquely: by its name and, if it has one, its location.
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

// Hooks returns the hook graphs, sorted by id.
func (s *Snapshot) Hooks() []*HookEntry { return s.hooks }

// HookModules returns the modules of the hook library, lowest rank first.
func (s *Snapshot) HookModules() []HookModule { return s.modules }

// Hook returns the hook graph with an id, even if it does not load. An unknown id is an
// error with guideway.CodeNotFound.
func (s *Snapshot) Hook(id string) (*HookEntry, error) {
	for _, e := range s.hooks {
		if e.ID == id {
			return e, nil
		}
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no hook graph with the id %q", id).WithFix("guideway hooks list")
}

// HookOf is like Hook and also accepts "id@source": the graph of a source, even if another
// source's graph is served. It is for display only, because a graph that is not served
// guards nothing.
func (s *Snapshot) HookOf(id string) (*HookEntry, error) {
	if id, source, at := strings.Cut(id, "@"); at {
		return findBySource(id, source, s.allHooks, func(e *HookEntry) (string, string) { return e.ID, e.Source.Name },
			guideway.Errorf(guideway.CodeNotFound, "there is no hook graph %q in the source %q", id, source))
	}
	return s.Hook(id)
}

// loadedHook is a loaded document of the hooks dialect.
type loadedHook struct {
	graph  *hookdef.Graph
	module *hookdef.Module
}

// hookID returns the id of the document.
func (h *loadedHook) hookID() string {
	if h.graph != nil {
		return h.graph.ID
	}
	return h.module.ID
}

// parseHook reads a hook graph or a module; nil if it does not load.
func parseHook(p hookdef.Place, file string, data []byte) (*loadedHook, []guideway.Diagnostic) {
	if p.Plain {
		return &loadedHook{module: hookdef.PlainModule(p, file, data)}, nil
	}
	document, found := workflow.ParseAs(file, data, workflow.As{Dialect: guideway.DialectHooks, Kind: phases.Kind(p.Kind)})
	if document == nil {
		return nil, found
	}
	return &loadedHook{graph: document.Graph, module: document.Module}, found
}

// addHooks adds the hook graphs and the modules of all sources to a snapshot; states are in
// order of rank.
func (s *Snapshot) addHooks(states []state) {
	byID := map[string]*HookEntry{}
	for i := range states {
		source := &states[i]
		s.addHookModules(source)
		own := map[string]string{}
		for _, r := range source.records {
			if r.hookPlace.Kind != hookdef.KindGraph {
				continue
			}
			entry := s.newHookEntry(source, r)
			if first, twice := own[entry.ID]; twice {
				if entry.Graph != nil {
					s.diagnostics = append(s.diagnostics, newError("id-duplicate", r.path,
						fmt.Sprintf("the id %q is already used by %s, which is served; this file is not", entry.ID, first), "change one of the two ids"))
				}
				continue
			}
			if entry.Graph != nil {
				s.allHooks = append(s.allHooks, entry)
			}
			if s.replacesHook(entry, byID[entry.ID]) {
				own[entry.ID] = r.path
				byID[entry.ID] = entry
			}
		}
	}
	s.hooks = slices.SortedFunc(maps.Values(byID), func(a, b *HookEntry) int { return strings.Compare(a.ID, b.ID) })
}

// replacesHook reports whether entry replaces below, the graph with the same id in a source
// of lower rank. below is nil if there is no such graph.
func (s *Snapshot) replacesHook(entry, below *HookEntry) bool {
	switch {
	case below == nil:
		return true
	case entry.Graph == nil && below.Graph != nil:
		s.diagnostics = append(s.diagnostics, newWarning("override-broken", entry.Path,
			fmt.Sprintf("%q is served from %s (%s), because this file did not load", entry.ID, below.Source.Name, below.Path), "fix this file"))
		return false
	case below.Own() && !entry.Own():
		if entry.isCopyOf(below) {
			return false
		}
		s.diagnostics = append(s.diagnostics, newWarning("hook-id-taken", entry.Path,
			fmt.Sprintf("the hook graph %q of %s (%s) is served; a graph from an untrusted source cannot replace it", entry.ID, below.Source.Name, below.Path),
			"change the id of this graph"))
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

// newHookEntry returns the entry of a record, linked with the modules added so far: the
// modules of the same source and of sources of lower rank. A source of higher rank must not
// provide scripts for this graph.
func (s *Snapshot) newHookEntry(source *state, r *record) *HookEntry {
	entry := &HookEntry{ID: r.guessedID, Source: source.info, Path: r.path, Revision: r.revision, Stale: r.broken}
	if r.hook == nil {
		entry.Stale, entry.Problem = false, firstMessage(r.found)
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
		entry.Problem = firstMessage(found)
	}
	return entry
}

// firstMessage returns the message of the first diagnostic with its line.
func firstMessage(found []guideway.Diagnostic) string {
	if len(found) == 0 {
		return ""
	}
	if found[0].Line > 0 {
		return fmt.Sprintf("line %d: %s", found[0].Line, found[0].Message)
	}
	return found[0].Message
}

// addHookModules adds the modules of a source to the library.
func (s *Snapshot) addHookModules(source *state) {
	own := map[string]string{}
	for _, r := range source.records {
		if r.hook == nil || r.hook.module == nil {
			continue
		}
		id := r.hook.module.ID
		if first, twice := own[id]; twice {
			s.diagnostics = append(s.diagnostics, newError("id-duplicate", r.path,
				fmt.Sprintf("the module id %q is already used by %s; this file is ignored", id, first), "change one of the two ids"))
			continue
		}
		own[id] = r.path
		s.modules = append(s.modules, HookModule{Module: *r.hook.module, Source: source.info, Path: r.path})
	}
}

// sameHooks reports whether two snapshots have the same graphs.
func sameHooks(before, after *Snapshot) bool {
	return slices.EqualFunc(before.hooks, after.hooks, func(a, b *HookEntry) bool {
		if a.ID != b.ID || a.Source != b.Source || a.Problem != b.Problem || (a.Linked == nil) != (b.Linked == nil) {
			return false
		}
		return a.Linked == nil || a.Linked.Pin == b.Linked.Pin && a.Graph.Canonical == b.Graph.Canonical
	})
}
