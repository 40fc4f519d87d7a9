package sqlite

import (
	"fmt"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestWordsOfABatch checks that the changes of one transaction create one entry in the word
// index, even if their runs are not in order, and that the words of a refused change are
// not found.
func TestWordsOfABatch(t *testing.T) {
	t.Parallel()
	d := openFaulty(t)
	var list []*submission
	for i := range 6 {
		w := &submission{Commit: newTestCommit(fmt.Sprint("r_", i), 1, "first")}
		w.Handle = fmt.Sprint("h_", i)
		list = append(list, w)
	}
	d.runTogether(t, list)
	segments := func() (n int) {
		t.Helper()
		if err := d.readers.db.QueryRowContext(t.Context(), `SELECT count(DISTINCT segid) FROM words_idx`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := segments()
	list = nil
	for i := 5; i >= 0; i-- {
		c := newTestCommit(fmt.Sprint("r_", i), 2, "second")
		c.Handle = fmt.Sprint("h_second_", i)
		c.Terms = words.Of(fmt.Sprintf("the zebra of number%d", i))
		if i == 3 {
			c.Handle = "h_2" // already used by another run
		}
		list = append(list, &submission{Commit: c})
	}
	d.resetCommits(nil)
	d.runTogether(t, list)
	if made := d.commitCount(); made != 1 {
		t.Errorf("there were %d transactions", made)
	}
	if more := segments() - before; more != 1 {
		t.Errorf("five changes created %d index entries", more)
	}
	for i := range 6 {
		err, code := list[5-i].err, guideway.Code("")
		if i == 3 {
			code = guideway.CodeConflict
		}
		if guideway.ErrorCode(err) != code {
			t.Errorf("run %d: %v", i, err)
		}
		hits, err := d.Search(t.Context(), run.Search{Query: words.Parse(fmt.Sprint("number", i))})
		if err != nil {
			t.Fatal(err)
		}
		if found := len(hits) == 1; found == (i == 3) {
			t.Errorf("the words of run %d match %d runs", i, len(hits))
		}
	}
}

// TestCommonWordOfAnOldRun checks that a run with all words of a query ranks first, even if
// one of the words is in so many runs that this run is not among those listed for the word.
func TestCommonWordOfAnOldRun(t *testing.T) {
	t.Parallel()
	s := openStoreWith(t, Options{})
	const runs = maxEffort
	for i := range runs {
		c := newTestCommit(fmt.Sprintf("r_%05d", i), 1, "")
		c.Terms, c.Snapshot = words.Of("common"), nil
		switch i {
		case 0:
			c.Terms = words.Of("common rare")
		case 1:
			c.Terms = words.Of("rare")
		}
		if err := putCommit(t.Context(), s, c); err != nil {
			t.Fatal(err)
		}
	}
	hits, err := s.Search(t.Context(), run.Search{Filter: run.Filter{User: "ada", Limit: 2}, Query: words.Parse("common rare")})
	if err != nil || len(hits) != 2 || hits[0].Record.ID != "r_00000" || hits[1].Record.ID != "r_00001" {
		t.Errorf("the hits are %+v, %v", hits, err)
	}
}
