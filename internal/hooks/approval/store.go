package approval

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// maxBytes bounds the file.
const maxBytes = 4 << 20

// form is the version of the file's form.
const form = 1

// lockRetry is how often a lock that another process holds is asked for again.
const lockRetry = 5 * time.Millisecond

// Options adjust a Store; Path and Key are needed.
type Options struct {
	// Path is the file, which need not be there.
	Path string
	// Key is the secret that the file is under. It must lie elsewhere.
	Key []byte
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// Store keeps approvals in a file. Several processes may share it.
type Store struct{ opts Options }

// Open makes a store. It reads nothing yet.
func Open(opts Options) (*Store, error) {
	if opts.Path == "" || len(opts.Key) == 0 {
		return nil, guideway.Errorf(guideway.CodeInternal, "a store of approvals needs a path and a key")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{opts: opts}, nil
}

// file is the content of the file.
type file struct {
	Form    int     `json:"form"`
	Records Records `json:"records"`
	// MAC is over the records.
	MAC string `json:"mac"`
}

// List gives all records. No file means none; a file that cannot be read, or that
// somebody has edited, is an error.
func (s *Store) List() (Records, error) {
	text, err := s.private().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f file
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil || f.Form != form {
		return nil, s.void("does not hold approvals of a form that is known here")
	}
	mac, err := s.mac(f.Records)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal([]byte(mac), []byte(f.MAC)) {
		return nil, s.void("was edited, or belongs to another key")
	}
	return f.Records, nil
}

// void is the error of a file that counts for nothing.
func (s *Store) void(why string) error {
	return guideway.Errorf(guideway.CodeForbidden, "the file of approvals %s %s; nothing in it counts", s.opts.Path, why).
		WithFix("put it back from a copy, or move it away and approve again what you know")
}

// Put records an approval, in place of an earlier one of the same subject. The
// time is the store's.
func (s *Store) Put(ctx context.Context, r Record) (Record, error) {
	if r.Kind == "" || r.Subject == "" || r.Hash == "" || r.Who == "" {
		return Record{}, guideway.Errorf(guideway.CodeInternal, "an approval needs a kind, a subject, a hash and who gives it")
	}
	r.When = s.opts.Now().UTC().Truncate(time.Millisecond)
	return r, s.Change(ctx, func(rs Records) (Records, error) {
		return append(without(rs, r.Key()), r), nil
	})
}

// Remove takes an approval away; ok says whether there was one.
func (s *Store) Remove(ctx context.Context, k Key) (ok bool, err error) {
	err = s.Change(ctx, func(rs Records) (Records, error) {
		ok = rs.Find(k) != nil
		return without(rs, k), nil
	})
	return ok, err
}

func without(rs Records, k Key) Records {
	return slices.DeleteFunc(slices.Clone(rs), func(r Record) bool { return r.Key() == k })
}

// Change replaces the records by what edit makes of them, while no other process
// does. With an error of edit's nothing is changed.
func (s *Store) Change(ctx context.Context, edit func(Records) (Records, error)) (err error) {
	if err := atomicfile.MakeDir(filepath.Dir(s.opts.Path)); err != nil {
		return s.unwritable(err)
	}
	lock := flock.New(s.opts.Path + ".lock")
	if ok, lockErr := lock.TryLockContext(ctx, lockRetry); lockErr != nil || !ok {
		return s.unwritable(lockErr)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	records, err := s.List()
	if err != nil {
		return err
	}
	if records, err = edit(records); err != nil {
		return err
	}
	slices.SortFunc(records, compare)
	mac, err := s.mac(records)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(file{Form: form, Records: records, MAC: mac}, "", "  ")
	if err != nil {
		return s.unwritable(err)
	}
	if len(text) >= maxBytes {
		return guideway.Errorf(guideway.CodeTooLarge, "there are too many approvals: %d bytes, over the limit of %d", len(text), maxBytes).
			WithFix("disable what is not needed any more")
	}
	if err := atomicfile.Replace(s.opts.Path, string(append(text, '\n'))); err != nil {
		return s.unwritable(err)
	}
	return nil
}

func (s *Store) unwritable(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "write the file of approvals %s: %w", s.opts.Path, err).
		WithFix("make the directory %s writable for this user", filepath.Dir(s.opts.Path))
}

func (s *Store) private() atomicfile.File {
	return atomicfile.File{
		Path: s.opts.Path, What: "file of approvals", MaxBytes: maxBytes,
		IfSeen: "know that whoever has read it knows what is approved",
	}
}

// mac is the MAC over records, in hexadecimal digits. Scopes are compacted, since
// the file has them indented.
func (s *Store) mac(records Records) (string, error) {
	text, err := json.Marshal(records) // it compacts what is raw
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "write approvals: %w", err)
	}
	h := hmac.New(sha256.New, s.opts.Key)
	h.Write([]byte("guideway approvals 1\n"))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)), nil
}
