package cheattest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/guide"
	"pgregory.net/rapid"
)

// fixedSeed makes a failure in one place the same in another.
const fixedSeed = 20_261_121

// seeds are the fixed one and one that is new each time, or the one that
// GUIDEWAY_CHEAT_SEED names to see a failure again.
func seeds(t *testing.T) map[string]uint64 {
	t.Helper()
	if text := os.Getenv("GUIDEWAY_CHEAT_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("GUIDEWAY_CHEAT_SEED: %v", err)
		}
		return map[string]uint64{"named": seed}
	}
	return map[string]uint64{"fixed": fixedSeed, "random": uint64(time.Now().UnixNano())}
}

// Over the engine: every illegal command is refused by a rule that it breaks,
// leaves the run as it was and learns nothing; no legal one is refused.
func TestTheEngineCannotBeCheated(t *testing.T) {
	t.Parallel()
	for name, seed := range seeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTally()
			for i := range uint64(600) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				t.Logf("seed %d, definition %d", seed, i)
				attack(t, d, n)
			}
			var b strings.Builder
			n.print(&b)
			t.Logf("seed %d: %s", seed, b.String())
		})
	}
}

// The same with cases that rapid draws, because it shrinks what fails.
func TestTheEngineCannotBeCheatedAtItsSimplest(t *testing.T) {
	t.Parallel()
	n := newTally()
	rapid.Check(t, func(t *rapid.T) { attack(t, drawn{t}, n) })
}

func attack(t failer, d dice, n *tally) {
	t.Helper()
	def := drawDefinition(d)
	n.definitions++
	people := oneIn(d, 6)
	program := guide.Compile(parse(t, def.document()).Steps)
	w := &walk{failer: t, dice: d, def: def, rig: &engine{program: program, people: people}, tally: n, people: people}
	w.run()
}
