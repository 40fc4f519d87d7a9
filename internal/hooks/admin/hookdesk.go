// Package admin is where people work on hook graphs: what there is and how it
// stands, a text with its findings, a trial without any server, saving against
// the version that a change began from, the versions that were saved, and
// enabling exactly what somebody has looked at. The command line and the API
// stand on it.
//
// It asks nobody who they are: that a person and no agent commands, its callers
// must have made sure of.
package admin

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/writer"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
)

// Options are the parts of a desk; Catalog, Approvals and Scripts are needed.
type Options struct {
	Catalog   Catalog
	Approvals Approvals
	// Scripts runs and checks scripts: a *script.Pool.
	Scripts Scripts
	// Versions is the directory of the versions that were saved; "" keeps none.
	Versions string
	// OnApproval is called when something was enabled or disabled here, so that
	// it is in force at once; nil is nobody.
	OnApproval func()
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Catalog is what the desk needs of the catalog.
type Catalog interface {
	Snapshot() *catalog.Snapshot
	// Load reads the sources again.
	Load(ctx context.Context) error
}

// Approvals is what the desk needs of the store of approvals.
type Approvals interface {
	List() (approval.Records, error)
	Change(ctx context.Context, edit func(approval.Records) (approval.Records, error)) error
}

// Scripts is what the desk needs of the sandbox.
type Scripts interface {
	runner.Runner
	runner.Checker
}

var _ Catalog = (*catalog.Catalog)(nil)

// Desk works on the hook graphs of one user. It is safe for concurrent use.
type Desk struct {
	opts     Options
	versions *versions
	// writing lets one document be written at a time.
	writing sync.Mutex
}

// New makes a desk. It does no I/O.
func New(opts Options) *Desk {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Desk{opts: opts, versions: &versions{dir: opts.Versions, now: opts.Now}}
}

// Candidate is a graph of the catalog as one that could be active.
func Candidate(e *catalog.HookEntry) hookengine.Candidate {
	return hookengine.Candidate{ID: e.ID, Source: e.Source.Key(), Own: e.Own(), Graph: e.Linked, Problem: e.Problem}
}

// Activate says which graphs of a snapshot are active by the approvals.
func Activate(snapshot *catalog.Snapshot, records approval.Records) *hookengine.Activation {
	var candidates []hookengine.Candidate
	for _, e := range snapshot.Hooks() {
		candidates = append(candidates, Candidate(e))
	}
	return hookengine.Activate(candidates, records, func(source string) bool { return isPresent(snapshot, source) })
}

// isPresent says whether a source of approvals is one of the snapshot's.
func isPresent(snapshot *catalog.Snapshot, source string) bool {
	return slices.ContainsFunc(snapshot.Sources(), func(s catalog.SourceStatus) bool { return s.Key() == source })
}

// Row is a graph in a list.
type Row struct {
	ID          string            `json:"id"`
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Version     string            `json:"version,omitempty"`
	Type        hookdef.Type      `json:"type,omitempty"`
	Bindings    []hookdef.Binding `json:"bindings,omitempty"`
	State       hookengine.State  `json:"state"`
	// Enabled says that it was approved, whatever became of it since.
	Enabled bool `json:"enabled"`
	// Why says why it is not active though it is enabled, or why it does not load.
	Why    string `json:"why,omitempty"`
	Source string `json:"source"`
	Path   string `json:"path"`
	// Revision is what of the source this is, such as a commit.
	Revision string `json:"revision,omitempty"`
	// Own says that this user answers for the source; else the graph came with a
	// project, and exactly what was looked at is approved.
	Own      bool `json:"own"`
	Writable bool `json:"writable"`
	// Pin is the hash of all that the graph does; empty where it does not load.
	Pin   string `json:"pin,omitempty"`
	Stale bool   `json:"stale,omitempty"`
	// Overlaps names the active graphs that stand around some of the same
	// requests.
	Overlaps  []string             `json:"overlaps,omitempty"`
	Overrides []catalog.Overridden `json:"overrides,omitempty"`
}

// List is all that there is.
type List struct {
	Graphs  []Row    `json:"graphs"`
	Modules []Module `json:"modules"`
	// Missing are graphs that are enabled and gone.
	Missing     []Missing             `json:"missing"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// Module is a module of the library.
type Module struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Source   string `json:"source"`
	Path     string `json:"path"`
	Writable bool   `json:"writable"`
	// UsedBy names the graphs that run it.
	UsedBy []string `json:"usedBy"`
}

// Missing is a graph that is enabled and gone. What it stood around is refused.
type Missing struct {
	ID     string `json:"id"`
	Source string `json:"source"`
}

// moment is what is there now, with what is approved.
type moment struct {
	snapshot *catalog.Snapshot
	records  approval.Records
	active   *hookengine.Activation
}

func (d *Desk) moment() (*moment, error) {
	records, err := d.opts.Approvals.List()
	if err != nil {
		return nil, err
	}
	snapshot := d.opts.Catalog.Snapshot()
	return &moment{snapshot: snapshot, records: records, active: Activate(snapshot, records)}, nil
}

// List lists the graphs and modules of all sources.
func (d *Desk) List(context.Context) (*List, error) {
	m, err := d.moment()
	if err != nil {
		return nil, err
	}
	list := &List{Graphs: []Row{}, Modules: []Module{}, Missing: []Missing{}, Diagnostics: []guideway.Diagnostic{}}
	paths := map[string]bool{}
	for _, e := range m.snapshot.Hooks() {
		list.Graphs = append(list.Graphs, m.row(e))
		paths[e.Path] = true
	}
	for _, module := range m.snapshot.HookModules() {
		list.Modules = append(list.Modules, m.module(&module))
		paths[module.Path] = true
	}
	for _, r := range m.active.Missing {
		list.Missing = append(list.Missing, Missing{ID: r.Subject, Source: r.Source})
	}
	for _, finding := range m.snapshot.Diagnostics() {
		if paths[finding.File] {
			list.Diagnostics = append(list.Diagnostics, finding)
		}
	}
	return list, nil
}

// row tells how a graph stands.
func (m *moment) row(e *catalog.HookEntry) Row {
	c := Candidate(e)
	row := Row{
		ID: e.ID, State: m.active.States[c.Key()], Enabled: m.records.Find(c.Key()) != nil, Why: e.Problem,
		Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Own: e.Own(), Writable: writer.IsWritable(e.Source), Stale: e.Stale, Overrides: e.Overrides,
	}
	if g := e.Graph; g != nil {
		row.Name, row.Description, row.Version, row.Type, row.Bindings = g.Name, g.Description, g.Version, g.Type, g.Bindings
		row.Overlaps = m.active.Set.Overlapping(g)
	}
	if e.Linked != nil {
		row.Pin = e.Linked.Pin
	}
	if row.State == hookengine.StateChanged {
		row.Why = "it is not what was approved any more; what it stands around is refused"
	}
	if row.State == hookengine.StateTemplate && row.Enabled {
		row.Why = "it was enabled, and became a template; what it stood around is refused"
	}
	return row
}

// module tells of a module, and who runs it.
func (m *moment) module(module *catalog.HookModule) Module {
	out := Module{ID: module.ID, Name: module.Name, Source: module.Source.Name, Path: module.Path, Writable: writer.IsWritable(module.Source), UsedBy: []string{}}
	for _, e := range m.snapshot.Hooks() {
		if e.Linked != nil && slices.ContainsFunc(e.Linked.Used, func(used hookdef.Module) bool { return used.ID == module.ID && used.Script == module.Script }) {
			out.UsedBy = append(out.UsedBy, e.ID)
		}
	}
	return out
}

// Detail is a graph to be worked on.
type Detail struct {
	Hook Row `json:"hook"`
	// Graph is the document as JSON, as its file has it now; none where it does
	// not load.
	Graph json.RawMessage `json:"graph,omitempty"`
	// Text is the file's, and Base names this version of it; for a graph without a
	// file of its own Text is the document as JSON.
	Text   string `json:"text"`
	Format string `json:"format"`
	Base   string `json:"base,omitempty"`
	// Diagnostics are what is to be said of the text.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// Get gives a graph with its text and its findings.
func (d *Desk) Get(ctx context.Context, id string) (*Detail, error) {
	m, err := d.moment()
	if err != nil {
		return nil, err
	}
	e, err := m.snapshot.Hook(id)
	if err != nil {
		return nil, err
	}
	text, base, err := textOf(e)
	if err != nil {
		return nil, err
	}
	verdict, err := d.Check(ctx, CheckRequest{Text: text, Source: e.Source.Name})
	if err != nil {
		return nil, err
	}
	return &Detail{
		Hook: m.row(e), Graph: verdict.Graph, Text: text, Format: writer.Format(text), Base: base, Diagnostics: verdict.Diagnostics,
	}, nil
}

// textOf is the text of a graph: that of its file, where it has one that is
// somebody's own.
func textOf(e *catalog.HookEntry) (text, base string, err error) {
	if writer.IsWritable(e.Source) {
		name, err := nameIn(e.Source, e.Path)
		if err != nil {
			return "", "", err
		}
		data, err := writer.Read(e.Source, name)
		if err != nil {
			return "", "", guideway.Errorf(guideway.CodeUnavailable, "read %s: %w", e.Path, err).WithFix("look whether it is there")
		}
		return string(data), writer.Version(data), nil
	}
	if e.Graph == nil {
		return "", "", nil
	}
	data, err := Render(nil, json.RawMessage(e.Graph.Canonical))
	return string(data), "", err
}

// Export gives a graph in the form that other installations and tools read: with
// a place for each node, and the modules that it needs.
func (d *Desk) Export(_ context.Context, id string) ([]byte, error) {
	m, err := d.moment()
	if err != nil {
		return nil, err
	}
	e, err := m.snapshot.Hook(id)
	if err != nil {
		return nil, err
	}
	if e.Linked == nil {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s does not load: %s", e.ID, e.Problem).
			WithFix("mend it; 'guideway hooks validate %s' says more", e.ID)
	}
	return e.Linked.Export(m.row(e).State == hookengine.StateActive)
}
