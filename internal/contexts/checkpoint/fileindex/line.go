package fileindex

import (
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// keepGone is how long it is remembered that something was deleted.
const keepGone = 45 * 24 * time.Hour

// line is all that is known of one line. It is never changed once others may see
// it: a change makes another one.
type line struct {
	Key     checkpoint.LineKey `json:"line"`
	Last    int64              `json:"last"`
	Touched time.Time          `json:"touched"`
	Items   []item             `json:"items"`
	// Gone has the ids of what was deleted, and when.
	Gone map[string]time.Time `json:"gone,omitempty"`
}

// item is a record with what it is found by.
type item struct {
	checkpoint.Record
	Pos   int64  `json:"pos"`
	Words string `json:"words,omitempty"`
	// Hidden items are found by no words.
	Hidden bool `json:"hidden,omitempty"`
}

func conflict(format string, args ...any) error {
	return guideway.Errorf(guideway.CodeConflict, format, args...)
}

// apply gives the line after a change. pos is the place of what is added.
func (l *line) apply(c checkpoint.Change, pos int64) (*line, error) {
	next := &line{Key: c.Line, Last: l.Last, Touched: l.Touched, Items: slices.Clone(l.Items), Gone: map[string]time.Time{}}
	for id, at := range l.Gone {
		if c.At.IsZero() || c.At.Sub(at) < keepGone {
			next.Gone[id] = at
		}
	}
	if c.Add != nil {
		if err := next.add(c, pos); err != nil {
			return nil, err
		}
	}
	for _, swap := range c.Swaps {
		if err := next.swap(swap); err != nil {
			return nil, err
		}
	}
	for _, id := range c.Remove {
		if err := next.remove(id, c.At); err != nil {
			return nil, err
		}
	}
	for _, one := range next.Items {
		if slices.Contains(c.Remove, one.Base) {
			return nil, conflict("the checkpoint %s still needs %s", one.ID, one.Base)
		}
	}
	for _, mark := range c.Marks {
		if i := next.find(mark.ID); i >= 0 {
			next.Items[i].Problem = mark.Problem
		}
	}
	if c.Touch && c.At.After(next.Touched) {
		next.Touched = c.At
	}
	if len(next.Items) == 0 {
		next.Last = 0
	}
	return next, nil
}

func (l *line) find(id string) int {
	return slices.IndexFunc(l.Items, func(one item) bool { return one.ID == id })
}

func (l *line) add(c checkpoint.Change, pos int64) error {
	r := *c.Add
	if l.find(r.ID) >= 0 {
		return conflict("the checkpoint %s is there already", r.ID)
	}
	switch {
	case r.Kind == checkpoint.KindPiece:
		r.Number = 0
	case !c.Adopt && r.Number != l.Last+1:
		return conflict("the session %s is at checkpoint %d, not at %d", c.Line.Session, l.Last, r.Number-1)
	case slices.ContainsFunc(l.Items, func(one item) bool { return one.Number == r.Number }):
		return conflict("the session %s has a checkpoint %d already", c.Line.Session, r.Number)
	}
	if !c.Adopt && r.Parent != "" && l.find(r.Parent) < 0 {
		return conflict("the checkpoint %s is gone", r.Parent)
	}
	l.Last = max(l.Last, r.Number)
	r.Tags = slices.Clone(r.Tags)
	words := c.Words
	if c.NoWords {
		words = ""
	}
	l.Items = append(l.Items, item{Record: r, Pos: pos, Words: words, Hidden: c.NoWords})
	delete(l.Gone, r.ID)
	return nil
}

func (l *line) swap(s checkpoint.Swap) error {
	i := l.find(s.ID)
	if i < 0 || l.Items[i].Blob != s.Old {
		return conflict("the checkpoint %s was stored anew meanwhile", s.ID)
	}
	if s.New.Base != "" && l.find(s.New.Base) < 0 {
		return conflict("the checkpoint %s is gone", s.New.Base)
	}
	l.Items[i].Form = s.New
	return nil
}

func (l *line) remove(id string, at time.Time) error {
	i := l.find(id)
	if i < 0 {
		return conflict("the checkpoint %s is gone already", id)
	}
	parent := l.Items[i].Parent
	l.Items = slices.Delete(l.Items, i, i+1)
	for j := range l.Items {
		if l.Items[j].Parent == id {
			l.Items[j].Parent = parent
		}
	}
	l.Gone[id] = at
	return nil
}

// records gives the records of the line as others see them.
func (l *line) records() []item {
	followed := map[string]bool{}
	for _, one := range l.Items {
		followed[one.Parent] = true
	}
	list := slices.Clone(l.Items)
	for i := range list {
		list[i].Record.Pos = list[i].Pos
		list[i].Followed = followed[list[i].ID]
		list[i].Tags = slices.Clone(list[i].Tags)
	}
	return list
}

// summary adds the line up.
func (l *line) summary() checkpoint.Line {
	out := checkpoint.Line{LineKey: l.Key, Last: l.Last, Touched: l.Touched}
	var newest int64 = -1
	for _, one := range l.Items {
		out.Stored += one.Stored
		out.Bytes += one.Bytes
		if one.Kind != checkpoint.KindPiece {
			out.Count++
		}
		if one.Number > newest {
			newest = one.Number
			out.Run, out.Workflow, out.Project = one.Run, one.Workflow, one.Project
		}
	}
	return out
}

// matches says whether a filter chooses an item, by all but its words.
func (one item) matches(f checkpoint.Filter) bool {
	for _, field := range [][2]string{
		{f.User, one.User},
		{f.Session, one.Session},
		{f.Workflow, one.Workflow},
		{f.Project, one.Project},
		{f.Run, one.Run},
		{f.Parent, one.Parent},
		{f.Base, one.Base},
		{f.Key, one.Key},
	} {
		if field[0] != "" && field[0] != field[1] {
			return false
		}
	}
	switch {
	case !f.Since.IsZero() && one.Created.Before(f.Since), !f.Until.IsZero() && !one.Created.Before(f.Until),
		f.Heads && one.Followed,
		!f.All && f.Pieces != (one.Kind == checkpoint.KindPiece),
		f.Before != nil && !f.Any && !before(one, *f.Before):
		return false
	}
	for _, tag := range f.Tags {
		if !slices.Contains(one.Tags, tag) {
			return false
		}
	}
	return true
}

// before says whether an item stands behind a place in a list.
func before(one item, at checkpoint.Cursor) bool {
	return one.Pos < at.Pos || (one.Pos == at.Pos && one.ID < at.ID)
}

// text is what an item is found by.
func (one item) text() string {
	if one.Hidden {
		return ""
	}
	return strings.Join([]string{one.Name, strings.Join(one.Tags, "\n"), one.Workflow, one.Words}, "\n")
}
