// Package crashtest takes the machine away from runs of agent machines. It has
// tests alone.
//
// Its tests start themselves again as workers (package crash), which drive runs
// with real scripts, a journal, and a model and tools behind HTTP that count what
// they are asked. Workers end themselves before and after each write and each call,
// are killed at random moments, and are stopped for longer than their lease and
// then go on. Whatever happens, a run comes to the same end, no answer that was
// kept is asked for again, and a tool that must not be repeated is not.
//
// One worker leads many runs, so that one that dies takes many points along: a run
// halts at a point of its own, and the worker is killed, or stopped, when all runs
// are at theirs.
//
// The environment says how much of it: GUIDEWAY_CRASH_KILLS counts processes that
// are killed, of the points at which a run may end GUIDEWAY_CRASH_EVERY has each
// nth one tried (1 is all), GUIDEWAY_CRASH_STOPS the same for halts; a run dies
// GUIDEWAY_CRASH_LIVES times at most before it may finish,
// GUIDEWAY_CRASH_SEED repeats a run, and GUIDEWAY_TEST_POSTGRES names a server for
// the tests that want one.
package crashtest
