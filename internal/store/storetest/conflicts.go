package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// concurrency is the number of concurrent goroutines.
const concurrency = 8

// conflictTests cover conflicting and concurrent callers: a conflict returns an error, and
// no commit is stored in part.
func conflictTests() []subtest {
	return []subtest{
		{"a run can be created only once", testCreateTwice},
		{"a request creates only one run", testRequestTwice},
		{"an append must follow the last event", testAppendStale},
		{"a key can be used only once in a run", testKeyTwice},
		{"a refused commit changes nothing", testRefusedCommits},
		{"exactly one of concurrent creates with one id succeeds", testConcurrentCreates},
		{"exactly one of concurrent requests with one key succeeds", testConcurrentRequests},
		{"exactly one of concurrent appends after one event succeeds", testConcurrentAppends},
		{"concurrent writers of one run neither lose nor duplicate events", testConcurrentWriters},
		{"concurrent writers of different runs do not conflict", testConcurrentRuns},
	}
}

func testCreateTwice(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := createRun(t, s, newRecord("r_a", "ada"))
	again := newRecord("r_a", "bob")
	again.Handle, again.Goal = "h_other", "another aim"
	checkCode(t, s.Create(ctx, newDefinition(again), createCommit(again)), guideway.CodeConflict, "the same id")
	got, err := s.Run(ctx, "r_a")
	requireNoError(t, err)
	checkRecord(t, got, r)
}

func testRequestTwice(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	begin := func(id, user, key string) error {
		r := newRecord(id, user)
		c := createCommit(r)
		c.Key = key
		return s.Create(ctx, newDefinition(r), c)
	}
	requireNoError(t, begin("r_a", "ada", "request"))
	checkCode(t, begin("r_b", "ada", "request"), guideway.CodeConflict, "the same request")
	_, err := s.Run(ctx, "r_b")
	checkCode(t, err, guideway.CodeNotFound, "the run of a refused request")
	requireNoError(t, begin("r_c", "bob", "request")) // bob may use the key that ada used
	requireNoError(t, begin("r_d", "ada", ""))
	requireNoError(t, begin("r_e", "ada", "")) // an empty key never conflicts
}

func testAppendStale(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	old := createRun(t, s, newRecord("r_a", "ada"))
	r := appendEvent(t, s, old, "two")
	checkCode(t, s.Append(ctx, appendCommit(old, "stale")), guideway.CodeConflict, "an event before the last")
	ahead := r
	ahead.Seq = 7
	checkCode(t, s.Append(ctx, appendCommit(ahead, "ahead")), guideway.CodeConflict, "an event after the last")
	got, err := s.Run(ctx, r.ID)
	requireNoError(t, err)
	checkRecord(t, got, r)
	checkEvents(t, s, r.ID)
}

func testKeyTwice(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := createRun(t, s, newRecord("r_a", "ada"))
	other := createRun(t, s, newRecord("r_b", "ada"))
	c := appendCommit(r, "two")
	c.Key = "key"
	requireNoError(t, s.Append(ctx, c))
	again := appendCommit(c.Record, "three")
	again.Key = "key"
	checkCode(t, s.Append(ctx, again), guideway.CodeConflict, "the same key after the last event")
	c = appendCommit(other, "two")
	c.Key = "key"
	requireNoError(t, s.Append(ctx, c)) // keys are unique per run
	checkEvents(t, s, r.ID)
}

func testRefusedCommits(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := createRun(t, s, newRecord("r_a", "ada"))
	c := appendCommit(r, "two")
	c.Key = "key"
	requireNoError(t, s.Append(ctx, c))
	before, err := s.Latest(ctx)
	requireNoError(t, err)
	bad := appendCommit(c.Record, "xylophone")
	bad.Key, bad.Terms = "key", words.Of("xylophone")
	bad.Snapshot = &run.Snapshot{Seq: 3, State: []byte("bad")}
	checkCode(t, s.Append(ctx, bad), guideway.CodeConflict, "a known key")
	again := newRecord("r_a", "ada")
	again.Hash, again.Goal, again.Handle = "sha256:unused", "xylophone", "h_unused"
	checkCode(t, s.Create(ctx, newDefinition(again), createCommit(again)), guideway.CodeConflict, "a known id")

	checkEqual(t, "events", len(checkEvents(t, s, r.ID)), 2)
	for _, token := range []string{bad.Handle, "h_unused"} {
		_, err = s.Handle(ctx, token)
		checkCode(t, err, guideway.CodeNotFound, "the handle of a refused commit")
	}
	_, err = s.Definition(ctx, "sha256:unused")
	checkCode(t, err, guideway.CodeNotFound, "the definition of a refused commit")
	snap, err := s.Snapshot(ctx, r.ID)
	requireNoError(t, err)
	if snap != nil {
		t.Fatal("a refused commit has left its snapshot")
	}
	hits, err := s.Search(ctx, run.Search{Query: words.Parse("xylophone")})
	requireNoError(t, err)
	checkEqual(t, "hits for the words of refused commits", len(hits), 0)
	after, err := s.Latest(ctx)
	requireNoError(t, err)
	checkEqual(t, "position of the feed", after, before)
}

func testConcurrentCreates(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	errs := runConcurrently(concurrency, func(i int) error {
		r := newRecord("r_a", "ada")
		r.Handle = fmt.Sprintf("h_%d", i)
		return stores[i%2].Create(ctx, newDefinition(r), createCommit(r))
	})
	checkOneSucceeds(t, errs)
	checkEvents(t, stores[0], "r_a")
}

func testConcurrentRequests(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	errs := runConcurrently(concurrency, func(i int) error {
		r := newRecord(fmt.Sprintf("r_%d", i), "ada")
		c := createCommit(r)
		c.Key = "request"
		return stores[i%2].Create(ctx, newDefinition(r), c)
	})
	checkOneSucceeds(t, errs)
	runs, err := stores[1].Runs(ctx, run.Filter{})
	requireNoError(t, err)
	checkEqual(t, "runs", len(runs), 1)
	h, err := stores[0].Outcome(ctx, "", "ada", "request")
	requireNoError(t, err)
	checkEqual(t, "the run of the request", h.Run, runs[0].ID)
}

func testConcurrentAppends(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	r := createRun(t, stores[0], newRecord("r_a", "ada"))
	for range 5 {
		commits := make([]run.Commit, concurrency)
		for i := range commits {
			commits[i] = appendCommit(r, fmt.Sprintf("by%d", i))
		}
		errs := runConcurrently(concurrency, func(i int) error { return stores[i%2].Append(ctx, commits[i]) })
		checkOneSucceeds(t, errs)
		for i, err := range errs {
			if err == nil {
				r = commits[i].Record
			}
		}
		got, err := stores[0].Run(ctx, r.ID)
		requireNoError(t, err)
		checkRecord(t, got, r) // the run of the successful commit is completely stored
	}
	checkEvents(t, stores[1], r.ID)
}

// testConcurrentWriters checks that goroutines can append to one run concurrently.
func testConcurrentWriters(t *testing.T, f *fixture) {
	const share = 10
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	createRun(t, stores[0], newRecord("r_a", "ada"))
	errs := runConcurrently(concurrency, func(i int) error {
		s := stores[i%2]
		for n := 0; n < share; {
			rec, err := s.Run(ctx, "r_a")
			if err != nil {
				return err
			}
			err = s.Append(ctx, appendCommit(rec, fmt.Sprintf("g%d-%d", i, n)))
			if err == nil {
				n++
			} else if !isConflict(err) {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		requireNoError(t, err)
	}
	checkUnique(t, checkEvents(t, stores[0], "r_a")[1:], concurrency*share)
}

// checkUnique fails the test unless there are n events with different texts.
func checkUnique(t *testing.T, events []run.Event, n int) {
	t.Helper()
	seen := map[string]int{}
	for _, e := range events {
		var data struct{ Text string }
		requireNoError(t, json.Unmarshal(e.Data, &data))
		seen[data.Text]++
		if seen[data.Text] > 1 {
			t.Errorf("%q is stored %d times", data.Text, seen[data.Text])
		}
	}
	checkEqual(t, "different events", len(seen), n)
}

func testConcurrentRuns(t *testing.T, f *fixture) {
	const share = 10
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	errs := runConcurrently(concurrency, func(i int) error {
		s, r := stores[i%2], newRecord(fmt.Sprintf("r_%d", i), "ada")
		if err := s.Create(ctx, newDefinition(r), createCommit(r)); err != nil {
			return err
		}
		for n := range share {
			c := appendCommit(r, fmt.Sprint(n))
			if err := s.Append(ctx, c); err != nil {
				return err
			}
			r = c.Record
		}
		return nil
	})
	for i, err := range errs {
		requireNoError(t, err)
		checkUnique(t, checkEvents(t, stores[0], fmt.Sprintf("r_%d", i))[1:], share)
	}
}
