package cli

import (
	"context"
	"log/slog"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/project"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// keeper is what both stores are.
type keeper interface {
	run.Journal
	session.Store
	// PinKey keeps the fingerprint of the key that the runs are chained by: the
	// first one that it is given. It answers the one that is kept, or nil.
	PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error)
}

// store opens the journal when the first call needs it: a client that only reads
// workflows pays nothing for it. That it cannot be opened is the answer to the
// call that needed it; the next call tries again.
type store struct {
	cfg         *config.Config
	definitions run.Definitions
	log         *slog.Logger
	// runs is the service that opens the store at its first call; newKeeper makes it.
	runs *run.Service

	// turn is held by who looks at what follows, or changes it. It is a channel so
	// that who waits for another's opening can give up.
	turn chan struct{}
	// journal is there before opened is: checkpoints need it alone.
	journal keeper
	opened  *opened
	closed  bool
}

// opened is a journal with what its chains are checked by.
type opened struct {
	keeper
	key   run.Key
	heads run.Heads
}

// newStore makes a store that is opened later. The definitions are those that
// runs may be started of; nil where none are started.
func (a *app) newStore(cfg *config.Config, definitions run.Definitions) *store {
	return &store{cfg: cfg, definitions: definitions, log: a.logger(cfg), turn: make(chan struct{}, 1)}
}

// open returns the journal with its key and its heads, and opens them where that has
// not happened yet. Calls that come meanwhile wait for it, each as long as its own
// context lasts.
func (s *store) open(ctx context.Context) (*opened, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if s.opened != nil {
		return s.opened, nil
	}
	journal, err := s.openJournal(ctx)
	if err != nil {
		return nil, err
	}
	key, err := openKey(ctx, s.cfg, journal)
	if err != nil {
		return nil, notOpened(err)
	}
	heads, err := openHeads(s.cfg, key)
	if err != nil {
		return nil, notOpened(err)
	}
	s.opened = &opened{keeper: journal, key: key, heads: heads}
	return s.opened, nil
}

// newRuns returns the run service on the store, which its first call opens. The
// observer is told of what runs do; nil is nobody.
func (s *store) newRuns(observer run.Observer) (*run.Service, error) {
	return run.New(run.Options{
		Open: func(ctx context.Context) (run.Journal, run.Key, run.Heads, error) {
			o, err := s.open(ctx)
			if err != nil {
				return nil, nil, nil, err
			}
			return o.keeper, o.key, o.heads, nil
		},
		Definitions: s.definitions, PersonGates: s.cfg.Gates.Approval == config.ApprovalHuman, Observer: observer, Logger: s.log,
	})
}

// openKeeper gives the journal alone: it needs no key.
func (s *store) openKeeper(ctx context.Context) (keeper, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.openJournal(ctx)
}

func (s *store) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return guideway.Errorf(guideway.CodeUnavailable, "wait for the store to be opened: %w", ctx.Err())
	}
}

func (s *store) leave() { <-s.turn }

// openJournal opens the journal where it is not open yet. The caller has the turn.
func (s *store) openJournal(ctx context.Context) (keeper, error) {
	if s.closed {
		return nil, context.Canceled
	}
	if s.journal == nil {
		journal, err := openJournal(ctx, s.cfg, s.log)
		if err != nil {
			return nil, notOpened(err)
		}
		s.journal = journal
	}
	return s.journal, nil
}

// notOpened tells the caller, and not the log alone, why the store did not open:
// it is this machine's state, and may be another one at the next call.
func notOpened(err error) error {
	if guideway.ErrorCode(err) != guideway.CodeInternal {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "open the store: %w", err).WithFix("guideway doctor")
}

// close closes what was opened. Calls that are under way end first.
func (s *store) close() {
	s.turn <- struct{}{}
	defer s.leave()
	s.closed = true
	if s.journal == nil {
		return
	}
	if err := s.journal.Close(); err != nil {
		s.log.Warn("the journal did not close", "error", err)
	}
	s.journal, s.opened = nil, nil
}

// startable gives the definitions that a run may be started of.
type startable struct{ catalog *catalog.Catalog }

var _ run.Definitions = startable{}

// Startable implements run.Definitions.
func (s startable) Startable(_ context.Context, id string) (*definition.Definition, error) {
	entry, err := s.catalog.Get(id)
	if err != nil {
		return nil, err
	}
	if found := errorsOf(entry.Lint()); len(found) > 0 {
		return nil, cannotRun(id, found[0])
	}
	served := *entry.Definition
	served.Source, served.Revision = entry.Source.Name, entry.Revision
	return &served, nil
}

// cannotRun says that a definition loads and still would stop an agent.
func cannotRun(id string, d guideway.Diagnostic) error {
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "workflow %q cannot be run: %s: %s", id, place(d), d.Message)
	err.Fix = d.Fix
	return err
}

// runDesk is what a command on runs works with.
type runDesk struct {
	runs *run.Service
	// caller is the person at the command line: the system's user, as on stdio.
	caller run.Caller
	// here is the project of the working directory.
	here run.Project
}

// clientName is what the command line calls itself in events.
const clientName = "guideway"

// withRuns opens the store for one command.
func (a *app) withRuns(ctx context.Context, do func(context.Context, *runDesk) error) error {
	return a.withRunsOf(ctx, nil, do)
}

// withRunsOf is withRuns for a command that begins runs of definitions.
func (a *app) withRunsOf(ctx context.Context, definitions run.Definitions, do func(context.Context, *runDesk) error) error {
	return a.withStoreOf(ctx, definitions, func(ctx context.Context, s *store, _ *opened, person guideway.Principal) error {
		return do(ctx, &runDesk{
			runs:   s.runs,
			caller: run.Caller{Principal: person, Via: run.ViaAgent},
			here:   a.host.project(),
		})
	})
}

func (a *app) withStore(ctx context.Context, do func(context.Context, *opened, guideway.Principal) error) error {
	return a.withStoreOf(ctx, nil, func(ctx context.Context, _ *store, o *opened, person guideway.Principal) error {
		return do(ctx, o, person)
	})
}

func (a *app) withStoreOf(ctx context.Context, definitions run.Definitions, do func(context.Context, *store, *opened, guideway.Principal) error) error {
	cfg, person, err := a.loadUser()
	if err != nil {
		return err
	}
	s := a.newStore(cfg, definitions)
	defer s.close()
	c := a.newCheckpointStore(s, masterKey{host: a.host})
	defer c.close()
	keeper, err := newKeeper(s, c)
	if err != nil {
		return err
	}
	defer closeKeeper(s, keeper)
	o, err := s.open(ctx)
	if err != nil {
		return err
	}
	return do(ctx, s, o, person)
}

// projectOf is project for the surfaces, which ask it at every call: a branch may
// have been changed since the last one.
func (h *Host) projectOf(context.Context) run.Project { return h.project() }

// project is the project of the working directory; none where there is no such
// directory.
func (h *Host) project() run.Project {
	p, err := project.Detect(h.Dir)
	if err != nil {
		return run.Project{}
	}
	return run.Project{ID: p.ID, Path: p.Path, Branch: p.Branch, Commit: p.Commit}
}
