// Package crashtest tests that agent machines survive crashes. It contains only tests.
//
// The tests start their own binary as workers (package crash), which drive runs with real
// scripts, a journal, and HTTP servers for the model and the tools, which count their
// requests. Workers kill themselves before and after each write and each call, are killed
// at random times, and are stopped for longer than their lease and then continued. In every
// case a run has the same outcome, no recorded answer is requested again, and a tool that
// must not be repeated is not.
//
// One worker drives many runs, so that one crash tests many points: each run halts at a
// different point, and the worker is killed or stopped when all runs have reached theirs.
//
// Environment variables set the extent: GUIDEWAY_CRASH_KILLS is the number of killed
// processes. GUIDEWAY_CRASH_EVERY tests every nth point (1 is all), GUIDEWAY_CRASH_STOPS
// the same for stopped workers. GUIDEWAY_CRASH_LIVES limits the deaths of a run before it
// may finish. GUIDEWAY_CRASH_OUTAGES is the number of outages of a database of each kind. GUIDEWAY_CRASH_SEED repeats a test, and GUIDEWAY_TEST_POSTGRES is the URL of
// a server for the tests that need one.
package crashtest
