package approval

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// maxBytes is the maximum size of the file.
const maxBytes = 4 << 20

// form is the version of the file format.
const form = 1

// lockRetry is the interval of attempts to get a lock that another process holds.
const lockRetry = 5 * time.Millisecond

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
type Store struct{ opts Options }

// Open returns a store. It does not read the file.
func Open(opts Options) (*Store, error) {
	if opts.Path == "" || len(opts.Key) == 0 {
		return nil, guideway.Errorf(guideway.CodeInternal, "an approval store needs a path and a key")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{opts: opts}, nil
}

// file is the JSON object in the file.
type file struct {
	Form    int     `json:"form"`
	Records Records `json:"records"`
	// MAC authenticates the records.
	MAC string `json:"mac"`
}

// List returns all records. If there is no file, it returns none; a file that cannot be
// read or was edited is an error.
func (s *Store) List() (Records, error) {
	text, err := s.privateFile().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f file
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, s.invalidFile("is not a valid approval file")
	}
	if f.Form > form {
		return nil, s.invalidFile(fmt.Sprintf("has the format %d, but this version of Guideway supports format %d", f.Form, form)).
			WithFix("use the version of Guideway that wrote the file, or a later one")
	}
	if f.Form != form {
		return nil, s.invalidFile(fmt.Sprintf("has the unsupported format %d", f.Form))
	}
	mac, err := s.computeMAC(f.Records)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal([]byte(mac), []byte(f.MAC)) {
		return nil, s.invalidFile("was edited, or was signed with another key")
	}
	return f.Records, nil
}

// invalidFile returns the error for a file that must not be used.
func (s *Store) invalidFile(why string) *guideway.Error {
	return guideway.Errorf(guideway.CodeForbidden, "the approval file %s %s; all approvals in the file are ignored", s.opts.Path, why).
		WithFix("restore the file from a backup, or move it away and repeat the approvals")
}

// Put adds an approval, or replaces an earlier one of the same subject. It sets the time.
func (s *Store) Put(ctx context.Context, r Record) (Record, error) {
	if r.Kind == "" || r.Subject == "" || r.Hash == "" || r.Who == "" {
		return Record{}, guideway.Errorf(guideway.CodeInternal, "an approval needs a kind, a subject, a hash and a person")
	}
	r.When = s.opts.Now().UTC().Truncate(time.Millisecond)
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
func (s *Store) Change(ctx context.Context, edit func(Records) (Records, error)) (err error) {
	if err := atomicfile.MakeDir(filepath.Dir(s.opts.Path)); err != nil {
		return s.writeError(err)
	}
	if err := atomicfile.EnsureFile(s.opts.Path + ".lock"); err != nil {
		return s.writeError(err)
	}
	lock := flock.New(s.opts.Path + ".lock")
	if ok, lockErr := lock.TryLockContext(ctx, lockRetry); !ok {
		return s.writeError(lockErr)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	records, err := s.List()
	if err != nil {
		return err
	}
	if records, err = edit(records); err != nil {
		return err
	}
	slices.SortFunc(records, compareRecords)
	mac, err := s.computeMAC(records)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(file{Form: form, Records: records, MAC: mac}, "", "  ")
	if err != nil {
		return s.writeError(err)
	}
	if len(text) >= maxBytes {
		return guideway.Errorf(guideway.CodeTooLarge, "the approvals would take %d bytes; fewer than %d are allowed", len(text), maxBytes).
			WithFix("disable approvals that are no longer needed")
	}
	if err := atomicfile.Replace(s.opts.Path, string(append(text, '\n'))); err != nil {
		return s.writeError(err)
	}
	return nil
}

func (s *Store) writeError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "write the approval file %s: %w", s.opts.Path, err).
		WithFix("make the directory %s writable for this user, or try again if another process is changing the file", filepath.Dir(s.opts.Path))
}

func (s *Store) privateFile() atomicfile.File {
	return atomicfile.File{
		Path: s.opts.Path, What: "approval file", MaxBytes: maxBytes,
		IfSeen: "note that they may know the approvals",
	}
}

// computeMAC returns the MAC of records in hexadecimal digits. It compacts the scopes,
// which are indented in the file.
func (s *Store) computeMAC(records Records) (string, error) {
	text, err := json.Marshal(records) // Marshal compacts raw messages
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "write approvals: %w", err)
	}
	h := hmac.New(sha256.New, s.opts.Key)
	h.Write([]byte("guideway approvals 1\n"))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)), nil
}
