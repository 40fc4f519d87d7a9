// Package live finds the live servers of a data directory. There is no primary and no
// election: each server writes a small file with its address for as long as it runs. A file
// that a killed server leaves is recognized by its lock, which ends with the process.
// Therefore a process with a reused id, or another program on the port, is not mistaken for
// the server.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// Server describes a listening server.
type Server struct {
	PID int `json:"pid"`
	// Address is the host and port.
	Address string `json:"address"`
	// Since is the time at which the server began to listen.
	Since time.Time `json:"since"`
}

const (
	suffixServer = ".json"
	suffixLock   = ".lock"
	maxFile      = 4 << 10
)

// Announce writes the file of this process. withdraw removes it. The file also loses its
// effect when the process ends.
func Announce(dir string, s Server) (withdraw func(), err error) {
	if err := atomicfile.MakeDir(dir); err != nil {
		return nil, announceError(err)
	}
	name := filepath.Join(dir, strconv.Itoa(s.PID))
	if err := atomicfile.EnsureFile(name + suffixLock); err != nil {
		return nil, announceError(err)
	}
	lock := flock.New(name+suffixLock, flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err != nil {
		return nil, announceError(err)
	}
	if !held {
		return nil, guideway.Errorf(guideway.CodeConflict, "announce the server to other processes: another server on the data directory has the same process id, %d", s.PID).
			WithFix("set a different data directory for one of the two servers")
	}
	withdraw = func() {
		_ = os.Remove(name + suffixServer)
		_ = os.Remove(name + suffixLock)
		_ = lock.Close() // unlock last, so that an existing file is always locked
	}
	if err := writeFile(name+suffixServer, s); err != nil {
		withdraw()
		return nil, announceError(err)
	}
	return withdraw, nil
}

// writeFile writes a private file atomically.
func writeFile(path string, s Server) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".server-*") // created with the mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	atomicfile.KeepOwner(temp)
	_, err = temp.Write(append(data, '\n'))
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func announceError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "announce the server to other processes: %w", err).
		WithFix("make the data directory writable for this user, and check that its disk is not full")
}

// Find returns the oldest live server that answers. It removes the files of dead servers.
func Find(ctx context.Context, dir string, answers func(ctx context.Context, address string) bool) (Server, bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Server{}, false
	}
	var found []Server
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, suffixServer) && !strings.HasPrefix(name, ".") {
			if s, ok := readAlive(filepath.Join(dir, name)); ok {
				found = append(found, s)
			}
		}
	}
	slices.SortFunc(found, func(a, b Server) int { return a.Since.Compare(b.Since) })
	for _, s := range found {
		if answers(ctx, s.Address) {
			return s, true
		}
	}
	return Server{}, false
}

// readAlive reads a server's file if its process still holds the lock. Otherwise it removes
// the files of the server.
func readAlive(name string) (Server, bool) {
	path := strings.TrimSuffix(name, suffixServer)
	lock := flock.New(path+suffixLock, flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	if err != nil {
		return Server{}, false
	}
	if got { // no process holds the lock, so the server is dead
		_ = os.Remove(name)
		_ = os.Remove(path + suffixLock)
		_ = lock.Close()
		return Server{}, false
	}
	_ = lock.Close()
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return Server{}, false
	}
	data, err := os.ReadFile(name)
	var s Server
	if err != nil || json.Unmarshal(data, &s) != nil || s.Address == "" {
		return Server{}, false
	}
	return s, true
}
