package phasetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

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

// each tries workflows of each seed.
func each(t *testing.T, workflows int, try func(w *walk)) {
	t.Helper()
	for name, seed := range seeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTally()
			for i := range uint64(workflows / slow) {
				by := told{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, workflow %d: ", seed, i)}
				if w := begin(by, seeded{rand.New(rand.NewPCG(seed, i))}, n); w != nil {
					try(w)
				}
			}
			var b strings.Builder
			n.print(&b)
			t.Logf("seed %d: %s", seed, b.String())
		})
	}
}

// begin makes a workflow to walk; nil where it does not load.
func begin(t failer, d dice, n *tally) *walk {
	t.Helper()
	def := drawDefinition(d)
	program := compile(t, def.document())
	if program == nil {
		n.refused++
		return nil
	}
	n.definitions++
	return &walk{failer: t, dice: d, def: def, engine: &engine{program: program}, tally: n}
}

// Every illegal command is refused by a rule that it breaks, leaves the run as
// it was and learns nothing; no legal one is refused.
func TestAPhaseWorkflowCannotBeCheated(t *testing.T) {
	t.Parallel()
	each(t, 120, (*walk).run)
}

// The same with cases that rapid draws, because it shrinks what fails.
func TestAPhaseWorkflowCannotBeCheatedAtItsSimplest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, minutes with the race detector: the seeds above are enough for it")
	}
	n := newTally()
	rapid.Check(t, func(t *rapid.T) {
		if w := begin(t, drawn{t}, n); w != nil {
			w.run()
		}
	})
}

// A run that was cut off anywhere settles where it would have stood, and events
// that legal commands cannot have brought about are found.
func TestEventsCannotBeForged(t *testing.T) {
	t.Parallel()
	each(t, 40, func(w *walk) {
		r := &records{w}
		w.gentle, w.after = true, r.prefixes
		w.run()
		r.forge(20)
	})
}
