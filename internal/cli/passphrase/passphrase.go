// Package passphrase stores the passphrase that a person types at a terminal to approve
// something. An agent could run the same command, but does not know the passphrase. The
// package stores an Argon2id hash in a private file. It counts wrong guesses; after a few
// of them the wait before each further guess grows. The passphrase is no protection against
// programs of the same user, which can replace the file; see docs/security.md.
package passphrase

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"golang.org/x/crypto/argon2"
)

// MinLength is the minimum number of characters of a passphrase.
const MinLength = 8

// setCommand is the command that sets the passphrase.
const setCommand = "guideway runs approve --set-passphrase"

// ErrNotSet is the cause of the error if no passphrase is set.
var ErrNotSet = errors.New("no passphrase has been set")

// Cost is the cost of one check. The zero value is the default.
type Cost struct {
	// Passes is the number of passes over the memory, 3 by default.
	Passes uint32 `json:"passes"`
	// KiB is the memory, 64 MiB by default.
	KiB uint32 `json:"kib"`
	// Threads is the number of threads, 2 by default.
	Threads uint8 `json:"threads"`
}

func (c Cost) withDefaults() Cost {
	return Cost{Passes: cmp.Or(c.Passes, 3), KiB: cmp.Or(c.KiB, 64<<10), Threads: cmp.Or(c.Threads, 2)}
}

// isWithinBounds reports whether a cost from a file is acceptable, so that a file cannot
// exhaust memory or time.
func (c Cost) isWithinBounds() bool {
	return c.Passes >= 1 && c.Passes <= 64 && c.KiB >= 8 && c.KiB <= 1<<20 && c.Threads >= 1 && c.Threads <= 64
}

// File is a passphrase in a file. Only Path is required.
type File struct {
	// Path is the file of the hash. The count of guesses and the lock are in files with the
	// same path and a suffix.
	Path string
	// Shared, if not nil, has the hash and the count instead of the files.
	Shared deployment.State
	// Cost is the cost of a new passphrase.
	Cost Cost
	// Now returns the current time. The default is time.Now.
	Now func() time.Time
}

// storedPassphrase is the content of the file.
type storedPassphrase struct {
	Version int    `json:"version"`
	KDF     string `json:"kdf"`
	Cost    Cost   `json:"cost"`
	Salt    []byte `json:"salt"`
	Hash    []byte `json:"hash"`
}

const (
	kdf       = "argon2id"
	saltBytes = 16
	hashBytes = 32
	maxFile   = 4 << 10
)

func (s *storedPassphrase) computeHash(passphrase string) []byte {
	return argon2.IDKey([]byte(passphrase), s.Salt, s.Cost.Passes, s.Cost.KiB, s.Cost.Threads, hashBytes)
}

// IsSet reports whether a passphrase is set. A damaged file is an error with a fix. It
// never counts as not set.
func (f File) IsSet() (bool, error) {
	_, err := f.readStored()
	if errors.Is(err, ErrNotSet) {
		return false, nil
	}
	return err == nil, err
}

// CheckUsable returns nil if there is a passphrase to check, and otherwise the error that
// Check would return: CodeForbidden with the cause ErrNotSet if none is set.
func (f File) CheckUsable() error {
	_, err := f.readStored()
	return err
}

// Check checks a passphrase. A wrong one takes as long as the correct one, is counted and
// returns CodeForbidden. After several wrong ones, Check refuses further attempts for a
// time that grows with each. If no passphrase is set, it returns CodeForbidden with the
// cause ErrNotSet.
func (f File) Check(ctx context.Context, passphrase string) error {
	if _, err := f.readStored(); err != nil {
		return err
	}
	unlock, err := f.acquireLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f.checkLocked(ctx, passphrase)
}

// Set stores a new passphrase. If one is set, old must match it and counts as a guess. A
// passphrase that is too short returns CodeInvalid.
func (f File) Set(ctx context.Context, old, passphrase string) error {
	if utf8.RuneCountInString(passphrase) < MinLength {
		return guideway.Errorf(guideway.CodeInvalid, "the passphrase has fewer than %d characters", MinLength).
			WithFix("use at least %d characters, such as several words", MinLength)
	}
	unlock, err := f.acquireLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	before, err := f.readText()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if err := f.checkLocked(ctx, old); err != nil {
			return err
		}
	}
	s := storedPassphrase{Version: 1, KDF: kdf, Cost: f.Cost.withDefaults(), Salt: make([]byte, saltBytes)}
	_, _ = rand.Read(s.Salt) // crypto/rand.Read never fails
	s.Hash = s.computeHash(passphrase)
	text, err := json.Marshal(s)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "encode the passphrase: %w", err)
	}
	if f.Shared == nil {
		return f.replace(f.Path, string(text)+"\n")
	}
	return f.Shared.Change(ctx, filepath.Base(f.Path), func(now string) (string, error) {
		if now != before {
			return "", guideway.Errorf(guideway.CodeConflict, "another process has set a passphrase").WithFix("run the command again, and enter that passphrase")
		}
		return string(text) + "\n", nil
	})
}

// checkLocked checks a passphrase. The caller holds the lock, so that concurrent guesses
// are counted one by one.
func (f File) checkLocked(ctx context.Context, passphrase string) error {
	s, err := f.readStored()
	if err != nil {
		return err
	}
	// Count the guess before the comparison, so that it also counts if the program is
	// killed.
	if err := f.countGuess(ctx); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(s.computeHash(passphrase), s.Hash) != 1 {
		return guideway.Errorf(guideway.CodeForbidden, "incorrect passphrase").
			WithFix("enter the passphrase that was set with %s", setCommand)
	}
	return f.clearGuesses(ctx)
}

// readText returns the stored text. The error is fs.ErrNotExist if no passphrase is set.
func (f File) readText() (string, error) {
	if f.Shared == nil {
		return f.readPrivate(f.Path, "passphrase file")
	}
	ctx, cancel := deployment.Context()
	defer cancel()
	e, err := deployment.Get(ctx, f.Shared, filepath.Base(f.Path))
	return e.Text, err
}

// readStored reads and validates the file.
func (f File) readStored() (*storedPassphrase, error) {
	data, err := f.readText()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, guideway.Errorf(guideway.CodeForbidden, "approval at a terminal is disabled: %w", ErrNotSet).
			WithFix("%s", setCommand)
	case err != nil:
		return nil, err
	}
	var s storedPassphrase
	err = json.Unmarshal([]byte(data), &s)
	if err == nil && s.Version > 1 {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the passphrase file %s was written by a newer version of Guideway", f.Path).
			WithFix("upgrade Guideway, or remove %s and set a new passphrase with %s", f.Path, setCommand)
	}
	if err != nil || s.Version != 1 || s.KDF != kdf || !s.Cost.isWithinBounds() ||
		len(s.Salt) < saltBytes || len(s.Hash) != hashBytes {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the passphrase file %s is damaged", f.Path).
			WithFix("restore %s from a copy, or remove it and set a new passphrase with %s", f.Path, setCommand)
	}
	return &s, nil
}

// acquireLock serializes checks and changes of all processes. Changes of the shared state are
// serialized one by one.
func (f File) acquireLock(ctx context.Context) (unlock func(), err error) {
	if f.Shared != nil {
		return func() {}, nil
	}
	if err := atomicfile.MakeDir(filepath.Dir(f.Path)); err != nil {
		return nil, f.writeError(err)
	}
	if err := atomicfile.EnsureFile(f.Path + ".lock"); err != nil {
		return nil, f.writeError(err)
	}
	l := flock.New(f.Path+".lock", flock.SetPermissions(0o600))
	if ok, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil || !ok {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "lock the passphrase file %s: %w", f.Path, err)
	}
	return func() { _ = l.Close() }, nil // closing the file releases the lock
}

func (f File) currentTime() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

func (f File) writeError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "write the files of the passphrase: %w", err).
		WithFix("make the directory %s writable for this user, and check that its disk has free space", filepath.Dir(f.Path))
}

// readPrivate reads a private file; what is its name in errors.
func (File) readPrivate(path, what string) (string, error) {
	return atomicfile.File{
		Path: path, What: what, MaxBytes: maxFile,
		IfSeen: "remove the file and set a new passphrase",
	}.Read()
}

// guessCount is the number of wrong passphrases since the last correct one, and the time of
// the last wrong one.
type guessCount struct {
	Wrong int       `json:"wrong"`
	Last  time.Time `json:"last"`
}

const (
	// freeGuesses is the number of guesses without a wait, for typing errors.
	freeGuesses = 3
	firstWait   = 5 * time.Second
	longestWait = 5 * time.Minute
)

// remainingWait returns the time until the next guess is allowed.
func (g guessCount) remainingWait(now time.Time) time.Duration {
	if g.Wrong < freeGuesses {
		return 0
	}
	wait := longestWait
	if doublings := g.Wrong - freeGuesses; doublings < 6 {
		wait = firstWait << doublings
	}
	since := now.Sub(g.Last)
	if since < 0 { // the clock was set back: restart the wait
		since = 0
	}
	return max(0, wait-since)
}

func (f File) guessPath() string { return f.Path + ".guesses" }

// countGuess counts a guess. It returns an error if the next guess is not allowed yet. An
// unreadable count is an error, otherwise it would allow unlimited guesses.
func (f File) countGuess(ctx context.Context) error {
	count := func(text string) (string, error) {
		var g guessCount
		if text != "" {
			err := json.Unmarshal([]byte(text), &g)
			if err == nil && g.Wrong < 0 {
				err = fmt.Errorf("%d is negative", g.Wrong)
			}
			if err != nil {
				return "", f.guessError(err)
			}
		}
		if wait := g.remainingWait(f.currentTime()); wait > 0 {
			return "", guideway.Errorf(guideway.CodeForbidden, "wrong passphrases in a row: %d; the next attempt is possible in %s", g.Wrong, wait.Round(time.Second)).
				WithFix("wait %s, then try again", wait.Round(time.Second))
		}
		next, err := json.Marshal(guessCount{Wrong: g.Wrong + 1, Last: f.currentTime()})
		return string(next) + "\n", err
	}
	if f.Shared != nil {
		return f.Shared.Change(ctx, filepath.Base(f.guessPath()), count)
	}
	text, err := f.readPrivate(f.guessPath(), "count of wrong passphrases")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.guessError(err)
	}
	if text, err = count(text); err != nil {
		return err
	}
	return f.replace(f.guessPath(), text)
}

func (f File) guessError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "the number of wrong passphrases in %s cannot be read: %w", f.guessPath(), err).
		WithFix("remove %s, if you are sure that there was no attempt to guess the passphrase", f.guessPath())
}

// clearGuesses forgets the wrong passphrases.
func (f File) clearGuesses(ctx context.Context) error {
	if f.Shared != nil {
		_, err := f.Shared.Remove(ctx, filepath.Base(f.guessPath()))
		return err
	}
	if err := os.Remove(f.guessPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.writeError(err)
	}
	return nil
}

// replace writes a private file atomically.
func (f File) replace(path, text string) error {
	if err := atomicfile.Replace(path, text); err != nil {
		return f.writeError(err)
	}
	return nil
}
