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

// raceSlowdown divides the number of cases, because the race detector slows each case down.
const raceSlowdown = 1 + 11*race

// fixedSeed makes failures reproducible.
const fixedSeed = 20_261_121

// testSeeds returns two fixed seeds, so that every machine tests the same cases.
// GUIDEWAY_CHEAT_SEED overrides them: a number repeats a failure, "new" tests random cases.
func testSeeds(t *testing.T) map[string]uint64 {
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

// reproduction adds the seed to the message of a failure.
type reproduction struct {
	failer
	how string
}

func (t reproduction) Fatalf(format string, args ...any) {
	t.Helper()
	t.failer.Fatalf("%s", t.how+fmt.Sprintf(format, args...))
}

// TestTheEngineCannotBeCheated checks the engine alone: every illegal command is refused by
// a rule that it breaks, leaves the run unchanged and reveals nothing. No legal command is
// refused.
func TestTheEngineCannotBeCheated(t *testing.T) {
	t.Parallel()
	for name, seed := range testSeeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTally()
			for i := range uint64(400 / raceSlowdown) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				attackRun(reproduction{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, definition %d: ", seed, i)}, d, n)
			}
			var b strings.Builder
			n.printCounts(&b)
			t.Logf("seed %d: %s", seed, b.String())
		})
	}
}

// TestTheServiceCannotBeCheated checks for the service what TestTheEngineCannotBeCheated
// checks for the engine. It also sends forged and stale handles, handles of other users,
// repeats, races and forks, and answers human approvals through channels that do not prove
// a person.
func TestTheServiceCannotBeCheated(t *testing.T) {
	t.Parallel()
	for name, seed := range testSeeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTally()
			for i := range uint64(60 / raceSlowdown) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				by := reproduction{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, definition %d: ", seed, i)}
				attackService(t.Context(), by, d, n)
			}
			var b strings.Builder
			n.printCounts(&b)
			t.Logf("seed %d: %s", seed, b.String())
		})
	}
}

func attackService(ctx context.Context, t failer, d randomSource, n *tally) {
	t.Helper()
	def := drawDefinition(d)
	n.definitions++
	people := oneIn(d, 6)
	on := newService(ctx, t, d, parseDefinition(t, def.marshalDefinition()), people)
	h := &handleAttacks{&attackedRun{failer: t, randomSource: d, def: def, rig: on, tally: n, people: people}, on}
	h.hook, h.contest = h.attackHandles, h.raceCommands
	h.runAttacks()
	h.tryForks()
}

// TestTheEngineCannotBeCheatedAtItsSimplest makes the checks of
// TestTheEngineCannotBeCheated with rapid, which shrinks failing cases.
func TestTheEngineCannotBeCheatedAtItsSimplest(t *testing.T) {
	t.Parallel()
	n := newTally()
	rapid.Check(t, func(t *rapid.T) { attackRun(t, drawn{t}, n) })
}

func attackRun(t failer, d randomSource, n *tally) {
	t.Helper()
	def := drawDefinition(d)
	n.definitions++
	people := oneIn(d, 6)
	program := engine.Compile(parseDefinition(t, def.marshalDefinition()).Steps)
	w := &attackedRun{failer: t, randomSource: d, def: def, rig: &flowEngine{program: program, people: people}, tally: n, people: people}
	w.runAttacks()
}
