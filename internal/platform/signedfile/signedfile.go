// Package signedfile stores records in a file with a MAC: editing the file without the key
// invalidates it, which is an error and never an empty list. Several processes may share a
// file. The instances of a deployment share an entry of its state instead of the file.
package signedfile

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
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

// form is the version of the file format.
const form = 1

// lockRetry is the interval of attempts to get a lock that another process holds.
const lockRetry = 5 * time.Millisecond

// File is a file with records. All fields are required, except Shared.
type File[T any] struct {
	Path string
	// Shared, if not nil, has the records in the entry with the name of the file, which it
	// signs; there is no file then, and Key is not used.
	Shared deployment.State
	// The noun What names the file in messages, such as "approval file", and Records its
	// records, such as "approvals".
	What, Records string
	// IfSeen is the suggested action if other users may have read the file, and IfFull the
	// suggested action if the file is too large.
	IfSeen, IfFull string
	// MaxBytes is the maximum size of the file.
	MaxBytes int64
	// Key returns the secret of the MAC, which must not be stored next to the file. It is
	// called only if the file exists or is written.
	Key func() ([]byte, error)
}

// content is the JSON object in the file.
type content[T any] struct {
	Form    int `json:"form"`
	Records []T `json:"records"`
	// MAC authenticates the records.
	MAC string `json:"mac"`
}

// Read returns all records. If there is no file, it returns none; a file that cannot be
// read or was edited is an error.
func (f File[T]) Read() ([]T, error) {
	if f.Shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		e, err := deployment.Get(ctx, f.Shared, filepath.Base(f.Path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return f.parseShared(e.Text)
	}
	text, err := f.private().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := f.parse([]byte(text))
	if err != nil {
		return nil, err
	}
	mac, err := f.computeMAC(c.Records)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal([]byte(mac), []byte(c.MAC)) {
		return nil, f.invalid("was edited, or was signed with another key")
	}
	return c.Records, nil
}

// parseShared parses the records in an entry, whose MAC was verified.
func (f File[T]) parseShared(text string) ([]T, error) {
	if text == "" {
		return nil, nil
	}
	c, err := f.parse([]byte(text))
	return c.Records, err
}

// changeShared changes the records in an entry.
func (f File[T]) changeShared(ctx context.Context, edit func([]T) ([]T, error)) error {
	return f.Shared.Change(ctx, filepath.Base(f.Path), func(text string) (string, error) {
		records, err := f.parseShared(text)
		if err != nil {
			return "", err
		}
		if records, err = edit(records); err != nil {
			return "", err
		}
		return f.encode(content[T]{Form: form, Records: records})
	})
}

// encode returns the text of the file.
func (f File[T]) encode(c content[T]) (string, error) {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "encode the %s as JSON: %w", f.Records, err)
	}
	if int64(len(text)) >= f.MaxBytes {
		return "", guideway.Errorf(guideway.CodeTooLarge, "the %s would take %d bytes; fewer than %d are allowed", f.Records, len(text), f.MaxBytes).
			WithFix("%s", f.IfFull)
	}
	return string(append(text, '\n')), nil
}

// parse parses the file. It reads the format first, because a newer format can have other
// fields.
func (f File[T]) parse(text []byte) (c content[T], err error) {
	var head struct {
		Form int `json:"form"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return c, f.invalid(fmt.Sprintf("cannot be parsed: %v", err))
	}
	if head.Form > form {
		return c, f.invalid(fmt.Sprintf("has the format %d, but this version of Guideway supports format %d", head.Form, form)).
			WithFix("use the version of Guideway that wrote the file, or a later one")
	}
	if head.Form != form {
		return c, f.invalid(fmt.Sprintf("has the unsupported format %d; this version of Guideway supports format %d", head.Form, form))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, f.invalid(fmt.Sprintf("cannot be parsed: %v", err))
	}
	return c, nil
}

// invalid returns the error for a file that must not be used.
func (f File[T]) invalid(why string) *guideway.Error {
	return guideway.Errorf(guideway.CodeForbidden, "the %s %s %s; all %s in the file are ignored", f.What, f.Path, why, f.Records).
		WithFix("restore the file from a backup, or move it away and repeat the %s", f.Records)
}

// Change durably replaces the records with the result of edit, under a lock. If edit returns
// an error, nothing is changed. edit owns the records that it gets.
func (f File[T]) Change(ctx context.Context, edit func([]T) ([]T, error)) (err error) {
	if f.Shared != nil {
		return f.changeShared(ctx, edit)
	}
	if err := atomicfile.MakeDir(filepath.Dir(f.Path)); err != nil {
		return f.writeError(err)
	}
	if err := atomicfile.EnsureFile(f.Path + ".lock"); err != nil {
		return f.writeError(err)
	}
	lock := flock.New(f.Path + ".lock")
	if ok, lockErr := lock.TryLockContext(ctx, lockRetry); !ok {
		return f.writeError(lockErr)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	records, err := f.Read()
	if err != nil {
		return err
	}
	if records, err = edit(records); err != nil {
		return err
	}
	mac, err := f.computeMAC(records)
	if err != nil {
		return err
	}
	text, err := f.encode(content[T]{Form: form, Records: records, MAC: mac})
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(f.Path, text); err != nil {
		return f.writeError(err)
	}
	return nil
}

func (f File[T]) writeError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "write the %s %s: %w", f.What, f.Path, err).
		WithFix("make the directory %s writable for this user, and check that its disk is not full; if another process is changing the file, try again", filepath.Dir(f.Path))
}

func (f File[T]) private() atomicfile.File {
	return atomicfile.File{Path: f.Path, What: f.What, MaxBytes: f.MaxBytes, IfSeen: f.IfSeen}
}

// computeMAC returns the MAC of records in hexadecimal digits. It compacts raw JSON in them,
// which is indented in the file.
func (f File[T]) computeMAC(records []T) (string, error) {
	key, err := f.Key()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(records) // Marshal compacts raw messages
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "encode the %s as JSON: %w", f.Records, err)
	}
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "guideway %s %d\n", f.Records, form)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)), nil
}
