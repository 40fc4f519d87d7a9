// Package crashtest takes the machine away from durable runs. It has tests
// alone.
//
// Its tests start themselves again as workers: processes that hold a run service
// on a journal and carry out orders from their standard input. Workers are
// killed, lose the writes that were not synced, run out of disk, find their files
// damaged or edited, and meet each other. What they acknowledged on their
// standard output must be there afterwards, once and in order, and nothing else.
//
// The environment says how much of it: GUIDEWAY_CRASH_KILLS and
// GUIDEWAY_CRASH_CUTS count processes that are killed and power losses,
// GUIDEWAY_CRASH_SEED repeats a run. GUIDEWAY_TEST_POSTGRES names a server for
// the tests that want one.
package crashtest
