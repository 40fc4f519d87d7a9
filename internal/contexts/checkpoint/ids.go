package checkpoint

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

const (
	idPrefix      = "c_"
	piecePrefix   = "o_"
	sessionPrefix = "s_"
	maxSession    = 96
)

func newID(now time.Time) string { return shortid.Timed(idPrefix, now) }

// onceID gives the id of the one checkpoint of a run's event.
func onceID(key LineKey, run string, seq int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", key.User, key.Session, run, seq))
	return idPrefix + shortid.Spell(sum[:14])
}

// pieceID gives the id of a piece: the same content in the same line is kept once.
func pieceID(key LineKey, sum []byte) string {
	h := sha256.New()
	h.Write([]byte(key.User + "\x00" + key.Session + "\x00"))
	h.Write(sum)
	return piecePrefix + shortid.Spell(h.Sum(nil)[:15])
}

// idPattern is what ids look like: letters, digits, dashes and underscores.
var idPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,96}$`) })

// ownID is what the ids that newID makes look like.
var ownID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^c_[0-9a-hjkmnp-tv-z]{23}$`) })

var badInSession = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_-]+`) })

// SessionID makes an id of a session safe to use: only letters, digits, dashes
// and underscores stay. One that had to be changed gets a hash of what it was, so
// that two different ids stay two.
func SessionID(given string) string {
	if idPattern().MatchString(given) {
		return given
	}
	sum := sha256.Sum256([]byte(given))
	safe := strings.Trim(badInSession().ReplaceAllString(given, "-"), "-")
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
	return sessionPrefix + hex.EncodeToString(h.Sum(nil)[:6]) + "_" + shortid.Spell(b[:])
}
