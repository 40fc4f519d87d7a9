// Package catalog holds all definitions of all sources in order of precedence, with
// diagnostics for documents that did not load, and follows changes.
//
// Rules:
//   - Of two definitions with one id, the one from the source with the higher
//     rank is served; it lists the ones it overrides. Within one source the
//     first by file name is served, and the other is a diagnostic.
//   - A document that does not load never hides a definition: another
//     source's definition of that id stays served.
//   - A document that stops loading while the program runs is a diagnostic, and
//     its last good version stays served until the file is fixed or deleted, or
//     the program ends: a half saved edit must not take a workflow away from
//     the agents that use it.
//   - A source that cannot be listed keeps its documents.
//
// Reading the catalog costs one atomic load: a Snapshot never changes.
package catalog

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// Options configure a Catalog; the zero value has the defaults.
type Options struct {
	// Parse parses a document; nil means workflow.Parse. The definition that it returns is
	// nil if the document does not load.
	Parse func(file string, data []byte) (*workflow.Definition, []guideway.Diagnostic)
	// Lint checks a loaded definition. The bytes are its document, or nil if the document
	// can no longer be read. If Lint is nil, the catalog calls workflow.Lint with the
	// layout of the documents next to the definition.
	Lint func(*workflow.Definition, []byte) []guideway.Diagnostic
	// TTL is the time after which a source is checked even if it reports its changes: 5
	// minutes.
	TTL time.Duration
	// Limits bound the content of sources.
	Limits Limits
	// Index is the directory of the workflow indexes; "" means no index. A workflow whose
	// hash is in the index is only read when it is needed. Without an index, all workflows
	// are read at the start.
	Index string
	// Program identifies this version of the program. Indexes of other versions are
	// ignored.
	Program string
	// Workers is the number of documents parsed in parallel; 0 means one per processor.
	Workers int
}

// Limits bound the content of sources. A zero field means the default.
type Limits struct {
	// FileBytes bounds one document: 1 MiB.
	FileBytes int64
	// Files bounds the documents of one source: 1,000. Those that come first by name are
	// read.
	Files int
	// TotalBytes bounds all documents of all sources: 64 MiB. Sources of a
	// higher rank are read first.
	TotalBytes int64
}

func (o Options) withDefaults() Options {
	if o.Parse == nil {
		o.Parse = workflow.Parse
	}
	if o.TTL <= 0 {
		o.TTL = 5 * time.Minute
	}
	if o.Limits.FileBytes <= 0 {
		o.Limits.FileBytes = 1 << 20
	}
	if o.Limits.Files <= 0 {
		o.Limits.Files = 1_000
	}
	if o.Limits.TotalBytes <= 0 {
		o.Limits.TotalBytes = 64 << 20
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o
}

// Catalog holds the definitions of its sources. It is safe for concurrent use.
type Catalog struct {
	opts    Options
	sources []Source // in order of rank
	current atomic.Pointer[Snapshot]

	// distrusted is set if an index or a copy was found to be wrong, so that it must not be
	// used. distrustSignal then requests that all sources are read again.
	distrusted     atomic.Bool
	distrustSignal chan struct{}

	loading sync.Mutex // held while sources are read and a snapshot is made
	states  []state    // one for each source; guarded by loading

	subscribing sync.Mutex
	subscribers []*subscriber

	watching sync.Mutex
	stop     context.CancelFunc // nil if nothing is watched
	watchers sync.WaitGroup
}

type subscriber struct{ call func(Change) }

// New returns a catalog, which is empty until Load or Open.
func New(sources []Source, opts Options) *Catalog {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b Source) int { return a.Info().Rank - b.Info().Rank })
	c := &Catalog{opts: opts.withDefaults(), sources: sources, states: make([]state, len(sources)), distrustSignal: make(chan struct{}, 1)}
	for i, source := range sources {
		c.states[i] = state{info: source.Info().WithLevel()}
	}
	c.current.Store(mergeStates(c.states))
	return c
}

// Load reads all sources, or their changes if they were read before. Documents that do not
// load are reported as diagnostics. It returns an error only if ctx is done.
func (c *Catalog) Load(ctx context.Context) error {
	return c.reloadSources(ctx, allSources)
}

// Open loads all sources and follows their changes until ctx is done or Close is called.
func (c *Catalog) Open(ctx context.Context) error {
	if err := c.Load(ctx); err != nil {
		return err
	}
	c.watching.Lock()
	defer c.watching.Unlock()
	if c.stop != nil {
		return nil
	}
	ctx, c.stop = context.WithCancel(ctx)
	for i, source := range c.sources {
		if watcher, ok := source.(Watcher); ok {
			// A source that cannot be watched is checked after its time to live.
			if changes, err := watcher.Changes(ctx); err == nil {
				c.watchers.Go(func() { c.followChanges(ctx, i, changes) })
			}
		}
	}
	c.watchers.Go(func() { c.refreshPeriodically(ctx) })
	return nil
}

// followChanges reloads a source whenever it reports a change. The channel is closed when
// ctx is done, and reading it until then makes Close wait for the source.
func (c *Catalog) followChanges(ctx context.Context, source int, changes <-chan struct{}) {
	for range changes {
		_ = c.reloadSources(ctx, source) // It fails only if ctx is done.
	}
}

// refreshPeriodically reloads all sources at every TTL, and when an index or a copy was
// found to be wrong.
func (c *Catalog) refreshPeriodically(ctx context.Context) {
	ticker := time.NewTicker(c.opts.TTL)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.distrustSignal:
		}
		if ctx.Err() == nil {
			_ = c.Load(ctx) // It fails only if ctx is done.
		}
	}
}

// Close stops following changes, and waits until the goroutines that follow them have
// ended. The definitions can still be read.
func (c *Catalog) Close() {
	c.watching.Lock()
	defer c.watching.Unlock()
	if c.stop != nil {
		c.stop()
		c.watchers.Wait()
		c.stop = nil
	}
}

// Snapshot returns the current definitions and diagnostics.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Get returns the served definition of an id; see Snapshot.Get. If this fails because an
// index or a copy is wrong, Get reads the sources again and repeats the search.
func (c *Catalog) Get(id string) (*Opened, error) {
	opened, err := c.Snapshot().Get(id)
	if err == nil || !c.distrusted.Load() {
		return opened, err
	}
	_ = c.Load(context.Background()) // Load returns an error only if its context ends
	return c.Snapshot().Get(id)
}

// List returns the served definitions, sorted by id.
func (c *Catalog) List(filter Filter) []*Entry { return c.Snapshot().List(filter) }

// Diagnostics returns the diagnostics of reading the sources; see Snapshot.Diagnostics.
func (c *Catalog) Diagnostics() []guideway.Diagnostic { return c.Snapshot().Diagnostics() }

// Sources returns the status of each source, lowest rank first.
func (c *Catalog) Sources() []SourceStatus {
	statuses := slices.Clone(c.Snapshot().Sources())
	for i := range statuses {
		for _, source := range c.sources {
			if follower, ok := source.(Syncer); ok && source.Info().Name == statuses[i].Name {
				state := follower.SyncState()
				statuses[i].Sync = &state
			}
		}
	}
	return statuses
}

// Change describes the differences of a new snapshot. The ids are sorted.
type Change struct {
	// Added, Removed and Changed are ids of definitions. A definition has changed if its
	// content has changed, or if another source serves it.
	Added, Removed, Changed []string
	// Library reports that the activities, skills, guides, templates or rules changed.
	Library bool
	// Hooks reports that the hook graphs changed.
	Hooks bool
	// Machines reports that the agent machines changed.
	Machines bool
	// Diagnostics reports that the diagnostics changed.
	Diagnostics bool
	// Snapshot is the new state.
	Snapshot *Snapshot
}

// OnChange calls call after each change, sequentially and in order, until the returned
// function is called. call runs in the goroutine that detected the change and must be
// short; it must not call Load, Open, Close, OnChange or cancel.
func (c *Catalog) OnChange(call func(Change)) (cancel func()) {
	s := &subscriber{call: call}
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	c.subscribers = append(c.subscribers, s)
	return func() {
		c.subscribing.Lock()
		defer c.subscribing.Unlock()
		c.subscribers = slices.DeleteFunc(c.subscribers, func(other *subscriber) bool { return other == s })
	}
}

// publishSnapshot makes a snapshot the current one and reports its changes.
func (c *Catalog) publishSnapshot(next *Snapshot) {
	change := compareSnapshots(c.current.Swap(next), next)
	if change == nil {
		return
	}
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	for _, s := range c.subscribers {
		s.call(*change)
	}
}
