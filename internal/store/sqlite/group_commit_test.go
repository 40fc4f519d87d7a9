package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// faultyStore is a store in which selected commits fail.
type faultyStore struct {
	*Store
	mu sync.Mutex
	// commits counts the commits, starting at 0. fails has the numbers of the commits that
	// report a full disk.
	commits int
	fails   map[int]bool
}

func openFaulty(t *testing.T) *faultyStore {
	t.Helper()
	d := &faultyStore{}
	d.Store = openTestStore(t, Options{Path: filepath.Join(t.TempDir(), testFile), commit: d.commitOrFail})
	return d
}

// commitOrFail replaces the commit of a transaction.
func (d *faultyStore) commitOrFail(tx *sql.Tx) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commits++
	if d.fails[d.commits-1] {
		return errors.Join(syscall.ENOSPC, tx.Rollback())
	}
	return tx.Commit()
}

// resetCommits restarts the count of commits.
func (d *faultyStore) resetCommits(fails map[int]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commits, d.fails = 0, fails
}

func (d *faultyStore) commitCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commits
}

func (d *faultyStore) waitingCount() int {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return len(d.queue.waiting)
}

// submission is a commit of a caller, with its result.
type submission struct {
	run.Commit
	// gone reports whether the caller cancels before a transaction includes the commit.
	gone bool
	err  error
}

// runTogether queues the callers in the order of the list while the lock is held, cancels
// the callers that are gone, and then releases the lock.
func (d *faultyStore) runTogether(t rapid.TB, list []*submission) {
	t.Helper()
	release, err := d.lock.acquireLock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var left, all sync.WaitGroup
	var giveUps []context.CancelFunc
	for i, w := range list {
		ctx, giveUp := context.WithCancel(context.Background())
		defer giveUp()
		group := &all
		if w.gone {
			group, giveUps = &left, append(giveUps, giveUp)
		}
		group.Go(func() { w.err = putCommit(ctx, d, w.Commit) })
		for d.waitingCount() < i+1 {
			runtime.Gosched()
		}
	}
	for _, giveUp := range giveUps {
		giveUp()
	}
	left.Wait()
	release()
	all.Wait()
}

// journalModel is the expected content of the store.
type journalModel struct {
	runs map[string][]run.Commit
	feed []string
}

func (m journalModel) cloneModel() journalModel {
	next := journalModel{runs: map[string][]run.Commit{}, feed: slices.Clone(m.feed)}
	for id, commits := range m.runs {
		next.runs[id] = slices.Clone(commits)
	}
	return next
}

// applyCommit applies a commit by the contract of run.Journal.
func (m journalModel) applyCommit(c run.Commit) (journalModel, guideway.Code) {
	id := c.Record.ID
	known := m.runs[id]
	switch {
	case c.Expected > 0 && len(known) == 0:
		return m, guideway.CodeNotFound
	case int64(len(known)) != c.Expected:
		return m, guideway.CodeConflict
	}
	for _, commits := range m.runs {
		for _, old := range commits {
			// The key of a first commit is unique per user, other keys per run.
			sameKeys := old.Record.ID == id && old.Expected > 0 && c.Expected > 0 || old.Expected+c.Expected == 0
			if old.Handle == c.Handle || sameKeys && old.Key == c.Key {
				return m, guideway.CodeConflict
			}
		}
	}
	next := m.cloneModel()
	next.runs[id] = append(next.runs[id], c)
	next.feed = append(next.feed, fmt.Sprint(id, " ", c.Record.Seq))
	return next, ""
}

// predictOutcomes returns the results of commits that wait together if some transactions
// fail: the first transaction contains all commits, the following transactions one commit
// each.
func (m journalModel) predictOutcomes(list []*submission, fails map[int]bool) (after journalModel, codes []guideway.Code) {
	made := 0
	fail := func() bool { made++; return fails[made-1] }
	codes = make([]guideway.Code, len(list))
	if len(list) > 1 {
		after = m
		for i, w := range list {
			after, codes[i] = after.applyCommit(w.Commit)
		}
		if !fail() {
			return after, codes
		}
	}
	after = m
	for i, w := range list {
		next, code := after.applyCommit(w.Commit)
		if code == "" && fail() {
			next, code = after, guideway.CodeUnavailable
		}
		after, codes[i] = next, code
	}
	return after, codes
}

// checkStore compares the store with the model.
func (m journalModel) checkStore(ctx context.Context, t rapid.TB, s *Store, start int64) {
	t.Helper()
	for id, commits := range m.runs {
		last := commits[len(commits)-1]
		record, err := s.Run(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		events, err := s.Events(ctx, id, 0, len(commits)+1)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := s.Snapshot(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var want []run.Event
		for _, c := range commits {
			want = append(want, c.Events...)
			if h, err := s.Outcome(ctx, id, "", c.Key); c.Expected > 0 && (err != nil || h.Seq != c.Record.Seq) {
				t.Fatalf("the outcome of %s: %+v, %v", c.Key, h, err)
			}
		}
		if diff := cmp.Diff(last.Record, record); diff != "" {
			t.Fatalf("the record (-model +store):\n%s", diff)
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Fatalf("the events (-model +store):\n%s", diff)
		}
		if diff := cmp.Diff(last.Snapshot, snapshot); diff != "" {
			t.Fatalf("the snapshot (-model +store):\n%s", diff)
		}
	}
	changes, _, err := s.Changes(ctx, start, len(m.feed)+1)
	if err != nil {
		t.Fatal(err)
	}
	var feed []string
	for _, c := range changes {
		feed = append(feed, fmt.Sprint(c.ID, " ", c.Seq))
	}
	if diff := cmp.Diff(m.feed, feed); diff != "" {
		t.Fatalf("the feed (-model +store):\n%s", diff)
	}
}

// drawSubmission draws a valid commit, or one that must be refused because of its expected
// event, its key or its handle. A known handle is detected only after most of the commit is
// written.
func drawSubmission(t *rapid.T, m journalModel, walk, number int) *submission {
	id := fmt.Sprintf("r_%d_%d", walk, rapid.IntRange(0, 2).Draw(t, "run"))
	at := int64(rapid.IntRange(0, 5).Draw(t, "behind")) - 1
	if at < 0 { // a valid commit for the current state
		at = int64(len(m.runs[id]))
	}
	c := newTestCommit(id, at+1, fmt.Sprint("commit ", number))
	c.Handle = fmt.Sprintf("h_%d_%d", walk, number)
	c.Key = fmt.Sprintf("key %d %d", walk, number)
	c.Record.Handle = c.Handle
	if known := m.runs[id]; len(known) > 0 {
		old := known[rapid.IntRange(0, len(known)-1).Draw(t, "old")]
		switch rapid.IntRange(0, 9).Draw(t, "repeated") {
		case 0:
			c.Key = old.Key
		case 1:
			c.Handle = old.Handle
		case 2:
			c = old
		}
	}
	return &submission{Commit: c, gone: rapid.IntRange(0, 7).Draw(t, "gone") == 0}
}

// TestSharedCommits checks callers that wait for one transaction, with valid and refused
// commits, repetitions and cancelled calls, on a disk that is sometimes full. Each caller
// gets the correct result, and the journal contains exactly the acknowledged commits.
func TestSharedCommits(t *testing.T) {
	t.Parallel()
	d := openFaulty(t)
	walk := 0
	rapid.Check(t, func(rt *rapid.T) {
		walk++
		start, err := d.Latest(rt.Context())
		if err != nil {
			rt.Fatal(err)
		}
		m := journalModel{runs: map[string][]run.Commit{}}
		number := 0
		for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			var list, stay []*submission
			hoped := m
			for range rapid.IntRange(1, 8).Draw(rt, "callers") {
				number++
				w := drawSubmission(rt, hoped, walk, number)
				if list = append(list, w); !w.gone {
					stay = append(stay, w)
					hoped, _ = hoped.applyCommit(w.Commit)
				}
			}
			fails := map[int]bool{}
			for _, n := range rapid.SliceOfN(rapid.IntRange(0, 3), 0, 2).Draw(rt, "fails") {
				fails[n] = true
			}
			d.resetCommits(fails)
			d.runTogether(rt, list)
			var codes []guideway.Code
			m, codes = m.predictOutcomes(stay, fails)
			for i, w := range stay {
				if got := guideway.ErrorCode(w.err); got != codes[i] {
					rt.Fatalf("caller %d of %d: %q, the model predicts %q: %v", i, len(stay), got, codes[i], w.err)
				}
			}
			for _, w := range list {
				if w.gone && !errors.Is(w.err, context.Canceled) {
					rt.Fatalf("the cancelled caller got %v", w.err)
				}
			}
			m.checkStore(rt.Context(), rt, d.Store, start)
		}
	})
}

// TestOneTransaction checks that up to maxBatch waiting commits share one transaction.
func TestOneTransaction(t *testing.T) {
	t.Parallel()
	for callers, transactions := range map[int]int{1: 1, 2: 1, maxBatch: 1, maxBatch + 1: 2, 3*maxBatch - 1: 3} {
		d := openFaulty(t)
		var list []*submission
		for i := range callers {
			list = append(list, &submission{Commit: newTestCommit(fmt.Sprint("r_", i), 1, "first")})
		}
		d.resetCommits(nil)
		d.runTogether(t, list)
		if d.commitCount() != transactions {
			t.Errorf("%d callers caused %d transactions, want %d", callers, d.commitCount(), transactions)
		}
		for _, w := range list {
			if w.err != nil {
				t.Error(w.err)
			}
		}
	}
}

// TestTooLateToCancel checks that a caller that cancels during its transaction gets the
// result of the transaction.
func TestTooLateToCancel(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		var d *Store
		ctx, giveUp := context.WithCancel(t.Context())
		d = openTestStore(t, Options{Path: filepath.Join(t.TempDir(), testFile), commit: func(tx *sql.Tx) error {
			giveUp()
			if full {
				return errors.Join(syscall.ENOSPC, tx.Rollback())
			}
			return tx.Commit()
		}})
		err := putCommit(ctx, d, newTestCommit("r_a", 1, "first"))
		_, found := d.Run(t.Context(), "r_a")
		if full && (guideway.ErrorCode(err) != guideway.CodeUnavailable || errors.Is(err, context.Canceled) || found == nil) {
			t.Errorf("on a full disk: %v, %v", err, found)
		}
		if !full && (err != nil || found != nil) {
			t.Errorf("on a disk with space: %v, %v", err, found)
		}
	}
}

// TestPanickedTransaction checks that no caller waits forever after a transaction panics,
// and that the store continues to work.
func TestPanickedTransaction(t *testing.T) {
	t.Parallel()
	broken := false
	d := &faultyStore{}
	d.Store = openTestStore(t, Options{Path: filepath.Join(t.TempDir(), testFile), commit: func(tx *sql.Tx) error {
		if !broken {
			broken = true
			panic("a bug")
		}
		return tx.Commit()
	}})
	release, err := d.lock.acquireLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const callers = 5
	var mu sync.Mutex
	told := map[string]int{}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			outcome := "panic"
			defer func() {
				_ = recover()
				mu.Lock()
				defer mu.Unlock()
				told[outcome]++
			}()
			outcome = fmt.Sprint(errors.Is(putCommit(t.Context(), d, newTestCommit(fmt.Sprint("r_", i), 1, "first")), errPanicked))
		})
		for d.waitingCount() < i+1 {
			runtime.Gosched()
		}
	}
	release()
	all.Wait()
	if diff := cmp.Diff(map[string]int{"panic": 1, "true": callers - 1}, told); diff != "" {
		t.Error(diff)
	}
	if err := putCommit(t.Context(), d, newTestCommit("r_0", 1, "first")); err != nil {
		t.Error(err)
	}
}

// TestConcurrentWriters checks that the results of concurrent writers match the content of
// the store, even if some writers cancel at any moment and the disk is sometimes full.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	const writers, runs, share = 8, 3, 15
	d := openFaulty(t)
	d.resetCommits(map[int]bool{5: true, 6: true, 20: true, 33: true, 34: true, 35: true, 60: true})
	var mu sync.Mutex
	acknowledged, refused := map[string]bool{}, map[string]bool{}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range share {
				id, text := fmt.Sprint("r_", (w+n)%runs), fmt.Sprintf("writer %d, %d", w, n)
				err := d.appendWithCancels(t, id, text, w+n)
				mu.Lock()
				if err == nil {
					acknowledged[text] = true
				} else {
					refused[text] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	there := map[string]bool{}
	for i := range runs {
		events, err := d.Events(t.Context(), fmt.Sprint("r_", i), 0, writers*share)
		if err != nil {
			t.Fatal(err)
		}
		for at, e := range events {
			var data struct{ Text string }
			if err := json.Unmarshal(e.Data, &data); err != nil || e.Seq != int64(at+1) || there[data.Text] {
				t.Fatalf("event %d is %d, %s: %v", at+1, e.Seq, e.Data, err)
			}
			there[data.Text] = true
		}
	}
	if diff := cmp.Diff(acknowledged, there); diff != "" {
		t.Errorf("the store differs from the acknowledged events (-acknowledged +stored):\n%s", diff)
	}
	if len(acknowledged) == 0 || len(refused) == 0 {
		t.Errorf("%d acknowledged, %d refused: the test is not meaningful", len(acknowledged), len(refused))
	}
}

// appendWithCancels appends to the end of a run and retries after conflicts. Every third
// call is cancelled.
func (d *faultyStore) appendWithCancels(t *testing.T, id, text string, number int) error {
	for {
		seq := int64(0)
		if r, err := d.Run(t.Context(), id); err == nil {
			seq = r.Seq
		}
		c := newTestCommit(id, seq+1, text)
		c.Key, c.Handle = text, "h "+text
		ctx, giveUp := context.WithCancel(t.Context())
		if number%3 == 0 {
			go giveUp()
		}
		err := putCommit(ctx, d, c)
		giveUp()
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			return err
		}
		if r, looked := d.Run(t.Context(), id); looked != nil || r.Seq == seq {
			t.Errorf("a conflict at event %d of %s, which does not exist: %v", seq, id, looked)
			return err
		}
	}
}

// TestTakeBatch checks that the caller's own change is in its batch even if many other
// changes came earlier, and that the others are taken in the order of their arrival.
func TestTakeBatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		own         int
		taken, left []int
	}{
		{"the oldest", 0, []int{0, 1, 2}, []int{3, 4}},
		{"one of the oldest", 2, []int{0, 1, 2}, []int{3, 4}},
		{"one of the newest", 4, []int{0, 1, 4}, []int{2, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q, numbers := commitQueue{}, map[*change]int{}
			for i := range 5 {
				c := &change{}
				numbers[c] = i
				q.push(c)
			}
			numbered := func(list []*change) (out []int) {
				for _, c := range list {
					out = append(out, numbers[c])
				}
				return out
			}
			own := q.waiting[tt.own]
			if diff := cmp.Diff(tt.taken, numbered(q.takeBatch(own, 3))); diff != "" {
				t.Errorf("taken:\n%s", diff)
			}
			if diff := cmp.Diff(tt.left, numbered(q.waiting)); diff != "" {
				t.Errorf("left:\n%s", diff)
			}
			if again := q.takeBatch(own, 3); again != nil {
				t.Errorf("a change is in a second batch: %v", again)
			}
		})
	}
}
