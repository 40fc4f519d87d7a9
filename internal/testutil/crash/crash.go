// Package crash has what tests need that take the machine away from a program:
// processes of their own that carry out orders and can be killed at any moment,
// directories with bounded room, schemas of a PostgreSQL server, and how much of
// it the environment asks for. Tests alone import it.
//
// A test program starts itself again as a worker (Main, Hire). A worker opens what
// is under test, says so, carries out the orders that come on its standard input,
// and acknowledges each by a line on its standard output, which is one write. What
// was acknowledged must be there, whatever becomes of the worker.
//
// GUIDEWAY_CRASH_SEED repeats a test's random choices, GUIDEWAY_TEST_POSTGRES names
// a server for the tests that want one.
package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seeds are a fixed seed and a random one, or the one that repeats a run.
func Seeds(t testing.TB) []uint64 {
	t.Helper()
	if text := os.Getenv("GUIDEWAY_CRASH_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("GUIDEWAY_CRASH_SEED: %v", err)
		}
		return []uint64{seed}
	}
	random := rand.Uint64N(1e9)
	t.Logf("GUIDEWAY_CRASH_SEED=%d repeats this run", random)
	return []uint64{1, random}
}

// Amount is how much of something a test does: what the environment says by that
// name, else little, and short in short mode.
func Amount(t testing.TB, name string, little, short int) int {
	t.Helper()
	text := os.Getenv(name)
	switch {
	case text == "" && testing.Short():
		return short
	case text == "":
		return little
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number from 1 on", name, text)
	}
	return n
}

// Long leaves a test out of short mode, which is that of the race detector: nothing
// in it runs side by side in one process.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long, and the race detector finds nothing in it; .ci/run crash runs it")
	}
}

// memory is where files are kept in memory.
const memory = "/dev/shm"

// Dir gives an empty directory in memory, where there is such a place: a process
// that is killed takes nothing along that it has written, whether that has reached
// a disk or not, and many more can be killed in the same time.
func Dir(t testing.TB) string {
	t.Helper()
	if !roomy(memory) {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "guideway-crash-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
