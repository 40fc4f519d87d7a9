package shortid_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"pgregory.net/rapid"
)

// TestIDs checks the form of ids, which are stored and must not change, and that they sort
// by time.
func TestIDs(t *testing.T) {
	t.Parallel()
	timed := regexp.MustCompile(`^r_[0-9a-hjkmnp-tv-z]{23}$`)
	token := regexp.MustCompile(`^h_[0-9a-hjkmnp-tv-z]{21}$`)
	seen := map[string]bool{}
	last := ""
	for i := range 200 {
		id := shortid.Timed("r_", time.UnixMilli(1_700_000_000_000+int64(i)))
		if !timed.MatchString(id) || id <= last {
			t.Errorf("%s after %s", id, last)
		}
		last = id
		for _, other := range []string{shortid.Timed("r_", time.UnixMilli(1)), shortid.Token("h_")} {
			if seen[other] {
				t.Errorf("the id %s was generated twice", other)
			}
			seen[other] = true
		}
	}
	if id := shortid.Token("h_"); !token.MatchString(id) {
		t.Error(id)
	}
	if id := shortid.Timed("r_", time.Time{}); !strings.HasPrefix(id, "r_000000000") {
		t.Errorf("the id of a time before 1970 is %s", id)
	}
}

func TestSpellKeepsTheOrder(t *testing.T) {
	t.Parallel()
	bytesOf := rapid.SliceOfN(rapid.Byte(), 14, 14)
	rapid.Check(t, func(t *rapid.T) {
		a, b := bytesOf.Draw(t, "a"), bytesOf.Draw(t, "b")
		if got := strings.Compare(shortid.Spell(a), shortid.Spell(b)); got != bytes.Compare(a, b) {
			t.Fatalf("%s and %s", shortid.Spell(a), shortid.Spell(b))
		}
	})
}
