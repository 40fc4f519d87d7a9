package indextest

import (
	"slices"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

func comesBack(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	r := newRecord(testSeries(), 1)
	r.Branch, r.Problem, r.Base, r.Key = true, "", "", "key-abc"
	mustSucceed(t, x.Apply(t.Context(), addChange(r, "words")))
	other := f.openIndex(t)
	for _, x := range []Index{x, other} {
		got, err := x.Checkpoint(t.Context(), r.ID)
		mustSucceed(t, err)
		wantEqual(t, "the record", got, r)
		if got.Created.Location().String() != "UTC" {
			t.Errorf("the time is in %s", got.Created.Location())
		}
		list, err := x.Checkpoints(t.Context(), checkpoint.Filter{})
		mustSucceed(t, err)
		wantEqual(t, "the list", list, []checkpoint.Record{r})
	}
	_, err := x.Checkpoint(t.Context(), "c_nothing")
	wantCode(t, err, guideway.CodeNotFound, "a missing checkpoint")
	// A change by one process is visible to the other.
	next := newRecord(testSeries(), 2)
	mustSucceed(t, other.Apply(t.Context(), addChange(next, "")))
	history, err := x.History(t.Context(), testSeries(), checkpoint.History{})
	mustSucceed(t, err)
	r.Followed = true
	wantEqual(t, "the history", history, []checkpoint.Record{next, r})
	history, err = x.History(t.Context(), testSeries(), checkpoint.History{Oldest: true, Limit: 1})
	mustSucceed(t, err)
	wantEqual(t, "the oldest", history, []checkpoint.Record{r})
	history, err = x.History(t.Context(), testSeries(), checkpoint.History{Below: 2})
	mustSucceed(t, err)
	wantEqual(t, "the checkpoints below the second", history, []checkpoint.Record{r})
}

func numberOnce(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	addRecords(t, x, testSeries(), 2)
	for _, number := range []int64{1, 2, 4, 0} {
		r := newRecord(testSeries(), number)
		r.ID, r.Parent = "c_another", ""
		wantCode(t, x.Apply(t.Context(), addChange(r, "")), guideway.CodeConflict, "a number that is not the next one")
	}
	taken := newRecord(testSeries(), 3)
	taken.ID = newRecord(testSeries(), 1).ID
	wantCode(t, x.Apply(t.Context(), addChange(taken, "")), guideway.CodeConflict, "an id that is already used")
	// An id must be unique among all series and users.
	elsewhere := newRecord(checkpoint.SeriesKey{User: "bob", Session: "work"}, 1)
	elsewhere.ID = taken.ID
	wantCode(t, x.Apply(t.Context(), addChange(elsewhere, "")), guideway.CodeConflict, "an id that another user has")
	// Adopted records keep their numbers.
	adopted := newRecord(testSeries(), 7)
	adopted.Parent = "c_of_old"
	c := addChange(adopted, "")
	c.Adopt = true
	mustSucceed(t, x.Apply(t.Context(), c))
	adopted.ID = "c_again"
	wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, "an adopted number that is already used")
	mustSucceed(t, x.Apply(t.Context(), addChange(func() checkpoint.Record { r := newRecord(testSeries(), 8); return r }(), "")))
	series, err := x.Series(t.Context(), testSeries())
	mustSucceed(t, err)
	wantEqual(t, "the last number", series.Last, int64(8))
}

// testConcurrentAdds checks that concurrent writers can add to one series by retrying conflicts.
func testConcurrentAdds(t *testing.T, f *fixture) {
	const writers, each = 4, 12
	var group sync.WaitGroup
	for range writers {
		x := f.openIndex(t)
		group.Go(func() {
			for done := 0; done < each; {
				series, err := x.Series(t.Context(), testSeries())
				if err != nil {
					t.Error(err)
					return
				}
				r := newRecord(testSeries(), series.Last+1)
				switch err := x.Apply(t.Context(), addChange(r, "")); guideway.ErrorCode(err) {
				case "":
					done++
				case guideway.CodeConflict:
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	list, err := f.openIndex(t).History(t.Context(), testSeries(), checkpoint.History{Oldest: true})
	mustSucceed(t, err)
	if len(list) != writers*each {
		t.Fatalf("there are %d checkpoints, want %d", len(list), writers*each)
	}
	for i, r := range list {
		if r.Number != int64(i)+1 {
			t.Fatalf("checkpoint %d has the number %d", i+1, r.Number)
		}
	}
}

// seriesState returns all records, the totals of the test series, and the audit log.
func seriesState(t *testing.T, x Index) []any {
	t.Helper()
	list, err := x.Checkpoints(t.Context(), checkpoint.Filter{All: true})
	mustSucceed(t, err)
	series, err := x.Series(t.Context(), testSeries())
	mustSucceed(t, err)
	notes, err := x.Notes(t.Context(), "", 100)
	mustSucceed(t, err)
	return []any{list, series, notes}
}

func allOrNone(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	list := addRecords(t, x, testSeries(), 3)
	before := seriesState(t, x)
	next := newRecord(testSeries(), 4)
	good := addChange(next, "needle")
	good.Remove = removals(list[0])
	for name, spoil := range map[string]func(c *checkpoint.Change){
		"a number": func(c *checkpoint.Change) { r := next; r.Number = 9; c.Add = &r },
		"a parent": func(c *checkpoint.Change) { r := next; r.Parent = "c_gone"; c.Add = &r },
		"an old form": func(c *checkpoint.Change) {
			c.Swaps = append(c.Swaps, checkpoint.Swap{ID: list[2].ID, Old: blobOf("other", ""), New: list[2].Form})
		},
		"a base": func(c *checkpoint.Change) {
			c.Swaps = append(c.Swaps, checkpoint.Swap{ID: list[2].ID, Old: list[2].Blob, New: checkpoint.Form{Blob: blobOf("new", ""), Base: "c_gone"}})
		},
		"a removal": func(c *checkpoint.Change) {
			c.Remove = append(c.Remove, checkpoint.Removal{ID: "c_gone", Blob: list[2].Blob})
		},
		"an old form to remove": func(c *checkpoint.Change) {
			c.Remove = append(c.Remove, checkpoint.Removal{ID: list[1].ID, Blob: blobOf("other", "")})
		},
		"a need": func(c *checkpoint.Change) {
			form := checkpoint.Form{Blob: blobOf("new", ""), Base: list[2].ID}
			c.Swaps = append(c.Swaps, checkpoint.Swap{ID: list[1].ID, Old: list[1].Blob, New: form})
			c.Remove = append(c.Remove, removals(list[2])...)
		},
	} {
		c := good
		c.Remove = slices.Clone(good.Remove)
		spoil(&c)
		wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, name)
		wantEqual(t, "after "+name, seriesState(t, x), before)
	}
	wantList(t, x, checkpoint.Filter{Query: words.Parse("needle")})
	mustSucceed(t, x.Apply(t.Context(), good))
	wantList(t, x, checkpoint.Filter{}, next.ID, list[2].ID, list[1].ID)
}

func testSwaps(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	list := addRecords(t, x, testSeries(), 2)
	form := checkpoint.Form{Blob: blobOf(list[0].ID, "delta"), Stored: 10, Base: list[1].ID, Key: "key-1"}
	c := checkpoint.Change{Series: testSeries(), Swaps: []checkpoint.Swap{{ID: list[0].ID, Old: list[0].Blob, New: form}}}
	mustSucceed(t, x.Apply(t.Context(), c))
	wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, "the same change again")
	got, err := x.Checkpoint(t.Context(), list[0].ID)
	mustSucceed(t, err)
	wantEqual(t, "the form", got.Form, form)
	wantList(t, x, checkpoint.Filter{Base: list[1].ID}, list[0].ID)
	wantList(t, x, checkpoint.Filter{Key: "key-1"}, list[0].ID)
	series, err := x.Series(t.Context(), testSeries())
	mustSucceed(t, err)
	wantEqual(t, "the bytes stored", series.Stored, int64(110))
	mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: testSeries(), Marks: []checkpoint.Mark{{ID: list[0].ID, Problem: "a flipped bit"}, {ID: "c_gone", Problem: "x"}}}))
	got, err = x.Checkpoint(t.Context(), list[0].ID)
	mustSucceed(t, err)
	wantEqual(t, "the problem", got.Problem, "a flipped bit")
}

func testChains(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	other := addRecords(t, x, checkpoint.SeriesKey{User: "ada", Session: "other"}, 2)
	list := addRecords(t, x, testSeries(), 4)
	for i := range 3 {
		form := checkpoint.Form{Blob: blobOf(list[i].ID, "delta"), Stored: 10, Base: list[i+1].ID}
		mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: testSeries(), Swaps: []checkpoint.Swap{{ID: list[i].ID, Old: list[i].Blob, New: form}}}))
	}
	for _, c := range []struct {
		id   string
		most int
		want []string
	}{
		{list[0].ID, 10, []string{list[0].ID, list[1].ID, list[2].ID, list[3].ID}},
		{list[1].ID, 2, []string{list[1].ID, list[2].ID}},
		{list[3].ID, 10, []string{list[3].ID}},
		{other[0].ID, 10, []string{other[0].ID}},
		{"c_gone", 10, nil},
		{"", 10, nil},
	} {
		chain, err := x.Chain(t.Context(), c.id, c.most)
		mustSucceed(t, err)
		wantEqual(t, "the chain of "+c.id, recordIDs(chain), c.want)
	}
	chain, err := x.Chain(t.Context(), list[0].ID, 10)
	mustSucceed(t, err)
	for _, got := range chain {
		alone, err := x.Checkpoint(t.Context(), got.ID)
		mustSucceed(t, err)
		wantEqual(t, "a link", got, alone)
	}
}

// removals returns the removals of records.
func removals(list ...checkpoint.Record) (out []checkpoint.Removal) {
	for _, r := range list {
		out = append(out, checkpoint.Removal{ID: r.ID, Blob: r.Blob})
	}
	return out
}

func testRemoves(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	list := addRecords(t, x, testSeries(), 4)
	form := checkpoint.Form{Blob: blobOf(list[0].ID, "delta"), Stored: 10, Base: list[1].ID}
	mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: testSeries(), Swaps: []checkpoint.Swap{{ID: list[0].ID, Old: list[0].Blob, New: form}}}))
	c := checkpoint.Change{Series: testSeries(), Remove: removals(list[1]), At: minuteTime(9)}
	wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, "a base that is needed")
	// A base can be removed together with the swap of its dependent.
	whole := checkpoint.Form{Blob: blobOf(list[0].ID, "again"), Stored: 90}
	c.Swaps = []checkpoint.Swap{{ID: list[0].ID, Old: form.Blob, New: whole}}
	c.Remove = removals(list[1], list[2])
	mustSucceed(t, x.Apply(t.Context(), c))
	got, err := x.Checkpoint(t.Context(), list[3].ID)
	mustSucceed(t, err)
	wantEqual(t, "the parent of the last checkpoint", got.Parent, list[0].ID)
	wantList(t, x, checkpoint.Filter{Heads: true}, list[3].ID)
	// A series ends with its last record and can begin again.
	mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: testSeries(), Remove: []checkpoint.Removal{{ID: list[0].ID, Blob: whole.Blob}, {ID: list[3].ID, Blob: list[3].Blob}}, At: minuteTime(10)}))
	series, err := x.Series(t.Context(), testSeries())
	mustSucceed(t, err)
	wantEqual(t, "the series", series, checkpoint.Series{SeriesKey: testSeries()})
	again := newRecord(testSeries(), 1)
	again.ID = "c_new_beginning"
	mustSucceed(t, x.Apply(t.Context(), addChange(again, "")))
}

func testDeletedIDs(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	list := addRecords(t, x, testSeries(), 3)
	mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: testSeries(), Remove: removals(list[0]), At: minuteTime(20)}))
	mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: testSeries(), Remove: removals(list[1], list[2]), At: minuteTime(30)}))
	gone, err := f.openIndex(t).Deleted(t.Context(), []string{list[0].ID, list[2].ID, "c_never"})
	mustSucceed(t, err)
	wantEqual(t, "deleted checkpoints", gone, map[string]bool{list[0].ID: true, list[2].ID: true})
	none, err := x.Deleted(t.Context(), nil)
	mustSucceed(t, err)
	wantEqual(t, "of nothing", none, map[string]bool{})
}

func testFragments(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	list := addRecords(t, x, testSeries(), 1)
	for _, id := range []string{"o_one", "o_two"} {
		fragment := checkpoint.Record{
			ID: id, SeriesKey: testSeries(), Kind: checkpoint.KindFragment, Created: minuteTime(5), Bytes: 50, Sum: []byte{1},
			Form: checkpoint.Form{Blob: blobOf(id, ""), Stored: 40},
		}
		c := addChange(fragment, "")
		c.Terms = nil
		mustSucceed(t, x.Apply(t.Context(), c))
	}
	wantList(t, x, checkpoint.Filter{}, list[0].ID)
	wantList(t, x, checkpoint.Filter{Fragments: true}, "o_two", "o_one")
	wantList(t, x, checkpoint.Filter{All: true}, "o_two", "o_one", list[0].ID)
	series, err := x.Series(t.Context(), testSeries())
	mustSucceed(t, err)
	wantEqual(t, "the series", [2]int64{int64(series.Count), series.Stored}, [2]int64{1, 180})
	history, err := x.History(t.Context(), testSeries(), checkpoint.History{})
	mustSucceed(t, err)
	wantEqual(t, "the history", recordIDs(history), []string{list[0].ID})
	mustSucceed(t, x.Apply(t.Context(), addChange(newRecord(testSeries(), 2), "")))
}
