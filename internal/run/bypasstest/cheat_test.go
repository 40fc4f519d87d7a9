package bypasstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"pgregory.net/rapid"
)

// slow divides the number of cases: with the race detector each takes so much
// longer.
const slow = 1 + 11*race

// fixedSeed makes a failure in one place the same in another.
const fixedSeed = 20_261_121

// seeds are two fixed ones, so that a change is judged by the same cases wherever it
// is looked at; or what GUIDEWAY_CHEAT_SEED says: a number to see a failure again,
// "new" to look for cases that nobody has seen.
func seeds(t *testing.T) map[string]uint64 {
	t.Helper()
	switch text := os.Getenv("GUIDEWAY_CHEAT_SEED"); text {
	case "":
		return map[string]uint64{"fixed": fixedSeed, "another": fixedSeed + 1}
	case "new":
		return map[string]uint64{"new": uint64(time.Now().UnixNano())}
	default:
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("GUIDEWAY_CHEAT_SEED: %v", err)
		}
		return map[string]uint64{"named": seed}
	}
}

// told says with a failure how to see it again.
type told struct {
	failer
	how string
}

func (t told) Fatalf(format string, args ...any) {
	t.Helper()
	t.failer.Fatalf("%s", t.how+fmt.Sprintf(format, args...))
}

// Over the engine: every illegal command is refused by a rule that it breaks,
// leaves the run as it was and learns nothing; no legal one is refused.
func TestTheEngineCannotBeCheated(t *testing.T) {
	t.Parallel()
	for name, seed := range seeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTally()
			for i := range uint64(400 / slow) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				attack(told{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, definition %d: ", seed, i)}, d, n)
			}
			var b strings.Builder
			n.print(&b)
			t.Logf("seed %d: %s", seed, b.String())
		})
	}
}

// Over the service: the same, and besides forged handles, those of others and of
// earlier positions, repeats, races and forks. A person's gate is tried by every
// way in.
func TestTheServiceCannotBeCheated(t *testing.T) {
	t.Parallel()
	for name, seed := range seeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTally()
			for i := range uint64(60 / slow) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				by := told{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, definition %d: ", seed, i)}
				attackService(t.Context(), by, d, n)
			}
			var b strings.Builder
			n.print(&b)
			t.Logf("seed %d: %s", seed, b.String())
		})
	}
}

func attackService(ctx context.Context, t failer, d dice, n *tally) {
	t.Helper()
	def := drawDefinition(d)
	n.definitions++
	people := oneIn(d, 6)
	on := newService(ctx, t, d, parse(t, def.document()), people)
	h := &handles{&walk{failer: t, dice: d, def: def, rig: on, tally: n, people: people}, on}
	h.hook, h.contest = h.attack, h.race
	h.run()
	h.forks()
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
	program := engine.Compile(parse(t, def.document()).Steps)
	w := &walk{failer: t, dice: d, def: def, rig: &flowEngine{program: program, people: people}, tally: n, people: people}
	w.run()
}
