// Package crashtest tests checkpoints under crashes and faults. It contains tests only.
//
// The tests start themselves again as workers: processes that have checkpoints open and
// execute orders from their standard input. Workers are killed in the middle of a save, run
// out of disk space, get damaged or missing files, a different key or a different clock,
// and run concurrently. Acknowledged checkpoints must survive, and a load must never return
// a wrong context: it returns the right context, an older one marked as degraded, or an
// error.
//
// Environment variables set the extent: GUIDEWAY_CRASH_KILLS is the number of killed
// processes, GUIDEWAY_CRASH_DAMAGES the number of damaged files, GUIDEWAY_CRASH_STEPS the
// number of saves of each client of a crowd. Each trial fails one of GUIDEWAY_CRASH_WRITES
// writes; 1 fails every write in turn. GUIDEWAY_CRASH_SEED repeats a run.
// GUIDEWAY_TEST_POSTGRES is the server for tests that need PostgreSQL.
package crashtest
