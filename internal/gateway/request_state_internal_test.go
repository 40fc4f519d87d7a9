package gateway

import (
	"strings"
	"testing"
	"time"
)

// A request state opens for the same user and the same tool until it expires. A state with
// any changed character, of another user or tool, or after its time, does not open.
func TestRequestStateOpensOnlyForItsCall(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := sealer{key: []byte(strings.Repeat("k", 32)), now: func() time.Time { return now }}
	sealed := s.sealState(state{User: "ann", Tool: "one__ask", Parked: "p", Turn: 2, Upstream: "theirs"})

	for _, after := range []time.Duration{0, stateTime - time.Second, stateTime} {
		later := sealer{key: s.key, now: func() time.Time { return now.Add(after) }}
		got, err := later.openState(sealed, "ann", "one__ask")
		if err != nil || got.Parked != "p" || got.Turn != 2 || got.Upstream != "theirs" {
			t.Errorf("after %s: openState() = %+v, %v", after, got, err)
		}
	}

	refused := map[string]func() (state, error){
		"another user": func() (state, error) { return s.openState(sealed, "bob", "one__ask") },
		"another tool": func() (state, error) { return s.openState(sealed, "ann", "one__echo") },
		"no tool":      func() (state, error) { return s.openState(sealed, "ann", "") },
		"expired": func() (state, error) {
			late := sealer{key: s.key, now: func() time.Time { return now.Add(stateTime + time.Second) }}
			return late.openState(sealed, "ann", "one__ask")
		},
		"another key": func() (state, error) {
			other := sealer{key: []byte(strings.Repeat("x", 32)), now: s.now}
			return other.openState(sealed, "ann", "one__ask")
		},
		"no MAC": func() (state, error) {
			body, _, _ := strings.Cut(sealed, ".")
			return s.openState(body, "ann", "one__ask")
		},
		"an empty MAC": func() (state, error) {
			body, _, _ := strings.Cut(sealed, ".")
			return s.openState(body+".", "ann", "one__ask")
		},
		"an empty text": func() (state, error) { return s.openState("", "ann", "one__ask") },
	}
	for name, open := range refused {
		if got, err := open(); err == nil || got != (state{}) {
			t.Errorf("%s: openState() = %+v, %v", name, got, err)
		}
	}
	for i := range len(sealed) {
		flipped := []byte(sealed)
		flipped[i] ^= 1
		if _, err := s.openState(string(flipped), "ann", "one__ask"); err == nil {
			t.Errorf("the state opens with character %d changed from %q to %q", i, sealed[i], flipped[i])
		}
	}
}
