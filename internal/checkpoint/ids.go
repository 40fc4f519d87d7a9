package checkpoint

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"
	"time"
)

// letters write ids: no capitals, and nothing that is read for something else.
const letters = "0123456789abcdefghjkmnpqrstvwxyz"

const (
	idPrefix      = "c_"
	piecePrefix   = "o_"
	sessionPrefix = "s_"
	maxSession    = 96
)

func spell(b []byte) string {
	return base32.NewEncoding(letters).WithPadding(base32.NoPadding).EncodeToString(b)
}

// newID makes an id that sorts by time to the millisecond and has 64 random bits.
func newID(now time.Time) string {
	var b [14]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(now.UnixMilli(), 0)))
	copy(b[:6], ms[2:])
	_, _ = rand.Read(b[6:]) // it never fails
	return idPrefix + spell(b[:])
}

// pieceID gives the id of a piece: the same content in the same line is kept once.
func pieceID(key LineKey, sum []byte) string {
	h := sha256.New()
	h.Write([]byte(key.User + "\x00" + key.Session + "\x00"))
	h.Write(sum)
	return piecePrefix + spell(h.Sum(nil)[:15])
}

// idPattern is what ids look like: letters, digits, dashes and underscores.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,96}$`)

// ownID is what the ids that newID makes look like.
var ownID = regexp.MustCompile(`^c_[0-9a-hjkmnp-tv-z]{23}$`)

var badInSession = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// SessionID makes an id of a session safe to use: only letters, digits, dashes
// and underscores stay. One that had to be changed gets a hash of what it was, so
// that two different ids stay two.
func SessionID(given string) string {
	if idPattern.MatchString(given) {
		return given
	}
	sum := sha256.Sum256([]byte(given))
	safe := strings.Trim(badInSession.ReplaceAllString(given, "-"), "-")
	const room = maxSession - 1 - 12
	if len(safe) > room {
		safe = safe[:room]
	}
	return strings.TrimPrefix(safe+"-"+hex.EncodeToString(sum[:6]), "-")
}

// NewSession makes the id of a session for a context that has none, as Save does.
func NewSession(workflow string, context []byte) string {
	return deriveSession(workflow, sumOf(context))
}

// deriveSession makes the id of a session that has none: a hash of the workflow
// and the first context, by which its kin are found, and something random,
// because two sessions may begin alike.
func deriveSession(workflow string, sum []byte) string {
	h := sha256.New()
	h.Write([]byte(workflow + "\x00"))
	h.Write(sum)
	var b [10]byte
	_, _ = rand.Read(b[:]) // it never fails
	return sessionPrefix + hex.EncodeToString(h.Sum(nil)[:6]) + "_" + spell(b[:])
}
