package memtrim

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counted is a trimmer on a process that counts how often memory is given back. What it has
// allocated is set by the test.
type counted struct {
	*Trimmer
	packed, released atomic.Int64
	allocated        atomic.Uint64
}

func start(t *testing.T) *counted {
	t.Helper()
	c := &counted{}
	c.Trimmer = Start(Options{
		Settle: time.Second, Quiet: time.Second, Enough: 100,
		Pack: func() { c.packed.Add(1) },
		release: func() {
			if released := c.released.Add(1); c.packed.Load() != released {
				t.Errorf("memory is given back for the time %d when it was packed %d times", released, c.packed.Load())
			}
		},
		allocated: c.allocated.Load,
	})
	t.Cleanup(c.Close)
	return c
}

func (c *counted) expect(t *testing.T, when string, times int64) {
	t.Helper()
	synctest.Wait()
	if got := c.released.Load(); got != times {
		t.Errorf("%s: memory was given back %d times, expected %d", when, got, times)
	}
}

// pass has time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// What the start has used goes once, a while after the first answer, though answers go
// on.
func TestStartIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		pass(10 * time.Second)
		c.expect(t, "before an answer", 0)
		for range 20 {
			c.Answered()
			pass(100 * time.Millisecond)
		}
		c.expect(t, "under traffic", 1)
		pass(time.Hour)
		c.expect(t, "after it", 1)
	})
}

// Where nothing is asked it goes in the end.
func TestStartIsGivenBackUnasked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		pass(59 * time.Second)
		c.expect(t, "within a minute", 0)
		pass(time.Hour)
		c.expect(t, "after it", 1)
	})
}

// The start collects no garbage that a usual start makes, and the process does so
// again once it has settled; what the user has set stays.
func TestHurryEnds(t *testing.T) {
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	settled := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := start(t)
			c.Answered()
			pass(time.Minute)
			c.expect(t, "settled", 1)
		})
	}
	before := percent()
	t.Cleanup(func() { debug.SetGCPercent(int(before)) })
	t.Setenv("GOGC", "")
	Hurry()
	if got := percent(); got != hurriedGC {
		t.Errorf("in a hurry GOGC is %d", got)
	}
	settled(t)
	if got := percent(); got != usualGC {
		t.Errorf("then it is %d", got)
	}
	t.Setenv("GOGC", "57")
	debug.SetGCPercent(57)
	Hurry()
	settled(t)
	if got := percent(); got != 57 {
		t.Errorf("where the user wants 57 it is %d", got)
	}
}

// It goes when a burst is over that has allocated enough, once for each burst.
func TestMemoryIsGivenBackAfterABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.Answered()
		pass(time.Minute)
		c.expect(t, "after the start", 1)
		burst := func(bytes uint64) {
			for range 50 {
				c.allocated.Add(bytes / 50)
				c.Answered()
				pass(500 * time.Millisecond)
			}
		}
		burst(100)
		c.expect(t, "half a second after a burst", 1)
		pass(time.Minute)
		c.expect(t, "a minute after a burst", 2)
		burst(50)
		pass(time.Minute)
		c.expect(t, "after a small one", 2)
		burst(50)
		pass(time.Minute)
		c.expect(t, "after small ones that are enough together", 3)
	})
}

// It ends at once, whatever it waits for.
func TestCloseEndsIt(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*counted){
		"before an answer": func(*counted) {},
		"while it settles": func(c *counted) { c.Answered() },
		"under traffic":    func(c *counted) { c.Answered(); pass(time.Minute); c.Answered() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := start(t)
				before(c)
				synctest.Wait()
				began := time.Now()
				c.Close()
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// In a real process all of it can be asked for at any time.
func TestProcessGoesOn(t *testing.T) {
	t.Parallel()
	c := Start(Options{Settle: time.Nanosecond, Quiet: time.Nanosecond, Enough: 1})
	for range 100 {
		c.Answered()
		_ = make([]byte, 100<<10)
	}
	c.Close()
	if allocated() == 0 {
		t.Error("nothing is said to be allocated")
	}
}
