package enginetest

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

// slowdown divides the number of cases, because each takes longer with the race detector.
const slowdown = 1 + 11*race

// fixedSeed makes failures reproducible.
const fixedSeed = 20_261_121

// testSeeds returns two fixed seeds, so that every change is tested with the same cases.
// GUIDEWAY_CHEAT_SEED replaces them: a number reproduces a failure, "new" tries unseen
// cases.
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

// reproducer adds the seed to the message of a failure.
type reproducer struct {
	testReporter
	prefix string
}

func (t reproducer) Fatalf(format string, args ...any) {
	t.Helper()
	t.testReporter.Fatalf("%s", t.prefix+fmt.Sprintf(format, args...))
}

// forEachWorkflow calls try with workflows of each seed.
func forEachWorkflow(t *testing.T, workflows int, try func(w *walk)) {
	t.Helper()
	for name, seed := range testSeeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newCounts()
			for i := range uint64(workflows / slowdown) {
				by := reproducer{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, workflow %d: ", seed, i)}
				if w := newWalk(by, seededSource{rand.New(rand.NewPCG(seed, i))}, n); w != nil {
					try(w)
				}
			}
			var b strings.Builder
			n.writeTo(&b)
			t.Logf("seed %d: %s", seed, b.String())
		})
	}
}

// newWalk draws a workflow to walk; it returns nil if the workflow does not load.
func newWalk(t testReporter, d randomSource, n *counts) *walk {
	t.Helper()
	def := drawDefinition(d)
	program := compileWorkflow(t, def.toDocument())
	if program == nil {
		n.refused++
		return nil
	}
	n.definitions++
	return &walk{testReporter: t, randomSource: d, def: def, engine: &flowEngine{program: program}, tally: n}
}

// Every illegal command is refused by a rule that it violates, does not change the run and
// reveals nothing; no legal command is refused.
func TestIllegalCommandsAreRefused(t *testing.T) {
	t.Parallel()
	forEachWorkflow(t, 120, (*walk).runWalk)
}

// TestIllegalCommandsAreRefusedRapid runs the walks of TestIllegalCommandsAreRefused with
// rapid, which shrinks failing cases.
func TestIllegalCommandsAreRefusedRapid(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes minutes with the race detector and has one goroutine, so the seeded test is sufficient")
	}
	n := newCounts()
	rapid.Check(t, func(t *rapid.T) {
		if w := newWalk(t, rapidSource{t}, n); w != nil {
			w.runWalk()
		}
	})
}

// A run that was cut off anywhere continues to the same position, and events that legal
// commands cannot result in are detected.
func TestForgedEventsAreDetected(t *testing.T) {
	t.Parallel()
	forEachWorkflow(t, 40, func(w *walk) {
		r := &eventChecker{w}
		w.legalOnly, w.onAccepted = true, r.checkPrefixes
		w.runWalk()
		r.checkForgeries(20)
	})
}
