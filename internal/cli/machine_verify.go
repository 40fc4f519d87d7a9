package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
)

// verifyMachines checks the journal of machines, of which there may be none: then
// the report is empty. restored takes what is there for what has happened first.
func (a *app) verifyMachines(ctx context.Context, cfg *config.Config, id string, restored bool) (*run.Report, error) {
	own := machineStoreOf(cfg)
	switch there := hasMachineStore(own); {
	case !there && id != "":
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no run %s", id).WithFix("guideway machine status")
	case !there:
		return &run.Report{}, nil
	case !own.UsesPostgres():
		if err := os.MkdirAll(own.DataDir, 0o700); err != nil {
			return nil, notOpened(err)
		}
	}
	journal, err := openJournal(ctx, own, a.logger(cfg))
	if err != nil {
		return nil, notOpened(err)
	}
	defer journal.Close()
	key, err := openKey(ctx, own, journal)
	if err != nil {
		return nil, err
	}
	heads, err := openHeads(own, key)
	if err != nil {
		return nil, err
	}
	runs, err := driver.New(driver.Options{Journal: journal, Key: key, Heads: heads})
	if err != nil {
		return nil, err
	}
	if restored {
		if err := runs.AcceptRestore(ctx); err != nil {
			return nil, err
		}
	}
	return runs.Verify(ctx, id)
}

// hasMachineStore says whether there is, or was, a journal of machines. One that is
// gone while its heads are there is to be missed.
func hasMachineStore(own *config.Config) bool {
	if own.UsesPostgres() {
		return true
	}
	for _, path := range []string{storePath(own), headsPath(own)} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// isMachineRun says whether an id is that of a run of a machine.
func isMachineRun(id string) bool { return strings.HasPrefix(id, driver.RunPrefix) }
