package machine

import "github.com/guideway-dev/guideway/internal/cli/server"

import "github.com/guideway-dev/guideway/internal/cli/app"

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

// VerifyMachines verifies the machine journal. If there is no journal, it returns an empty
// report, or an error for an id. If restored is set, the current state is first accepted as
// the valid history.
func VerifyMachines(ctx context.Context, a *app.App, cfg *config.Config, id string, restored bool) (*run.Report, error) {
	own := server.MachineConfig(cfg)
	switch there := HasMachineStore(own); {
	case !there && id != "":
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no machine run %q", id).WithFix("guideway machine status")
	case !there:
		return &run.Report{}, nil
	}
	store, err := server.OpenMachineStore(ctx, cfg, "", server.MachineDeps{}, a.Logger(cfg))
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if restored {
		if err := store.Runs.AcceptRestore(ctx); err != nil {
			return nil, err
		}
	}
	return store.Runs.Verify(ctx, id)
}

// HasMachineStore reports whether there may be a machine journal. It also returns true if
// only the head file is left, so that verifying reports the missing journal.
func HasMachineStore(own *config.Config) bool {
	if own.UsesPostgres() {
		return true
	}
	for _, path := range []string{app.StorePath(own), app.HeadsPath(own)} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// IsMachineRun reports whether an id is the id of a machine run.
func IsMachineRun(id string) bool { return strings.HasPrefix(id, driver.RunPrefix) }
