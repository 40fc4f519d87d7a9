// Package crashtest contains tests of durable runs with crashes, power failures and damaged
// storage.
//
// Its tests start their own binary as workers: processes that execute commands from their
// standard input with a run service. Workers are killed, lose writes that were not synced,
// run out of disk space, get damaged or edited files, and run concurrently. Afterwards,
// the commands that they acknowledged on their standard output must be stored, once and in
// order. A command that was not acknowledged is stored completely or not at all.
//
// GUIDEWAY_CRASH_KILLS is the number of killed processes, GUIDEWAY_CRASH_CUTS the number of
// power failures. GUIDEWAY_CRASH_SEED repeats a run. GUIDEWAY_TEST_POSTGRES is the URL of a
// server for the tests that need one.
package crashtest
