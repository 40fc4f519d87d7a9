package checkpoint_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// countingIndex is an index that counts the calls of Totals and can add bytes of other processes.
type countingIndex struct {
	checkpoint.Index
	times, others atomic.Int64
}

func (x *countingIndex) Totals(ctx context.Context) (checkpoint.Totals, error) {
	x.times.Add(1)
	t, err := x.Index.Totals(ctx)
	t.Stored += x.others.Load()
	return t, err
}

func setupAddedUp(t *testing.T, l checkpoint.Limits) (*rig, *countingIndex) {
	t.Helper()
	x := &countingIndex{}
	r := openRig(t, checkpoint.ModeMemory, withLimits(l), func(o *checkpoint.Options) { x.Index = o.Index; o.Index = x })
	r.mustSave(t, "first", bulkyContext(0)) // the first save of a service calls Totals one more time
	return r, x
}

// TestQuotaCache checks how many saves compute the total: few saves far below the limit, and
// most or all saves near the limit, after a pause, or if a checkpoint has no maximum size.
func TestQuotaCache(t *testing.T) {
	t.Parallel()
	const saves = 99
	for name, c := range map[string]struct {
		limits checkpoint.Limits
		others int64
		pause  time.Duration
		most   int64
		least  int64
	}{
		"far below":                          {limits: checkpoint.Limits{PerSeries: 1000}, most: 4, least: 2},
		"slowly":                             {limits: checkpoint.Limits{PerSeries: 1000}, pause: 20 * time.Second, most: saves, least: saves},
		"a clock that goes backwards":        {limits: checkpoint.Limits{PerSeries: 1000}, pause: -time.Second, most: saves, least: saves},
		"other processes approach the limit": {limits: checkpoint.Limits{PerSeries: 1000}, others: 8 << 30, most: saves, least: saves - 40},
		"a small limit":                      {limits: checkpoint.Limits{PerSeries: 1000, TotalBytes: 100 << 20}, most: saves, least: saves},
		"saves of any size":                  {limits: checkpoint.Limits{PerSeries: 1000, CheckpointBytes: -1}, most: saves, least: saves},
		"a warning from zero":                {limits: checkpoint.Limits{PerSeries: 1000, Warn: 1e-9}, most: saves, least: saves},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, x := setupAddedUp(t, c.limits)
			x.others.Store(c.others)
			before := x.times.Load()
			for i := range saves {
				r.clock.Add(c.pause)
				r.mustSave(t, "work", bulkyContext(i))
			}
			if n := x.times.Load() - before; n < c.least || n > c.most {
				t.Errorf("%d saves computed the total %d times", saves, n)
			}
		})
	}
}

// TestQuotaCacheConcurrent checks that the total limit holds if several services save in
// turn, with a warning before, and that not every save computes the total.
func TestQuotaCacheConcurrent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the saves are sequential, so there is nothing for the race detector to find")
	}
	const most, saves = 200_000, 105 // enough saves to approach the limit
	change := withLimits(checkpoint.Limits{PerSeries: 10_000, TotalBytes: most, CheckpointBytes: 2000, Clean: 1})
	x := &countingIndex{}
	first := openRig(t, checkpoint.ModeMemory, change, func(o *checkpoint.Options) { x.Index = o.Index; o.Index = x })
	rigs := []*rig{first}
	for range 3 {
		rigs = append(rigs, reopenRig(t, first, change, func(o *checkpoint.Options) { o.Index = x }))
	}
	seen := false
	for i := range saves {
		saved := rigs[i%len(rigs)].mustSave(t, "work", randomContext(1600, uint64(i)))
		totals, err := x.Totals(t.Context())
		mustSucceed(t, err)
		seen = seen || hasWarning(saved.Warnings, checkpoint.WarnTotal)
		if totals.Stored > most*85/100 && !seen {
			t.Fatalf("%d of %d bytes are used without a warning", totals.Stored, most)
		}
		if totals.Stored > most {
			t.Fatalf("%d bytes are used, above the limit of %d", totals.Stored, most)
		}
	}
	if !seen || x.times.Load() > saves*19/10 { // this test calls Totals once per save
		t.Errorf("%d saves computed the total %d times and approached the limit: %v", saves, x.times.Load()-saves, seen)
	}
}
