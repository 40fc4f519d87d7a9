package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import checkpointcmd "github.com/guideway-dev/guideway/internal/cli/checkpoint"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

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
