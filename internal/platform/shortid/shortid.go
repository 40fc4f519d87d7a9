// Package shortid generates ids that people and agents copy: without capitals and without
// letters that are easily confused.
package shortid

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

const letters = "0123456789abcdefghjkmnpqrstvwxyz"

// Timed returns an id: the prefix and 23 characters. The ids sort by time to the
// millisecond and have 64 random bits.
func Timed(prefix string, now time.Time) string {
	var b [14]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(now.UnixMilli(), 0)))
	copy(b[:6], ms[2:])
	_, _ = rand.Read(b[6:]) // never returns an error
	return prefix + Spell(b[:])
}

// Token returns the prefix and 21 characters that cannot be guessed: 104 random bits.
func Token(prefix string) string {
	var b [13]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return prefix + Spell(b[:])
}

// Spell encodes bytes in the alphabet of ids. Encoded values sort like the bytes.
func Spell(b []byte) string {
	return base32.NewEncoding(letters).WithPadding(base32.NoPadding).EncodeToString(b)
}
