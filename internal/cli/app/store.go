package app

import (
	"context"
	"log/slog"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// JournalStore is what both stores are.
type JournalStore interface {
	run.Journal
	session.Store
	// PinKey keeps the fingerprint of the key that the runs are chained by: the
	// first one that it is given. It answers the one that is kept, or nil.
	PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error)
}

// Store opens the journal when the first call needs it: a client that only reads
// workflows pays nothing for it. That it cannot be opened is the answer to the
// call that needed it; the next call tries again.
type Store struct {
	Cfg         *config.Config
	Definitions run.Definitions
	Log         *slog.Logger
	// Runs is the service that opens the store at its first call; newKeeper makes it.
	Runs *run.Service

	// Lock is held by who looks at what follows, or changes it. It is a channel so
	// that who waits for another's opening can give up.
	Lock chan struct{}
	// journal is there before opened is: checkpoints need it alone.
	journal JournalStore
	opened  *Opened
	closed  bool
}

// Opened is a journal with what its chains are checked by.
type Opened struct {
	JournalStore
	key   run.Key
	heads run.Heads
}

// NewStore makes a store that is opened later. The definitions are those that
// runs may be started of; nil where none are started.
func (a *App) NewStore(cfg *config.Config, definitions run.Definitions) *Store {
	return &Store{Cfg: cfg, Definitions: definitions, Log: a.Logger(cfg), Lock: make(chan struct{}, 1)}
}

// Open returns the journal with its key and its heads, and opens them where that has
// not happened yet. Calls that come meanwhile wait for it, each as long as its own
// context lasts.
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
	s.opened = &Opened{JournalStore: journal, key: key, heads: heads}
	return s.opened, nil
}

// NewRuns returns the run service on the store, which its first call opens. The
// observer is told of what runs do; nil is nobody.
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
	})
}

// openJournalAlone gives the journal alone: it needs no key.
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
		return guideway.Errorf(guideway.CodeUnavailable, "wait for the store to be opened: %w", ctx.Err())
	}
}

func (s *Store) releaseLock() { <-s.Lock }

// openJournal opens the journal where it is not open yet. The caller has the turn.
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

// StoreOpenError tells the caller, and not the log alone, why the store did not open:
// it is this machine's state, and may be another one at the next call.
func StoreOpenError(err error) error {
	if guideway.ErrorCode(err) != guideway.CodeInternal {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "open the store: %w", err).WithFix("guideway doctor")
}

// Close closes what was opened. Calls that are under way end first.
func (s *Store) Close() {
	s.Lock <- struct{}{}
	defer s.releaseLock()
	s.closed = true
	if s.journal == nil {
		return
	}
	if err := s.journal.Close(); err != nil {
		s.Log.Warn("the journal did not close", "error", err)
	}
	s.journal, s.opened = nil, nil
}

// StartableDefinitions gives the definitions that a run may be started of.
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

// cannotRunError says that a definition loads and still would stop an agent.
func cannotRunError(id string, d guideway.Diagnostic) error {
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "workflow %q cannot be run: %s: %s", id, formatPosition(d), d.Message)
	err.Fix = d.Fix
	return err
}

// RunDeps is what a command on runs works with.
type RunDeps struct {
	Runs *run.Service
	// Caller is the person at the command line: the system's user, as on stdio.
	Caller run.Caller
	// Project is the project of the working directory.
	Project run.Project
}

// ClientName is what the command line calls itself in events.
const ClientName = "guideway"

// WithRuns opens the store for one command.
func (a *App) WithRuns(ctx context.Context, do func(context.Context, *RunDeps) error) error {
	return a.WithRunsAndDefinitions(ctx, nil, do)
}

// WithRunsAndDefinitions is withRuns for a command that begins runs of definitions.
func (a *App) WithRunsAndDefinitions(ctx context.Context, definitions run.Definitions, do func(context.Context, *RunDeps) error) error {
	return a.withOpenStore(ctx, definitions, func(ctx context.Context, s *Store, _ *Opened, person guideway.Principal) error {
		return do(ctx, &RunDeps{
			Runs:    s.Runs,
			Caller:  run.Caller{Principal: person, Via: run.ViaAgent},
			Project: a.Host.Project(),
		})
	})
}

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

// LookupProject is project for the surfaces, which ask it at every call: a branch may
// have been changed since the last one.
func (h *Host) LookupProject(context.Context) run.Project { return h.Project() }

// Project is the project of the working directory; none where there is no such
// directory.
func (h *Host) Project() run.Project {
	p, err := project.Detect(h.Dir)
	if err != nil {
		return run.Project{}
	}
	return run.Project{ID: p.ID, Path: p.Path, Branch: p.Branch, Commit: p.Commit}
}
