package run

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Key authenticates the chains of a journal. It is stored outside of the journal, so that
// an editor of the database cannot forge events.
type Key []byte

// KeySize is the length of a key in bytes.
const KeySize = sha256.Size

// Root returns the value that the first event of a run is chained to.
func (k Key) Root(run string) []byte {
	return k.computeMAC("guideway run 1", func(h hash.Hash) { writeField(h, []byte(run)) })
}

// Chain returns the MAC of an event that follows an event with the MAC prev.
func (k Key) Chain(run string, prev []byte, e Event) []byte {
	return k.computeMAC("guideway event 1", func(h hash.Hash) {
		writeField(h, prev)
		writeField(h, []byte(run))
		writeNumber(h, e.Seq)
		writeNumber(h, e.At.UnixMicro())
		writeField(h, []byte(e.Kind))
		writeField(h, []byte(e.By.User))
		writeField(h, []byte(e.By.Client))
		writeField(h, []byte(e.By.Via))
		if e.Sealed != nil {
			writeField(h, e.Sealed)
		} else {
			writeField(h, e.Data)
		}
	})
}

// snapshotMAC returns the MAC of a snapshot. It covers the owner, the workflow and the
// definition of the run, so that no snapshot is valid for an edited record. Snapshots of
// version 1 are not used: their states lack engine.State.Before.
func (k Key) snapshotMAC(r Record, s Snapshot) []byte {
	return k.computeMAC("guideway snapshot 2", func(h hash.Hash) {
		writeField(h, []byte(r.ID))
		writeField(h, []byte(r.User))
		writeField(h, []byte(r.Workflow))
		writeField(h, []byte(r.Hash))
		writeNumber(h, s.Seq)
		writeField(h, s.Head)
		writeField(h, s.State)
	})
}

// computeMAC authenticates the output of write. The purpose separates the kinds of values.
func (k Key) computeMAC(purpose string, write func(hash.Hash)) []byte {
	h := hmac.New(sha256.New, k)
	writeField(h, []byte(purpose))
	write(h)
	return h.Sum(nil)
}

// writeField writes a value with its length, so that different lists of fields have
// different bytes.
func writeField(h hash.Hash, value []byte) {
	writeNumber(h, int64(len(value)))
	h.Write(value)
}

func writeNumber(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

// Sealer is a Journal that encrypts the data of events. The chain covers the ciphertext, so
// it can be verified without the key of the encryption.
type Sealer interface {
	// SealEvents sets Sealed of numbered events of a run.
	SealEvents(ctx context.Context, run string, events []Event) error
	// StoredEvents is Log.Events without decryption: an encrypted event has no Data.
	StoredEvents(ctx context.Context, run string, after int64, limit int) ([]Event, error)
}

// ChainEvents numbers, encrypts and chains events that follow event seq of a run, whose MAC
// is head. It changes the events in place and returns the MAC of the last one.
func (k Key) ChainEvents(ctx context.Context, j Journal, run string, seq int64, head []byte, events []Event) ([]byte, error) {
	for i := range events {
		events[i].Seq, events[i].Sealed = seq+int64(i)+1, nil // an event copied from another run was encrypted with another key
	}
	if s, ok := j.(Sealer); ok {
		if err := s.SealEvents(ctx, run, events); err != nil {
			return nil, err
		}
	}
	for i := range events {
		head = k.Chain(run, head, events[i])
		events[i].MAC = head
	}
	return head, nil
}

// equalMAC compares in constant time.
func equalMAC(a, b []byte) bool { return hmac.Equal(a, b) }
