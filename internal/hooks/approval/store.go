package approval

import (
	"context"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/signedfile"
)

// maxBytes is the maximum size of the file.
const maxBytes = 4 << 20

// Options configure a Store. Path and Key are required.
type Options struct {
	// Path is the file, which need not exist.
	Path string
	// Key is the secret of the MAC. It must not be stored next to the file.
	Key []byte
	// Now returns the time. If nil, it is time.Now.
	Now func() time.Time
}

// Store stores approvals in a file. Several processes may share it.
type Store struct {
	file signedfile.File[Record]
	now  func() time.Time
}

// Open returns a store. It does not read the file.
func Open(opts Options) (*Store, error) {
	if opts.Path == "" || len(opts.Key) == 0 {
		return nil, guideway.Errorf(guideway.CodeInternal, "an approval store needs a path and a key")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{now: opts.Now, file: signedfile.File[Record]{
		Path: opts.Path, What: "approval file", Records: "approvals", MaxBytes: maxBytes,
		IfSeen: "note that they may know the approvals", IfFull: "disable approvals that are no longer needed",
		Key: func() ([]byte, error) { return opts.Key, nil },
	}}, nil
}

// List returns all records. If there is no file, it returns none; a file that cannot be
// read or was edited is an error.
func (s *Store) List() (Records, error) { return s.file.Read() }

// Put adds an approval, or replaces an earlier one of the same subject. It sets the time.
func (s *Store) Put(ctx context.Context, r Record) (Record, error) {
	if r.Kind == "" || r.Subject == "" || r.Hash == "" || r.Who == "" {
		return Record{}, guideway.Errorf(guideway.CodeInternal, "an approval needs a kind, a subject, a hash and a person")
	}
	r.When = s.now().UTC().Truncate(time.Millisecond)
	return r, s.Change(ctx, func(rs Records) (Records, error) {
		return append(removeRecord(rs, r.Key()), r), nil
	})
}

// Remove removes an approval. ok reports whether there was one.
func (s *Store) Remove(ctx context.Context, k Key) (ok bool, err error) {
	err = s.Change(ctx, func(rs Records) (Records, error) {
		ok = rs.Find(k) != nil
		return removeRecord(rs, k), nil
	})
	return ok, err
}

func removeRecord(rs Records, k Key) Records {
	return slices.DeleteFunc(slices.Clone(rs), func(r Record) bool { return r.Key() == k })
}

// Change replaces the records with the result of edit, under a lock. If edit returns an
// error, nothing is changed.
func (s *Store) Change(ctx context.Context, edit func(Records) (Records, error)) error {
	return s.file.Change(ctx, func(records []Record) ([]Record, error) {
		changed, err := edit(records)
		slices.SortFunc(changed, compareRecords)
		return changed, err
	})
}
