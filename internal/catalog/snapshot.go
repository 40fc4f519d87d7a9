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
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Snapshot is the catalog of one moment. It never changes; what its methods
// return belongs to it and must not be changed either.
type Snapshot struct {
	entries     []*Entry // in order of ids
	byID        map[string]*Entry
	all         map[string][]*Entry // the definitions of each id, the one served last
	broken      map[string]*record  // by the id that is claimed and not served
	library     *library.Library
	hooks       []*HookEntry    // in order of ids
	allHooks    []*HookEntry    // those that load, lowest rank first
	modules     []HookModule    // lowest rank first
	machines    []*MachineEntry // in order of names
	allMachines []*MachineEntry // those that load, lowest rank first
	shown       []published     // what may be published, lowest rank first
	diagnostics []guideway.Diagnostic
	sources     []SourceStatus
}

// Entry is a definition that is served, as lists tell of it.
type Entry struct {
	Head
	Source SourceInfo
	// Path is where a person finds the document.
	Path string
	// Revision is what of the source this is; "" where the source has none.
	Revision string
	// Stale says that the document no longer loads, and that this is the last
	// version that did.
	Stale bool
	// Overrides are the definitions with the same id that are not served, the
	// nearest one first.
	Overrides []Overridden

	loaded *loaded
	layout phases.Layout
}

// Overridden is a definition that is not served, because a source of a higher
// rank has one with its id.
type Overridden struct {
	Source   SourceInfo `json:"source"`
	Path     string     `json:"path"`
	Revision string     `json:"revision,omitempty"`
	Version  string     `json:"version"`
	Hash     string     `json:"hash"`
}

// Opened is a definition that is served, with what it says.
type Opened struct {
	*Entry
	Definition *workflow.Definition
}

// Open reads the definition, if that has not been done. Where it cannot be read the
// code of the error is guideway.CodeUnavailable; then the sources are read anew.
func (e *Entry) Open() (*Opened, error) {
	d, err := e.loaded.open()
	if err != nil {
		return nil, err
	}
	return &Opened{Entry: e, Definition: d}, nil
}

// Lint gives the findings about a definition that loads: most are of style, but
// one may be an error. They are made at the first call, which reads the document
// again; if that changed since, they have no lines.
func (e *Entry) Lint() []guideway.Diagnostic { return e.loaded.lint(e.layout) }

// Text gives the document as it is now, which may be newer than the definition;
// nil where it is gone.
func (e *Entry) Text() []byte {
	if e.loaded == nil {
		return nil
	}
	return e.loaded.content()
}

// Filter chooses entries. An empty field does not choose.
type Filter struct {
	Dialect guideway.Dialect
	// Source is the name of a source.
	Source string
}

// SourceState says how a source is.
type SourceState string

// The states of a source.
const (
	// SourceUnread is one that was not yet read.
	SourceUnread SourceState = "unread"
	SourceOK     SourceState = "ok"
	// SourceMissing is one whose location does not exist.
	SourceMissing SourceState = "missing"
	// SourceFailed is one that could not be listed; what it gave before goes on
	// serving.
	SourceFailed SourceState = "failed"
	// SourceBlocked is one that is not read, because its level says so.
	SourceBlocked SourceState = "blocked"
)

// SourceStatus says how a source is.
type SourceStatus struct {
	SourceInfo
	State SourceState `json:"state"`
	// Error says why the source failed.
	Error string `json:"error,omitempty"`
	// Documents counts what was read, Broken what does not load at present,
	// and Served what is not overridden.
	Documents int `json:"documents"`
	Broken    int `json:"broken"`
	Served    int `json:"served"`
	// Loaded is when the source was last looked at.
	Loaded time.Time `json:"loaded"`
	// Revision is that of its documents; "" where it has none or they differ.
	Revision string `json:"revision,omitempty"`
	// Sync says how a source is that copies from elsewhere.
	Sync *SyncState `json:"sync,omitempty"`
}

// Get gives the definition that is served for an id; for "id@source" that of a
// source, even if it is overridden. If there is none the code
// of the error is guideway.CodeInvalidDefinition if a document with that id did
// not load, else guideway.CodeNotFound; see Entry.Open for another.
func (s *Snapshot) Get(id string) (*Opened, error) {
	entry, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return entry.Open()
}

// find is Get without reading the definition.
func (s *Snapshot) find(id string) (*Entry, error) {
	if entry := s.byID[id]; entry != nil {
		return entry, nil
	}
	if id, source, at := strings.Cut(id, "@"); at {
		return s.of(id, source)
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
	if near := s.similar(id); len(near) > 0 {
		err.Fix = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return nil, err
}

// of gives the definition that a source has for an id.
func (s *Snapshot) of(id, source string) (*Entry, error) {
	var has []string
	for _, entry := range s.all[id] {
		if entry.Source.Name == source {
			return entry, nil
		}
		has = append(has, id+"@"+entry.Source.Name)
	}
	err := guideway.Errorf(guideway.CodeNotFound, "Workflow with id '%s' not found in the source '%s'", id, source)
	if len(has) > 0 {
		err.Fix = "there is " + strings.Join(has, ", ")
	}
	return nil, err
}

// ofSource gives what a source has under a name, of all that load, even where something
// else is served. Kind is what the error calls it.
func ofSource[E any](kind, id, source string, all []E, at func(E) (id, source string)) (E, error) {
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
	err := guideway.Errorf(guideway.CodeNotFound, "there is no %s %q in the source %q", kind, id, source)
	if len(has) > 0 {
		err.Fix = "there is " + strings.Join(has, ", ")
	}
	return none, err
}

// similar gives up to three ids that look like id: that have it in them, or it them;
// else the one that it is a slip of the pen from.
func (s *Snapshot) similar(id string) []string {
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
	ids := make([]string, len(s.entries))
	for i, entry := range s.entries {
		ids[i] = entry.ID
	}
	if meant := spelling.Closest(id, ids); meant != "" {
		return []string{meant}
	}
	return nil
}

// looseKey forgets case and separators.
func looseKey(id string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(id))
}

// List gives the definitions that are served, in order of their ids.
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

// Library gives the activities, skills, guides, templates and rules.
func (s *Snapshot) Library() *library.Library { return s.library }

// Diagnostics says what did not load and why, in order of files.
func (s *Snapshot) Diagnostics() []guideway.Diagnostic { return s.diagnostics }

// Sources says how each source is, lowest rank first.
func (s *Snapshot) Sources() []SourceStatus { return s.sources }

// Lint gives the findings about the style of all definitions that are served.
// They are made at the first call; the only error is that of ctx.
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

// merge makes a snapshot of the states, which are in order of rank.
func merge(states []state) *Snapshot {
	s := &Snapshot{byID: map[string]*Entry{}, all: map[string][]*Entry{}, broken: map[string]*record{}}
	for i := range states {
		s.add(&states[i])
	}
	for i := range states {
		s.explain(&states[i])
	}
	s.shelve(states)
	s.hang(states)
	s.publish(states)
	s.enlist(states)
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

// add puts the definitions of a source above those that are there.
func (s *Snapshot) add(source *state) {
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
			s.diagnostics = append(s.diagnostics, problem("id-duplicate", r.path,
				fmt.Sprintf("the id %q is taken by %s, which is served; this file is not", id, first.path),
				"give one of the two another id"))
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

// explain says of documents that never loaded what is served in their place.
func (s *Snapshot) explain(source *state) {
	for _, r := range source.records {
		if r.good != nil || r.place.Kind != "" || r.hookPlace.Kind != "" || r.machineFile {
			continue
		}
		serving := s.byID[r.claims]
		switch {
		case serving == nil:
			s.broken[r.claims] = r
			// What cannot be read may not say its id: it is asked for by its name, too.
			if stem := stemOf(r.name); s.broken[stem] == nil && s.byID[stem] == nil {
				s.broken[stem] = r
			}
		case serving.Source.Rank <= source.info.Rank:
			s.diagnostics = append(s.diagnostics, notice("override-broken", r.path,
				fmt.Sprintf("%q is served from %s (%s), because this file did not load", r.claims, serving.Source.Name, serving.Path),
				"mend this file to have it served"))
		}
	}
}

// compare says what changed between two snapshots; nil if nothing did.
func compare(before, after *Snapshot) *Change {
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
