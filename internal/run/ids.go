package run

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// letters write ids: no capitals, and nothing that is read for something else.
const letters = "0123456789abcdefghjkmnpqrstvwxyz"

const (
	runPrefix    = "r_"
	handlePrefix = "h_"
	// maxHandle is longer than any id or handle that this package makes.
	maxHandle = 64
)

// newRunID makes an id that sorts by time to the millisecond and has 64 random
// bits.
func newRunID(now time.Time) string {
	var b [14]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(now.UnixMilli(), 0)))
	copy(b[:6], ms[2:])
	random(b[6:])
	return runPrefix + spell(b[:])
}

// newHandle makes a token of 23 characters with 104 random bits.
func newHandle() string {
	var b [13]byte
	random(b[:])
	return handlePrefix + spell(b[:])
}

func spell(b []byte) string {
	return base32.NewEncoding(letters).WithPadding(base32.NoPadding).EncodeToString(b)
}

// random fills b; crypto/rand.Read never fails.
func random(b []byte) { _, _ = rand.Read(b) }

// isRunID and isHandle say what a token looks like, so that one in the place of
// the other is told.
func isRunID(s string) bool  { return strings.HasPrefix(s, runPrefix) && len(s) <= maxHandle }
func isHandle(s string) bool { return strings.HasPrefix(s, handlePrefix) && len(s) <= maxHandle }
