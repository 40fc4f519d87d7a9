// Package results keeps results of tools that are too large for a model, and reads parts of
// them: a client gets the start of such a result, its shape and a reference. The bytes of a
// result do not change.
package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

// refPrefix is the start of each reference.
const refPrefix = "result_"

// Options configure a store.
type Options struct {
	// Dir is the directory of the files, which processes can share.
	Dir string
	// Instance is the id of this instance of a deployment, which references then have before
	// the last underscore, or "".
	Instance string
	// Retention is how long a result is kept, and MaxSize is the maximum size of all results
	// in bytes; zero means no limit.
	Retention time.Duration
	MaxSize   int64
	// Now is the clock.
	Now func() time.Time
	// Texts encrypts the results. If nil, they are not encrypted.
	Texts *seal.Texts
	// Logger logs files that cannot be removed.
	Logger *slog.Logger
}

// Store keeps results in files, which only this user can read.
type Store struct {
	opts Options
	// mu allows one removal of old files at a time.
	mu sync.Mutex
}

// NewStore returns a store, and removes expired results. It creates the directory when it
// stores a result.
func NewStore(opts Options) *Store {
	s := &Store{opts: opts}
	s.removeOld(0)
	return s
}

// Add stores the result of a client with an owner, and returns the reference. It removes
// expired results, and the oldest ones if there is no room.
func (s *Store) Add(owner string, result []byte) (ref string, err error) {
	if err := atomicfile.MakeDir(s.opts.Dir); err != nil {
		return "", fmt.Errorf("store a result: %w", err)
	}
	s.removeOld(int64(len(result)))
	ref = refPrefix
	if s.opts.Instance != "" {
		ref += s.opts.Instance + "_"
	}
	ref = shortid.Token(ref)
	text, err := s.opts.Texts.Seal(context.Background(), append([]byte(strconv.Quote(owner)+"\n"), result...), "stored result "+ref)
	if err == nil {
		err = atomicfile.Create(s.pathOf(ref), string(text))
	}
	if err != nil {
		return "", fmt.Errorf("store a result: %w", err)
	}
	return ref, nil
}

// Get returns a result. Only its owner finds it.
func (s *Store) Get(owner, ref string) ([]byte, error) {
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no result %.60q: it never existed, has expired, was removed to make room, or belongs to another client", ref).
		WithFix("call the tool again, and read the reference of its new result")
	if !isRef(ref) {
		return nil, missing
	}
	path := s.pathOf(ref)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && s.isExpired(info) {
		return nil, missing
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read a stored result: %w", err)
	}
	if text, err = s.opts.Texts.Open(context.Background(), text, "stored result "+ref); err != nil {
		return nil, err
	}
	found, result, _ := strings.Cut(string(text), "\n")
	if found != strconv.Quote(owner) {
		return nil, missing
	}
	return []byte(result), nil
}

// isRef reports whether a text has the form of a reference.
func isRef(text string) bool {
	id, found := strings.CutPrefix(text, refPrefix)
	return found && id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') && r != '_' })
}

func (s *Store) pathOf(ref string) string { return filepath.Join(s.opts.Dir, ref) }

// Expiry returns the time at which a result that is stored now expires; zero means never.
func (s *Store) Expiry() time.Time {
	if s.opts.Retention == 0 {
		return time.Time{}
	}
	return s.opts.Now().Add(s.opts.Retention)
}

func (s *Store) isExpired(info fs.FileInfo) bool {
	return s.opts.Retention > 0 && s.opts.Now().Sub(info.ModTime()) > s.opts.Retention
}

// removeOld removes expired results, and the oldest ones until there is room for more bytes.
func (s *Store) removeOld(more int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, _ := os.ReadDir(s.opts.Dir) // Adding a file reports the error of an unreadable directory.
	var files []fs.FileInfo
	sum := more
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && isRef(entry.Name()) {
			files, sum = append(files, info), sum+info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range files {
		if !s.isExpired(info) && (s.opts.MaxSize == 0 || sum <= s.opts.MaxSize) {
			continue
		}
		if err := os.Remove(s.pathOf(info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.opts.Logger.Warn("an old result was not removed", "error", err)
			continue
		}
		sum -= info.Size()
	}
}
