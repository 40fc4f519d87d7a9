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

// faultyDisk is a store whose commits fail by their number.
type faultyDisk struct {
	*Store
	mu sync.Mutex
	// commits counts them from 0, fails are those that find the disk full.
	commits int
	fails   map[int]bool
}

func openFaulty(t *testing.T) *faultyDisk {
	t.Helper()
	d := &faultyDisk{}
	d.Store = openAt(t, Options{Path: filepath.Join(t.TempDir(), testFile), commit: d.commit})
	return d
}

// commit stands in the place of a transaction's own.
func (d *faultyDisk) commit(tx *sql.Tx) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commits++
	if d.fails[d.commits-1] {
		return errors.Join(syscall.ENOSPC, tx.Rollback())
	}
	return tx.Commit()
}

// expect begins to count anew.
func (d *faultyDisk) expect(fails map[int]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commits, d.fails = 0, fails
}

func (d *faultyDisk) made() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commits
}

func (d *faultyDisk) waiting() int {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return len(d.queue.waiting)
}

// wanted is a commit that somebody makes, with what came of it.
type wanted struct {
	run.Commit
	// gone says that the caller gives up before there is a transaction.
	gone bool
	err  error
}

// atOnce has callers wait in this order behind somebody who has the lock, lets those
// that are gone give up, and then all others go on.
func (d *faultyDisk) atOnce(t rapid.TB, list []*wanted) {
	t.Helper()
	release, err := d.lock.acquire(context.Background())
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
		group.Go(func() { w.err = put(ctx, d, w.Commit) })
		for d.waiting() < i+1 {
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

// journalModel is what the store should hold.
type journalModel struct {
	runs map[string][]run.Commit
	feed []string
}

func (m journalModel) clone() journalModel {
	next := journalModel{runs: map[string][]run.Commit{}, feed: slices.Clone(m.feed)}
	for id, commits := range m.runs {
		next.runs[id] = slices.Clone(commits)
	}
	return next
}

// add is a commit by the journal's contract.
func (m journalModel) add(c run.Commit) (journalModel, guideway.Code) {
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
			// A first commit has the key of a request, which is the user's.
			sameKeys := old.Record.ID == id && old.Expected > 0 && c.Expected > 0 || old.Expected+c.Expected == 0
			if old.Handle == c.Handle || sameKeys && old.Key == c.Key {
				return m, guideway.CodeConflict
			}
		}
	}
	next := m.clone()
	next.runs[id] = append(next.runs[id], c)
	next.feed = append(next.feed, fmt.Sprint(id, " ", c.Record.Seq))
	return next, ""
}

// outcomes says what comes of commits that wait together where some transactions
// fail: first of one for all, then of one for each.
func (m journalModel) outcomes(list []*wanted, fails map[int]bool) (after journalModel, codes []guideway.Code) {
	made := 0
	fail := func() bool { made++; return fails[made-1] }
	codes = make([]guideway.Code, len(list))
	if len(list) > 1 {
		after = m
		for i, w := range list {
			after, codes[i] = after.add(w.Commit)
		}
		if !fail() {
			return after, codes
		}
	}
	after = m
	for i, w := range list {
		next, code := after.add(w.Commit)
		if code == "" && fail() {
			next, code = after, guideway.CodeUnavailable
		}
		after, codes[i] = next, code
	}
	return after, codes
}

// holds compares the store with the model.
func (m journalModel) holds(ctx context.Context, t rapid.TB, s *Store, start int64) {
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

// drawWanted draws a commit that fits, or one that is to be refused: behind the
// wrong event, with the key of an earlier one, or, when most of it is written
// already, with a handle that is known.
func drawWanted(t *rapid.T, m journalModel, walk, number int) *wanted {
	id := fmt.Sprintf("r_%d_%d", walk, rapid.IntRange(0, 2).Draw(t, "run"))
	at := int64(rapid.IntRange(0, 5).Draw(t, "behind")) - 1
	if at < 0 { // most are to fit, as far as the round has come
		at = int64(len(m.runs[id]))
	}
	c := aCommit(id, at+1, fmt.Sprint("commit ", number))
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
	return &wanted{Commit: c, gone: rapid.IntRange(0, 7).Draw(t, "gone") == 0}
}

// TestShared has callers wait for one transaction: those that fit, those that are to
// be refused, those that repeat what was done, those that give up; and a disk that
// is full now and then. Each is told what is so, and the journal holds what was
// acknowledged and nothing else.
func TestShared(t *testing.T) {
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
			var list, stay []*wanted
			hoped := m
			for range rapid.IntRange(1, 8).Draw(rt, "callers") {
				number++
				w := drawWanted(rt, hoped, walk, number)
				if list = append(list, w); !w.gone {
					stay = append(stay, w)
					hoped, _ = hoped.add(w.Commit)
				}
			}
			fails := map[int]bool{}
			for _, n := range rapid.SliceOfN(rapid.IntRange(0, 3), 0, 2).Draw(rt, "fails") {
				fails[n] = true
			}
			d.expect(fails)
			d.atOnce(rt, list)
			var codes []guideway.Code
			m, codes = m.outcomes(stay, fails)
			for i, w := range stay {
				if got := guideway.ErrorCode(w.err); got != codes[i] {
					rt.Fatalf("caller %d of %d: %q, the model says %q: %v", i, len(stay), got, codes[i], w.err)
				}
			}
			for _, w := range list {
				if w.gone && !errors.Is(w.err, context.Canceled) {
					rt.Fatalf("who gave up was told %v", w.err)
				}
			}
			m.holds(rt.Context(), rt, d.Store, start)
		}
	})
}

// TestOneTransaction: what waits is one transaction, up to a bound, and who comes
// alone has one at once.
func TestOneTransaction(t *testing.T) {
	t.Parallel()
	for callers, transactions := range map[int]int{1: 1, 2: 1, maxTogether: 1, maxTogether + 1: 2, 3*maxTogether - 1: 3} {
		d := openFaulty(t)
		var list []*wanted
		for i := range callers {
			list = append(list, &wanted{Commit: aCommit(fmt.Sprint("r_", i), 1, "first")})
		}
		d.expect(nil)
		d.atOnce(t, list)
		if d.made() != transactions {
			t.Errorf("%d callers made %d transactions, not %d", callers, d.made(), transactions)
		}
		for _, w := range list {
			if w.err != nil {
				t.Error(w.err)
			}
		}
	}
}

// TestTooLateToGiveUp: who gives up while the transaction is under way is told what
// came of it.
func TestTooLateToGiveUp(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		var d *Store
		ctx, giveUp := context.WithCancel(t.Context())
		d = openAt(t, Options{Path: filepath.Join(t.TempDir(), testFile), commit: func(tx *sql.Tx) error {
			giveUp()
			if full {
				return errors.Join(syscall.ENOSPC, tx.Rollback())
			}
			return tx.Commit()
		}})
		err := put(ctx, d, aCommit("r_a", 1, "first"))
		_, found := d.Run(t.Context(), "r_a")
		if full && (guideway.ErrorCode(err) != guideway.CodeUnavailable || errors.Is(err, context.Canceled) || found == nil) {
			t.Errorf("on a full disk: %v, %v", err, found)
		}
		if !full && (err != nil || found != nil) {
			t.Errorf("it was carried out: %v, %v", err, found)
		}
	}
}

// TestBrokenOff: where a transaction ends in a panic nobody waits for ever, and the
// store goes on.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	broken := false
	d := &faultyDisk{}
	d.Store = openAt(t, Options{Path: filepath.Join(t.TempDir(), testFile), commit: func(tx *sql.Tx) error {
		if !broken {
			broken = true
			panic("a bug")
		}
		return tx.Commit()
	}})
	release, err := d.lock.acquire(t.Context())
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
			outcome = fmt.Sprint(errors.Is(put(t.Context(), d, aCommit(fmt.Sprint("r_", i), 1, "first")), errBroken))
		})
		for d.waiting() < i+1 {
			runtime.Gosched()
		}
	}
	release()
	all.Wait()
	if diff := cmp.Diff(map[string]int{"panic": 1, "true": callers - 1}, told); diff != "" {
		t.Error(diff)
	}
	if err := put(t.Context(), d, aCommit("r_0", 1, "first")); err != nil {
		t.Error(err)
	}
}

// TestFreeForAll has writers without any order, some of which give up at any moment,
// on a disk that is full now and then: what each was told is what is there.
func TestFreeForAll(t *testing.T) {
	t.Parallel()
	const writers, runs, share = 8, 3, 15
	d := openFaulty(t)
	d.expect(map[int]bool{5: true, 6: true, 20: true, 33: true, 34: true, 35: true, 60: true})
	var mu sync.Mutex
	acknowledged, refused := map[string]bool{}, map[string]bool{}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range share {
				id, text := fmt.Sprint("r_", (w+n)%runs), fmt.Sprintf("writer %d, %d", w, n)
				err := d.giveUpNowAndThen(t, id, text, w+n)
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
		t.Errorf("what was acknowledged is not what is there (-acknowledged +there):\n%s", diff)
	}
	if len(acknowledged) == 0 || len(refused) == 0 {
		t.Errorf("%d were acknowledged, %d refused: the test shows nothing", len(acknowledged), len(refused))
	}
}

// giveUpNowAndThen appends to a run where it stands, until it is not another one
// that was faster. Every third caller gives up meanwhile.
func (d *faultyDisk) giveUpNowAndThen(t *testing.T, id, text string, number int) error {
	for {
		seq := int64(0)
		if r, err := d.Run(t.Context(), id); err == nil {
			seq = r.Seq
		}
		c := aCommit(id, seq+1, text)
		c.Key, c.Handle = text, "h "+text
		ctx, giveUp := context.WithCancel(t.Context())
		if number%3 == 0 {
			go giveUp()
		}
		err := put(ctx, d, c)
		giveUp()
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			return err
		}
		if r, looked := d.Run(t.Context(), id); looked != nil || r.Seq == seq {
			t.Errorf("a conflict at %d of %s, and nothing is there: %v", seq, id, looked)
			return err
		}
	}
}

// TestTake: who leads is in its own transaction, however many came before, and the
// others are taken in the order in which they came.
func TestTake(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		own         int
		taken, left []int
	}{
		{"the oldest", 0, []int{0, 1, 2}, []int{3, 4}},
		{"one of the oldest", 2, []int{0, 1, 2}, []int{3, 4}},
		{"a young one", 4, []int{0, 1, 4}, []int{2, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q, numbers := queue{}, map[*change]int{}
			for i := range 5 {
				c := &change{}
				numbers[c] = i
				q.add(c)
			}
			numbered := func(list []*change) (out []int) {
				for _, c := range list {
					out = append(out, numbers[c])
				}
				return out
			}
			own := q.waiting[tt.own]
			if diff := cmp.Diff(tt.taken, numbered(q.take(own, 3))); diff != "" {
				t.Errorf("taken:\n%s", diff)
			}
			if diff := cmp.Diff(tt.left, numbered(q.waiting)); diff != "" {
				t.Errorf("left:\n%s", diff)
			}
			if again := q.take(own, 3); again != nil {
				t.Errorf("taken twice: %v", again)
			}
		})
	}
}
