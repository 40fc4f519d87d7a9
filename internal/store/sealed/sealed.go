// Package sealed encrypts what agents and people have written to a store of runs and
// session documents: the data of events, snapshots, goals and titles of runs, and session
// documents with their logs. Words for the search are stored as keyed hashes. Every run and
// every document has a data key, which is wrapped by the master key (package seal), so that
// its values are unreadable once the key is erased.
//
// Each ciphertext is bound to its place: the run and the number of the event, or the
// document and its revision. The chain of a run covers the ciphertexts, so it can be
// verified without the key. Ids, states, times, counts, workflows, projects and the names of
// users and clients stay readable, because lists and filters need them.
package sealed

import (
	"context"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cluster"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// Journal is a store that can be encrypted.
type Journal interface {
	run.Journal
	session.Store
	hookstate.ListStore
	cluster.Store
	PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error)
}

// Store encrypts what it writes to a journal, and decrypts what it reads. Values from before
// the encryption was turned on are returned as they are.
type Store struct {
	Journal
	keys keyring
	on   bool
}

var (
	_ Journal    = (*Store)(nil)
	_ run.Sealer = (*Store)(nil)
)

// New returns the encrypted form of a journal. If on is false, new values are not encrypted,
// but encrypted ones can be read if open returns the keys. open is called until it succeeds.
func New(journal Journal, on bool, open func(context.Context) (*seal.Keys, error)) *Store {
	return &Store{Journal: journal, on: on, keys: keyring{open: open}}
}

// runKey returns the data key of a run.
func (s *Store) runKey(ctx context.Context, id string, create bool) (*seal.Key, error) {
	key, err := s.keys.keyOf(ctx, create, "run", id)
	if err != nil && !create {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the run %s is encrypted, and its key is not available: %w", id, err).WithFix("%s", guideway.ErrorFix(err))
	}
	return key, err
}

// wordHash returns the keyed hash of search terms.
func (s *Store) wordHash(ctx context.Context) (words.Hash, error) {
	key, err := s.keys.keyOf(ctx, true, "words")
	if err != nil {
		return nil, err
	}
	return key.Hasher(), nil
}

// SealEvents implements run.Sealer.
func (s *Store) SealEvents(ctx context.Context, id string, events []run.Event) error {
	if !s.on {
		return nil
	}
	key, err := s.runKey(ctx, id, true)
	if err != nil {
		return err
	}
	for i, e := range events {
		if e.Sealed == nil && len(e.Data) > 0 {
			events[i].Sealed = sealBytes(key, e.Data, "event", id, number(e.Seq))
		}
	}
	return nil
}

// Create implements run.Writer.
func (s *Store) Create(ctx context.Context, d run.Definition, c run.Commit) error {
	c, err := s.sealCommit(ctx, c)
	if err != nil {
		return err
	}
	return s.Journal.Create(ctx, d, c)
}

// Append implements run.Writer.
func (s *Store) Append(ctx context.Context, c run.Commit) error {
	c, err := s.sealCommit(ctx, c)
	if err != nil {
		return err
	}
	return s.Journal.Append(ctx, c)
}

// sealCommit returns the encrypted form of a commit.
func (s *Store) sealCommit(ctx context.Context, c run.Commit) (run.Commit, error) {
	if !s.on {
		return c, nil
	}
	key, err := s.runKey(ctx, c.Record.ID, true)
	if err != nil {
		return c, err
	}
	c.Events = slices.Clone(c.Events)
	if err := s.SealEvents(ctx, c.Record.ID, c.Events); err != nil { // already done where the events are chained
		return c, err
	}
	for i, e := range c.Events {
		c.Events[i].Data = e.Sealed
	}
	if c.Snapshot != nil {
		snap := *c.Snapshot
		snap.State = sealBytes(key, snap.State, "snapshot", c.Record.ID, number(snap.Seq))
		c.Snapshot = &snap
	}
	hash, err := s.wordHash(ctx)
	if err != nil {
		return c, err
	}
	c.Terms = hash.Terms(c.Terms)
	for name, field := range recordTexts(&c.Record) {
		*field = sealText(key, *field, "record", c.Record.ID, name, number(c.Record.Seq))
	}
	return c, nil
}

// recordTexts returns the encrypted fields of a record.
func recordTexts(r *run.Record) map[string]*string {
	return map[string]*string{"goal": &r.Goal, "title": &r.Title}
}

// OpenRecord decrypts a record in place, and reports whether it was encrypted.
func (s *Store) OpenRecord(ctx context.Context, r *run.Record) (sealed bool) {
	if !strings.HasPrefix(r.Goal, textMark) {
		return false
	}
	key, err := s.runKey(ctx, r.ID, false)
	for name, field := range recordTexts(r) {
		openText(key, err, field, "record", r.ID, name, number(r.Seq))
	}
	return true
}

// Run implements run.Index.
func (s *Store) Run(ctx context.Context, id string) (run.Record, error) {
	r, err := s.Journal.Run(ctx, id)
	s.OpenRecord(ctx, &r)
	return r, err
}

// Runs implements run.Index.
func (s *Store) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	list, err := s.Journal.Runs(ctx, f)
	for i := range list {
		s.OpenRecord(ctx, &list[i])
	}
	return list, err
}

// Search implements run.Index. It also finds runs from before the encryption.
func (s *Store) Search(ctx context.Context, q run.Search) ([]run.Hit, error) {
	if s.on {
		hash, err := s.wordHash(ctx)
		if err != nil {
			return nil, err
		}
		q.Query = hash.Query(q.Query)
	}
	hits, err := s.Journal.Search(ctx, q)
	for i := range hits {
		s.OpenRecord(ctx, &hits[i].Record)
	}
	return hits, err
}

// StoredEvents implements run.Sealer.
func (s *Store) StoredEvents(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	list, err := s.Journal.Events(ctx, id, after, limit)
	moveSealed(list)
	return list, err
}

// moveSealed moves the data of encrypted events to Sealed.
func moveSealed(list []run.Event) {
	for i, e := range list {
		if isSealed(e.Data) {
			list[i].Sealed, list[i].Data = e.Data, nil
		}
	}
}

// Events implements run.Log.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	list, err := s.Journal.Events(ctx, id, after, limit)
	if err == nil {
		err = s.OpenEvents(ctx, id, list)
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// OpenEvents decrypts events of a run in place.
func (s *Store) OpenEvents(ctx context.Context, id string, list []run.Event) error {
	moveSealed(list)
	for i, e := range list {
		if e.Sealed == nil {
			continue
		}
		key, err := s.runKey(ctx, id, false)
		if err != nil {
			return err
		}
		if list[i].Data, err = openBytes(key, e.Sealed, "event", id, number(e.Seq)); err != nil {
			return err
		}
	}
	return nil
}

// Snapshot implements run.Log. A snapshot is a cache: one that cannot be decrypted is not
// returned.
func (s *Store) Snapshot(ctx context.Context, id string) (*run.Snapshot, error) {
	snap, err := s.Journal.Snapshot(ctx, id)
	if err != nil || snap == nil || !isSealed(snap.State) {
		return snap, err
	}
	key, err := s.runKey(ctx, id, false)
	if err != nil {
		return nil, nil //nolint:nilerr // reading the events returns the error
	}
	if snap.State, err = openBytes(key, snap.State, "snapshot", id, number(snap.Seq)); err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	return snap, nil
}
