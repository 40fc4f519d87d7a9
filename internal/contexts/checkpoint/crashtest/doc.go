// Package crashtest takes the machine away from checkpoints. It has tests alone.
//
// Its tests start themselves again as workers: processes that have checkpoints
// open and carry out orders from their standard input. Workers are killed in the
// middle of a save, run out of disk, find their files damaged or gone, are given
// another key or another clock, and meet each other. Whatever they acknowledged
// must be there afterwards, and no context may ever be another one than the one
// that was saved: it is right, or an older one with a word, or an error.
//
// The environment says how much of it: GUIDEWAY_CRASH_KILLS counts processes that
// are killed, GUIDEWAY_CRASH_DAMAGES damaged files, GUIDEWAY_CRASH_STEPS the saves
// of each client of a crowd. Of GUIDEWAY_CRASH_WRITES writes one fails in a trial: 1 tries
// each. GUIDEWAY_CRASH_SEED repeats a run.
// GUIDEWAY_TEST_POSTGRES names a server for the tests that want one.
package crashtest
