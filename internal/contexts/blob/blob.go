// Package blob stores bytes by their content: the name of a blob is its SHA-256, so that a
// read returns the written bytes or an error. A store also has slots: small named values,
// such as wrapped keys.
//
// Files is the usual implementation, Memory the one for a process without a writable
// directory; package blobtest contains the test suite of every implementation.
package blob

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// DefaultMaxBytes is the default size limit of a blob.
const DefaultMaxBytes = 64 << 20

// maxSlotBytes bounds a slot: slots are for keys, not for content.
const maxSlotBytes = 4 << 10

// ErrCorrupt marks a blob whose content does not match its name. The error of Get wraps it
// and has the code CodeInternal.
var ErrCorrupt = errors.New("the stored content is damaged")

// Name is the address of a blob: the SHA-256 of its bytes in 64 hexadecimal
// digits.
type Name string

// NameOf returns the name of a blob with this content.
func NameOf(data []byte) Name {
	return Name(digest.Hex(data))
}

var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// Valid reports whether n has the form of a name.
func (n Name) Valid() bool { return namePattern().MatchString(string(n)) }

// Info is the metadata of a blob.
type Info struct {
	Name Name
	Size int64
	// Modified is the time of the write.
	Modified time.Time
}

// Swept is the result of a sweep.
type Swept struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
	// Leftovers counts the removed files of abandoned writes.
	Leftovers int `json:"leftovers"`
}

// Store stores blobs and slots. A successful write to a directory or a database survives
// the end of the process and of the machine. Methods are safe for concurrent use by many
// goroutines, and a directory or a database by many processes. Errors have a code:
// CodeNotFound, CodeInvalid (the key of a slot), CodeTooLarge, CodeConflict (the slot
// exists), CodeUnavailable (a full disk, a directory that is not writable; a retry may
// succeed) or CodeInternal. IsFull detects a full disk.
type Store interface {
	Blobs
	Slots
}

// Blobs stores contents.
type Blobs interface {
	// Put stores a blob unless it exists.
	Put(ctx context.Context, data []byte) (Name, error)
	// Get returns the verified content of a name. The error wraps ErrCorrupt if the content
	// was modified; it has CodeNotFound if the blob does not exist.
	Get(ctx context.Context, name Name) ([]byte, error)
	// Delete removes blobs; a missing one is not an error.
	Delete(ctx context.Context, names ...Name) error
	// Each visits every blob, in any order, until visit returns an error.
	Each(ctx context.Context, visit func(Info) error) error
	// Sweep removes the blobs for which keep returns false, and the files of abandoned
	// writes.
	Sweep(ctx context.Context, keep func(Info) bool) (Swept, error)
}

// Slots stores small values by key.
type Slots interface {
	// Slot returns the value of a slot. The error has CodeNotFound if the slot does not
	// exist.
	Slot(ctx context.Context, key string) ([]byte, error)
	// CreateSlot creates a slot. The error has CodeConflict if the slot exists.
	CreateSlot(ctx context.Context, key string, value []byte) error
	// ReplaceSlot replaces the value of a slot by one of the same length. The error has
	// CodeNotFound if the slot does not have the old value: neither a concurrent EraseSlot nor
	// another ReplaceSlot is undone.
	ReplaceSlot(ctx context.Context, key string, old, value []byte) error
	// EraseSlot removes a slot as permanently as the medium allows: files are overwritten
	// first. A missing slot is not an error.
	EraseSlot(ctx context.Context, key string) error
	// Slots lists the slots whose keys begin with a prefix.
	Slots(ctx context.Context, prefix string) ([]SlotInfo, error)
}

// SlotInfo is the metadata of a slot.
type SlotInfo struct {
	Key      string
	Modified time.Time
}

// ErrFull marks errors caused by a full disk. Implementations wrap it.
var ErrFull = errors.New("no space is left")

// Full marks an error as caused by a full disk, without changing its text. It is for
// implementations.
func Full(err error) error { return fullError{err} }

type fullError struct{ cause error }

func (e fullError) Error() string   { return e.cause.Error() }
func (e fullError) Unwrap() []error { return []error{ErrFull, e.cause} }

// IsFull reports whether an error was caused by a full disk, an exceeded disk quota or the
// size limit of a file.
func IsFull(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// SystemError converts an error of an operation on a directory to an error with
// CodeUnavailable, and with a fix unless the operation was canceled. It returns nil for
// nil. It is for implementations.
func SystemError(doing, dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case IsFull(err):
		return guideway.Errorf(guideway.CodeUnavailable, "%s in %s: %w", doing, dir, Full(err)).
			WithFix("free space on the disk of the directory and try again; no acknowledged change is lost")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return guideway.Errorf(guideway.CodeUnavailable, "%s: %w", doing, err)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%s in %s: %w", doing, dir, err).
		WithFix("make the directory and its files readable and writable for this user, or choose a different data directory")
}

// SweepEach implements Blobs.Sweep with Each and Delete, for stores without unfinished
// writes.
func SweepEach(ctx context.Context, store Blobs, keep func(Info) bool) (swept Swept, err error) {
	err = store.Each(ctx, func(info Info) error {
		if keep(info) {
			return nil
		}
		swept.Blobs++
		swept.Bytes += info.Size
		return store.Delete(ctx, info.Name)
	})
	return swept, err
}

var slotPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,100}$`) })

// CheckSlot returns an error for an invalid key or value of a slot. It is for
// implementations.
func CheckSlot(key string, value []byte) error {
	if !slotPattern().MatchString(key) {
		return guideway.Errorf(guideway.CodeInvalid, "%.40q is not a valid slot key", key)
	}
	if len(value) > maxSlotBytes {
		return guideway.Errorf(guideway.CodeTooLarge, "a slot of %d bytes exceeds the limit of %d bytes", len(value), maxSlotBytes)
	}
	return nil
}

// Missing returns the error for a blob that does not exist. It is for implementations.
func Missing(name Name) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no blob %.16s…", name)
}

// Corrupt returns the error for a blob whose content was modified. It is for
// implementations.
func Corrupt(name Name, where string) error {
	return guideway.Errorf(guideway.CodeInternal, "the blob %.16s… (%s): %w", name, where, ErrCorrupt).
		WithFix("restore the blob from a backup; `guideway checkpoint verify` lists the damaged checkpoints")
}

// TooLarge returns the error for a blob of size bytes if most is the limit. It is for
// implementations.
func TooLarge(size, most int64) error {
	return guideway.Errorf(guideway.CodeTooLarge, "a blob of %d bytes exceeds the limit of %d bytes", size, most)
}
