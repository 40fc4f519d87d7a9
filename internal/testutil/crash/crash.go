// Package crash is a test helper for crash tests: worker processes that execute orders and
// are killed at random moments, directories of limited size, and schemas of a PostgreSQL
// server. Only tests import it.
//
// A test binary starts itself as a worker (Main, StartWorker). A worker opens the store
// that its Place describes, reports the result, executes the orders from its standard
// input, and acknowledges each with one line, which is a single write, on its standard
// output. Acknowledged changes must survive the death of the worker.
//
// GUIDEWAY_CRASH_SEED repeats a test's random choices, and GUIDEWAY_TEST_POSTGRES is the
// URL of a server for the tests that need one.
package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seeds returns a fixed and a random seed, or the seed from the environment.
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
	t.Logf("set GUIDEWAY_CRASH_SEED=%d to repeat this run", random)
	return []uint64{1, random}
}

// Amount returns the value of an environment variable. If the variable is not set, Amount
// returns short in short mode and little otherwise.
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
		t.Fatalf("%s is %q, want a positive number", name, text)
	}
	return n
}

// SkipIfShort skips a slow test in short mode, which is used with the race detector.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped in short mode: the test is slow; .ci/run crash runs it")
	}
}

// memoryDir is the directory of a file system in memory.
const memoryDir = "/dev/shm"

// Dir returns an empty directory, in memory if possible: the writes of a killed process
// survive even if they did not reach a disk, and memory is faster.
func Dir(t testing.TB) string {
	t.Helper()
	if !hasRoom(memoryDir) {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memoryDir, "guideway-crash-")
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
