//go:build unix

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/crash"
)

// TestEveryPoint kills a worker before and after each write and each call of a run,
// has another one die at a point of chance, and a third one finish.
func TestEveryPoint(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	for _, s := range stores() {
		for i, seed := range crash.Seeds(t) {
			t.Run(fmt.Sprintf("seed %d/%s", seed, s.name), func(t *testing.T) {
				t.Parallel()
				o := newOutside(t)
				p := s.place(t, o)
				all := points(t, o, p)
				random := rand.New(rand.NewPCG(seed, 0))
				killed := 0
				every := crash.Amount(t, "GUIDEWAY_CRASH_EVERY", 8, 20)
				for n := 1 + i%every; n <= all; n += every { // of each second one, two seeds try all
					j := &journey{t: t, outside: o, place: p, task: fmt.Sprint("task ", n)}
					for _, point := range []int{n, 1 + random.IntN(max(all-n, 2))} {
						if _, err := j.live(hire(t, p.ending(point, syscall.SIGKILL))); err != nil {
							t.Fatalf("killed at point %d: %v", point, err)
						}
					}
					killed += j.lives
					j.arrive()
					if t.Failed() {
						t.Fatalf("killed at point %d", n)
					}
				}
				if killed < all/every {
					t.Errorf("%d workers were killed, of %d points each %dth", killed, all, every)
				}
				t.Logf("%d workers were killed at work; of %d points each %dth", killed, all, every)
			})
		}
	}
}

// TestKilled kills workers over and over again while they drive several runs: at
// points of chance, and from outside at moments of chance.
func TestKilled(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	kills := crash.Amount(t, "GUIDEWAY_CRASH_KILLS", 40, 8)
	for _, seed := range crash.Seeds(t) {
		for i, s := range stores() {
			t.Run(fmt.Sprintf("seed %d/%s", seed, s.name), func(t *testing.T) {
				t.Parallel()
				o := newOutside(t)
				p := s.place(t, o)
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				killed, runs := 0, 0
				for killed < max(kills/4, 2) {
					runs++
					j := &journey{t: t, outside: o, place: p, task: fmt.Sprint("task ", runs)}
					for done := false; !done; {
						var err error
						if done, err = j.life(random); err != nil {
							t.Fatal(err)
						}
					}
					killed += j.lives
					j.judge()
				}
				t.Logf("%d workers were killed at work; %d runs", killed, runs)
			})
		}
	}
}

// life is one worker, which ends by itself at a point of chance or is killed.
func (j *journey) life(random *rand.Rand) (done bool, err error) {
	if random.IntN(2) == 0 {
		return j.live(hire(j.t, j.place.ending(1+random.IntN(30), syscall.SIGKILL)))
	}
	w := hire(j.t, j.place)
	var killer sync.WaitGroup
	killer.Go(func() {
		if r, err := w.Opened(); err != nil || !r.OK() {
			return
		}
		<-time.After(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		w.Kill()
	})
	done, err = j.live(w)
	killer.Wait()
	return done, err
}
