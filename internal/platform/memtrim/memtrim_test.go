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

// testTrimmer is a trimmer that counts releases. The test sets the allocated bytes.
type testTrimmer struct {
	*Trimmer
	packed, released atomic.Int64
	allocated        atomic.Uint64
}

func newTestTrimmer(t *testing.T) *testTrimmer {
	t.Helper()
	c := &testTrimmer{}
	c.Trimmer = Start(Options{
		Settle: time.Second, Quiet: time.Second, Enough: 100,
		Pack: func() { c.packed.Add(1) },
		release: func() {
			if released := c.released.Add(1); c.packed.Load() != released {
				t.Errorf("memory is released %d times, but packed %d times", released, c.packed.Load())
			}
		},
		allocated: c.allocated.Load,
	})
	t.Cleanup(c.Close)
	return c
}

func (c *testTrimmer) wantReleases(t *testing.T, when string, times int64) {
	t.Helper()
	synctest.Wait()
	if got := c.released.Load(); got != times {
		t.Errorf("%s: memory was released %d times, want %d", when, got, times)
	}
}

// sleepFor advances the time of a synctest bubble.
func sleepFor(d time.Duration) { <-time.After(d) }

// TestStartMemoryIsReleased checks that the memory of the start is released once, a while
// after the first answer, even if there are more answers.
func TestStartMemoryIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTestTrimmer(t)
		sleepFor(10 * time.Second)
		c.wantReleases(t, "before an answer", 0)
		for range 20 {
			c.Answered()
			sleepFor(100 * time.Millisecond)
		}
		c.wantReleases(t, "under traffic", 1)
		sleepFor(time.Hour)
		c.wantReleases(t, "after it", 1)
	})
}

// TestStartMemoryIsReleasedWithoutAnswers checks that without an answer the memory of the
// start is released after a minute.
func TestStartMemoryIsReleasedWithoutAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTestTrimmer(t)
		sleepFor(59 * time.Second)
		c.wantReleases(t, "within a minute", 0)
		sleepFor(time.Hour)
		c.wantReleases(t, "after it", 1)
	})
}

// TestTuneStartupGCEnds checks that TuneStartupGC changes GOGC until the memory of the start
// is released, and that a setting of the user is not changed.
func TestTuneStartupGCEnds(t *testing.T) {
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	settled := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTestTrimmer(t)
			c.Answered()
			sleepFor(time.Minute)
			c.wantReleases(t, "settled", 1)
		})
	}
	before := percent()
	t.Cleanup(func() { debug.SetGCPercent(int(before)) })
	t.Setenv("GOGC", "")
	TuneStartupGC()
	if got := percent(); got != startGC {
		t.Errorf("in a hurry GOGC is %d", got)
	}
	settled(t)
	if got := percent(); got != usualGC {
		t.Errorf("afterwards GOGC is %d", got)
	}
	t.Setenv("GOGC", "57")
	debug.SetGCPercent(57)
	TuneStartupGC()
	settled(t)
	if got := percent(); got != 57 {
		t.Errorf("with the user's GOGC of 57, GOGC is %d", got)
	}
}

// TestMemoryIsReleasedAfterBurst checks that memory is released once after bursts that have
// allocated enough memory.
func TestMemoryIsReleasedAfterBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTestTrimmer(t)
		c.Answered()
		sleepFor(time.Minute)
		c.wantReleases(t, "after the start", 1)
		burst := func(bytes uint64) {
			for range 50 {
				c.allocated.Add(bytes / 50)
				c.Answered()
				sleepFor(500 * time.Millisecond)
			}
		}
		burst(100)
		c.wantReleases(t, "half a second after a burst", 1)
		sleepFor(time.Minute)
		c.wantReleases(t, "a minute after a burst", 2)
		burst(50)
		sleepFor(time.Minute)
		c.wantReleases(t, "after a small burst", 2)
		burst(50)
		sleepFor(time.Minute)
		c.wantReleases(t, "after small bursts that together allocate enough memory", 3)
	})
}

// TestCloseEndsTrimmer checks that Close ends the trimmer immediately in every state.
func TestCloseEndsTrimmer(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*testTrimmer){
		"before an answer":       func(*testTrimmer) {},
		"during the settle time": func(c *testTrimmer) { c.Answered() },
		"under traffic":          func(c *testTrimmer) { c.Answered(); sleepFor(time.Minute); c.Answered() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newTestTrimmer(t)
				before(c)
				synctest.Wait()
				began := time.Now()
				c.Close()
				if took := time.Since(began); took != 0 {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

// TestRealProcess checks that a trimmer works with the memory of a real process.
func TestRealProcess(t *testing.T) {
	t.Parallel()
	c := Start(Options{Settle: time.Nanosecond, Quiet: time.Nanosecond, Enough: 1})
	for range 100 {
		c.Answered()
		_ = make([]byte, 100<<10)
	}
	c.Close()
	if allocatedBytes() == 0 {
		t.Error("no bytes are allocated")
	}
}
