package server

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// restartsDir returns the directory with one file for each upstream that commands have asked
// the running servers to restart. A changed file is a new request.
func restartsDir(cfg *config.Config) string {
	return filepath.Join(cfg.DataDir, "upstreams", "restarts")
}

// RequestRestart asks the running servers of a data directory to restart an upstream.
func RequestRestart(cfg *config.Config, name string) error {
	if err := upstream.CheckName(name); err != nil {
		return err
	}
	dir := restartsDir(cfg)
	if err := atomicfile.MakeDir(dir); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, name), rand.Text()+"\n")
}

// restartRequests are the requests that a server has seen.
type restartRequests struct {
	contents map[string]string // by the name of the upstream
	reported string            // the last error in the log
}

// readNew returns the upstreams with new requests, and records the requests. It logs an
// error once.
func (r *restartRequests) readNew(dir string, logger *slog.Logger) []string {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The first request creates the directory.
	}
	if err != nil {
		if text := err.Error(); text != r.reported {
			logger.Warn("the requests to restart upstreams cannot be read; make the directory readable, or restart the server instead", "error", err)
			r.reported = text
		}
		return nil
	}
	var names []string
	for _, e := range entries {
		if upstream.CheckName(e.Name()) != nil {
			continue // a temporary file
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || string(text) == r.contents[e.Name()] {
			continue // A file that cannot be read is read again at the next call.
		}
		r.contents[e.Name()] = string(text)
		names = append(names, e.Name())
	}
	return names
}
