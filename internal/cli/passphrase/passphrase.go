// Package passphrase keeps the passphrase by which a person shows at a terminal
// that it is not the agent who opens a gate. What is stored is an Argon2id hash
// in a file of the person's own; guesses are counted, and each one after the
// first few has to wait longer.
//
// It proves as much as the terminal does: a program that runs as the same user
// can replace the file. docs/security.md says so.
package passphrase

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"golang.org/x/crypto/argon2"
)

// MinLength is the least number of characters of a passphrase.
const MinLength = 8

// setCommand is how a person sets the passphrase.
const setCommand = "guideway runs approve --set-passphrase"

// ErrNotSet is the cause of the error where no passphrase has been set.
var ErrNotSet = errors.New("no passphrase has been set")

// Cost is the work that one check takes. The zero value is the default.
type Cost struct {
	// Passes is the number of passes over the memory, 3 by default.
	Passes uint32 `json:"passes"`
	// KiB is the memory, 64 MiB by default.
	KiB uint32 `json:"kib"`
	// Threads is the number of threads, 2 by default.
	Threads uint8 `json:"threads"`
}

func (c Cost) withDefaults() Cost {
	if c.Passes == 0 {
		c.Passes = 3
	}
	if c.KiB == 0 {
		c.KiB = 64 << 10
	}
	if c.Threads == 0 {
		c.Threads = 2
	}
	return c
}

// isWithinBounds says whether a cost that was read from a file is within bounds: no file
// makes a check take the whole memory or the whole day.
func (c Cost) isWithinBounds() bool {
	return c.Passes >= 1 && c.Passes <= 64 && c.KiB >= 8 && c.KiB <= 1<<20 && c.Threads >= 1 && c.Threads <= 64
}

// File is a passphrase in a file. The zero value but for Path is ready for use.
type File struct {
	// Path is where the hash is; two files with longer names stand beside it
	// for the count of guesses and for a lock.
	Path string
	// Cost is that of a passphrase which is set from now on.
	Cost Cost
	// Now tells the time; nil is time.Now.
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

// IsSet says whether there is a passphrase. A file that is there and cannot be
// used is an error with the way out: it never counts as not set.
func (f File) IsSet() (bool, error) {
	_, err := f.readStored()
	if errors.Is(err, ErrNotSet) {
		return false, nil
	}
	return err == nil, err
}

// CheckUsable is nil where there is a passphrase to check, and else the error that
// Check would give: CodeForbidden with ErrNotSet as its cause where none is set.
func (f File) CheckUsable() error {
	_, err := f.readStored()
	return err
}

// Check compares a passphrase. A wrong one takes as long as the right one, is
// counted, and is CodeForbidden; after several the next one is refused without
// a look until some time has passed, which grows with each. That none is set is
// CodeForbidden too, with ErrNotSet as its cause.
func (f File) Check(ctx context.Context, passphrase string) error {
	if _, err := f.readStored(); err != nil {
		return err
	}
	unlock, err := f.acquireLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f.checkLocked(passphrase)
}

// Set sets the passphrase. Where there is one, old must be it, and counts as a
// guess. A passphrase that is too short is CodeInvalid.
func (f File) Set(ctx context.Context, old, passphrase string) error {
	if n := utf8.RuneCountInString(passphrase); n < MinLength {
		return guideway.Errorf(guideway.CodeInvalid, "the passphrase is too short: %d characters", n).
			WithFix("take one of at least %d characters; some words in a row are easy to keep in mind", MinLength)
	}
	if err := atomicfile.MakeDir(filepath.Dir(f.Path)); err != nil {
		return f.writeError(err)
	}
	unlock, err := f.acquireLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch isSet, err := f.IsSet(); {
	case err != nil:
		return err
	case isSet:
		if err := f.checkLocked(old); err != nil {
			return err
		}
	}
	s := storedPassphrase{Version: 1, KDF: kdf, Cost: f.Cost.withDefaults(), Salt: make([]byte, saltBytes)}
	_, _ = rand.Read(s.Salt) // never fails
	s.Hash = s.computeHash(passphrase)
	return f.writeJSON(f.Path, s)
}

// checkLocked needs the lock: guesses come one after the other, however many programs
// make them.
func (f File) checkLocked(passphrase string) error {
	s, err := f.readStored()
	if err != nil {
		return err
	}
	g, err := f.readGuesses()
	if err != nil {
		return err
	}
	if wait := g.remainingWait(f.currentTime()); wait > 0 {
		return guideway.Errorf(guideway.CodeForbidden, "%d wrong passphrases in a row: no other one is looked at for %s", g.Wrong, wait.Round(time.Second)).
			WithFix("wait %s, then try again", wait.Round(time.Second))
	}
	// Counted before it is looked at, so that ending the program in between
	// gives no free guess.
	if err := f.writeJSON(f.guessPath(), guessCount{Wrong: g.Wrong + 1, Last: f.currentTime()}); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(s.computeHash(passphrase), s.Hash) != 1 {
		return guideway.Errorf(guideway.CodeForbidden, "that is not the passphrase").
			WithFix("type the one that was set with %s", setCommand)
	}
	if err := os.Remove(f.guessPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.writeError(err)
	}
	return nil
}

// readStored reads the file.
func (f File) readStored() (*storedPassphrase, error) {
	data, err := readPrivate(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, guideway.Errorf(guideway.CodeForbidden, "approving at a terminal is off: %w", ErrNotSet).
			WithFix("%s", setCommand)
	case err != nil:
		return nil, err
	}
	var s storedPassphrase
	if err := json.Unmarshal(data, &s); err != nil || s.Version != 1 || s.KDF != kdf || !s.Cost.isWithinBounds() ||
		len(s.Salt) < saltBytes || len(s.Hash) != hashBytes {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the passphrase file %s is damaged, or of a newer version", f.Path).
			WithFix("put it back from a copy, or remove it yourself and set a new passphrase with %s", setCommand)
	}
	return &s, nil
}

// acquireLock has one program at a time check and set.
func (f File) acquireLock(ctx context.Context) (unlock func(), err error) {
	l := flock.New(f.Path+".lock", flock.SetPermissions(0o600))
	if ok, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil || !ok {
		return nil, f.writeError(errors.Join(err, ctx.Err()))
	}
	return func() { _ = l.Close() }, nil // closing gives the lock back
}

func (f File) currentTime() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

func (f File) writeError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "keep the passphrase: %w", err).
		WithFix("make the directory %s writable for this user", filepath.Dir(f.Path))
}

// readPrivate reads one of the files.
func readPrivate(path string) ([]byte, error) {
	text, err := atomicfile.File{
		Path: path, What: "passphrase file", MaxBytes: maxFile,
		IfSeen: "remove it and set a new passphrase",
	}.Read()
	return []byte(text), err
}
