package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/script"
)

// machineParts are what runs of machines work with, besides the journal.
type machineParts struct {
	shelf  *machineShelf
	models driver.Models
	pool   *script.Pool
	tools  driver.Tools
	// tracer is nil where no traces are sent.
	tracer driver.Tracer
}

// machineStore is the journal of machines with the service on it.
type machineStore struct {
	machineParts
	runs    *driver.Service
	journal keeper
	log     *slog.Logger
}

// close closes the journal.
func (s *machineStore) close() {
	if err := s.journal.Close(); err != nil {
		s.log.Warn("the store of machines did not close", "error", err)
	}
}

// serve makes the service on the journal.
func (s *machineStore) serve(ctx context.Context, cfg *config.Config, user string, permit permit) error {
	key, err := openKey(ctx, cfg, s.journal)
	if err != nil {
		return err
	}
	heads, err := openHeads(cfg, key)
	if err != nil {
		return err
	}
	s.runs, err = driver.New(driver.Options{
		Journal: s.journal, Key: key, Heads: heads, Machines: s.shelf, Models: s.models, Tools: s.tools, Tracer: s.tracer,
		Permit:   permit,
		Handlers: &driver.Scripts{Sandbox: s.pool, Owner: user},
		Owner:    processName(), Alive: processLives, Logger: s.log,
	})
	return err
}

// openMachineStore opens the journal of machines. It is one of its own: a run of a
// machine is no guided run, and what agents say to each other would make that
// journal large.
func openMachineStore(ctx context.Context, cfg *config.Config, user string, parts machineParts, log *slog.Logger) (*machineStore, error) {
	own := machineStoreOf(cfg)
	if !own.UsesPostgres() {
		if err := os.MkdirAll(own.DataDir, 0o700); err != nil {
			return nil, notOpened(err)
		}
	}
	journal, err := openJournal(ctx, own, log)
	if err != nil {
		return nil, notOpened(err)
	}
	s := &machineStore{machineParts: parts, journal: journal, log: log}
	permit, err := machinePermit(cfg)
	if err == nil {
		err = s.serve(ctx, own, user, permit)
	}
	if err != nil {
		_ = journal.Close()
		return nil, notOpened(err)
	}
	return s, nil
}

// machineStoreOf are the settings with the store of machines in the place of that
// of guided runs.
func machineStoreOf(cfg *config.Config) *config.Config {
	own := *cfg
	if cfg.UsesPostgres() {
		own.Store = withSchema(cfg.Store, "guideway_machines")
	} else {
		own.DataDir = filepath.Join(cfg.DataDir, "machines")
	}
	return &own
}

// withSchema is the URL of a PostgreSQL store with another schema.
func withSchema(url, schema string) string {
	sign := "?"
	if strings.Contains(url, "?") {
		sign = "&"
	}
	return url + sign + "search_path=" + schema
}

// closePool ends the workers of scripts.
func closePool(pool *script.Pool, log *slog.Logger) {
	const patience = 5 * time.Second
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := pool.Close(ctx); err != nil {
		log.Warn("the workers of scripts did not end", "error", err)
	}
}

// processName names this process among those of all machines.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%d", host, os.Getpid(), time.Now().UnixNano())
}

// processLives says whether the process of a name may be at work: true where it
// is not of this machine.
func processLives(name string) bool {
	parts := strings.Split(name, "/")
	host, err := os.Hostname()
	if err != nil || len(parts) != 3 || parts[0] != host {
		return true
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid == os.Getpid() {
		return err != nil
	}
	return lives(pid)
}
