package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	checkpointcmd "github.com/guideway-dev/guideway/internal/cli/checkpoint"
	machinecmd "github.com/guideway-dev/guideway/internal/cli/machine"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// checkRuns checks the run store, its key and head file, and the passphrase of gates. It
// creates nothing.
func (o *DoctorOptions) checkRuns(ctx context.Context, cfg *config.Config) []Check {
	if cfg.DataDir == "" {
		return nil // reported by the data directory check
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	store, journal := checkStore(ctx, cfg, o.app)
	key, chainKey := checkKey(ctx, cfg, journal)
	checks := []Check{store, key, checkHeads(ctx, cfg, journal, chainKey), checkPassphrase(o.app.Host, cfg)}
	if journal != nil {
		_ = journal.Close()
	}
	return checks
}

// checkStore opens the store, if it exists, and returns it if it opens.
func checkStore(ctx context.Context, cfg *config.Config, a *app.App) (Check, app.JournalStore) {
	c := Check{Name: "store", Status: CheckOK, Message: cfg.RedactedStore()}
	if !cfg.UsesPostgres() {
		c.Message = app.StorePath(cfg)
		if _, err := os.Lstat(app.StorePath(cfg)); errors.Is(err, fs.ErrNotExist) {
			c.Message += " (missing; created by the first run)"
			return c, nil
		}
	}
	journal, err := app.OpenJournal(ctx, cfg, a.Logger(cfg))
	if err != nil {
		c = failCheck(c, app.StoreOpenError(err))
		if app.IsDamaged(err) {
			c.Fix = fmt.Sprintf(fixDamaged, app.StorePath(cfg))
		}
		return c, nil
	}
	found, err := describeStore(ctx, journal)
	if err != nil {
		_ = journal.Close()
		return failCheck(c, app.StoreOpenError(err)), nil
	}
	c.Message += ", " + found
	return c, journal
}

// failCheck returns a check with the status failed, the error and its fix.
func failCheck(c Check, err error) Check {
	c.Status, c.Message, c.Fix = CheckFail, err.Error(), guideway.ErrorFix(err)
	return c
}

// missingText returns the note on a missing file that belongs to the store. journal is nil
// if the store does not exist or cannot be opened.
func missingText(cfg *config.Config, journal app.JournalStore) string {
	if journal == nil && app.HasStore(cfg) {
		return " (missing; not compared with the store, which cannot be opened)"
	}
	return " (missing; created by the first run)"
}

// checkKey checks the key and returns it if it is readable.
func checkKey(ctx context.Context, cfg *config.Config, journal app.JournalStore) (Check, run.Key) {
	c := Check{Name: "journal key", Status: CheckOK, Message: cfg.Journal.KeyFile}
	if _, err := os.Lstat(cfg.Journal.KeyFile); errors.Is(err, fs.ErrNotExist) {
		c.Message += missingText(cfg, journal)
		if journal == nil {
			return c, nil
		}
		if chained, err := app.HasKey(ctx, journal); err != nil {
			return failCheck(c, err), nil
		} else if chained {
			return failCheck(c, app.MissingKeyError(cfg.Journal.KeyFile)), nil
		}
		return c, nil
	}
	key, _, err := keyfile.LoadOrCreate(cfg.Journal.KeyFile)
	if err == nil && journal != nil {
		err = app.CheckKey(ctx, journal, key, cfg.Journal.KeyFile)
	}
	if err != nil {
		return failCheck(c, err), nil
	}
	return c, key
}

// checkHeads checks the head file, which records the last event of each run.
func checkHeads(ctx context.Context, cfg *config.Config, journal app.JournalStore, key run.Key) Check {
	path := app.HeadsPath(cfg)
	c := Check{Name: "heads", Status: CheckOK, Message: path}
	if key == nil {
		c.Message += " (not checked: the journal key is missing or invalid)"
		return c
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		c.Message += missingText(cfg, journal)
		if journal == nil {
			return c
		}
		if runs, err := journal.Runs(ctx, run.Filter{Limit: 1}); err == nil && len(runs) > 0 {
			c.Status, c.Message = CheckWarn, path+" is missing although there are runs: without it, Guideway cannot detect that an old copy of the store was restored"
			c.Fix = "guideway runs verify, then guideway runs verify --accept-restore if the runs are as expected"
		}
		return c
	}
	heads, err := app.OpenHeads(cfg, key)
	if err != nil {
		return failCheck(c, err)
	}
	known, err := heads.Heads()
	if err != nil {
		return failCheck(c, err)
	}
	c.Message += ", " + app.Plural(len(known), "run", "runs") + "; guideway runs verify compares them with the store"
	return c
}

// checkPassphrase checks whether gates can be answered at a terminal.
func checkPassphrase(h *app.Host, cfg *config.Config) Check {
	file := h.PassphraseFile(cfg)
	c := Check{Name: "passphrase", Status: CheckOK, Message: file.Path}
	switch isSet, err := file.IsSet(); {
	case err != nil:
		return failCheck(c, err)
	case !isSet:
		c.Message = "not set: guideway runs approve is disabled; to set a passphrase: guideway runs approve --set-passphrase"
	}
	return c
}

// storeTimeout is the timeout for the checks of a store.
const storeTimeout = 20 * time.Second

// describeStore returns a summary of an open store.
func describeStore(ctx context.Context, journal app.JournalStore) (string, error) {
	if file, ok := journal.(*sqlite.Store); ok {
		h, err := file.Check(ctx)
		if err != nil {
			return "", err
		}
		if len(h.Problems) > 0 {
			return "", guideway.Errorf(guideway.CodeUnavailable, "the store %s is damaged: %s", h.Path, strings.Join(h.Problems, "; ")).
				WithFix(fixDamaged, h.Path)
		}
		return fmt.Sprintf("%s, %s, sound (SQLite %s, schema %d)", app.Plural(int(h.Runs), "run", "runs"), app.FormatBytes(h.Bytes), h.SQLite, h.Schema), nil
	}
	_, err := journal.Runs(ctx, run.Filter{Limit: 1})
	return "reachable", err
}

// fixDamaged is the fix for a damaged file.
const fixDamaged = "guideway runs export --salvage DIR, to recover the readable data; then restore %s from a backup, or move the file away to start with an empty store"

// checkMachineRuns checks the machine run store, as checkRuns checks the store of guided
// runs.
func (o *DoctorOptions) checkMachineRuns(ctx context.Context, cfg *config.Config) []Check {
	if cfg.DataDir == "" {
		return nil // reported by the data directory check
	}
	own := server.MachineConfig(cfg)
	if !own.UsesPostgres() && !machinecmd.HasMachineStore(own) {
		return nil // there are no machine runs
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	store, journal := checkStore(ctx, own, o.app)
	store.Name = "machine store"
	if store.Fix == fmt.Sprintf(fixDamaged, app.StorePath(own)) {
		store.Fix = fmt.Sprintf("restore %s from a backup, or move the file away to start with an empty machine store", app.StorePath(own))
	}
	if journal == nil {
		if store.Status == CheckOK {
			store.Status, store.Message = CheckWarn, app.StorePath(own)+" is missing, although it had machine runs"
			store.Fix = "restore the machine store from a backup, then guideway runs verify; or accept the loss: guideway runs verify --accept-restore"
		}
		return []Check{store}
	}
	defer journal.Close()
	key, chainKey := checkKey(ctx, own, journal)
	if key.Status != CheckOK {
		key.Name = "machine key"
		return []Check{store, key}
	}
	heads := checkHeads(ctx, own, journal, chainKey)
	heads.Name = "machine heads"
	return append([]Check{store, heads}, checkMachineTools(ctx, cfg, own, journal, chainKey)...)
}

// checkMachineTools returns a check for each run of this user that is paused because its tools
// or hook graphs changed.
func checkMachineTools(ctx context.Context, cfg, own *config.Config, journal app.JournalStore, key run.Key) (checks []Check) {
	user, err := app.LocalUser(cfg)
	var service *driver.Service
	if err == nil {
		service, err = driver.New(driver.Options{Journal: app.SealJournal(own, journal), Key: key})
	}
	caller := run.Caller{Principal: guideway.Principal{User: user}}
	var list []run.Record
	if err == nil {
		list, err = service.List(ctx, caller, run.Filter{Statuses: []engine.Status{engine.StatusWaiting}})
	}
	for _, r := range list {
		if s, err := service.Status(ctx, caller, r.ID); err == nil && s.Pause != nil && s.Pause.Code == machineengine.PauseTools {
			checks = append(checks, Check{Name: "machine run", Status: CheckWarn, Message: r.ID + " is paused: " + s.Pause.Message, Fix: s.Pause.Fix})
		}
	}
	if err != nil {
		checks = append(checks, Check{Name: "machine run", Status: CheckFail, Message: err.Error(), Fix: guideway.ErrorFix(err)})
	}
	return checks
}

// checkCheckpoints checks the storage, the contents, the limits and the encryption of
// checkpoints. It creates nothing and does not prompt.
func (o *DoctorOptions) checkCheckpoints(ctx context.Context, cfg *config.Config) []Check {
	if cfg.DataDir == "" {
		return nil // reported by the data directory check
	}
	c := Check{Name: "checkpoints", Status: CheckOK}
	if !app.CheckpointsExist(cfg) {
		c.Message = app.CheckpointContentDir(cfg) + " (missing; created by the first checkpoint)"
		return []Check{c, checkEncryption(cfg, "")}
	}
	if cfg.Store == config.StoreSQLite {
		if _, err := os.Lstat(app.StorePath(cfg)); errors.Is(err, fs.ErrNotExist) {
			c.Status, c.Message = CheckWarn, fmt.Sprintf("the directory of checkpoints %s exists, but the database %s is missing", app.CheckpointContentDir(cfg), app.StorePath(cfg))
			c.Fix = "guideway checkpoint verify --rebuild"
			return []Check{c, checkEncryption(cfg, "")}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s := o.app.NewStore(cfg, nil)
	defer s.Close()
	store := o.app.NewCheckpointStore(s, app.MasterKey{Host: o.app.Host})
	store.ReadOnly = true
	defer store.Close()
	opened, done, err := store.OpenListed(ctx)
	if err != nil {
		return []Check{failCheck(c, err)}
	}
	defer done()
	stats, err := opened.Stats(ctx, "")
	if err != nil {
		return []Check{failCheck(c, err)}
	}
	if locked := opened.Locked(); locked != nil {
		stats.Store.Note = "" // reported by the encryption check
		encryption := failCheck(Check{Name: "encryption"}, locked)
		encryption.Message += "; checkpoints cannot be saved or loaded until the key is available"
		return []Check{checkStorage(cfg, stats), checkLimits(cfg, stats), encryption}
	}
	return []Check{
		checkStorage(cfg, stats), checkContents(ctx, opened.Service), checkLimits(cfg, stats), checkEncryption(cfg, opened.Encryption()),
	}
}

// checkStorage reports the storage and the number of checkpoints.
func checkStorage(cfg *config.Config, stats *checkpoint.Stats) Check {
	c := Check{Name: "checkpoints", Status: CheckOK, Message: fmt.Sprintf("stored in %s, %s of %s", stats.Store.Mode,
		app.Plural(stats.Count, "checkpoint", "checkpoints"), app.Plural(stats.Series, "session", "sessions"))}
	if cfg.Checkpoints.ReadOnly {
		c.Message += ", read-only"
	}
	if stats.Store.Note != "" {
		c.Status = CheckWarn
		c.Message += "; " + stats.Store.Note
		c.Fix = "fix the error that this check names; the checks of the store and of the data directory may show more"
	}
	return c
}

// checkContents reads every checkpoint until the timeout.
func checkContents(ctx context.Context, service *checkpoint.Service) Check {
	c := Check{Name: "contexts", Status: CheckOK}
	report, err := service.Verify(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		c.Status, c.Message = CheckWarn, fmt.Sprintf("not all checkpoints could be read within %s", storeTimeout)
		c.Fix = "guideway checkpoint verify, which has no time limit"
		return c
	case err != nil:
		return failCheck(c, err)
	}
	c.Message = app.FormatBytes(report.Bytes) + ", all readable"
	if report.Unknown > 0 {
		c.Status = CheckWarn
		c.Message += fmt.Sprintf("; missing from the index: %s", app.Plural(report.Unknown, "stored checkpoint", "stored checkpoints"))
		c.Fix = "guideway checkpoint verify --rebuild"
	}
	if len(report.Damaged) > 0 {
		c.Status = CheckFail
		first := report.Damaged[0]
		c.Message = fmt.Sprintf("%d of %s cannot be read; the first is %s: %s", len(report.Damaged),
			checkpointcmd.VerifiedWords(report), first.Checkpoint, first.Problem)
		c.Fix = "guideway checkpoint verify, to list the damaged checkpoints; then restore the directory of checkpoints, or the database, from a backup"
	}
	return c
}

// checkLimits reports how much of the limits is used.
func checkLimits(cfg *config.Config, stats *checkpoint.Stats) Check {
	limits := cfg.Checkpoints
	c := Check{Name: "checkpoint limits", Status: CheckOK, Message: app.FormatBytes(stats.Stored) + " in total; checkpoints.maxTotal is off"}
	warn := func(text string) {
		c.Status = CheckWarn
		c.Message += "; " + text
		c.Fix = "guideway cleanup --older-than 7d --keep-last 5, or raise the limits: guideway help settings"
	}
	if limits.MaxTotal > 0 {
		c.Message = fmt.Sprintf("%s of %s", app.FormatBytes(stats.Stored), app.FormatBytes(limits.MaxTotal))
		if exceedsPercent(stats.Stored, limits.MaxTotal, limits.WarnAt) {
			warn(fmt.Sprintf("at %d %% of checkpoints.maxTotal, the checkpoints of the least recently used sessions are deleted", limits.CleanAt))
		}
	}
	var full []string
	for _, line := range stats.Sessions {
		if exceedsPercent(int64(line.Count), int64(limits.Max), limits.WarnAt) || exceedsPercent(line.Stored, limits.MaxSession, limits.WarnAt) {
			full = append(full, fmt.Sprintf("%s (%s, %s)", line.Session, app.Plural(line.Count, "checkpoint", "checkpoints"), app.FormatBytes(line.Stored)))
		}
	}
	if len(full) > 0 {
		warn(fmt.Sprintf("the oldest checkpoints of these sessions will be deleted at checkpoints.max or checkpoints.maxSession: %s", strings.Join(full, ", ")))
	}
	return c
}

// exceedsPercent reports whether used is more than percent of the limit.
func exceedsPercent(used, limit int64, percent int) bool {
	return limit > 0 && float64(used) > float64(limit)*float64(percent)/100
}

// checkEncryption reports the encryption of stored data; kind is the kind of the key source
// in use, or "".
func checkEncryption(cfg *config.Config, kind string) Check {
	c := Check{Name: "encryption", Status: CheckOK, Message: "off: runs, documents, checkpoints and recorded calls are stored unencrypted"}
	e := cfg.Encryption
	if e.Mode == config.EncryptionDisabled {
		return c
	}
	c.Message = e.Mode
	switch kind {
	case "":
		c.Message += ", and nothing is encrypted yet"
	case seal.KindFile:
		c.Message += ", with the key in " + e.KeyFile
	case seal.KindPassphrase:
		c.Message += ", with a key derived from the passphrase"
	default:
		c.Message += ", with the key in the " + kind
	}
	if e.Mode == config.EncryptionEnabled && kind == seal.KindFile {
		c.Message += ", because no keychain was available when the key was created"
	}
	return c
}
