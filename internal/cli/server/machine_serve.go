package server

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	engine "github.com/guideway-dev/guideway/internal/machine/engine"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/run"
)

// lazyMachines opens the machine run store at the first call.
type lazyMachines struct {
	app      *app.App
	cfg      *config.Config
	log      *slog.Logger
	resolver *MachineResolver
	pool     *sandbox.Pool
	tools    driver.Tools
	// tracer is nil if tracing is off.
	tracer driver.Tracer
	// owner is the id of this instance, or "".
	owner string

	// mu guards the fields below. It is held while the store opens.
	mu         sync.Mutex
	store      *MachineStore
	background *driver.Background
	closed     bool

	// stop ends the goroutine of startWorker.
	stop     context.CancelFunc
	starting sync.WaitGroup
}

var _ mcpserver.Machines = (*lazyMachines)(nil)

// newLazyMachines returns machines that use the pool. The pool must stay open until
// closeService returns.
func newLazyMachines(a *app.App, cfg *config.Config, cat *catalog.Catalog, pool *sandbox.Pool, tools driver.Tools) *lazyMachines {
	return &lazyMachines{app: a, tools: tools, cfg: cfg, log: a.Logger(cfg), resolver: &MachineResolver{Snapshot: cat.Snapshot, host: a.Host, checkApproval: newApprovalCheck(a, cfg)}, pool: pool}
}

// openService returns the service, and opens the store if it is not open.
func (l *lazyMachines) openService(ctx context.Context) (*driver.Background, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.background != nil {
		return l.background, nil
	}
	if l.closed {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the server is shutting down").WithFix("try again after the server has been started again")
	}
	user, err := app.LocalUser(l.cfg)
	if err != nil {
		return nil, err
	}
	models, err := NewMachineModels(l.app, l.cfg, l.resolver, "")
	if err != nil {
		return nil, err
	}
	if l.store, err = OpenMachineStore(ctx, l.cfg, user, MachineDeps{Resolver: l.resolver, Models: models, Pool: l.pool, Tools: l.tools, Tracer: l.tracer, Owner: l.owner, Schedule: true}, l.log); err != nil {
		return nil, err
	}
	l.background = driver.NewBackground(l.store.Runs, l.cfg.Machines.Workers, l.log)
	return l.background, nil
}

// startWorker opens the store in the background as soon as it exists, so that this process
// drives runs without a call, such as those of a process that ended, and knows the heads of
// the runs of other instances.
func (l *lazyMachines) startWorker() {
	const first, later = time.Second, 5 * time.Second
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.starting.Go(func() {
		for wait := first; ctxsleep.For(ctx, wait) == nil; wait = later {
			if !app.HasStore(MachineConfig(l.cfg)) {
				continue
			}
			if b, err := l.openService(ctx); err == nil {
				if l.cfg.UsesPostgres() {
					b.FollowHeads(ctx)
				}
				return
			} else if ctx.Err() == nil {
				l.log.Warn("cannot open the store of machine runs", "error", err)
			}
		}
	})
}

// closeService interrupts the active runs. Another process continues them, or the next one.
func (l *lazyMachines) closeService() {
	if l.stop != nil {
		l.stop()
		l.starting.Wait()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.background != nil {
		l.background.Close()
		l.store.Close()
		l.background = nil
	}
}

// Served implements mcpserver.Machines.
func (l *lazyMachines) Served(context.Context) ([]mcpserver.MachineInfo, error) {
	served, _ := l.resolver.All()
	var out []mcpserver.MachineInfo
	for _, s := range served {
		info := mcpserver.MachineInfo{Name: s.Definition.Name, Description: s.Definition.Description, Inputs: []mcpserver.MachineInput{}}
		for i := range s.Definition.Inputs {
			in := &s.Definition.Inputs[i]
			info.Inputs = append(info.Inputs, mcpserver.MachineInput{
				Name: in.Name, Type: string(in.Type), Description: in.Description, Required: !in.Optional, Default: in.Default,
			})
		}
		out = append(out, info)
	}
	return out, nil
}

// Start implements mcpserver.Machines.
func (l *lazyMachines) Start(ctx context.Context, c run.Caller, r driver.StartRequest) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Start(ctx, c, r) })
}

// Wait implements mcpserver.Machines.
func (l *lazyMachines) Wait(ctx context.Context, c run.Caller, id string, patience time.Duration) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Wait(ctx, c, id, patience) })
}

// Input implements mcpserver.Machines.
func (l *lazyMachines) Input(ctx context.Context, c run.Caller, id string, answer driver.InputAnswer) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Input(ctx, c, id, answer) })
}

// Decide implements mcpserver.Machines.
func (l *lazyMachines) Decide(ctx context.Context, c run.Caller, id string, answer driver.OutcomeAnswer) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Decide(ctx, c, id, answer) })
}

// Cancel implements mcpserver.Machines.
func (l *lazyMachines) Cancel(ctx context.Context, c run.Caller, id, reason string) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Cancel(ctx, c, id, reason) })
}

// Watch implements mcpserver.Machines and httpapi.Machines.
func (l *lazyMachines) Watch(id string) (updates <-chan driver.Update, cancel func()) {
	l.mu.Lock()
	b := l.background
	l.mu.Unlock()
	if b == nil {
		return nil, func() {}
	}
	return b.Watch(id)
}

// Entries implements httpapi.Machines.
func (l *lazyMachines) Entries() []*catalog.MachineEntry { return l.resolver.Snapshot().Machines() }

// Entry implements httpapi.Machines.
func (l *lazyMachines) Entry(name string) (*catalog.MachineEntry, error) {
	return l.resolver.Snapshot().Machine(name)
}

// Status implements httpapi.Machines.
func (l *lazyMachines) Status(ctx context.Context, c run.Caller, id string) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Status(ctx, c, id) })
}

// View implements httpapi.Machines.
func (l *lazyMachines) View(ctx context.Context, c run.Caller, id string) (*driver.View, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.View, error) { return b.View(ctx, c, id) })
}

// List implements httpapi.Machines.
func (l *lazyMachines) List(ctx context.Context, c run.Caller, f run.Filter) ([]run.Record, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) ([]run.Record, error) { return b.List(ctx, c, f) })
}

// Events implements httpapi.Machines.
func (l *lazyMachines) Events(ctx context.Context, c run.Caller, id string) ([]run.Event, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) ([]run.Event, error) { return b.Events(ctx, c, id) })
}

// Resume implements httpapi.Machines.
func (l *lazyMachines) Resume(ctx context.Context, c run.Caller, id string, limits engine.Limits) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Resume(ctx, c, id, limits) })
}

// AcceptTools implements httpapi.Machines.
func (l *lazyMachines) AcceptTools(ctx context.Context, c run.Caller, id string) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.AcceptTools(ctx, c, id) })
}

// Fork implements httpapi.Machines.
func (l *lazyMachines) Fork(ctx context.Context, c run.Caller, id string, seq int64) (*driver.Status, error) {
	return app.WithOpened(ctx, l.openService, func(b *driver.Background) (*driver.Status, error) { return b.Fork(ctx, c, id, seq) })
}

// MachineDeps are the dependencies of machine runs, except for the journal.
type MachineDeps struct {
	Resolver *MachineResolver
	Models   driver.Models
	Pool     *sandbox.Pool
	Tools    driver.Tools
	// Tracer is nil if tracing is off.
	Tracer driver.Tracer
	// Owner, Schedule and Attended are those of driver.Options.
	Owner              string
	Schedule, Attended bool
}

// MachineStore is the machine run journal and the service that uses it.
type MachineStore struct {
	MachineDeps
	Runs    *driver.Service
	journal app.JournalStore
	log     *slog.Logger
}

// Close closes the service and the journal.
func (s *MachineStore) Close() {
	if err := s.Runs.Close(context.Background()); err != nil {
		s.log.Warn("cannot record that this process drives no more machine runs", "error", err)
	}
	if err := s.journal.Close(); err != nil {
		s.log.Warn("cannot close the machine store", "error", err)
	}
}

// openService creates the service that uses the journal.
func (s *MachineStore) openService(ctx context.Context, cfg *config.Config, user string, permit PermitFunc) error {
	key, err := app.OpenKey(ctx, cfg, s.journal)
	if err != nil {
		return err
	}
	heads, err := app.OpenHeads(cfg, key)
	if err != nil {
		return err
	}
	s.Runs, err = driver.New(driver.Options{
		Journal: app.SealJournal(cfg, s.journal), Key: key, Heads: heads, Machines: s.Resolver, Models: s.Models, Tools: s.Tools, Tracer: s.Tracer,
		Permit: permit, Shares: app.SharesOf(cfg),
		Handlers: &driver.Scripts{Sandbox: s.Pool, Owner: user},
		Store:    s.journal, Owner: s.Owner, Schedule: s.Schedule, Attended: s.Attended, Requests: cfg.Machines.Requests, Logger: s.log,
	})
	return err
}

// OpenMachineStore opens the machine run journal. It is separate from the journal of
// guided runs, because the messages of agents would make that one large.
func OpenMachineStore(ctx context.Context, cfg *config.Config, user string, parts MachineDeps, log *slog.Logger) (*MachineStore, error) {
	own := MachineConfig(cfg)
	if !own.UsesPostgres() {
		if err := atomicfile.MakeDir(own.DataDir); err != nil {
			return nil, app.StoreOpenError(err)
		}
	}
	journal, err := app.OpenJournal(ctx, own, log)
	if err != nil {
		return nil, app.StoreOpenError(err)
	}
	s := &MachineStore{MachineDeps: parts, journal: journal, log: log}
	permit, err := NewMachinePermit(cfg)
	if err == nil {
		err = s.openService(ctx, own, user, permit)
	}
	if err != nil {
		_ = journal.Close()
		return nil, app.StoreOpenError(err)
	}
	return s, nil
}

// MachineConfig returns the settings with the machine run store in place of the store
// of guided runs.
func MachineConfig(cfg *config.Config) *config.Config {
	own := *cfg
	if cfg.UsesPostgres() {
		own.Store = machineStore(cfg.Store)
	} else {
		own.DataDir = filepath.Join(cfg.DataDir, "machines")
	}
	return &own
}

// machineStore returns the URL of the machine run store of a PostgreSQL store: the name of its
// schema ends with _machines.
func machineStore(store string) string {
	if u, err := url.Parse(store); err == nil && u.Query().Has("search_path") {
		q := u.Query()
		q.Set("search_path", q.Get("search_path")+"_machines")
		u.RawQuery = q.Encode()
		return u.String()
	}
	sign := "?"
	if strings.Contains(store, "?") {
		sign = "&"
	}
	return store + sign + "search_path=guideway_machines"
}

// ClosePool stops the script workers.
func ClosePool(pool *sandbox.Pool, log *slog.Logger) {
	const patience = 5 * time.Second
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := pool.Close(ctx); err != nil {
		log.Warn("the script workers did not stop", "error", err)
	}
}
