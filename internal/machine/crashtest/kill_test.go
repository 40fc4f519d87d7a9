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

// TestEveryPoint kills workers before and after each write and each call of a run. A
// worker leads many runs at once, each to a point of its own, and is killed when all
// of them are there. So are some more, at points of chance; then one finishes.
func TestEveryPoint(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	const side = 23 // runs at once
	for _, s := range stores() {
		for i, seed := range crash.Seeds(t) {
			t.Run(fmt.Sprintf("seed %d/%s", seed, s.name), func(t *testing.T) {
				t.Parallel()
				o := newOutside(t)
				p := s.place(t, o)
				all := points(t, o, p)
				random := rand.New(rand.NewPCG(seed, 0))
				every := crash.Amount(t, "GUIDEWAY_CRASH_EVERY", 6, 20)
				lives := crash.Amount(t, "GUIDEWAY_CRASH_LIVES", 3, 2)
				var ends []int
				for n := 1 + i%every; n <= all; n += every {
					ends = append(ends, n)
				}
				workers, killed := 0, 0
				for batch := range slices.Chunk(ends, side) {
					c := newCompany(t, o, p, fmt.Sprint("from point ", batch[0]), len(batch))
					for life := range lives {
						n, err := c.die(t, p, func(i int, j *journey) int {
							if life == 0 {
								return batch[i]
							}
							return 1 + random.IntN(max((all-j.points)/2, 4))
						})
						if err != nil {
							t.Fatalf("killed at the points %v: %v", batch, err)
						}
						if life == 0 && n != len(batch) {
							t.Fatalf("of %d runs that were to be killed at the points %v, %d were", len(batch), batch, n)
						}
						workers, killed = workers+1, killed+n
					}
					if c.arrive(t, p); t.Failed() {
						t.Fatalf("killed at the points %v", batch)
					}
				}
				t.Logf("%d workers were killed at work, at %d points of runs; of the %d points each %dth", workers, killed, all, every)
			})
		}
	}
}

// TestKilled kills workers over and over again while they drive several runs: at a
// point of chance of one of them, in the midst of what the others do, and from outside
// at moments of chance.
func TestKilled(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	const side = 6 // runs at once
	kills := crash.Amount(t, "GUIDEWAY_CRASH_KILLS", 40, 8)
	for _, seed := range crash.Seeds(t) {
		for i, s := range stores() {
			t.Run(fmt.Sprintf("seed %d/%s", seed, s.name), func(t *testing.T) {
				t.Parallel()
				o := newOutside(t)
				p := s.place(t, o)
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				workers, killed, companies := 0, 0, 0
				for workers < max(kills/4, 2) {
					companies++
					c := newCompany(t, o, p, fmt.Sprint("company ", companies), side)
					for range 4 {
						n, err := c.chance(t, p, random)
						if err != nil {
							t.Fatal(err)
						}
						if n > 0 {
							workers, killed = workers+1, killed+n
						}
					}
					c.arrive(t, p)
				}
				t.Logf("%d workers were killed at work, with %d runs under way; %d runs", workers, killed, companies*side)
			})
		}
	}
}

// chance is the life of one worker, which ends by itself at a point of chance of one
// of the runs or is killed. It gives the number of runs that it took along.
func (c company) chance(t *testing.T, p place, random *rand.Rand) (int, error) {
	t.Helper()
	before := c.deaths()
	w := hire(t, p)
	defer w.Kill()
	if random.IntN(2) == 0 {
		last, point := random.IntN(len(c)), 1+random.IntN(60)
		err := c.live(w, func(i int, _ *journey) doom {
			if i == last {
				return doom{point: point, kills: true}
			}
			return doom{}
		})
		return c.deaths() - before, err
	}
	moment := time.Duration(random.Int64N(int64(200 * time.Millisecond)))
	var killer sync.WaitGroup
	killer.Go(func() {
		if r, err := w.Opened(); err == nil && r.OK() {
			<-time.After(moment)
		}
		w.Kill()
	})
	err := c.live(w, func(int, *journey) doom { return doom{} })
	killer.Wait()
	return c.deaths() - before, err
}
