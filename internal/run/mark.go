package run

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Mark calls a variable critical: it is never left out where a context must
// shrink. It changes nothing of what the run asks for.
type Mark struct {
	Key  string   `json:"key"`
	Tags []string `json:"tags,omitempty"`
}

// Marked is the data of an event that calls variables critical.
type Marked struct {
	Keys []string `json:"keys"`
	Tags []string `json:"tags,omitempty"`
}

// MarkRequest calls variables of a run critical.
type MarkRequest struct {
	Ref
	Keys []string
	Tags []string
}

// The bounds of marks.
const (
	maxMarks    = 500
	maxMarkKey  = 200
	maxMarkTags = 20
	maxMarkTag  = 64
)

// RuleMarks is a mark that is out of bounds.
const RuleMarks = "marks-invalid"

// Mark calls variables critical, whether they are set yet or not, and gives all
// that are. The run's position and handle stay. What is marked already is not
// recorded again.
func (s *Service) Mark(ctx context.Context, c Caller, r MarkRequest) ([]Mark, error) {
	for i := range r.Keys {
		r.Keys[i] = wellFormed(r.Keys[i])
	}
	for i := range r.Tags {
		r.Tags[i] = wellFormed(r.Tags[i])
	}
	if problem := r.problem(); problem != "" {
		return nil, &Refusal{
			Code: guideway.CodeInvalid, Rule: RuleMarks, Message: problem,
			Allowed: map[string]int{"keys": maxMarks, "bytesOfAKey": maxMarkKey, "tags": maxMarkTags, "bytesOfATag": maxMarkTag},
			Next:    &Call{Tool: "workflow_mark_critical", Arguments: map[string]any{"handle": r.Handle, "keys": []string{"goal"}}},
		}
	}
	return again(ctx, func() ([]Mark, error) {
		_, rec, err := s.byRef(ctx, c, r.Ref)
		if err != nil {
			return nil, err
		}
		l, err := s.load(ctx, rec)
		if err != nil {
			return nil, err
		}
		next := marked(l.marks, Marked{Keys: r.Keys, Tags: r.Tags})
		if sameMarks(next, l.marks) {
			return l.marks, nil
		}
		if len(next) > maxMarks {
			return nil, &Refusal{
				Code: guideway.CodeRefused, Rule: RuleMarks, Given: len(next), Allowed: maxMarks, RunID: rec.ID,
				Message: "too many variables would be marked: what is all critical is all alike",
				Next:    StatusCall(Ref{RunID: rec.ID}),
			}
		}
		e, err := newEvent(KindMarked, Marked{Keys: r.Keys, Tags: r.Tags})
		if err != nil {
			return nil, err
		}
		_, l, err = s.commit(ctx, by(c), rec, l, change{others: []Event{e}})
		if err != nil {
			return nil, err
		}
		return l.marks, nil
	})
}

// problem says what is out of bounds, or "".
func (r MarkRequest) problem() string {
	switch {
	case len(r.Keys) == 0:
		return "keys is empty: name the variables that must stay"
	case len(r.Keys) > maxMarks:
		return "there are too many keys"
	case len(r.Tags) > maxMarkTags:
		return "there are too many tags"
	case slices.ContainsFunc(r.Keys, func(key string) bool { return key == "" || len(key) > maxMarkKey }):
		return "a key is empty or too long"
	case slices.ContainsFunc(r.Tags, func(tag string) bool { return tag == "" || len(tag) > maxMarkTag }):
		return "a tag is empty or too long"
	default:
		return ""
	}
}

// marked adds marks to those that there are, and leaves the given list as it was.
func marked(list []Mark, m Marked) []Mark {
	next := slices.Clone(list)
	for _, key := range m.Keys {
		at := slices.IndexFunc(next, func(one Mark) bool { return one.Key == key })
		if at < 0 {
			next = append(next, Mark{Key: key})
			at = len(next) - 1
		}
		for _, tag := range m.Tags {
			if !slices.Contains(next[at].Tags, tag) && len(next[at].Tags) < maxMarkTags {
				next[at].Tags = append(slices.Clone(next[at].Tags), tag)
			}
		}
	}
	return next
}

func sameMarks(a, b []Mark) bool {
	return slices.EqualFunc(a, b, func(x, y Mark) bool { return x.Key == y.Key && slices.Equal(x.Tags, y.Tags) })
}

// stored is what a snapshot holds.
type stored struct {
	engine.State
	Marks []Mark `json:",omitempty"`
}

// note takes in the events that are not the engine's.
func (l *loaded) note(events []Event) {
	for _, e := range events {
		switch e.Kind {
		case KindRefused:
			l.refused++
		case KindMarked:
			var m Marked
			if json.Unmarshal(e.Data, &m) == nil {
				l.marks = marked(l.marks, m)
			}
		}
	}
}

// Admit says whether the caller may set variables of a run, as Continue would
// judge it, and sets none. What it refuses is a *Refusal.
func (s *Service) Admit(ctx context.Context, c Caller, ref Ref, vars map[string]any) error {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return err
	}
	l, err := s.load(ctx, rec)
	if err != nil {
		return err
	}
	if vars, err = own(vars); err != nil {
		return err
	}
	if refusal := l.program.Admit(l.state, vars); refusal != nil {
		return refusedAt(refusal, rec, l)
	}
	return nil
}
