// Package deployment describes the state that all instances of a deployment share:
// credentials, approvals and settings. A single machine keeps them in files.
package deployment

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Entry is a text with a name, and the time at which it was last touched.
type Entry struct {
	Name, Text string
	Touched    time.Time
}

// State stores entries. Every method is one transaction.
type State interface {
	// Entries returns the entries whose names start with a prefix, in order of their names.
	Entries(ctx context.Context, prefix string) ([]Entry, error)
	// Create adds an entry. The error is fs.ErrExist if there is one of the same name.
	Create(ctx context.Context, e Entry) error
	// Change replaces the text of an entry with the result of edit, which gets "" if there
	// is no entry, while no other instance changes it. An empty result removes the entry.
	Change(ctx context.Context, name string, edit func(text string) (string, error)) error
	// Touch sets the time of an entry, if it exists.
	Touch(ctx context.Context, name string, at time.Time) error
	// Remove removes an entry. Of several instances that remove it, one gets true.
	Remove(ctx context.Context, name string) (bool, error)
	// Prune removes the entries with a prefix that were last touched before a time.
	Prune(ctx context.Context, prefix string, before time.Time) error
	// Take counts a call against all limits, or against none: then over is the index of the
	// limit that blocks longest, and wait the time to wait. Otherwise over is -1. The clock is
	// that of the store.
	Take(ctx context.Context, limits []Limit) (over int, wait time.Duration, err error)
}

// Limit is a number of calls per minute. Its name begins with the prefix limits/.
type Limit struct {
	Name      string
	PerMinute int
}

// Shared is a state that all instances of a deployment share, and its keys.
type Shared interface {
	State
	// DeriveKey returns a key for a purpose, which is the same for all instances.
	DeriveKey(ctx context.Context, purpose string) ([]byte, error)
}

// timeLimit bounds the calls of callers that have no context.
const timeLimit = 10 * time.Second

// Context returns a context for a caller that has none.
func Context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), timeLimit)
}

// Get returns an entry. The error is fs.ErrNotExist if there is none.
func Get(ctx context.Context, s State, name string) (Entry, error) {
	list, err := s.Entries(ctx, name)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range list {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, fs.ErrNotExist
}

// DeriveKey returns a key for a purpose from the key of the journal.
func DeriveKey(key []byte, purpose string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("guideway derived key 1\x00" + purpose))
	return h.Sum(nil)
}

// Opened is a store and the key of its journal.
type Opened struct {
	State

	Key []byte
}

// Signed is a state whose entries have a MAC: an entry that was changed without the key is an
// error and never a missing entry. It opens its store at the first call.
type Signed struct {
	// Open opens the store. After an error, the next call tries again.
	Open func(ctx context.Context) (*Opened, error)

	mu     sync.Mutex
	opened *Opened
}

var _ Shared = (*Signed)(nil)

// open returns the store and the key of the MACs.
func (s *Signed) open(ctx context.Context) (State, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil {
		o, err := s.Open(ctx)
		if err != nil {
			return nil, nil, err
		}
		s.opened = o
	}
	return s.opened.State, DeriveKey(s.opened.Key, "deployment state"), nil
}

// DeriveKey implements Shared.
func (s *Signed) DeriveKey(ctx context.Context, purpose string) ([]byte, error) {
	if _, _, err := s.open(ctx); err != nil {
		return nil, err
	}
	return DeriveKey(s.opened.Key, purpose), nil
}

// sign returns a text with the MAC of its name and itself.
func sign(key []byte, name, text string) string { return computeMAC(key, name, text) + text }

func computeMAC(key []byte, name, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(name + "\x00" + text))
	return hex.EncodeToString(h.Sum(nil))
}

// verify returns the text of a signed text.
func verify(key []byte, name, signed string) (string, error) {
	const length = 2 * sha256.Size
	if len(signed) < length || !hmac.Equal([]byte(signed[:length]), []byte(computeMAC(key, name, signed[length:]))) {
		kind, _, _ := strings.Cut(name, "/")
		return "", guideway.Errorf(guideway.CodeForbidden, "an entry of the kind %q in the table shared of the store was edited, or was written with another key", kind).
			WithFix("find out who can write to the database, then restore the table from a backup, or delete the entry in SQL and create it again")
	}
	return signed[length:], nil
}

// Entries implements State. So do the methods below.
func (s *Signed) Entries(ctx context.Context, prefix string) ([]Entry, error) {
	store, key, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	list, err := store.Entries(ctx, prefix)
	for i := range list {
		if err == nil {
			list[i].Text, err = verify(key, list[i].Name, list[i].Text)
		}
	}
	return list, err
}

// Create adds an entry.
func (s *Signed) Create(ctx context.Context, e Entry) error {
	store, key, err := s.open(ctx)
	if err != nil {
		return err
	}
	e.Text = sign(key, e.Name, e.Text)
	return store.Create(ctx, e)
}

// Change replaces the text of an entry.
func (s *Signed) Change(ctx context.Context, name string, edit func(string) (string, error)) error {
	store, key, err := s.open(ctx)
	if err != nil {
		return err
	}
	return store.Change(ctx, name, func(signed string) (text string, err error) {
		if signed != "" {
			if text, err = verify(key, name, signed); err != nil {
				return "", err
			}
		}
		if text, err = edit(text); err != nil || text == "" {
			return "", err
		}
		return sign(key, name, text), nil
	})
}

// Touch sets the time of an entry.
func (s *Signed) Touch(ctx context.Context, name string, at time.Time) error {
	store, _, err := s.open(ctx)
	if err != nil {
		return err
	}
	return store.Touch(ctx, name, at)
}

// Remove removes an entry.
func (s *Signed) Remove(ctx context.Context, name string) (bool, error) {
	store, _, err := s.open(ctx)
	if err != nil {
		return false, err
	}
	return store.Remove(ctx, name)
}

// Prune removes old entries.
func (s *Signed) Prune(ctx context.Context, prefix string, before time.Time) error {
	store, _, err := s.open(ctx)
	if err != nil {
		return err
	}
	return store.Prune(ctx, prefix, before)
}

// Take implements State.
func (s *Signed) Take(ctx context.Context, limits []Limit) (over int, wait time.Duration, err error) {
	store, _, err := s.open(ctx)
	if err != nil {
		return -1, 0, err
	}
	return store.Take(ctx, limits)
}

// UseOnce reports whether this call is the first use of a name by any instance within
// a time.
func UseOnce(ctx context.Context, s State, name string, now time.Time, keep time.Duration) (bool, error) {
	kind, _, _ := strings.Cut(name, "/")
	if err := s.Prune(ctx, kind+"/", now.Add(-keep)); err != nil {
		return false, err
	}
	err := s.Create(ctx, Entry{Name: name, Text: "used", Touched: now})
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}
