package checkpoint

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/secret"
)

const (
	maxChanges = 500
	// maxShown is the maximum length of a shown value in bytes; a longer value is shown as
	// truncated text.
	maxShown = 400
)

// Diff compares two checkpoints of the caller. Both must be readable.
func (s *Service) Diff(ctx context.Context, who guideway.Principal, from, to string) (*Difference, error) {
	if err := s.prepareRead(ctx, "compare checkpoints"); err != nil {
		return nil, err
	}
	out := &Difference{Changes: []ValueChange{}, Store: s.o.Store}
	var trees [2]map[string]any
	for i, id := range []string{from, to} {
		rec, err := s.ownRecord(ctx, who, id)
		if err != nil {
			return nil, err
		}
		raw, err := s.readContent(ctx, rec)
		if err != nil {
			return nil, err
		}
		if trees[i], err = decodeObject(raw); err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "read the checkpoint %s: %w", id, err)
		}
		if i == 0 {
			out.From = rec
		} else {
			out.To = rec
		}
	}
	out.compareValues("", trees[0], trees[1])
	return out, nil
}

// compareValues appends the differences of two values.
func (d *Difference) compareValues(path string, before, after any) {
	switch a := before.(type) {
	case map[string]any:
		if b, ok := after.(map[string]any); ok {
			d.compareObjects(path, a, b)
			return
		}
	case []any:
		if b, ok := after.([]any); ok {
			d.compareLists(path, a, b)
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		d.addChange(ValueChange{Path: path, Op: "changed", Before: truncateValue(before), After: truncateValue(after)})
	}
}

func (d *Difference) compareObjects(path string, a, b map[string]any) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, was := a[key]
		after, is := b[key]
		switch at := secret.Join(path, key); {
		case was && is:
			d.compareValues(at, before, after)
		case is:
			d.addChange(ValueChange{Path: at, Op: "added", After: truncateValue(after)})
		default:
			d.addChange(ValueChange{Path: at, Op: "removed", Before: truncateValue(before)})
		}
	}
}

// compareLists skips equal elements at both ends, so that an insertion at the front of a
// list is one change.
func (d *Difference) compareLists(path string, a, b []any) {
	front := 0
	for front < len(a) && front < len(b) && reflect.DeepEqual(a[front], b[front]) {
		front++
	}
	back := 0
	for back < len(a)-front && back < len(b)-front && reflect.DeepEqual(a[len(a)-1-back], b[len(b)-1-back]) {
		back++
	}
	a, b = a[front:len(a)-back], b[front:len(b)-back]
	for i := range max(len(a), len(b)) {
		switch at := secret.JoinIndex(path, front+i); {
		case i < len(a) && i < len(b):
			d.compareValues(at, a[i], b[i])
		case i < len(b):
			d.addChange(ValueChange{Path: at, Op: "added", After: truncateValue(b[i])})
		default:
			d.addChange(ValueChange{Path: at, Op: "removed", Before: truncateValue(a[i])})
		}
	}
}

func (d *Difference) addChange(c ValueChange) {
	if len(d.Changes) >= maxChanges {
		d.More = true
		return
	}
	d.Changes = append(d.Changes, c)
}

// truncateValue returns the JSON of a value, or its beginning as a string.
func truncateValue(value any) json.RawMessage {
	text, err := jsontext.Marshal(value)
	if err == nil && len(text) <= maxShown {
		return text
	}
	cut := string([]rune(string(text[:min(len(text), maxShown)]))) + "…"
	text, err = jsontext.Marshal(cut)
	if err != nil {
		return nil
	}
	return text
}
