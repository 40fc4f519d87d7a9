//go:build unix

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// TestEveryPoint kills workers at the points of a run, before and after writes and calls.
// GUIDEWAY_CRASH_EVERY is the step from one tested point to the next. A worker drives many
// runs concurrently, each to a different point, and is killed when all runs have reached
// their points. The runs are killed again at random points, and then finished.
func TestEveryPoint(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	const side = 23 // number of concurrent runs
	for _, s := range journalKinds() {
		for i, seed := range crash.Seeds(t) {
			t.Run(fmt.Sprintf("seed %d/%s", seed, s.name), func(t *testing.T) {
				t.Parallel()
				o := newFakeServers(t)
				p := s.place(t, o)
				all := countPoints(t, o, p)
				random := rand.New(rand.NewPCG(seed, 0))
				every := crash.Amount(t, "GUIDEWAY_CRASH_EVERY", 6, 20)
				lives := crash.Amount(t, "GUIDEWAY_CRASH_LIVES", 3, 2)
				var ends []int
				for n := 1 + i%every; n <= all; n += every {
					ends = append(ends, n)
				}
				workers, killed := 0, 0
				for batch := range slices.Chunk(ends, side) {
					c := newBatch(t, o, p, fmt.Sprint("from point ", batch[0]), len(batch))
					for life := range lives {
						n, err := c.killAtPoints(t, p, func(i int, j *trackedRun) int {
							if life == 0 {
								return batch[i]
							}
							return 1 + random.IntN(max((all-j.points)/2, 4))
						})
						if err != nil {
							t.Fatalf("workers killed at the points %v: %v", batch, err)
						}
						if life == 0 && n != len(batch) {
							t.Fatalf("only %[3]d of %[1]d runs were killed at the points %[2]v", len(batch), batch, n)
						}
						workers, killed = workers+1, killed+n
					}
					if c.finishAll(t, p); t.Failed() {
						t.Fatalf("workers killed at the points %v", batch)
					}
				}
				t.Logf("%d workers were killed at work, at %d points of runs; of the %d points each %dth", workers, killed, all, every)
			})
		}
	}
}

// TestKilled kills workers repeatedly while they drive several runs: at a random point of
// one run while the others continue, and from outside at random times.
func TestKilled(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	const side = 6 // number of concurrent runs
	kills := crash.Amount(t, "GUIDEWAY_CRASH_KILLS", 40, 8)
	for _, seed := range crash.Seeds(t) {
		for i, s := range journalKinds() {
			t.Run(fmt.Sprintf("seed %d/%s", seed, s.name), func(t *testing.T) {
				t.Parallel()
				o := newFakeServers(t)
				p := s.place(t, o)
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				workers, killed, companies := 0, 0, 0
				for workers < max(kills/4, 2) {
					companies++
					c := newBatch(t, o, p, fmt.Sprint("company ", companies), side)
					for range 4 {
						n, err := c.killAtRandom(t, p, random)
						if err != nil {
							t.Fatal(err)
						}
						if n > 0 {
							workers, killed = workers+1, killed+n
						}
					}
					c.finishAll(t, p)
				}
				t.Logf("%d workers were killed at work, with %d runs under way; %d runs", workers, killed, companies*side)
			})
		}
	}
}

// killAtRandom starts a worker that kills itself at a random point of one run, or is killed
// at a random time. It returns the number of interrupted runs.
func (c batch) killAtRandom(t *testing.T, p location, random *rand.Rand) (int, error) {
	t.Helper()
	before := c.countDeaths()
	w := startWorker(t, p)
	defer w.Kill()
	if random.IntN(2) == 0 {
		last, point := random.IntN(len(c)), 1+random.IntN(60)
		err := c.driveAll(w, func(i int, _ *trackedRun) crashPlan {
			if i == last {
				return crashPlan{point: point, kills: true}
			}
			return crashPlan{}
		})
		return c.countDeaths() - before, err
	}
	moment := time.Duration(random.Int64N(int64(200 * time.Millisecond)))
	var killer sync.WaitGroup
	killer.Go(func() {
		if r, err := w.Opened(); err == nil && r.OK() {
			<-time.After(moment)
		}
		w.Kill()
	})
	err := c.driveAll(w, func(int, *trackedRun) crashPlan { return crashPlan{} })
	killer.Wait()
	return c.countDeaths() - before, err
}
