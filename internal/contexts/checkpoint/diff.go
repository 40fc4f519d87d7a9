package checkpoint

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/secret"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

const (
	maxChanges = 500
	// maxShown is how long a value is shown; a longer one is shown as a text
	// that is cut.
	maxShown = 400
)

// Diff says what changed from one checkpoint of the caller's to another. Both must
// be readable.
func (s *Service) Diff(ctx context.Context, who guideway.Principal, from, to string) (*Difference, error) {
	if err := s.unlocked("compare checkpoints"); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	out := &Difference{Changes: []ValueChange{}, Store: s.o.Store}
	var trees [2]map[string]any
	for i, id := range []string{from, to} {
		rec, err := s.own(ctx, who, id)
		if err != nil {
			return nil, err
		}
		raw, err := s.content(ctx, rec)
		if err != nil {
			return nil, err
		}
		if trees[i], err = decode(raw); err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "read the checkpoint %s: %w", id, err)
		}
		if i == 0 {
			out.From = rec
		} else {
			out.To = rec
		}
	}
	out.compare("", trees[0], trees[1])
	return out, nil
}

// compare adds what differs between two values.
func (d *Difference) compare(path string, before, after any) {
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
		d.add(ValueChange{Path: path, Op: "changed", Before: shown(before), After: shown(after)})
	}
}

func (d *Difference) compareObjects(path string, a, b map[string]any) {
	keys := slices.Sorted(maps.Keys(a))
	for key := range b {
		if _, there := a[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		before, was := a[key]
		after, is := b[key]
		switch at := secret.Join(path, key); {
		case was && is:
			d.compare(at, before, after)
		case is:
			d.add(ValueChange{Path: at, Op: "added", After: shown(after)})
		default:
			d.add(ValueChange{Path: at, Op: "removed", Before: shown(before)})
		}
	}
}

// compareLists pairs what is equal at both ends, so that what was put in at the
// front of a list is told as that.
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
			d.compare(at, a[i], b[i])
		case i < len(b):
			d.add(ValueChange{Path: at, Op: "added", After: shown(b[i])})
		default:
			d.add(ValueChange{Path: at, Op: "removed", Before: shown(a[i])})
		}
	}
}

func (d *Difference) add(c ValueChange) {
	if len(d.Changes) >= maxChanges {
		d.More = true
		return
	}
	d.Changes = append(d.Changes, c)
}

// shown gives the JSON of a value, or the beginning of it as a text.
func shown(value any) json.RawMessage {
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
