package server

import (
	"crypto/rand"
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

// restartRequests are the requests that a server has seen: the contents of the files.
type restartRequests map[string]string

// readNew returns the upstreams with new requests, and records them.
func (r restartRequests) readNew(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // Without a request the directory does not exist.
	}
	var names []string
	for _, e := range entries {
		if upstream.CheckName(e.Name()) != nil {
			continue // a temporary file
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || string(text) == r[e.Name()] {
			continue
		}
		r[e.Name()] = string(text)
		names = append(names, e.Name())
	}
	return names
}
