package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// crowd is how many goroutines want the same at once.
const crowd = 8

// conflictTests are about callers that want the same: one gets it, the others
// are told, and nothing is half done.
func conflictTests() []subtest {
	return []subtest{
		{"a run is created once", createTwice},
		{"a request of a user makes one run", requestTwice},
		{"an append expects the last number", appendStale},
		{"a key is used once in a run", keyTwice},
		{"a refused commit leaves nothing behind", nothingHalf},
		{"of many creates with one id exactly one wins", raceCreate},
		{"of many requests with one id exactly one wins", raceRequest},
		{"of many appends at one number exactly one wins", raceAppend},
		{"many writers of one run lose and double nothing", raceGrow},
		{"many writers of many runs do not get in each other's way", raceApart},
	}
}

func createTwice(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := create(t, s, newRecord("r_a", "ada"))
	again := newRecord("r_a", "bob")
	again.Handle, again.Goal = "h_other", "another aim"
	wantCode(t, s.Create(ctx, definitionOf(again), first(again)), guideway.CodeConflict, "the same id")
	got, err := s.Run(ctx, "r_a")
	must(t, err)
	wantRecord(t, got, r)
}

func requestTwice(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	begin := func(id, user, key string) error {
		r := newRecord(id, user)
		c := first(r)
		c.Key = key
		return s.Create(ctx, definitionOf(r), c)
	}
	must(t, begin("r_a", "ada", "request"))
	wantCode(t, begin("r_b", "ada", "request"), guideway.CodeConflict, "the same request")
	_, err := s.Run(ctx, "r_b")
	wantCode(t, err, guideway.CodeNotFound, "the run of a refused request")
	must(t, begin("r_c", "bob", "request")) // another user's is another request
	must(t, begin("r_d", "ada", ""))
	must(t, begin("r_e", "ada", "")) // no key is no key twice, too
}

func appendStale(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	old := create(t, s, newRecord("r_a", "ada"))
	r := grow(t, s, old, "two")
	wantCode(t, s.Append(ctx, next(old, "stale")), guideway.CodeConflict, "a number behind the last")
	ahead := r
	ahead.Seq = 7
	wantCode(t, s.Append(ctx, next(ahead, "ahead")), guideway.CodeConflict, "a number ahead of the last")
	got, err := s.Run(ctx, r.ID)
	must(t, err)
	wantRecord(t, got, r)
	wantWhole(t, s, r.ID)
}

func keyTwice(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := create(t, s, newRecord("r_a", "ada"))
	other := create(t, s, newRecord("r_b", "ada"))
	c := next(r, "two")
	c.Key = "key"
	must(t, s.Append(ctx, c))
	again := next(c.Record, "three")
	again.Key = "key"
	wantCode(t, s.Append(ctx, again), guideway.CodeConflict, "the same key at the right number")
	c = next(other, "two")
	c.Key = "key"
	must(t, s.Append(ctx, c)) // another run's key is another key
	wantWhole(t, s, r.ID)
}

func nothingHalf(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := create(t, s, newRecord("r_a", "ada"))
	c := next(r, "two")
	c.Key = "key"
	must(t, s.Append(ctx, c))
	before, err := s.Latest(ctx)
	must(t, err)
	bad := next(c.Record, "xylophone")
	bad.Key, bad.Words = "key", "xylophone"
	bad.Snapshot = &run.Snapshot{Seq: 3, State: []byte("bad")}
	wantCode(t, s.Append(ctx, bad), guideway.CodeConflict, "a known key")
	again := newRecord("r_a", "ada")
	again.Hash, again.Goal, again.Handle = "sha256:unused", "xylophone", "h_unused"
	wantCode(t, s.Create(ctx, definitionOf(again), first(again)), guideway.CodeConflict, "a known id")

	want(t, "events", len(wantWhole(t, s, r.ID)), 2)
	for _, token := range []string{bad.Handle, "h_unused"} {
		_, err = s.Handle(ctx, token)
		wantCode(t, err, guideway.CodeNotFound, "the handle of a refused commit")
	}
	_, err = s.Definition(ctx, "sha256:unused")
	wantCode(t, err, guideway.CodeNotFound, "the definition of a refused commit")
	snap, err := s.Snapshot(ctx, r.ID)
	must(t, err)
	if snap != nil {
		t.Fatal("a refused commit has left its snapshot")
	}
	hits, err := s.Search(ctx, run.Search{Words: []string{"xylophone"}})
	must(t, err)
	want(t, "hits for the words of refused commits", len(hits), 0)
	after, err := s.Latest(ctx)
	must(t, err)
	want(t, "position of the feed", after, before)
}

func raceCreate(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	errs := together(crowd, func(i int) error {
		r := newRecord("r_a", "ada")
		r.Handle = fmt.Sprintf("h_%d", i)
		return stores[i%2].Create(ctx, definitionOf(r), first(r))
	})
	oneWins(t, errs)
	wantWhole(t, stores[0], "r_a")
}

func raceRequest(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	errs := together(crowd, func(i int) error {
		r := newRecord(fmt.Sprintf("r_%d", i), "ada")
		c := first(r)
		c.Key = "request"
		return stores[i%2].Create(ctx, definitionOf(r), c)
	})
	oneWins(t, errs)
	runs, err := stores[1].Runs(ctx, run.Filter{})
	must(t, err)
	want(t, "runs", len(runs), 1)
	h, err := stores[0].Outcome(ctx, "", "ada", "request")
	must(t, err)
	want(t, "the run of the request", h.Run, runs[0].ID)
}

func raceAppend(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	r := create(t, stores[0], newRecord("r_a", "ada"))
	for range 5 {
		commits := make([]run.Commit, crowd)
		for i := range commits {
			commits[i] = next(r, fmt.Sprintf("by%d", i))
		}
		errs := together(crowd, func(i int) error { return stores[i%2].Append(ctx, commits[i]) })
		oneWins(t, errs)
		for i, err := range errs {
			if err == nil {
				r = commits[i].Record
			}
		}
		got, err := stores[0].Run(ctx, r.ID)
		must(t, err)
		wantRecord(t, got, r) // the winner's, whole
	}
	wantWhole(t, stores[1], r.ID)
}

// raceGrow has goroutines append to one run until each has had its share.
func raceGrow(t *testing.T, f *fixture) {
	const share = 10
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	create(t, stores[0], newRecord("r_a", "ada"))
	errs := together(crowd, func(i int) error {
		s := stores[i%2]
		for n := 0; n < share; {
			rec, err := s.Run(ctx, "r_a")
			if err != nil {
				return err
			}
			err = s.Append(ctx, next(rec, fmt.Sprintf("g%d-%d", i, n)))
			if err == nil {
				n++
			} else if !isConflict(err) {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		must(t, err)
	}
	wantOnce(t, wantWhole(t, stores[0], "r_a")[1:], crowd*share)
}

// wantOnce ends the test where the texts of events are not so many different
// ones.
func wantOnce(t *testing.T, events []run.Event, n int) {
	t.Helper()
	seen := map[string]int{}
	for _, e := range events {
		var data struct{ Text string }
		must(t, json.Unmarshal(e.Data, &data))
		seen[data.Text]++
		if seen[data.Text] > 1 {
			t.Errorf("%q is there %d times", data.Text, seen[data.Text])
		}
	}
	want(t, "different events", len(seen), n)
}

func raceApart(t *testing.T, f *fixture) {
	const share = 10
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	errs := together(crowd, func(i int) error {
		s, r := stores[i%2], newRecord(fmt.Sprintf("r_%d", i), "ada")
		if err := s.Create(ctx, definitionOf(r), first(r)); err != nil {
			return err
		}
		for n := range share {
			c := next(r, fmt.Sprint(n))
			if err := s.Append(ctx, c); err != nil {
				return err
			}
			r = c.Record
		}
		return nil
	})
	for i, err := range errs {
		must(t, err)
		wantOnce(t, wantWhole(t, stores[0], fmt.Sprintf("r_%d", i))[1:], share)
	}
}
