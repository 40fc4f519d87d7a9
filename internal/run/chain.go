package run

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Key authenticates the chains of a journal. It lies outside of it, so that an
// editor of the database cannot make events that fit.
type Key []byte

// KeySize is the length of a key in bytes.
const KeySize = sha256.Size

// Root is what the first event of a run is chained to.
func (k Key) Root(run string) []byte {
	return k.mac("guideway run 1", func(h hash.Hash) { field(h, []byte(run)) })
}

// Chain is the MAC of an event of a run that follows one with the MAC prev.
func (k Key) Chain(run string, prev []byte, e Event) []byte {
	return k.mac("guideway event 1", func(h hash.Hash) {
		field(h, prev)
		field(h, []byte(run))
		number(h, e.Seq)
		number(h, e.At.UnixMicro())
		field(h, []byte(e.Kind))
		field(h, []byte(e.By.User))
		field(h, []byte(e.By.Client))
		field(h, []byte(e.By.Via))
		field(h, e.Data)
	})
}

// snapshot is the MAC of a snapshot. It holds whose run of which definition it is:
// an edited record must not find a state that fits it.
func (k Key) snapshot(r Record, s Snapshot) []byte {
	return k.mac("guideway snapshot 1", func(h hash.Hash) {
		field(h, []byte(r.ID))
		field(h, []byte(r.User))
		field(h, []byte(r.Workflow))
		field(h, []byte(r.Hash))
		number(h, s.Seq)
		field(h, s.Head)
		field(h, s.State)
	})
}

// mac authenticates what write writes; the purpose keeps one kind of value from
// standing in for another.
func (k Key) mac(purpose string, write func(hash.Hash)) []byte {
	h := hmac.New(sha256.New, k)
	field(h, []byte(purpose))
	write(h)
	return h.Sum(nil)
}

// field writes a value with its length, so that no two lists of fields are the
// same bytes.
func field(h hash.Hash, value []byte) {
	number(h, int64(len(value)))
	h.Write(value)
}

func number(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

// chain numbers and chains events behind the last one of a run, in place, and
// gives the new head.
func (k Key) chain(run string, seq int64, head []byte, events []Event) []byte {
	for i := range events {
		seq++
		events[i].Seq = seq
		head = k.Chain(run, head, events[i])
		events[i].MAC = head
	}
	return head
}

// sameMAC compares in constant time.
func sameMAC(a, b []byte) bool { return hmac.Equal(a, b) }
