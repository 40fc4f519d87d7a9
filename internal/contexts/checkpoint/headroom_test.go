package checkpoint_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// addedUp is an index that counts how often all of it is added up, and may pretend
// that others have stored more.
type addedUp struct {
	checkpoint.Index
	times, others atomic.Int64
}

func (x *addedUp) Totals(ctx context.Context) (checkpoint.Totals, error) {
	x.times.Add(1)
	t, err := x.Index.Totals(ctx)
	t.Stored += x.others.Load()
	return t, err
}

func setupAddedUp(t *testing.T, l checkpoint.Limits) (*rig, *addedUp) {
	t.Helper()
	x := &addedUp{}
	r := setup(t, checkpoint.ModeMemory, limits(l), func(o *checkpoint.Options) { x.Index = o.Index; o.Index = x })
	r.save(t, "first", bulky(0)) // which looks at the index once besides
	return r, x
}

// TestHeadroom: far below the limit of all checkpoints one save in many adds them up,
// or the first one after a while; near to it, or where nothing bounds what a save may
// bring, each does.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	const saves = 99
	for name, c := range map[string]struct {
		limits checkpoint.Limits
		others int64
		pause  time.Duration
		most   int64
		least  int64
	}{
		"far below":           {limits: checkpoint.Limits{PerLine: 1000}, most: 4, least: 2},
		"slowly":              {limits: checkpoint.Limits{PerLine: 1000}, pause: 20 * time.Second, most: saves, least: saves},
		"a clock gone back":   {limits: checkpoint.Limits{PerLine: 1000}, pause: -time.Second, most: saves, least: saves},
		"others come near":    {limits: checkpoint.Limits{PerLine: 1000}, others: 8 << 30, most: saves, least: saves - 40},
		"a small limit":       {limits: checkpoint.Limits{PerLine: 1000, TotalBytes: 100 << 20}, most: saves, least: saves},
		"saves of any size":   {limits: checkpoint.Limits{PerLine: 1000, CheckpointBytes: -1}, most: saves, least: saves},
		"a warning from zero": {limits: checkpoint.Limits{PerLine: 1000, Warn: 1e-9}, most: saves, least: saves},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, x := setupAddedUp(t, c.limits)
			x.others.Store(c.others)
			before := x.times.Load()
			for i := range saves {
				r.clock.Add(c.pause)
				r.save(t, "work", bulky(i))
			}
			if n := x.times.Load() - before; n < c.least || n > c.most {
				t.Errorf("%d saves added all up %d times", saves, n)
			}
		})
	}
}

// TestHeadroomOfMany: the limit of all holds however many processes save at once and
// rarely add up.
func TestHeadroomOfMany(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("saves one after the other, which is nothing for the race detector")
	}
	const most, saves = 200_000, 105 // at first five saves do not ask
	change := limits(checkpoint.Limits{PerLine: 10_000, TotalBytes: most, CheckpointBytes: 2000, Clean: 1})
	x := &addedUp{}
	first := setup(t, checkpoint.ModeMemory, change, func(o *checkpoint.Options) { x.Index = o.Index; o.Index = x })
	rigs := []*rig{first}
	for range 3 {
		rigs = append(rigs, reopen(t, first, change, func(o *checkpoint.Options) { o.Index = x }))
	}
	seen := false
	for i := range saves {
		saved := rigs[i%len(rigs)].save(t, "work", noise(1600, uint64(i)))
		totals, err := x.Totals(t.Context())
		must(t, err)
		seen = seen || warned(saved.Warnings, checkpoint.WarnTotal)
		if totals.Stored > most*85/100 && !seen {
			t.Fatalf("of %d bytes %d are taken, and nobody is warned", most, totals.Stored)
		}
		if totals.Stored > most {
			t.Fatalf("%d bytes are taken, of %d", totals.Stored, most)
		}
	}
	if !seen || x.times.Load() > saves*19/10 { // this test asks once for each
		t.Errorf("%d saves added up %d times, and came near the limit: %v", saves, x.times.Load()-saves, seen)
	}
}
