// Package admin manages hook graphs: it lists them with their states, checks documents,
// tries graphs without a server, saves changes if the file still has the version that they
// are based on, keeps the saved versions, and enables exactly the version that was
// reviewed. The CLI and the HTTP API call it.
//
// It does not authenticate: its callers must ensure that a command comes from a person, not
// from an agent.
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
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// Options configure a Service; Catalog, Approvals and Scripts are required.
type Options struct {
	Catalog   Catalog
	Approvals Approvals
	// Scripts runs and checks scripts; usually a *sandbox.Pool.
	Scripts Scripts
	// Versions is the directory of the saved versions; if empty, none are kept.
	Versions string
	// OnApproval is called after a graph was enabled or disabled, so that the change takes
	// effect immediately; may be nil.
	OnApproval func()
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Catalog is the part of the catalog that the service uses.
type Catalog interface {
	Snapshot() *catalog.Snapshot
	// Load reads the sources again.
	Load(ctx context.Context) error
}

// Approvals is the part of the approval store that the service uses.
type Approvals interface {
	List() (approval.Records, error)
	Change(ctx context.Context, edit func(approval.Records) (approval.Records, error)) error
}

// Scripts is the part of the sandbox that the service uses.
type Scripts interface {
	runner.Runner
	runner.Checker
}

var _ Catalog = (*catalog.Catalog)(nil)

// Service manages the hook graphs of one user. It is safe for concurrent use.
type Service struct {
	opts     Options
	versions *versionStore
	// writing serializes writes of documents.
	writing sync.Mutex
}

// New returns a service. It does no I/O.
func New(opts Options) *Service {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Service{opts: opts, versions: &versionStore{dir: opts.Versions, now: opts.Now}}
}

// Candidate converts a graph of the catalog to a candidate for activation.
func Candidate(e *catalog.HookEntry) hookengine.Candidate {
	return hookengine.Candidate{ID: e.ID, Source: e.Source.Key(), Own: e.Own(), Graph: e.Linked, Problem: e.Problem}
}

// Activate returns the active graphs of a snapshot according to the approvals.
func Activate(snapshot *catalog.Snapshot, records approval.Records) *hookengine.Activation {
	candidates := lists.Map(snapshot.Hooks(), Candidate)
	return hookengine.Activate(candidates, records, func(source string) bool { return isPresent(snapshot, source) })
}

// isPresent reports whether the source of an approval is in the snapshot.
func isPresent(snapshot *catalog.Snapshot, source string) bool {
	return slices.ContainsFunc(snapshot.Sources(), func(s catalog.SourceStatus) bool { return s.Key() == source })
}

// Row is a graph in a list.
type Row struct {
	ID          string         `json:"id"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	Version     string         `json:"version,omitempty"`
	Type        hookdef.Type   `json:"type,omitempty"`
	Also        []hookdef.Type `json:"also,omitempty"`
	// Order is the order of an enabled graph in its chains, or the graph's own.
	Order    int               `json:"order"`
	Bindings []hookdef.Binding `json:"bindings,omitempty"`
	State    hookengine.State  `json:"state"`
	// Enabled reports whether the graph was approved, regardless of its state.
	Enabled bool `json:"enabled"`
	// Why is the reason why an enabled graph is not active, or why the graph does not load.
	Why    string `json:"why,omitempty"`
	Source string `json:"source"`
	Path   string `json:"path"`
	// Revision is the revision of the source, such as a commit.
	Revision string `json:"revision,omitempty"`
	// Own reports whether this user owns the source; otherwise the graph belongs to a
	// project, and only the reviewed version is approved.
	Own      bool `json:"own"`
	Writable bool `json:"writable"`
	// Pin is the hash of the graph's behavior; empty if the graph does not load.
	Pin       string               `json:"pin,omitempty"`
	Stale     bool                 `json:"stale,omitempty"`
	Overrides []catalog.Overridden `json:"overrides,omitempty"`
}

// List is the result of Service.List.
type List struct {
	Graphs  []Row    `json:"graphs"`
	Chains  []Chain  `json:"chains"`
	Modules []Module `json:"modules"`
	// Missing are graphs that are enabled but no longer exist.
	Missing     []Missing             `json:"missing"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// Chain is the nesting of the enabled graphs of a request type.
type Chain struct {
	Method hookdef.Type `json:"method"`
	// Graphs are the graphs from the client to the upstream. A request passes them in this
	// order and its response in reverse; each request only those with a matching binding.
	Graphs []ChainGraph `json:"graphs"`
}

// ChainGraph is a graph of a chain.
type ChainGraph struct {
	ID       string            `json:"id"`
	Order    int               `json:"order"`
	Bindings []hookdef.Binding `json:"bindings,omitempty"`
}

// Chains returns the chains of a set that have graphs.
func Chains(set *hookengine.Set) []Chain {
	chains := []Chain{}
	for _, method := range hookdef.Types() {
		c := Chain{Method: method}
		for _, l := range set.Links(method) {
			c.Graphs = append(c.Graphs, ChainGraph{l.ID, l.Order, l.Bindings})
		}
		if len(c.Graphs) > 0 {
			chains = append(chains, c)
		}
	}
	return chains
}

// OrderOf returns the order of a graph: that of an enabled graph in the set, or its own.
func OrderOf(set *hookengine.Set, g *hookdef.Graph) int {
	for _, l := range set.Links(g.Type) {
		if l.ID == g.ID {
			return l.Order
		}
	}
	return g.Order
}

// Module is a module of the library.
type Module struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Source   string `json:"source"`
	Path     string `json:"path"`
	Writable bool   `json:"writable"`
	// UsedBy names the graphs that use the module.
	UsedBy []string `json:"usedBy"`
}

// Missing is a graph that is enabled but no longer exists. The requests that it applied to
// are refused.
type Missing struct {
	ID     string `json:"id"`
	Source string `json:"source"`
}

// State is a catalog with approvals and the activation that follows from them.
type State struct {
	Snapshot *catalog.Snapshot
	Records  approval.Records
	Active   *hookengine.Activation
}

// NewState returns the state of the graphs in a snapshot.
func NewState(snapshot *catalog.Snapshot, records approval.Records) *State {
	return &State{Snapshot: snapshot, Records: records, Active: Activate(snapshot, records)}
}

func (d *Service) currentState() (*State, error) {
	records, err := d.opts.Approvals.List()
	if err != nil {
		return nil, err
	}
	return NewState(d.opts.Catalog.Snapshot(), records), nil
}

// findGraph returns the current state and a graph in it.
func (d *Service) findGraph(id string) (*State, *catalog.HookEntry, error) {
	m, err := d.currentState()
	if err != nil {
		return nil, nil, err
	}
	e, err := m.Snapshot.Hook(id)
	return m, e, err
}

// List returns the graphs and modules of all sources.
func (d *Service) List(context.Context) (*List, error) {
	m, err := d.currentState()
	if err != nil {
		return nil, err
	}
	return m.List(), nil
}

// List returns the graphs and modules of all sources.
func (m *State) List() *List {
	list := &List{Graphs: []Row{}, Chains: Chains(m.Active.Set), Modules: []Module{}, Missing: []Missing{}, Diagnostics: []guideway.Diagnostic{}}
	paths := map[string]bool{}
	for _, e := range m.Snapshot.Hooks() {
		list.Graphs = append(list.Graphs, m.Row(e))
		paths[e.Path] = true
	}
	for _, module := range m.Snapshot.HookModules() {
		list.Modules = append(list.Modules, m.newModule(&module))
		paths[module.Path] = true
	}
	for _, r := range m.Active.Missing {
		list.Missing = append(list.Missing, Missing{ID: r.Subject, Source: r.Source})
	}
	for _, finding := range m.Snapshot.Diagnostics() {
		if paths[finding.File] {
			list.Diagnostics = append(list.Diagnostics, finding)
		}
	}
	return list
}

// Row returns the row of a graph.
func (m *State) Row(e *catalog.HookEntry) Row {
	c := Candidate(e)
	row := Row{
		ID: e.ID, State: m.Active.States[c.Key()], Enabled: m.Records.Find(c.Key()) != nil, Why: e.Problem,
		Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Own: e.Own(), Writable: writer.IsWritable(e.Source), Stale: e.Stale, Overrides: e.Overrides,
	}
	if g := e.Graph; g != nil {
		row.Name, row.Description, row.Version, row.Type, row.Bindings = g.Name, g.Description, g.Version, g.Type, g.Bindings
		row.Also, row.Order = g.Also, OrderOf(m.Active.Set, g)
	}
	if e.Linked != nil {
		row.Pin = e.Linked.Pin
	}
	if row.State == hookengine.StateChanged {
		row.Why = "changed since its approval; matching requests are refused"
	}
	if row.State == hookengine.StateTemplate && row.Enabled {
		row.Why = "changed into a template after it was enabled; matching requests are refused"
	}
	return row
}

// newModule returns a module with the graphs that use it.
func (m *State) newModule(module *catalog.HookModule) Module {
	out := Module{ID: module.ID, Name: module.Name, Source: module.Source.Name, Path: module.Path, Writable: writer.IsWritable(module.Source), UsedBy: []string{}}
	for _, e := range m.Snapshot.Hooks() {
		if e.Linked != nil && slices.ContainsFunc(e.Linked.Used, func(used hookdef.Module) bool { return used.ID == module.ID && used.Script == module.Script }) {
			out.UsedBy = append(out.UsedBy, e.ID)
		}
	}
	return out
}

// Detail is a graph to edit.
type Detail struct {
	Hook Row `json:"hook"`
	// Graph is the document as JSON; empty if the file does not load.
	Graph json.RawMessage `json:"graph,omitempty"`
	// Text is the text of the file, and Base is the version of this text. If the graph has
	// no writable file, Text is the document as JSON, and Base is empty.
	Text   string `json:"text"`
	Format string `json:"format"`
	Base   string `json:"base,omitempty"`
	// Diagnostics are the diagnostics of the text.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// Get returns a graph with its text and diagnostics.
func (d *Service) Get(ctx context.Context, id string) (*Detail, error) {
	m, e, err := d.findGraph(id)
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
		Hook: m.Row(e), Graph: verdict.Graph, Text: text, Format: writer.Format(text), Base: base, Diagnostics: verdict.Diagnostics,
	}, nil
}

// textOf returns the text of a graph's file and its version. If the graph has no writable
// file, it returns the document as JSON, without a version.
func textOf(e *catalog.HookEntry) (text, base string, err error) {
	if writer.IsWritable(e.Source) {
		name, err := nameIn(e.Source, e.Path)
		if err != nil {
			return "", "", err
		}
		data, err := writer.Read(e.Source, name)
		if err != nil {
			return "", "", guideway.Errorf(guideway.CodeUnavailable, "read %s: %w", e.Path, err).WithFix("check that the file exists and is readable")
		}
		return string(data), writer.Version(data), nil
	}
	if e.Graph == nil {
		return "", "", nil
	}
	data, err := Render(nil, json.RawMessage(e.Graph.Canonical))
	return string(data), "", err
}

// Export returns a graph in a form for other installations and tools: with node positions
// and the modules.
func (d *Service) Export(_ context.Context, id string) ([]byte, error) {
	m, e, err := d.findGraph(id)
	if err != nil {
		return nil, err
	}
	if e.Linked == nil {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s cannot be loaded: %s", e.ID, e.Problem).
			WithFix("fix the graph; list its errors with: guideway hooks validate %s", e.ID)
	}
	return e.Linked.Export(m.Row(e).State == hookengine.StateActive)
}

// EnableRequest is a request to make a graph active.
type EnableRequest struct {
	ID string
	// Pin is the hash that the person has reviewed. No other version is enabled.
	Pin string
	// Order replaces the graph's own order in the chain; nil keeps it.
	Order *int
	// Who is the person who approves.
	Who string
}

// Enable approves the reviewed version of a graph. It returns guideway.CodeConflict if the
// graph has changed since the review.
func (d *Service) Enable(ctx context.Context, r EnableRequest) error {
	e, err := d.opts.Catalog.Snapshot().Hook(r.ID)
	if err != nil {
		return err
	}
	candidate := Candidate(e)
	record, err := candidate.Approval(r.Who, r.Order)
	if err != nil {
		return err
	}
	if r.Pin == "" {
		return guideway.Errorf(guideway.CodeInvalid, "the request to enable the hook graph %s has no pin", r.ID).
			WithFix("review the hook graph, and send the pin of the reviewed version")
	}
	if r.Pin != record.Hash {
		return guideway.Errorf(guideway.CodeConflict, "the current version of the hook graph %s is not the one that you reviewed", r.ID).
			WithFix("review the current version, and enable it with its pin")
	}
	found, err := runner.Check(ctx, d.opts.Scripts, e.Linked)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return (&Verdict{Diagnostics: found}).firstError()
	}
	record.When = d.opts.Now().UTC().Truncate(time.Millisecond)
	err = d.opts.Approvals.Change(ctx, func(records approval.Records) (approval.Records, error) {
		records = slices.DeleteFunc(slices.Clone(records), func(old approval.Record) bool { return old.Key() == record.Key() })
		return append(records, record), nil
	})
	if err != nil {
		return err
	}
	d.notifyApproval()
	return nil
}

// Disable disables a graph, even a broken or missing one. It returns guideway.CodeNotFound
// for a graph that is not enabled.
func (d *Service) Disable(ctx context.Context, id string) error {
	records, err := d.opts.Approvals.List()
	if err != nil {
		return err
	}
	snapshot := d.opts.Catalog.Snapshot()
	isOf := func(r approval.Record) bool {
		return r.Kind == approval.KindHookGraph && r.Subject == id && isPresent(snapshot, r.Source)
	}
	if !slices.ContainsFunc(records, isOf) {
		return guideway.Errorf(guideway.CodeNotFound, "the hook graph %s is not enabled", id).WithFix("guideway hooks list --active")
	}
	err = d.opts.Approvals.Change(ctx, func(records approval.Records) (approval.Records, error) {
		return slices.DeleteFunc(slices.Clone(records), isOf), nil
	})
	if err != nil {
		return err
	}
	d.notifyApproval()
	return nil
}

// notifyApproval reports changed approvals.
func (d *Service) notifyApproval() {
	if d.opts.OnApproval != nil {
		d.opts.OnApproval()
	}
}
