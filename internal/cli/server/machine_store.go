package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// MachineDeps are the dependencies of machine runs, except for the journal.
type MachineDeps struct {
	Resolver *MachineResolver
	Models   driver.Models
	Pool     *sandbox.Pool
	Tools    driver.Tools
	// Tracer is nil if tracing is off.
	Tracer driver.Tracer
}

// MachineStore is the machine run journal and the service that uses it.
type MachineStore struct {
	MachineDeps
	Runs    *driver.Service
	journal app.JournalStore
	log     *slog.Logger
}

// Close closes the journal.
func (s *MachineStore) Close() {
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
		Permit:   permit,
		Handlers: &driver.Scripts{Sandbox: s.Pool, Owner: user},
		Owner:    newInstanceName(), Alive: isInstanceAlive, Logger: s.log,
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
		own.Store = withSchema(cfg.Store, "guideway_machines")
	} else {
		own.DataDir = filepath.Join(cfg.DataDir, "machines")
	}
	return &own
}

// withSchema returns the URL of a PostgreSQL store with a different schema.
func withSchema(url, schema string) string {
	sign := "?"
	if strings.Contains(url, "?") {
		sign = "&"
	}
	return url + sign + "search_path=" + schema
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

// newInstanceName returns a name for this process that is unique among all hosts.
func newInstanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%d", host, os.Getpid(), time.Now().UnixNano())
}

// isInstanceAlive reports whether the process with an instance name may still run. It
// returns true for a process on another host.
func isInstanceAlive(name string) bool {
	parts := strings.Split(name, "/")
	host, err := os.Hostname()
	if err != nil || len(parts) != 3 || parts[0] != host {
		return true
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid == os.Getpid() {
		return err != nil
	}
	return processExists(pid)
}
