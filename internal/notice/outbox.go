package notice

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// maxPending is the number of notices in an outbox. The oldest are dropped first.
const maxPending = 1000

// maxOutboxBytes is the maximum size of the file of an outbox.
const maxOutboxBytes = 16 << 20

// Outbox is the state of a receiver.
type Outbox struct {
	// Positions are the positions in the feeds by the names of the sources.
	Positions map[string]int64 `json:"positions"`
	// Pending are the notices that the receiver has not accepted, oldest first.
	Pending []Notice `json:"pending,omitempty"`
	// Attempts counts the failed deliveries of the first pending notice.
	Attempts int       `json:"attempts,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// LastError is the error of the last delivery, or "".
	LastError string    `json:"lastError,omitempty"`
	Delivered int64     `json:"delivered"`
	LastAt    time.Time `json:"lastAt,omitzero"`
	// Dropped counts notices that were never accepted.
	Dropped int64 `json:"dropped,omitempty"`
}

// ReadOutbox returns the state of a receiver. It is empty if nothing was delivered yet. Texts
// decrypts the file, and may be nil.
func ReadOutbox(dir, receiver string, texts *seal.Texts) (*Outbox, error) {
	box := &Outbox{Positions: map[string]int64{}}
	text, err := atomicfile.File{Path: outboxPath(dir, receiver), What: "outbox of notices", MaxBytes: maxOutboxBytes}.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return box, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := texts.Open(context.Background(), []byte(text), outboxPlace(receiver))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(plain, box); err != nil || box.Positions == nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%s is not a valid outbox of notices", outboxPath(dir, receiver)).
			WithFix("remove the file; the receiver then gets new notices of everything that waits")
	}
	return box, nil
}

// takeOutbox reads an outbox for delivery. A file that cannot be used is renamed, so that
// later notices still arrive.
func takeOutbox(o *Options, receiver string) *Outbox {
	box, err := ReadOutbox(o.Dir, receiver, o.Texts)
	if err == nil {
		return box
	}
	path := outboxPath(o.Dir, receiver)
	o.Log.Error("cannot read an outbox of notices; the file is renamed and a new outbox is used, so pending notices are lost and others are sent again", "receiver", receiver, "error", err, "old", path+".invalid")
	_ = os.Rename(path, path+".invalid")
	return &Outbox{Positions: map[string]int64{}}
}

// save stores the outbox durably, encrypted if texts is on.
func (b *Outbox) save(o *Options, receiver string) error {
	text, err := json.Marshal(b)
	if err == nil {
		text, err = o.Texts.Seal(context.Background(), text, outboxPlace(receiver))
	}
	if err != nil {
		return err
	}
	return atomicfile.Replace(outboxPath(o.Dir, receiver), string(text))
}

// add appends notices.
func (b *Outbox) add(list []Notice) {
	b.Pending = append(b.Pending, list...)
	if over := len(b.Pending) - maxPending; over > 0 {
		b.dropOldest(over)
	}
}

func (b *Outbox) dropOldest(count int) {
	b.Pending = b.Pending[count:]
	b.Dropped += int64(count)
	b.Attempts, b.RetryAt = 0, time.Time{}
}

func outboxPlace(receiver string) string { return "outbox of notices " + receiver }

func outboxPath(dir, receiver string) string { return filepath.Join(dir, receiver+".json") }

// tryLock takes the lock of a receiver's outbox. It returns nil if another process has it.
// The system releases the lock of a process that ends.
func tryLock(dir, receiver string) (*flock.Flock, error) {
	path := outboxPath(dir, receiver) + ".lock"
	if err := atomicfile.MakeDir(dir); err != nil {
		return nil, err
	}
	if err := atomicfile.EnsureFile(path); err != nil {
		return nil, err
	}
	lock := flock.New(path)
	if ok, err := lock.TryLock(); !ok {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// contains reports whether a notice is pending.
func (b *Outbox) contains(id string) bool {
	return slices.ContainsFunc(b.Pending, func(n Notice) bool { return n.ID == id })
}
