// Package catalog holds all definitions of all sources in order of precedence,
// with diagnostics for what did not load, and keeps up with changes.
//
// Rules:
//   - Of two definitions with one id, the one of the source with the higher
//     rank is served; it says which ones it overrides. Within one source the
//     first by file name is served, and the other is a diagnostic.
//   - A document that does not load never hides a definition: another
//     source's definition of that id goes on serving.
//   - A document that stops loading while the program runs is a diagnostic, and
//     its last good version goes on serving until the file is mended, deleted
//     or the program ends: a half saved edit must not take a workflow away
//     from the agents that use it.
//   - A source that cannot be listed keeps what it had.
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

// Options adjust a Catalog; the zero value is useful.
type Options struct {
	// Parse reads a document; nil means workflow.Parse. Its definition is
	// nil if the document does not load.
	Parse func(file string, data []byte) (*workflow.Definition, []guideway.Diagnostic)
	// Lint judges a definition that loads, with the document if it can still be
	// read; nil means workflow.LintIn with what lies beside it.
	Lint func(*workflow.Definition, []byte) []guideway.Diagnostic
	// TTL is how long a source is trusted without a look, even if it reports
	// its changes: 5 minutes.
	TTL time.Duration
	// Limits bound what sources may give.
	Limits Limits
	// Index is the directory in which it is kept from start to start what lists tell
	// of workflows, by the hashes of their texts; a workflow whose text is known is
	// read when it is asked for. "" keeps nothing, and everything is read at once.
	Index string
	// Program says which program this is. What another has kept counts for nothing.
	Program string
	// Workers is how many documents are parsed at once; 0 means one for each
	// processor.
	Workers int
}

// Limits bound what sources may give. A zero field means the default.
type Limits struct {
	// FileBytes bounds one document: 1 MiB.
	FileBytes int64
	// Files bounds the documents of one source: 1,000. The first by name are
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

// Catalog holds the definitions of its sources. Its methods may be called from
// any goroutine.
type Catalog struct {
	opts    Options
	sources []Source // in order of rank
	current atomic.Pointer[Snapshot]

	// doubted says that what passes as known is not to be trusted, and doubts asks for
	// a load for that reason.
	doubted atomic.Bool
	doubts  chan struct{}

	loading sync.Mutex // held while sources are read and a snapshot is made
	states  []state    // one for each source; belongs to loading

	subscribing sync.Mutex
	subscribers []*subscriber

	watching sync.Mutex
	stop     context.CancelFunc // nil while nothing is watched
	watchers sync.WaitGroup
}

type subscriber struct{ call func(Change) }

// New makes a catalog that is empty until Load or Open.
func New(sources []Source, opts Options) *Catalog {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b Source) int { return a.Info().Rank - b.Info().Rank })
	c := &Catalog{opts: opts.withDefaults(), sources: sources, states: make([]state, len(sources)), doubts: make(chan struct{}, 1)}
	for i, source := range sources {
		c.states[i] = state{info: source.Info().WithLevel()}
	}
	c.current.Store(merge(c.states))
	return c
}

// Load reads all sources, or again what changed in them. What does not load is
// a diagnostic; the only error is that of ctx.
func (c *Catalog) Load(ctx context.Context) error {
	return c.reload(ctx, all)
}

// Open loads all sources and keeps up with their changes until ctx is done or
// Close is called.
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
			// A source that cannot be watched is looked at when its time to
			// live is over.
			if changes, err := watcher.Changes(ctx); err == nil {
				c.watchers.Go(func() { c.follow(ctx, i, changes) })
			}
		}
	}
	c.watchers.Go(func() { c.refresh(ctx) })
	return nil
}

// follow reloads a source whenever it reports a change. The channel is closed
// when ctx is done, and reading it until then makes Close wait for the source.
func (c *Catalog) follow(ctx context.Context, source int, changes <-chan struct{}) {
	for range changes {
		_ = c.reload(ctx, source) // the error is that of ctx
	}
}

// refresh reloads all sources whenever their time to live is over, or what is known of
// them turned out to be wrong.
func (c *Catalog) refresh(ctx context.Context) {
	ticker := time.NewTicker(c.opts.TTL)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.doubts:
		}
		if ctx.Err() == nil {
			_ = c.Load(ctx) // the error is that of ctx
		}
	}
}

// Close ends the following of changes and waits for it. The definitions can
// still be read.
func (c *Catalog) Close() {
	c.watching.Lock()
	defer c.watching.Unlock()
	if c.stop != nil {
		c.stop()
		c.watchers.Wait()
		c.stop = nil
	}
}

// Snapshot gives the definitions and diagnostics of one moment.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Get gives the definition that is served for an id. See Snapshot.Get. Where what was
// known of it turns out to be wrong, the sources are read again first.
func (c *Catalog) Get(id string) (*Opened, error) {
	opened, err := c.Snapshot().Get(id)
	if err == nil || !c.doubted.Load() {
		return opened, err
	}
	_ = c.Load(context.Background()) // a context that does not end gives no error
	return c.Snapshot().Get(id)
}

// List gives the definitions that are served, in order of their ids.
func (c *Catalog) List(filter Filter) []*Entry { return c.Snapshot().List(filter) }

// Diagnostics says what did not load and why.
func (c *Catalog) Diagnostics() []guideway.Diagnostic { return c.Snapshot().Diagnostics() }

// Sources says how each source is, lowest rank first.
func (c *Catalog) Sources() []SourceStatus {
	statuses := slices.Clone(c.Snapshot().Sources())
	for i := range statuses {
		for _, source := range c.sources {
			if follower, ok := source.(Follower); ok && source.Info().Name == statuses[i].Name {
				state := follower.SyncState()
				statuses[i].Sync = &state
			}
		}
	}
	return statuses
}

// Change says what a new snapshot changed. The ids are in order.
type Change struct {
	// Added, Removed and Changed are ids of definitions. One is changed if its
	// content is, or if another source serves it.
	Added, Removed, Changed []string
	// Library says that other activities, skills, guides, templates or rules are
	// served than before.
	Library bool
	// Hooks says that other hook graphs are served than before.
	Hooks bool
	// Machines says that other agent machines are served than before.
	Machines bool
	// Diagnostics says that other things do not load than before.
	Diagnostics bool
	// Snapshot is the new state.
	Snapshot *Snapshot
}

// OnChange has call called after each change, one call at a time and in order,
// until the function that it returns is called. The call comes from the
// goroutine that noticed the change and must be short; it must not call Load,
// Open, Close, OnChange or cancel.
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

// publish puts a snapshot in force and tells of what it changes.
func (c *Catalog) publish(next *Snapshot) {
	change := compare(c.current.Swap(next), next)
	if change == nil {
		return
	}
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	for _, s := range c.subscribers {
		s.call(*change)
	}
}
