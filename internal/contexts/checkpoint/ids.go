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

// onceID returns the id of the checkpoint that a save with Once creates for a run's event.
func onceID(key SeriesKey, run string, seq int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", key.User, key.Session, run, seq))
	return idPrefix + shortid.Spell(sum[:14])
}

// fragmentID returns the id of a fragment: the same content in the same series is stored once.
func fragmentID(key SeriesKey, sum []byte) string {
	h := sha256.New()
	h.Write([]byte(key.User + "\x00" + key.Session + "\x00"))
	h.Write(sum)
	return piecePrefix + shortid.Spell(h.Sum(nil)[:15])
}

// idPattern matches ids: 1 to 96 letters, digits, dashes and underscores.
var idPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,96}$`) })

// newIDPattern matches the ids that newID returns.
var newIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^c_[0-9a-hjkmnp-tv-z]{23}$`) })

var badInSession = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_-]+`) })

// SessionID returns a session id of at most 96 letters, digits, dashes and underscores. It
// returns a valid id unchanged. Otherwise it replaces other characters by dashes, shortens
// a long id, and appends a hash of the original, so that different ids stay different.
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

// NewSession returns a new session id for a context, as Save does if the request has no
// session.
func NewSession(workflow string, context []byte) string {
	return deriveSession(workflow, sumOf(context))
}

// deriveSession returns a session id: a hash of the workflow and the first context, by
// which related sessions are found, and a random part, since two sessions may begin with
// the same context.
func deriveSession(workflow string, sum []byte) string {
	h := sha256.New()
	h.Write([]byte(workflow + "\x00"))
	h.Write(sum)
	var b [10]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return sessionPrefix + hex.EncodeToString(h.Sum(nil)[:6]) + "_" + shortid.Spell(b[:])
}
