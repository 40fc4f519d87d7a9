package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Snapshot is an immutable state of the catalog. The results of its methods must not be
// changed.
type Snapshot struct {
	entries     []*Entry // sorted by id
	byID        map[string]*Entry
	all         map[string][]*Entry // the definitions of each id, the served one last
	broken      map[string]*record  // broken has broken documents by their guessed ids and file names, if no other document serves the id.
	library     *library.Library
	hooks       []*HookEntry        // sorted by id
	allHooks    []*HookEntry        // allHooks are all graphs that loaded, lowest rank first.
	modules     []HookModule        // lowest rank first
	machines    []*MachineEntry     // sorted by name
	allMachines []*MachineEntry     // allMachines are all machines that loaded, lowest rank first.
	published   []publishedDocument // published are the documents that may be published, lowest rank first.
	diagnostics []guideway.Diagnostic
	sources     []SourceStatus
}

// Entry is a definition in lists.
type Entry struct {
	Head
	Source SourceInfo
	// Path is the location of the document for a person.
	Path string
	// Revision is the revision of the source; "" if it has none.
	Revision string
	// Stale reports that the document no longer loads, and that this is its last good
	// version.
	Stale bool
	// Overrides are the definitions with the same id that are not served, in order of
	// precedence.
	Overrides []Overridden

	loaded *loadedVersion
	layout phases.Layout
}

// Overridden is a definition that is not served, because a source of a higher rank has one
// with its id.
type Overridden struct {
	Source   SourceInfo `json:"source"`
	Path     string     `json:"path"`
	Revision string     `json:"revision,omitempty"`
	Version  string     `json:"version"`
	Hash     string     `json:"hash"`
}

// Opened is a definition with its content.
type Opened struct {
	*Entry
	Definition *workflow.Definition
}

// Open reads the definition if it was not read yet. If it cannot be read, the error has
// guideway.CodeUnavailable, and the sources are read again.
func (e *Entry) Open() (*Opened, error) {
	d, err := e.loaded.readDefinition()
	if err != nil {
		return nil, err
	}
	return &Opened{Entry: e, Definition: d}, nil
}

// Lint returns the diagnostics of a loaded definition. Most are about style, but some may
// be errors. The first call runs the linter, which reads the document again; if the
// document has changed since it was loaded, the diagnostics have no lines.
func (e *Entry) Lint() []guideway.Diagnostic { return e.loaded.lintFor(e.layout) }

// Text returns the current document, which may be newer than the definition, or nil if the
// document can no longer be read.
func (e *Entry) Text() []byte {
	if e.loaded == nil {
		return nil
	}
	return e.loaded.content()
}

// Filter selects entries. An empty field selects all.
type Filter struct {
	Dialect guideway.Dialect
	// Source is the name of a source.
	Source string
}

// SourceState is the state of a source.
type SourceState string

// The states of a source.
const (
	// SourceUnread means that the source was not read yet.
	SourceUnread SourceState = "unread"
	SourceOK     SourceState = "ok"
	// SourceMissing means that the location does not exist.
	SourceMissing SourceState = "missing"
	// SourceFailed means that the source could not be listed; its earlier documents are still served.
	SourceFailed SourceState = "failed"
	// SourceBlocked means that the source is not read because of its level.
	SourceBlocked SourceState = "blocked"
)

// SourceStatus is the status of a source.
type SourceStatus struct {
	SourceInfo
	State SourceState `json:"state"`
	// Error is the reason why the source failed.
	Error string `json:"error,omitempty"`
	// Documents is the number of documents that were found, and Broken is the number of
	// those that currently do not load. Served is the number of workflows and agent
	// machines that are served.
	Documents int `json:"documents"`
	Broken    int `json:"broken"`
	Served    int `json:"served"`
	// Loaded is the time of the last check of the source.
	Loaded time.Time `json:"loaded"`
	// Revision is the revision of the documents; "" if they have no revision or not all
	// have the same one.
	Revision string `json:"revision,omitempty"`
	// Sync is the state of a source with a copy of remote documents.
	Sync *SyncState `json:"sync,omitempty"`
}

// Get returns the served definition of an id, or for "id@source" the definition of a
// source, even if it is overridden. An unknown id is an error with
// guideway.CodeInvalidDefinition if a document with that id did not load, otherwise with
// guideway.CodeNotFound. For other errors, see Entry.Open.
func (s *Snapshot) Get(id string) (*Opened, error) {
	entry, err := s.findEntry(id)
	if err != nil {
		return nil, err
	}
	return entry.Open()
}

// findEntry is like Get, without reading the definition.
func (s *Snapshot) findEntry(id string) (*Entry, error) {
	if entry := s.byID[id]; entry != nil {
		return entry, nil
	}
	if id, source, at := strings.Cut(id, "@"); at {
		missing := guideway.Errorf(guideway.CodeNotFound, "Workflow with id '%s' not found in the source '%s'", id, source)
		missing.Fix = s.suggestIDs(id)
		return findBySource(id, source, s.all[id], func(e *Entry) (string, string) { return e.ID, e.Source.Name }, missing)
	}
	if r := s.broken[id]; r != nil {
		first := r.found[0]
		place := first.File
		if first.Line > 0 {
			place = fmt.Sprintf("%s:%d", first.File, first.Line)
		}
		err := guideway.Errorf(guideway.CodeInvalidDefinition, "workflow with id '%s' did not load: %s: %s", id, place, first.Message)
		err.Fix = first.Fix
		return nil, err
	}
	err := guideway.Errorf(guideway.CodeNotFound, "Workflow with id '%s' not found", id)
	fix := []string{s.suggestIDs(id)}
	if dirs := s.Dirs(); len(dirs) > 0 {
		fix = append(fix, "The searched directories are: "+strings.Join(dirs, ", "))
	}
	err.Fix = strings.TrimSpace(strings.Join(fix, " "))
	return nil, err
}

// suggestIDs returns a fix that names similar ids, or "".
func (s *Snapshot) suggestIDs(id string) string {
	near := s.similarIDs(id)
	if len(near) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}

// Dirs returns the directories of the sources, those with the highest precedence first. They
// may not exist.
func (s *Snapshot) Dirs() []string {
	var dirs []string
	for _, source := range slices.Backward(s.sources) {
		if source.Kind == "dir" && source.Level != LevelBlocked && source.Location != "" {
			dirs = append(dirs, source.Location)
		}
	}
	return dirs
}

// findBySource returns the entry of all with the given id in the source with the given
// name, even if the entry of another source is served. If there is no such entry, it
// returns the error missing, whose fix names the sources that have an entry with this id.
func findBySource[E any](id, source string, all []E, at func(E) (id, source string), missing *guideway.Error) (E, error) {
	var none E
	var has []string
	for _, e := range all {
		switch own, from := at(e); {
		case own == id && from == source:
			return e, nil
		case own == id:
			has = append(has, id+"@"+from)
		}
	}
	if len(has) > 0 {
		missing.Fix = "use " + strings.Join(has, ", ")
	}
	return none, missing
}

// similarIDs returns up to three similar ids: those that contain id or are contained in it,
// or else the one with the closest spelling.
func (s *Snapshot) similarIDs(id string) []string {
	const most = 3
	key := looseKey(id)
	if len(key) < most {
		return nil
	}
	var near []string
	for _, entry := range s.entries {
		other := looseKey(entry.ID)
		if len(near) < most && (strings.Contains(other, key) || strings.Contains(key, other)) {
			near = append(near, entry.ID)
		}
	}
	if len(near) > 0 {
		return near
	}
	ids := lists.Map(s.entries, func(entry *Entry) string { return entry.ID })
	if meant := spelling.Closest(id, ids); meant != "" {
		return []string{meant}
	}
	return nil
}

// looseKey removes case and separators.
func looseKey(id string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(id))
}

// List returns the served definitions, sorted by id.
func (s *Snapshot) List(filter Filter) []*Entry {
	if filter == (Filter{}) {
		return s.entries
	}
	var chosen []*Entry
	for _, entry := range s.entries {
		if (filter.Dialect == "" || filter.Dialect == entry.Dialect) &&
			(filter.Source == "" || filter.Source == entry.Source.Name) {
			chosen = append(chosen, entry)
		}
	}
	return chosen
}

// Library returns the activities, skills, guides, templates and rules.
func (s *Snapshot) Library() *library.Library { return s.library }

// Diagnostics returns the errors and warnings of reading the sources, sorted by file.
func (s *Snapshot) Diagnostics() []guideway.Diagnostic { return s.diagnostics }

// Sources returns the status of each source, lowest rank first.
func (s *Snapshot) Sources() []SourceStatus { return s.sources }

// Lint returns the linter's diagnostics of all served workflows and agent machines. The
// first call runs the linter. It returns an error only if ctx is done.
func (s *Snapshot) Lint(ctx context.Context) ([]guideway.Diagnostic, error) {
	var found []guideway.Diagnostic
	for _, entry := range s.entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found = append(found, entry.Lint()...)
	}
	for _, entry := range s.machines {
		found = append(found, entry.Lint()...)
	}
	return found, nil
}

// mergeStates builds a snapshot from states in order of rank.
func mergeStates(states []state) *Snapshot {
	s := &Snapshot{byID: map[string]*Entry{}, all: map[string][]*Entry{}, broken: map[string]*record{}}
	for i := range states {
		s.addDefinitions(&states[i])
	}
	for i := range states {
		s.explainBroken(&states[i])
	}
	s.buildLibrary(states)
	s.addHooks(states)
	s.collectPublished(states)
	s.addMachines(states)
	s.entries = slices.SortedFunc(maps.Values(s.byID), func(a, b *Entry) int {
		return strings.Compare(a.ID, b.ID)
	})
	served := map[string]int{}
	for _, entry := range s.entries {
		served[entry.Source.Name]++
	}
	for _, e := range s.machines {
		if e.Definition != nil {
			served[e.Source.Name]++
		}
	}
	for i := range s.sources {
		s.sources[i].Served = served[s.sources[i].Name]
	}
	slices.SortStableFunc(s.diagnostics, func(a, b guideway.Diagnostic) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return s
}

// addDefinitions adds the definitions of a source on top of those already added.
func (s *Snapshot) addDefinitions(source *state) {
	status := SourceStatus{
		SourceInfo: source.info, State: SourceOK, Error: source.failure,
		Documents: len(source.records), Loaded: source.loaded,
	}
	switch {
	case source.loaded.IsZero():
		status.State = SourceUnread
	case source.blocked:
		status.State = SourceBlocked
	case source.missing:
		status.State = SourceMissing
	case source.failure != "":
		status.State = SourceFailed
	}
	s.diagnostics = append(s.diagnostics, source.diagnostics...)
	own := map[string]*record{}
	for i, r := range source.records {
		if i == 0 {
			status.Revision = r.revision
		} else if r.revision != status.Revision {
			status.Revision = ""
		}
		s.diagnostics = append(s.diagnostics, r.found...)
		if r.broken {
			status.Broken++
		}
		if r.good == nil {
			continue
		}
		id := r.good.head.ID
		if first := own[id]; first != nil {
			s.diagnostics = append(s.diagnostics, newError("id-duplicate", r.path,
				fmt.Sprintf("the id %q is already used by %s, which is served; this file is not", id, first.path),
				"change one of the two ids"))
			continue
		}
		own[id] = r
		entry := &Entry{Head: r.good.head, Source: source.info, Path: r.path, Revision: r.revision, Stale: r.broken, loaded: r.good}
		if below := s.byID[id]; below != nil {
			entry.Overrides = append([]Overridden{{
				Source: below.Source, Path: below.Path, Revision: below.Revision, Version: below.Version, Hash: below.Hash,
			}}, below.Overrides...)
		}
		s.byID[id] = entry
		s.all[id] = append(s.all[id], entry)
	}
	s.sources = append(s.sources, status)
}

// explainBroken records the workflows that did not load, and adds a diagnostic if another
// definition is served instead.
func (s *Snapshot) explainBroken(source *state) {
	for _, r := range source.records {
		if r.good != nil || r.place.Kind != "" || r.hookPlace.Kind != "" || r.machineFile {
			continue
		}
		serving := s.byID[r.guessedID]
		switch {
		case serving == nil:
			s.broken[r.guessedID] = r
			// An unreadable document may have no id, so it is also found by its name.
			if stem := stemOf(r.name); s.broken[stem] == nil && s.byID[stem] == nil {
				s.broken[stem] = r
			}
		case serving.Source.Rank <= source.info.Rank:
			s.diagnostics = append(s.diagnostics, newWarning("override-broken", r.path,
				fmt.Sprintf("%q is served from %s (%s), because this file did not load", r.guessedID, serving.Source.Name, serving.Path),
				"fix this file"))
		}
	}
}

// compareSnapshots returns the changes between two snapshots, or nil.
func compareSnapshots(before, after *Snapshot) *Change {
	change := &Change{
		Snapshot: after, Diagnostics: !slices.Equal(before.diagnostics, after.diagnostics),
		Library: !before.library.Equal(after.library), Hooks: !sameHooks(before, after), Machines: !sameMachines(before, after),
	}
	for _, entry := range after.entries {
		id := entry.ID
		old := before.byID[id]
		switch {
		case old == nil:
			change.Added = append(change.Added, id)
		case old.Hash != entry.Hash || old.Source.Name != entry.Source.Name:
			change.Changed = append(change.Changed, id)
		}
	}
	for _, entry := range before.entries {
		if id := entry.ID; after.byID[id] == nil {
			change.Removed = append(change.Removed, id)
		}
	}
	if len(change.Added)+len(change.Removed)+len(change.Changed) == 0 && !change.Diagnostics && !change.Library && !change.Hooks && !change.Machines {
		return nil
	}
	return change
}
