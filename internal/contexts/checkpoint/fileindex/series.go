package fileindex

import (
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// keepDeleted is the time for which deleted ids are stored.
const keepDeleted = 45 * 24 * time.Hour

// seriesData is the data of one series. It is immutable once published: a change creates a
// new seriesData.
type seriesData struct {
	Key     checkpoint.SeriesKey `json:"series"`
	Last    int64                `json:"last"`
	Touched time.Time            `json:"touched"`
	Items   []item               `json:"items"`
	// Gone maps deleted ids to the time of deletion.
	Gone map[string]time.Time `json:"gone,omitempty"`
}

// item is a record with its search words.
type item struct {
	checkpoint.Record
	Pos   int64  `json:"pos"`
	Words string `json:"words,omitempty"`
	// Hidden items are excluded from word searches.
	Hidden bool `json:"hidden,omitempty"`
}

func newConflict(format string, args ...any) error {
	return guideway.Errorf(guideway.CodeConflict, format, args...)
}

// applyChange returns a copy of the series with a change applied. pos is the position of
// the added record.
func (l *seriesData) applyChange(c checkpoint.Change, pos int64) (*seriesData, error) {
	next := &seriesData{Key: c.Series, Last: l.Last, Touched: l.Touched, Items: slices.Clone(l.Items), Gone: map[string]time.Time{}}
	for id, at := range l.Gone {
		if c.At.IsZero() || c.At.Sub(at) < keepDeleted {
			next.Gone[id] = at
		}
	}
	if c.Add != nil {
		if err := next.addRecord(c, pos); err != nil {
			return nil, err
		}
	}
	for _, swap := range c.Swaps {
		if err := next.swapForm(swap); err != nil {
			return nil, err
		}
	}
	for _, id := range c.Remove {
		if err := next.removeRecord(id, c.At); err != nil {
			return nil, err
		}
	}
	for _, one := range next.Items {
		if slices.Contains(c.Remove, one.Base) {
			return nil, newConflict("the checkpoint %s still needs %s", one.ID, one.Base)
		}
	}
	for _, mark := range c.Marks {
		if i := next.findRecord(mark.ID); i >= 0 {
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

func (l *seriesData) findRecord(id string) int {
	return slices.IndexFunc(l.Items, func(one item) bool { return one.ID == id })
}

func (l *seriesData) addRecord(c checkpoint.Change, pos int64) error {
	r := *c.Add
	if l.findRecord(r.ID) >= 0 {
		return newConflict("the checkpoint %s already exists", r.ID)
	}
	switch {
	case r.Kind == checkpoint.KindFragment:
		r.Number = 0
	case !c.Adopt && r.Number != l.Last+1:
		return newConflict("the session %s is at checkpoint %d, not %d", c.Series.Session, l.Last, r.Number-1)
	case slices.ContainsFunc(l.Items, func(one item) bool { return one.Number == r.Number }):
		return newConflict("the session %s already has a checkpoint %d", c.Series.Session, r.Number)
	}
	if !c.Adopt && r.Parent != "" && l.findRecord(r.Parent) < 0 {
		return newConflict("the checkpoint %s no longer exists", r.Parent)
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

func (l *seriesData) swapForm(s checkpoint.Swap) error {
	i := l.findRecord(s.ID)
	if i < 0 || l.Items[i].Blob != s.Old {
		return newConflict("the checkpoint %s was deleted or stored again by another process", s.ID)
	}
	if s.New.Base != "" && l.findRecord(s.New.Base) < 0 {
		return newConflict("the checkpoint %s no longer exists", s.New.Base)
	}
	l.Items[i].Form = s.New
	return nil
}

func (l *seriesData) removeRecord(id string, at time.Time) error {
	i := l.findRecord(id)
	if i < 0 {
		return newConflict("the checkpoint %s is already deleted", id)
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

// currentRecords returns the records of the series with their derived fields.
func (l *seriesData) currentRecords() []item {
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

// seriesTotals returns the totals of the series.
func (l *seriesData) seriesTotals() checkpoint.Series {
	out := checkpoint.Series{SeriesKey: l.Key, Last: l.Last, Touched: l.Touched}
	var newest int64 = -1
	for _, one := range l.Items {
		out.Stored += one.Stored
		out.Bytes += one.Bytes
		if one.Kind != checkpoint.KindFragment {
			out.Count++
		}
		if one.Number > newest {
			newest = one.Number
			out.Run, out.Workflow, out.Project = one.Run, one.Workflow, one.Project
		}
	}
	return out
}

// matchesFilter reports whether a filter, except its words, selects an item.
func (one item) matchesFilter(f checkpoint.Filter) bool {
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
		!f.All && f.Fragments != (one.Kind == checkpoint.KindFragment),
		f.Before != nil && !f.Any && !isAfter(one, *f.Before):
		return false
	}
	for _, tag := range f.Tags {
		if !slices.Contains(one.Tags, tag) {
			return false
		}
	}
	return true
}

// isAfter reports whether an item comes after a position in a list.
func isAfter(one item, at checkpoint.Cursor) bool {
	return one.Pos < at.Pos || (one.Pos == at.Pos && one.ID < at.ID)
}

// searchText returns the searchable text of an item.
func (one item) searchText() string {
	if one.Hidden {
		return ""
	}
	return strings.Join([]string{one.Name, strings.Join(one.Tags, "\n"), one.Workflow, one.Words}, "\n")
}
