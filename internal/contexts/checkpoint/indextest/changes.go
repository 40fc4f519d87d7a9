package indextest

import (
	"slices"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

func comesBack(t *testing.T, f *fixture) {
	x := f.index(t)
	r := newRecord(key(), 1)
	r.Branch, r.Problem, r.Base, r.Key = true, "", "", "key-abc"
	must(t, x.Apply(t.Context(), adding(r, "words")))
	other := f.index(t)
	for _, x := range []Index{x, other} {
		got, err := x.Checkpoint(t.Context(), r.ID)
		must(t, err)
		want(t, "the record", got, r)
		if got.Created.Location().String() != "UTC" {
			t.Errorf("the time is in %s", got.Created.Location())
		}
		list, err := x.Checkpoints(t.Context(), checkpoint.Filter{})
		must(t, err)
		want(t, "the list", list, []checkpoint.Record{r})
	}
	_, err := x.Checkpoint(t.Context(), "c_nothing")
	wantCode(t, err, guideway.CodeNotFound, "a checkpoint that is not there")
	// What one process changes, the other one sees.
	next := newRecord(key(), 2)
	must(t, other.Apply(t.Context(), adding(next, "")))
	history, err := x.History(t.Context(), key(), checkpoint.History{})
	must(t, err)
	r.Followed = true
	want(t, "the history", history, []checkpoint.Record{next, r})
	history, err = x.History(t.Context(), key(), checkpoint.History{Oldest: true, Limit: 1})
	must(t, err)
	want(t, "the oldest", history, []checkpoint.Record{r})
	history, err = x.History(t.Context(), key(), checkpoint.History{Below: 2})
	must(t, err)
	want(t, "those below the second", history, []checkpoint.Record{r})
}

func numberOnce(t *testing.T, f *fixture) {
	x := f.index(t)
	fill(t, x, key(), 2)
	for _, number := range []int64{1, 2, 4, 0} {
		r := newRecord(key(), number)
		r.ID, r.Parent = "c_another", ""
		wantCode(t, x.Apply(t.Context(), adding(r, "")), guideway.CodeConflict, "a number that is not the next one")
	}
	taken := newRecord(key(), 3)
	taken.ID = newRecord(key(), 1).ID
	wantCode(t, x.Apply(t.Context(), adding(taken, "")), guideway.CodeConflict, "an id that is taken")
	// In another line, too.
	elsewhere := newRecord(checkpoint.LineKey{User: "bob", Session: "work"}, 1)
	elsewhere.ID = taken.ID
	wantCode(t, x.Apply(t.Context(), adding(elsewhere, "")), guideway.CodeConflict, "an id that another user has")
	// Adopted ones come with their numbers.
	adopted := newRecord(key(), 7)
	adopted.Parent = "c_of_old"
	c := adding(adopted, "")
	c.Adopt = true
	must(t, x.Apply(t.Context(), c))
	adopted.ID = "c_again"
	wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, "an adopted number that is taken")
	must(t, x.Apply(t.Context(), adding(func() checkpoint.Record { r := newRecord(key(), 8); return r }(), "")))
	line, err := x.Line(t.Context(), key())
	must(t, err)
	want(t, "the last number", line.Last, int64(8))
}

// together has writers add to one line, each again where another one was faster.
func together(t *testing.T, f *fixture) {
	const writers, each = 4, 12
	var group sync.WaitGroup
	for range writers {
		x := f.index(t)
		group.Go(func() {
			for done := 0; done < each; {
				line, err := x.Line(t.Context(), key())
				if err != nil {
					t.Error(err)
					return
				}
				r := newRecord(key(), line.Last+1)
				switch err := x.Apply(t.Context(), adding(r, "")); guideway.ErrorCode(err) {
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
	list, err := f.index(t).History(t.Context(), key(), checkpoint.History{Oldest: true})
	must(t, err)
	if len(list) != writers*each {
		t.Fatalf("there are %d checkpoints, want %d", len(list), writers*each)
	}
	for i, r := range list {
		if r.Number != int64(i)+1 {
			t.Fatalf("checkpoint %d has the number %d", i+1, r.Number)
		}
	}
}

// state is all that a test can see of a line.
func state(t *testing.T, x Index) []any {
	t.Helper()
	list, err := x.Checkpoints(t.Context(), checkpoint.Filter{All: true})
	must(t, err)
	line, err := x.Line(t.Context(), key())
	must(t, err)
	notes, err := x.Notes(t.Context(), "", 100)
	must(t, err)
	return []any{list, line, notes}
}

func allOrNone(t *testing.T, f *fixture) {
	x := f.index(t)
	list := fill(t, x, key(), 3)
	before := state(t, x)
	next := newRecord(key(), 4)
	good := adding(next, "needle")
	good.Remove = []string{list[0].ID}
	for name, spoil := range map[string]func(c *checkpoint.Change){
		"a number": func(c *checkpoint.Change) { r := next; r.Number = 9; c.Add = &r },
		"a parent": func(c *checkpoint.Change) { r := next; r.Parent = "c_gone"; c.Add = &r },
		"an old form": func(c *checkpoint.Change) {
			c.Swaps = append(c.Swaps, checkpoint.Swap{ID: list[2].ID, Old: blobOf("other", ""), New: list[2].Form})
		},
		"a base": func(c *checkpoint.Change) {
			c.Swaps = append(c.Swaps, checkpoint.Swap{ID: list[2].ID, Old: list[2].Blob, New: checkpoint.Form{Blob: blobOf("new", ""), Base: "c_gone"}})
		},
		"a removal": func(c *checkpoint.Change) { c.Remove = append(c.Remove, "c_gone") },
		"a need": func(c *checkpoint.Change) {
			form := checkpoint.Form{Blob: blobOf("new", ""), Base: list[2].ID}
			c.Swaps = append(c.Swaps, checkpoint.Swap{ID: list[1].ID, Old: list[1].Blob, New: form})
			c.Remove = append(c.Remove, list[2].ID)
		},
	} {
		c := good
		c.Remove = slices.Clone(good.Remove)
		spoil(&c)
		wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, name)
		want(t, "after "+name, state(t, x), before)
	}
	wantList(t, x, checkpoint.Filter{Words: []string{"needle"}})
	must(t, x.Apply(t.Context(), good))
	wantList(t, x, checkpoint.Filter{}, next.ID, list[2].ID, list[1].ID)
}

func swaps(t *testing.T, f *fixture) {
	x := f.index(t)
	list := fill(t, x, key(), 2)
	form := checkpoint.Form{Blob: blobOf(list[0].ID, "delta"), Stored: 10, Base: list[1].ID, Key: "key-1"}
	c := checkpoint.Change{Line: key(), Swaps: []checkpoint.Swap{{ID: list[0].ID, Old: list[0].Blob, New: form}}}
	must(t, x.Apply(t.Context(), c))
	wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, "the same again")
	got, err := x.Checkpoint(t.Context(), list[0].ID)
	must(t, err)
	want(t, "the form", got.Form, form)
	wantList(t, x, checkpoint.Filter{Base: list[1].ID}, list[0].ID)
	wantList(t, x, checkpoint.Filter{Key: "key-1"}, list[0].ID)
	line, err := x.Line(t.Context(), key())
	must(t, err)
	want(t, "the bytes stored", line.Stored, int64(110))
	must(t, x.Apply(t.Context(), checkpoint.Change{Line: key(), Marks: []checkpoint.Mark{{ID: list[0].ID, Problem: "a flipped bit"}, {ID: "c_gone", Problem: "x"}}}))
	got, err = x.Checkpoint(t.Context(), list[0].ID)
	must(t, err)
	want(t, "the problem", got.Problem, "a flipped bit")
}

func chains(t *testing.T, f *fixture) {
	x := f.index(t)
	other := fill(t, x, checkpoint.LineKey{User: "ada", Session: "other"}, 2)
	list := fill(t, x, key(), 4)
	for i := range 3 {
		form := checkpoint.Form{Blob: blobOf(list[i].ID, "delta"), Stored: 10, Base: list[i+1].ID}
		must(t, x.Apply(t.Context(), checkpoint.Change{Line: key(), Swaps: []checkpoint.Swap{{ID: list[i].ID, Old: list[i].Blob, New: form}}}))
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
		must(t, err)
		want(t, "the chain of "+c.id, ids(chain), c.want)
	}
	chain, err := x.Chain(t.Context(), list[0].ID, 10)
	must(t, err)
	for _, got := range chain {
		alone, err := x.Checkpoint(t.Context(), got.ID)
		must(t, err)
		want(t, "a link", got, alone)
	}
}

func removes(t *testing.T, f *fixture) {
	x := f.index(t)
	list := fill(t, x, key(), 4)
	form := checkpoint.Form{Blob: blobOf(list[0].ID, "delta"), Stored: 10, Base: list[1].ID}
	must(t, x.Apply(t.Context(), checkpoint.Change{Line: key(), Swaps: []checkpoint.Swap{{ID: list[0].ID, Old: list[0].Blob, New: form}}}))
	c := checkpoint.Change{Line: key(), Remove: []string{list[1].ID}, At: at(9)}
	wantCode(t, x.Apply(t.Context(), c), guideway.CodeConflict, "a base that is needed")
	// Together with what makes it unneeded it goes.
	whole := checkpoint.Form{Blob: blobOf(list[0].ID, "again"), Stored: 90}
	c.Swaps = []checkpoint.Swap{{ID: list[0].ID, Old: form.Blob, New: whole}}
	c.Remove = []string{list[1].ID, list[2].ID}
	must(t, x.Apply(t.Context(), c))
	got, err := x.Checkpoint(t.Context(), list[3].ID)
	must(t, err)
	want(t, "the parent of the last one", got.Parent, list[0].ID)
	wantList(t, x, checkpoint.Filter{Heads: true}, list[3].ID)
	// A line ends with its last record and begins anew.
	must(t, x.Apply(t.Context(), checkpoint.Change{Line: key(), Remove: []string{list[0].ID, list[3].ID}, At: at(10)}))
	line, err := x.Line(t.Context(), key())
	must(t, err)
	want(t, "the line", line, checkpoint.Line{LineKey: key()})
	again := newRecord(key(), 1)
	again.ID = "c_new_beginning"
	must(t, x.Apply(t.Context(), adding(again, "")))
}

func remembers(t *testing.T, f *fixture) {
	x := f.index(t)
	list := fill(t, x, key(), 3)
	must(t, x.Apply(t.Context(), checkpoint.Change{Line: key(), Remove: []string{list[0].ID}, At: at(20)}))
	must(t, x.Apply(t.Context(), checkpoint.Change{Line: key(), Remove: []string{list[1].ID, list[2].ID}, At: at(30)}))
	gone, err := f.index(t).Deleted(t.Context(), []string{list[0].ID, list[2].ID, "c_never"})
	must(t, err)
	want(t, "what was deleted", gone, map[string]bool{list[0].ID: true, list[2].ID: true})
	none, err := x.Deleted(t.Context(), nil)
	must(t, err)
	want(t, "of nothing", none, map[string]bool{})
}

func pieces(t *testing.T, f *fixture) {
	x := f.index(t)
	list := fill(t, x, key(), 1)
	for _, id := range []string{"o_one", "o_two"} {
		piece := checkpoint.Record{
			ID: id, LineKey: key(), Kind: checkpoint.KindPiece, Created: at(5), Bytes: 50, Sum: []byte{1},
			Form: checkpoint.Form{Blob: blobOf(id, ""), Stored: 40},
		}
		c := adding(piece, "")
		c.NoWords = true
		must(t, x.Apply(t.Context(), c))
	}
	wantList(t, x, checkpoint.Filter{}, list[0].ID)
	wantList(t, x, checkpoint.Filter{Pieces: true}, "o_two", "o_one")
	wantList(t, x, checkpoint.Filter{All: true}, "o_two", "o_one", list[0].ID)
	line, err := x.Line(t.Context(), key())
	must(t, err)
	want(t, "the line", [2]int64{int64(line.Count), line.Stored}, [2]int64{1, 180})
	history, err := x.History(t.Context(), key(), checkpoint.History{})
	must(t, err)
	want(t, "the history", ids(history), []string{list[0].ID})
	must(t, x.Apply(t.Context(), adding(newRecord(key(), 2), "")))
}
