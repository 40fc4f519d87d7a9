package app

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cluster"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sealed"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// JournalStore is the interface of the SQLite and PostgreSQL stores.
type JournalStore interface {
	run.Journal
	session.Store
	hookstate.ListStore
	cluster.Store
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
	// Audit records the answers of persons at gates.
	Audit *Audit
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
	return &Store{Cfg: cfg, Definitions: definitions, Log: a.Logger(cfg), Audit: a.NewAudit(cfg), Checker: a.NewChecker(cfg, nil), Lock: make(chan struct{}, 1)}
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
		Definitions: s.Definitions, PersonGates: s.Cfg.Gates.Approval == config.ApprovalHuman, Observer: auditedRuns{observer, s.Audit}, Logger: s.Log,
		Checker: s.Checker, Shares: SharesOf(s.Cfg),
	})
}

// SharesOf returns the shared projects of projects.members, each "PROJECT=USER". A project is a
// path or an id.
func SharesOf(cfg *config.Config) run.Shares {
	var shares run.Shares
	for _, entry := range cfg.Projects.Members {
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

// RestoreMarker returns the path of the file that exists while a restore is in progress, and
// after one that did not complete.
func RestoreMarker(cfg *config.Config) string {
	return filepath.Join(cfg.DataDir, "restore-incomplete")
}

// CheckRestored returns an error if a restore of the store did not complete.
func CheckRestored(cfg *config.Config) error {
	parent := *cfg // the directory of machine runs is in the data directory
	parent.DataDir = filepath.Dir(cfg.DataDir)
	_, err := os.Lstat(RestoreMarker(cfg))
	_, parentErr := os.Lstat(RestoreMarker(&parent))
	if err != nil && parentErr != nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the restore of %s is in progress, or did not complete, so the store is not opened", cfg.DataDir).
		WithFix("wait until guideway restore ends; if it was interrupted, repeat it with the same backup")
}

// OpenJournal opens the configured store.
func OpenJournal(ctx context.Context, cfg *config.Config, log *slog.Logger) (JournalStore, error) {
	if err := CheckRestored(cfg); err != nil {
		return nil, err
	}
	if !cfg.UsesPostgres() {
		return sqlite.Open(ctx, sqlite.Options{Path: StorePath(cfg), Program: Version(), Logger: log})
	}
	return postgres.Open(ctx, postgres.Options{URL: cfg.Store, Logger: log})
}

// SealJournal returns the encrypted form of a journal, as the settings configure it. Commands
// and servers do not prompt for its passphrase.
func SealJournal(cfg *config.Config, journal JournalStore) *sealed.Store {
	return sealed.New(journal, cfg.Encryption.Mode != config.EncryptionDisabled, openKeys(cfg, journal))
}

// SealFiles returns what encrypts texts in files of this machine, as the settings configure
// it.
func SealFiles(cfg *config.Config) *seal.Texts {
	return seal.NewTexts(cfg.Encryption.Mode != config.EncryptionDisabled, openKeys(cfg, nil))
}

// sealShared is like SealFiles for texts in the state that instances share, whose data keys are
// in the store.
func sealShared(cfg *config.Config) *seal.Texts {
	s, ok := cfg.Shared.(*sharedState)
	if !ok {
		return SealFiles(cfg)
	}
	return seal.NewTexts(cfg.Encryption.Mode != config.EncryptionDisabled, func(ctx context.Context) (*seal.Keys, error) {
		store, err := s.openStore(ctx)
		if err != nil {
			return nil, err
		}
		return openKeys(cfg, store)(ctx)
	})
}

// openKeys returns a function that opens the data keys in the store of a journal, or the
// data keys in files if journal is nil.
func openKeys(cfg *config.Config, journal JournalStore) func(context.Context) (*seal.Keys, error) {
	return func(ctx context.Context) (*seal.Keys, error) {
		source, err := MasterKey{}.keySource(cfg)
		if err != nil {
			return nil, err
		}
		if source == nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "encryption is off, but the store has encrypted data").
				WithFix("set encryption.mode to its earlier value")
		}
		slots, err := checkpoints.Options{DataDir: cfg.DataDir, BlobDir: cfg.Checkpoints.Dir}.OpenSlots(journal)
		if err != nil {
			return nil, err
		}
		return seal.Open(ctx, slots, source)
	}
}

// StorePath returns the path of the SQLite store.
func StorePath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "guideway.db") }

// HasStore reports whether the configured store exists, as far as it can be known without
// opening it. A command that only reads runs does not create a store.
func HasStore(cfg *config.Config) bool { return cfg.UsesPostgres() || !isMissing(StorePath(cfg)) }

// IsDamaged reports whether a store failed to open because its file is damaged.
func IsDamaged(err error) bool { return sqlite.IsDamaged(err) }

// OpenKey reads the key that authenticates the event chains of the journal. It creates a
// key only for a store without one, because another key would break the chains. If several
// instances open a new store at the same time, one key is stored and the other instances
// get an error.
func OpenKey(ctx context.Context, cfg *config.Config, journal JournalStore) (run.Key, error) {
	path := cfg.Journal.KeyFile
	if isMissing(path) {
		chained, err := HasKey(ctx, journal)
		if err != nil {
			return nil, err
		}
		// Another process may have created the key since the first check.
		if chained && isMissing(path) {
			return nil, MissingKeyError(path)
		}
	}
	key, _, err := keyfile.LoadOrCreate(path)
	if err != nil {
		return nil, err
	}
	if err := CheckKey(ctx, journal, key, path); err != nil {
		return nil, err
	}
	kept, err := journal.PinKey(ctx, keyfile.Fingerprint(key))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(kept, keyfile.Fingerprint(key)) {
		return nil, wrongKeyError(path)
	}
	return key, nil
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// HasKey reports whether a store already uses a key.
func HasKey(ctx context.Context, journal JournalStore) (bool, error) {
	kept, err := journal.PinKey(ctx, nil)
	if err != nil || kept != nil {
		return kept != nil, err
	}
	runs, err := journal.Runs(ctx, run.Filter{Limit: 1})
	return len(runs) > 0, err
}

// CheckKey returns an error if key is not the key of the store. It changes nothing.
func CheckKey(ctx context.Context, journal JournalStore, key run.Key, path string) error {
	kept, err := journal.PinKey(ctx, nil)
	if err != nil {
		return err
	}
	fits := bytes.Equal(kept, keyfile.Fingerprint(key))
	if kept == nil { // a store of a version that stored no fingerprint
		if fits, err = matchesRuns(ctx, journal, key); err != nil {
			return err
		}
	}
	if !fits {
		return wrongKeyError(path)
	}
	return nil
}

// matchesRuns reports whether the key matches the first event of a run, or there are no
// runs. It checks a few runs, because one may have been tampered with.
func matchesRuns(ctx context.Context, journal run.Journal, key run.Key) (bool, error) {
	const few = 5
	runs, err := journal.Runs(ctx, run.Filter{Limit: few})
	if err != nil || len(runs) == 0 {
		return err == nil, err
	}
	for _, r := range runs {
		events, err := journal.Events(ctx, r.ID, 0, 1)
		if err != nil {
			return false, err
		}
		if len(events) > 0 && bytes.Equal(events[0].MAC, key.Chain(r.ID, key.Root(r.ID), events[0])) {
			return true, nil
		}
	}
	return false, nil
}

// MissingKeyError returns the error for a key file that does not exist.
func MissingKeyError(path string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the store has a key, and this computer does not have it: the key file %s does not exist", path).
		WithFix("restore the key file from a backup; on a computer that never had it, copy or mount the key file of another computer that uses the store, with mode 0600, and name it with GUIDEWAY_JOURNAL_KEY_FILE; a new key would make every run unverifiable")
}

// wrongKeyError returns the error for the key of a different store.
func wrongKeyError(path string) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the store was created with a different key than the one in %s", path).
		WithFix("copy the key file of the computer that created the store to %s, with mode 0600, or name it with --journal-key-file; no other key can continue these runs", path)
}

// OpenHeads opens the head file, which holds the last known event of each run and detects a
// rollback. Each store has its own head file: in a shared file, the runs of one store would
// be missing from the other store.
func OpenHeads(cfg *config.Config, key run.Key) (run.Heads, error) {
	return rollbackguard.Open(HeadsPath(cfg), key)
}

// HeadsPath returns the path of the head file of the configured store.
func HeadsPath(cfg *config.Config) string {
	store := cfg.RedactedStore()
	if !cfg.UsesPostgres() {
		store = StorePath(cfg)
	}
	return filepath.Join(cfg.Journal.HeadsDir, digest.Hex(store)[:12]+".heads")
}
