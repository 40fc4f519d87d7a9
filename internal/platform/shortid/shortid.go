// Package shortid writes ids that people and agents copy: without capitals, and
// without letters that are read for others.
package shortid

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

const letters = "0123456789abcdefghjkmnpqrstvwxyz"

// Timed makes an id of 23 characters behind a prefix: it sorts by time to the
// millisecond and has 64 random bits.
func Timed(prefix string, now time.Time) string {
	var b [14]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(now.UnixMilli(), 0)))
	copy(b[:6], ms[2:])
	_, _ = rand.Read(b[6:]) // it never fails
	return prefix + Spell(b[:])
}

// Token makes 21 characters behind a prefix that nobody guesses: 104 random bits.
func Token(prefix string) string {
	var b [13]byte
	_, _ = rand.Read(b[:]) // it never fails
	return prefix + Spell(b[:])
}

// Spell writes bytes in the letters of ids; what sorts before another does so
// then, too.
func Spell(b []byte) string {
	return base32.NewEncoding(letters).WithPadding(base32.NoPadding).EncodeToString(b)
}
