// Package blob keeps bytes by their content: a blob's name is the SHA-256 of it,
// so that what is read is what was written, or an error. Beside the blobs a store
// has slots: small values with names of their own, such as wrapped keys.
//
// Files is the implementation of every day, Memory the one for where nothing can
// be written; package blobtest has the suite that every implementation passes.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// DefaultMaxBytes bounds a blob where nothing else is said.
const DefaultMaxBytes = 64 << 20

// maxSlotBytes bounds a slot: it is for keys, not for content.
const maxSlotBytes = 4 << 10

// ErrCorrupt marks a blob that is there, but is not what was written. It comes
// in an error with the code CodeInternal.
var ErrCorrupt = errors.New("the content does not fit its checksum")

// Name is the address of a blob: the SHA-256 of its bytes in 64 hexadecimal
// digits.
type Name string

// NameOf gives the name of a content.
func NameOf(data []byte) Name {
	sum := sha256.Sum256(data)
	return Name(hex.EncodeToString(sum[:]))
}

var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// Valid says whether it can be a name at all.
func (n Name) Valid() bool { return namePattern().MatchString(string(n)) }

// Info is what is known of a blob without reading it.
type Info struct {
	Name Name
	Size int64
	// Modified is when it was written, by the clock of that time.
	Modified time.Time
}

// Swept is what a sweep has removed.
type Swept struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
	// Leftovers counts writes that were never finished.
	Leftovers int `json:"leftovers"`
}

// Store keeps blobs and slots. What it acknowledges survives the end of the
// process and of the machine, and a name never has anything but its content.
// Methods may be called by many goroutines and processes at once. Errors carry a
// code: CodeNotFound, CodeTooLarge, CodeConflict, CodeUnavailable (a full disk, a
// directory that cannot be written; it may work later) or CodeInternal. A full
// disk is found by IsFull.
type Store interface {
	Blobs
	Slots
}

// Blobs are the contents.
type Blobs interface {
	// Put stores a content, if it is not there yet.
	Put(ctx context.Context, data []byte) (Name, error)
	// Get gives the content of a name, verified: ErrCorrupt where it is not what
	// was written, CodeNotFound where there is none.
	Get(ctx context.Context, name Name) ([]byte, error)
	// Delete removes blobs; one that is not there is no error.
	Delete(ctx context.Context, names ...Name) error
	// Each tells of every blob, in no order, until visit gives an error.
	Each(ctx context.Context, visit func(Info) error) error
	// Sweep removes the blobs that keep refuses, and what unfinished writes have
	// left.
	Sweep(ctx context.Context, keep func(Info) bool) (Swept, error)
}

// Slots are small values by name. A slot is written once.
type Slots interface {
	// Slot gives a slot, or CodeNotFound.
	Slot(ctx context.Context, key string) ([]byte, error)
	// CreateSlot makes a slot; CodeConflict where it is there.
	CreateSlot(ctx context.Context, key string, value []byte) error
	// EraseSlot removes a slot for good, as far as the medium allows: files are
	// overwritten first. One that is not there is no error.
	EraseSlot(ctx context.Context, key string) error
	// Slots lists the keys that begin with a prefix, with their ages.
	Slots(ctx context.Context, prefix string) ([]SlotInfo, error)
}

// SlotInfo is what is known of a slot without reading it.
type SlotInfo struct {
	Key      string
	Modified time.Time
}

// ErrFull marks an error that came of a lack of room. Implementations wrap it.
var ErrFull = errors.New("there is no room left")

// Full marks an error as one that came of a lack of room; its text stays. It is
// for implementations.
func Full(err error) error { return fullError{err} }

type fullError struct{ cause error }

func (e fullError) Error() string   { return e.cause.Error() }
func (e fullError) Unwrap() []error { return []error{ErrFull, e.cause} }

// IsFull says whether an error came of a lack of room.
func IsFull(err error) bool { return errors.Is(err, ErrFull) }

var slotPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,100}$`) })

// CheckSlot refuses what cannot be the key or the value of a slot. It is for
// implementations.
func CheckSlot(key string, value []byte) error {
	if !slotPattern().MatchString(key) {
		return guideway.Errorf(guideway.CodeInvalid, "%.40q cannot be the key of a slot", key)
	}
	if len(value) > maxSlotBytes {
		return guideway.Errorf(guideway.CodeTooLarge, "a slot of %d bytes is over the limit of %d", len(value), maxSlotBytes)
	}
	return nil
}

// Missing is the error for a blob that is not there. It is for implementations.
func Missing(name Name) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no blob %.16s…", name)
}

// Corrupt is the error for a blob that is not what was written. It is for
// implementations.
func Corrupt(name Name, where string) error {
	return guideway.Errorf(guideway.CodeInternal, "the blob %.16s… (%s): %w", name, where, ErrCorrupt).
		WithFix("restore the file from a backup, or run `guideway checkpoint verify`")
}

// TooLarge is the error for a blob over a limit. It is for implementations.
func TooLarge(size, most int64) error {
	return guideway.Errorf(guideway.CodeTooLarge, "a blob of %d bytes is over the limit of %d", size, most)
}
