package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
)

// CheckpointStore opens the checkpoints at the first call, in the store of the runs. If
// that fails, the call returns the error and the next call tries again.
type CheckpointStore struct {
	Store *Store
	key   MasterKey
	now   func() time.Time
	Log   *slog.Logger
	// ReadOnly opens the checkpoints read-only, regardless of the settings.
	ReadOnly bool

	// Lock guards the fields below.
	Lock   chan struct{}
	opened *checkpoints.Checkpoints
	closed bool
}

// NewCheckpointStore returns a store that opens at the first call. It must be closed before
// s.
func (a *App) NewCheckpointStore(s *Store, key MasterKey) *CheckpointStore {
	return &CheckpointStore{Store: s, key: key, now: a.Host.Now, Log: s.Log, Lock: make(chan struct{}, 1)}
}

// Open returns the checkpoints. Concurrent calls wait until the checkpoints are open or
// their own context is done.
func (c *CheckpointStore) Open(ctx context.Context) (*checkpoints.Checkpoints, error) {
	select {
	case c.Lock <- struct{}{}:
		defer func() { <-c.Lock }()
	case <-ctx.Done():
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the wait for the store of checkpoints to open ended: %w", ctx.Err())
	}
	if c.opened != nil {
		return c.opened, nil
	}
	if c.closed {
		return nil, context.Canceled
	}
	if err := CheckRestored(c.Store.Cfg); err != nil { // the checkpoints open without the store, too
		return nil, err
	}
	options, err := c.storeOptions()
	if err != nil {
		return nil, &checkpoints.Locked{Cause: err}
	}
	opened, err := checkpoints.Open(ctx, options)
	if err != nil {
		return nil, StoreOpenError(err)
	}
	c.opened = opened
	return opened, nil
}

// OpenListed returns the checkpoints for listing and counting, which needs no master key.
// If the key is not available, all other calls on the checkpoints fail with the reason. If
// err is nil, the caller must call done.
func (c *CheckpointStore) OpenListed(ctx context.Context) (opened *checkpoints.Checkpoints, done func(), err error) {
	opened, err = c.Open(ctx)
	var locked *checkpoints.Locked
	if !errors.As(err, &locked) {
		return opened, func() {}, err
	}
	options, _ := c.storeOptions() // fails again if the key is missing; the options are still valid
	opened, err = checkpoints.OpenLocked(ctx, options, locked.Cause)
	if err != nil {
		return nil, nil, StoreOpenError(err)
	}
	return opened, func() {
		if err := opened.Close(); err != nil {
			c.Log.Warn("cannot close the store of checkpoints", "error", err)
		}
	}, nil
}

// storeInfo describes where checkpoints are stored, or will be stored once they are open.
func (c *CheckpointStore) storeInfo() checkpoint.Store {
	c.Lock <- struct{}{}
	defer func() { <-c.Lock }()
	switch cfg := c.Store.Cfg; {
	case c.opened != nil:
		return c.opened.Store()
	case cfg.UsesPostgres():
		return checkpoint.Store{Mode: checkpoint.ModePostgres}
	case cfg.Store == config.StoreFiles:
		return checkpoint.Store{Mode: checkpoint.ModeFiles}
	default:
		return checkpoint.Store{Mode: checkpoint.ModeSQLite}
	}
}

func (c *CheckpointStore) storeOptions() (checkpoints.Options, error) {
	cfg := c.Store.Cfg
	source, err := c.key.keySource(cfg)
	return checkpoints.Options{
		DataDir: cfg.DataDir, Store: cfg.Store, Journal: c.openIndex, BlobDir: cfg.Checkpoints.Dir, Program: Version(),
		Limits: checkpointLimits(cfg.Checkpoints), Encryption: source, PersonalData: cfg.Context.PersonalData, ReadOnly: c.ReadOnly || cfg.Checkpoints.ReadOnly,
		Active: c.isActive, Now: c.now, Logger: c.Log,
	}, err
}

// openIndex returns the checkpoint index in the store of the runs.
func (c *CheckpointStore) openIndex(ctx context.Context) (checkpoint.Index, error) {
	journal, err := c.Store.openJournalAlone(ctx)
	if err != nil {
		return nil, err
	}
	index, ok := journal.(checkpoint.Index)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInternal, "the journal %T does not store checkpoints", journal)
	}
	return index, nil
}

// isActive reports whether a run is running or waiting.
func (c *CheckpointStore) isActive(ctx context.Context, id string) (bool, error) {
	journal, err := c.Store.openJournalAlone(ctx)
	if err != nil {
		return false, err
	}
	r, err := journal.Run(ctx, id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return false, nil
	}
	return r.Status == engine.StatusRunning || r.Status == engine.StatusWaiting, err
}

// Close closes the checkpoints after the calls in progress have returned.
func (c *CheckpointStore) Close() {
	c.Lock <- struct{}{}
	defer func() { <-c.Lock }()
	c.closed = true
	if c.opened == nil {
		return
	}
	if err := c.opened.Close(); err != nil {
		c.Log.Warn("cannot close the store of checkpoints", "error", err)
	}
	c.opened = nil
}

// checkpointLimits returns the limits of the settings, in which 0 means no limit.
func checkpointLimits(c config.Checkpoints) checkpoint.Limits {
	return checkpoint.Limits{
		PerSeries: orUnlimited(c.Max), SeriesBytes: orUnlimited(c.MaxSession), CheckpointBytes: orUnlimited(c.MaxSize), RawBytes: orUnlimited(c.MaxContext),
		TotalBytes: orUnlimited(c.MaxTotal), Warn: float64(c.WarnAt) / 100, Clean: float64(c.CleanAt) / 100, Retention: orUnlimited(c.Retention),
	}
}

// orUnlimited returns n, or -1, which means no limit, if n is not positive.
func orUnlimited[T int | int64 | time.Duration](n T) T {
	if n <= 0 {
		return -1
	}
	return n
}

// CheckpointDeps are the dependencies of a command on checkpoints.
type CheckpointDeps struct {
	Checkpoints *checkpoints.Checkpoints
	Runs        *run.Service
	User        guideway.Principal
	// ProjectID is the id of the project of the working directory.
	ProjectID string
}

// WithCheckpoints opens the checkpoints for one command. It may prompt for the passphrase.
func (a *App) WithCheckpoints(ctx context.Context, do func(context.Context, *CheckpointDeps) error) error {
	return a.withCheckpointStore(ctx, MasterKey{Host: a.Host, mayAsk: true}, do, func(c *CheckpointStore) (*checkpoints.Checkpoints, func(), error) {
		opened, err := c.Open(ctx)
		return opened, func() {}, err
	})
}

// ListCheckpoints opens the checkpoints for listing and counting. It does not prompt for
// the passphrase.
func (a *App) ListCheckpoints(ctx context.Context, do func(context.Context, *CheckpointDeps) error) error {
	return a.withCheckpointStore(ctx, MasterKey{Host: a.Host}, do, func(c *CheckpointStore) (*checkpoints.Checkpoints, func(), error) {
		return c.OpenListed(ctx)
	})
}

func (a *App) withCheckpointStore(ctx context.Context, key MasterKey, do func(context.Context, *CheckpointDeps) error,
	open func(*CheckpointStore) (*checkpoints.Checkpoints, func(), error),
) error {
	cfg, person, err := a.LoadUser()
	if err != nil {
		return err
	}
	s := a.NewStore(cfg, nil)
	defer s.Close()
	c := a.NewCheckpointStore(s, key)
	defer c.Close()
	if cfg.Origin("log.level").Kind == config.OriginDefault {
		c.Log = a.newLogger(cfg, slog.LevelError) // the command prints the warnings
	}
	opened, done, err := open(c)
	if err != nil {
		return err
	}
	defer done()
	runs, err := s.NewRuns(nil)
	if err != nil {
		return err
	}
	return do(ctx, &CheckpointDeps{Checkpoints: opened, Runs: runs, User: person, ProjectID: a.Host.Project().ID})
}

// RequirePersistence returns an error if checkpoints are only in memory and would be lost
// when the command ends.
func (d *CheckpointDeps) RequirePersistence() error {
	store := d.Checkpoints.Store()
	if store.Mode != checkpoint.ModeMemory {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "nothing was saved: %s", store.Note).
		WithFix("make the directory writable for this user and check that its disk is not full, or select a different one with --data-dir or --checkpoints-dir")
}

// CheckpointsExist reports whether there may be checkpoints. It creates nothing.
func CheckpointsExist(cfg *config.Config) bool {
	if cfg.DataDir == "" {
		return false
	}
	if cfg.UsesPostgres() {
		return true
	}
	_, err := os.Stat(CheckpointContentDir(cfg))
	return err == nil
}

// CheckpointContentDir returns the directory of the contents of checkpoints. With
// PostgreSQL, the directory is used only if it is configured.
func CheckpointContentDir(cfg *config.Config) string {
	return cmp.Or(cfg.Checkpoints.Dir, filepath.Join(cfg.DataDir, "contexts"))
}

// WriteCheckpointWarnings prints the warnings, and a note if checkpoints are not stored in
// the configured place.
func (h *Host) WriteCheckpointWarnings(store checkpoint.Store, warnings []checkpoint.Warning) {
	s := h.ErrStyles()
	memory := false
	for _, w := range warnings {
		memory = memory || w.Code == checkpoint.WarnMemory
		where := ""
		if w.Path != "" {
			where = OneLine(w.Path) + ": "
		}
		fmt.Fprintf(h.Err, "%s %s%s\n", s.Yellow("warning:"), where, OneLine(w.Message))
	}
	if store.Note != "" && !memory {
		fmt.Fprintf(h.Err, "%s checkpoints are stored in %s: %s\n", s.Yellow("warning:"), store.Mode, OneLine(store.Note))
	}
}

// keychainService and keychainAccount identify the entry in the system keychain.
const (
	keychainService = "guideway"
	keychainAccount = "checkpoints"
)

// MasterKey locates the key that encrypts stored data, as the settings configure it.
type MasterKey struct {
	Host *Host
	// mayAsk allows a prompt for the passphrase at the terminal. Servers do not prompt.
	mayAsk bool
	// isNew reports that the key replaces another one, so a passphrase is new.
	isNew bool
}

// keySource returns the source of the key, or nil if encryption is off. The result also has
// the sources of the other kinds, so that a running program still finds the key after a
// rotation to another kind.
func (k MasterKey) keySource(cfg *config.Config) (seal.Source, error) {
	source, err := k.sourceOfMode(cfg.Encryption)
	if err != nil || source == nil {
		return nil, err
	}
	others := []seal.Source{seal.File{Path: cfg.Encryption.KeyFile}, seal.Keychain{Service: keychainService, Account: keychainAccount}}
	if words, err := (MasterKey{}).passphraseSource(cfg.Encryption); err == nil {
		others = append(others, words)
	}
	return seal.WithOthers{Source: source, Others: others}, nil
}

func (k MasterKey) sourceOfMode(e config.Encryption) (seal.Source, error) {
	keychain := seal.Keychain{Service: keychainService, Account: keychainAccount}
	switch e.Mode {
	case config.EncryptionEnabled:
		return seal.FirstOf{keychain, seal.File{Path: e.KeyFile}}, nil
	case config.EncryptionKeychain:
		return keychain, nil
	case config.EncryptionKeyFile:
		return seal.File{Path: e.KeyFile}, nil
	case config.EncryptionPassphrase:
		return k.passphraseSource(e)
	default:
		return nil, nil //nolint:nilnil // a nil source means no encryption
	}
}

// RotateSources returns the source of the current master key, and the source of a new key:
// of the given mode, or of the configured mode if mode is empty. A new passphrase comes
// from a file, or else from a prompt.
func (a *App) RotateSources(cfg *config.Config, mode, passphraseFile string) (from, to seal.Source, err error) {
	key := MasterKey{Host: a.Host, mayAsk: true}
	if from, err = key.keySource(cfg); err != nil {
		return nil, nil, err
	}
	if from == nil {
		return nil, nil, guideway.Errorf(guideway.CodeInvalid, "encryption is off, so there is no key to replace").WithFix("set encryption.mode")
	}
	e := cfg.Encryption
	key.isNew = true
	e.Mode, e.Passphrase, e.PassphraseFile = cmp.Or(mode, e.Mode), "", passphraseFile
	to, err = key.sourceOfMode(e)
	return from, to, err
}

// passphraseSource returns the passphrase from the environment, or else from the configured
// file, or else from a prompt.
func (k MasterKey) passphraseSource(e config.Encryption) (seal.Source, error) {
	if e.Passphrase != "" || e.PassphraseFile == "" {
		return &promptedPassphrase{MasterKey: k, words: e.Passphrase}, nil
	}
	text, err := atomicfile.File{
		Path: e.PassphraseFile, What: "passphrase file", MaxBytes: 4 << 10,
		IfSeen: "note that anyone who has read the passphrase can decrypt your stored data",
	}.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the passphrase file %s does not exist", e.PassphraseFile).
			WithFix("create or restore the file, or %s", k.passphraseFix())
	}
	if err != nil {
		return nil, err
	}
	return seal.Passphrase{Words: strings.TrimRight(text, "\r\n")}, nil
}

// passphraseFix returns the fix for a missing passphrase.
func (k MasterKey) passphraseFix() string {
	if k.isNew {
		return "name a file with the new passphrase: guideway encryption rotate --new-passphrase-file FILE"
	}
	return "set the environment variable " + config.EnvPassphrase + " to the passphrase, or the setting encryption.passphraseFile to a file with it"
}

// promptedPassphrase is a passphrase from the environment or from a prompt. It prompts
// once, because a store without a key loads the passphrase twice.
type promptedPassphrase struct {
	MasterKey
	words string
}

var _ seal.Source = (*promptedPassphrase)(nil)

// Kind implements seal.Source. So do Fix and Load.
func (*promptedPassphrase) Kind() string { return seal.KindPassphrase }

// Fix returns the hint for a wrong passphrase.
func (*promptedPassphrase) Fix() string { return seal.Passphrase{}.Fix() }

// Load derives the secret. It prompts for the passphrase if none exists, and prompts
// twice for a new one.
func (g *promptedPassphrase) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	if g.words != "" {
		return seal.Passphrase{Words: g.words}.Load(ctx, salt, create)
	}
	if !g.mayAsk || g.Host.ReadSecret == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the encryption passphrase was not given").
			WithFix("%s", g.passphraseFix())
	}
	question := "Encryption passphrase: "
	if create {
		question = "New encryption passphrase: "
	}
	words, err := g.askPassphrase(ctx, question)
	if err != nil {
		return nil, err
	}
	if create {
		again, err := g.askPassphrase(ctx, "Repeat the passphrase: ")
		if err != nil {
			return nil, err
		}
		if again != words {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the two passphrases do not match; nothing was encrypted").WithFix("run the command again, and enter the same passphrase twice")
		}
	}
	secret, err := seal.Passphrase{Words: words}.Load(ctx, salt, create)
	if err == nil {
		g.words = words
	}
	return secret, err
}

func (g *promptedPassphrase) askPassphrase(ctx context.Context, question string) (string, error) {
	fmt.Fprint(g.Host.Err, question)
	words, err := g.Host.ReadSecret(ctx)
	fmt.Fprintln(g.Host.Err)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "cannot read the encryption passphrase: %w", err).
			WithFix("%s", g.passphraseFix())
	}
	return strings.TrimRight(words, "\r\n"), nil
}
