package app

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// JournalStore is the interface of the SQLite and PostgreSQL stores.
type JournalStore interface {
	run.Journal
	session.Store
	hookstate.ListStore
	// PinKey stores the fingerprint of the key that chains the runs, if none is stored. It
	// returns the stored fingerprint, or nil if none exists. A nil fingerprint is not stored.
	PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error)
}

// Store opens the journal at the first call, so that a client that only reads workflows
// does not open it. If that fails, the call returns the error and the next call tries
// again.
type Store struct {
	Cfg         *config.Config
	Definitions run.Definitions
	Log         *slog.Logger
	// Checker executes the checks of runs. It must not be changed after NewRuns.
	Checker run.Checker
	// Runs is the run service. NewAutoSaver sets Runs, and the first call of the service
	// opens the store.
	Runs *run.Service

	// Lock guards the fields below. It is a channel, so that a caller can give up waiting.
	Lock chan struct{}
	// journal may be set before opened: checkpoints need only the journal.
	journal JournalStore
	opened  *Opened
	closed  bool
}

// Opened is an open journal with the key that authenticates its event chains and the heads
// (the last known event of each run) that detect a rollback.
type Opened struct {
	JournalStore
	key   run.Key
	heads run.Heads
}

// NewStore returns a store that opens at the first call. If definitions is nil, no runs can
// be started.
func (a *App) NewStore(cfg *config.Config, definitions run.Definitions) *Store {
	return &Store{Cfg: cfg, Definitions: definitions, Log: a.Logger(cfg), Checker: a.NewChecker(cfg, nil), Lock: make(chan struct{}, 1)}
}

// Open returns the journal with its key and its heads. Concurrent calls wait until the
// journal is open or their own context is done.
func (s *Store) Open(ctx context.Context) (*Opened, error) {
	if err := s.acquireLock(ctx); err != nil {
		return nil, err
	}
	defer s.releaseLock()
	if s.opened != nil {
		return s.opened, nil
	}
	journal, err := s.openJournal(ctx)
	if err != nil {
		return nil, err
	}
	key, err := OpenKey(ctx, s.Cfg, journal)
	if err != nil {
		return nil, StoreOpenError(err)
	}
	heads, err := OpenHeads(s.Cfg, key)
	if err != nil {
		return nil, StoreOpenError(err)
	}
	s.opened = &Opened{JournalStore: SealJournal(s.Cfg, journal), key: key, heads: heads}
	return s.opened, nil
}

// NewRuns returns the run service of the store. The observer, which may be nil, is notified
// of changes of runs.
func (s *Store) NewRuns(observer run.Observer) (*run.Service, error) {
	return run.New(run.Options{
		Open: func(ctx context.Context) (run.Journal, run.Key, run.Heads, error) {
			o, err := s.Open(ctx)
			if err != nil {
				return nil, nil, nil, err
			}
			return o.JournalStore, o.key, o.heads, nil
		},
		Definitions: s.Definitions, PersonGates: s.Cfg.Gates.Approval == config.ApprovalHuman, Observer: observer, Logger: s.Log,
		Checker: s.Checker, Shares: sharesOf(s.Cfg.Projects.Members),
	})
}

// sharesOf returns the shared projects of members, each "PROJECT=USER". A project is a path
// or an id.
func sharesOf(members []string) []run.Share {
	var shares []run.Share
	for _, entry := range members {
		at := strings.LastIndex(entry, "=")
		id, user := entry[:at], entry[at+1:]
		if strings.ContainsAny(id, `/\\`) {
			id = project.ID(id)
		}
		i := slices.IndexFunc(shares, func(h run.Share) bool { return h.Project == id })
		if i < 0 {
			i, shares = len(shares), append(shares, run.Share{Project: id})
		}
		shares[i].Members = append(shares[i].Members, user)
	}
	return shares
}

// openJournalAlone returns the journal without a key.
func (s *Store) openJournalAlone(ctx context.Context) (JournalStore, error) {
	if err := s.acquireLock(ctx); err != nil {
		return nil, err
	}
	defer s.releaseLock()
	return s.openJournal(ctx)
}

func (s *Store) acquireLock(ctx context.Context) error {
	select {
	case s.Lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return guideway.Errorf(guideway.CodeUnavailable, "the wait for the store to open ended: %w", ctx.Err())
	}
}

func (s *Store) releaseLock() { <-s.Lock }

// openJournal opens the journal if it is not open. The caller holds Lock.
func (s *Store) openJournal(ctx context.Context) (JournalStore, error) {
	if s.closed {
		return nil, context.Canceled
	}
	if s.journal == nil {
		journal, err := OpenJournal(ctx, s.Cfg, s.Log)
		if err != nil {
			return nil, StoreOpenError(err)
		}
		s.journal = journal
	}
	return s.journal, nil
}

// StoreOpenError converts an internal error of opening the store to one that clients see,
// because the cause is on this machine and may be temporary.
func StoreOpenError(err error) error {
	if guideway.ErrorCode(err) != guideway.CodeInternal {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "open the store: %w", err).WithFix("guideway doctor")
}

// Close closes the journal after the calls in progress have ended.
func (s *Store) Close() {
	s.Lock <- struct{}{}
	defer s.releaseLock()
	s.closed = true
	if s.journal == nil {
		return
	}
	if err := s.journal.Close(); err != nil {
		s.Log.Warn("cannot close the journal", "error", err)
	}
	s.journal, s.opened = nil, nil
}

// StartableDefinitions implements run.Definitions on a catalog.
type StartableDefinitions struct{ Catalog *catalog.Catalog }

var _ run.Definitions = StartableDefinitions{}

// Startable implements run.Definitions.
func (s StartableDefinitions) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	entry, err := s.Catalog.Get(id)
	if err != nil {
		return nil, err
	}
	if found := FilterErrors(entry.Lint()); len(found) > 0 {
		return nil, cannotRunError(id, found[0])
	}
	served := *entry.Definition
	served.Source, served.Revision = entry.Source.Name, entry.Revision
	return &served, nil
}

// cannotRunError returns the error for a definition that loads but would block an agent.
func cannotRunError(id string, d guideway.Diagnostic) error {
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "workflow %q cannot be run: %s: %s", id, formatPosition(d), d.Message)
	err.Fix = d.Fix
	return err
}

// RunDeps are the dependencies of a command on runs.
type RunDeps struct {
	Runs *run.Service
	// Caller is the principal of the command line: the operating system user, as on stdio.
	Caller run.Caller
	// Project is the project of the working directory.
	Project run.Project
}

// ClientName is the client label of the command line in events.
const ClientName = "guideway"

// WithRuns opens the store for one command on runs.
func (a *App) WithRuns(ctx context.Context, do func(context.Context, *RunDeps) error) error {
	return a.WithRunsAndDefinitions(ctx, nil, do)
}

// WithRunsAndDefinitions is WithRuns for a command that starts runs of definitions.
func (a *App) WithRunsAndDefinitions(ctx context.Context, definitions run.Definitions, do func(context.Context, *RunDeps) error) error {
	return a.withOpenStore(ctx, definitions, func(ctx context.Context, s *Store, _ *Opened, person guideway.Principal) error {
		return do(ctx, &RunDeps{
			Runs:    s.Runs,
			Caller:  run.Caller{Principal: person, Via: run.ViaAgent},
			Project: a.Host.Project(),
		})
	})
}

// WithStore opens the store, calls do with the principal of the user, and closes the store.
func (a *App) WithStore(ctx context.Context, do func(context.Context, *Opened, guideway.Principal) error) error {
	return a.withOpenStore(ctx, nil, func(ctx context.Context, _ *Store, o *Opened, person guideway.Principal) error {
		return do(ctx, o, person)
	})
}

func (a *App) withOpenStore(ctx context.Context, definitions run.Definitions, do func(context.Context, *Store, *Opened, guideway.Principal) error) error {
	cfg, person, err := a.LoadUser()
	if err != nil {
		return err
	}
	s := a.NewStore(cfg, definitions)
	defer s.Close()
	c := a.NewCheckpointStore(s, MasterKey{Host: a.Host})
	defer c.Close()
	keeper, err := NewAutoSaver(s, c)
	if err != nil {
		return err
	}
	defer CloseAutoSaver(s, keeper)
	o, err := s.Open(ctx)
	if err != nil {
		return err
	}
	return do(ctx, s, o, person)
}

// LookupProject returns the project, like Project. MCP and HTTP call it for each request,
// because the branch may change.
func (h *Host) LookupProject(context.Context) run.Project { return h.Project() }

// Project returns the project of the working directory, or the zero value if there is no
// such directory.
func (h *Host) Project() run.Project {
	p, err := project.Detect(h.Dir)
	if err != nil {
		return run.Project{}
	}
	return run.Project{ID: p.ID, Path: p.Path, Branch: p.Branch, Commit: p.Commit}
}
