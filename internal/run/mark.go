package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Mark marks a variable as critical: it is kept when a context must shrink. It does not
// affect the position.
type Mark struct {
	Key  string   `json:"key"`
	Tags []string `json:"tags,omitempty"`
}

// Marked is the data of an event that marks variables as critical.
type Marked struct {
	Keys []string `json:"keys"`
	Tags []string `json:"tags,omitempty"`
}

// MarkRequest marks variables of a run as critical.
type MarkRequest struct {
	Ref
	Keys []string
	Tags []string
}

// The limits of marks.
const (
	maxMarks    = 500
	maxMarkKey  = 200
	maxMarkTags = 20
	maxMarkTag  = 64
)

// RuleMarks refuses marks that are missing, empty or over a limit.
const RuleMarks = "marks-invalid"

// Mark marks variables as critical, even if they are not set yet, and returns all marks.
// The position and the handle do not change. If nothing changes, nothing is recorded.
func (s *Service) Mark(ctx context.Context, c Caller, r MarkRequest) ([]Mark, error) {
	for i := range r.Keys {
		r.Keys[i] = toValidUTF8(r.Keys[i])
	}
	for i := range r.Tags {
		r.Tags[i] = toValidUTF8(r.Tags[i])
	}
	if problem := r.invalidReason(); problem != "" {
		return nil, &Refusal{
			Code: guideway.CodeInvalid, Rule: RuleMarks, Message: problem,
			Allowed: map[string]int{"keys": maxMarks, "bytesOfAKey": maxMarkKey, "tags": maxMarkTags, "bytesOfATag": maxMarkTag},
			Next: &Call{Tool: "workflow_mark_critical", Arguments: map[string]any{"handle": r.Handle}, Fields: []engine.Field{
				{Name: "keys", Type: "array", Description: "the names of the variables"},
			}},
		}
	}
	return retryOnConflict(ctx, func() ([]Mark, error) {
		rec, l, err := s.loadByRef(ctx, c, r.Ref)
		if err != nil {
			return nil, err
		}
		next := addMarks(l.marks, Marked{Keys: r.Keys, Tags: r.Tags})
		if equalMarks(next, l.marks) {
			return l.marks, nil
		}
		if len(next) > maxMarks {
			return nil, &Refusal{
				Code: guideway.CodeRefused, Rule: RuleMarks, Given: len(next), Allowed: maxMarks, RunID: rec.ID,
				Message: fmt.Sprintf("%d variables would be marked as critical; at most %d are allowed", len(next), maxMarks),
				Fix:     "mark fewer variables: only those that a reduction must never omit",
				Next:    StatusCall(Ref{RunID: rec.ID}),
			}
		}
		e, err := newEvent(KindMarked, Marked{Keys: r.Keys, Tags: r.Tags})
		if err != nil {
			return nil, err
		}
		_, l, err = s.commitChange(ctx, ByCaller(c), rec, l, runChange{otherEvents: []Event{e}})
		if err != nil {
			return nil, err
		}
		return l.marks, nil
	})
}

// invalidReason returns why the request is invalid, or "" if it is valid.
func (r MarkRequest) invalidReason() string {
	switch {
	case len(r.Keys) == 0:
		return "keys is empty; it must contain the name of at least one variable"
	case len(r.Keys) > maxMarks:
		return fmt.Sprintf("there are %d keys; at most %d are allowed", len(r.Keys), maxMarks)
	case len(r.Tags) > maxMarkTags:
		return fmt.Sprintf("there are %d tags; at most %d are allowed", len(r.Tags), maxMarkTags)
	case slices.Contains(r.Keys, ""):
		return "keys contains an empty name"
	case slices.Contains(r.Tags, ""):
		return "tags contains an empty tag"
	case slices.ContainsFunc(r.Keys, func(key string) bool { return len(key) > maxMarkKey }):
		return fmt.Sprintf("keys contains a name of more than %d bytes", maxMarkKey)
	case slices.ContainsFunc(r.Tags, func(tag string) bool { return len(tag) > maxMarkTag }):
		return fmt.Sprintf("tags contains a tag of more than %d bytes", maxMarkTag)
	default:
		return ""
	}
}

// addMarks returns a list with marks added. It does not change the given list.
func addMarks(list []Mark, m Marked) []Mark {
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

func equalMarks(a, b []Mark) bool {
	return slices.EqualFunc(a, b, func(x, y Mark) bool { return x.Key == y.Key && slices.Equal(x.Tags, y.Tags) })
}

// snapshotState is the content of a snapshot.
type snapshotState struct {
	engine.State
	Marks      []Mark `json:",omitempty"`
	Submission int64
	Attempts   attempts
	Hooked     bool `json:",omitempty"`
}

// applyEvents applies events to the fields that do not belong to the engine's state.
func (l *loadedRun) applyEvents(events []Event) {
	for _, e := range events {
		l.submission = nextSubmission(l.submission, e)
		l.attempts = l.attempts.addEvent(e)
		l.hooked = l.hooked || e.Kind == KindHooked
		var m Marked
		if e.Kind == KindMarked && json.Unmarshal(e.Data, &m) == nil {
			l.marks = addMarks(l.marks, m)
		}
	}
}

// Admit reports whether the caller may set variables of a run, by the rules of Continue,
// without setting them. It returns a *Refusal if not.
func (s *Service) Admit(ctx context.Context, c Caller, ref Ref, vars map[string]any) error {
	rec, l, err := s.loadByRef(ctx, c, ref)
	if err != nil {
		return err
	}
	if vars, err = normalizeVars(vars); err != nil {
		return err
	}
	if refusal := l.program.Admit(l.state, vars); refusal != nil {
		return s.newRefusalAt(ctx, refusal, rec, l)
	}
	return nil
}

// HookReport is the data of an event about the hooks of a client. See KindHooked and
// KindStopped.
type HookReport struct {
	// Client is the client whose hook reported, such as "claude-code".
	Client string `json:"client"`
	// Step is the position, and Refusals is the number of stops that were refused there, if
	// the client stopped.
	Step     string `json:"step,omitempty"`
	Refusals int    `json:"refusals,omitempty"`
}

// maxStopsRecorded bounds the stops that are recorded at one position.
const maxStopsRecorded = 20

// RecordHooked records that a hook of a client reports for a run. It records the first
// report only. The position and the handle do not change.
func (s *Service) RecordHooked(ctx context.Context, c Caller, ref Ref, client string) error {
	return s.recordHookReport(ctx, c, ref, KindHooked, HookReport{Client: Truncate(client, maxKey)})
}

// RecordStop records that a client stopped although its run is open. refusals is the number
// of stops that were refused before. The position and the handle do not change.
func (s *Service) RecordStop(ctx context.Context, c Caller, ref Ref, client string, refusals int) error {
	return s.recordHookReport(ctx, c, ref, KindStopped, HookReport{Client: Truncate(client, maxKey), Refusals: refusals})
}

func (s *Service) recordHookReport(ctx context.Context, c Caller, ref Ref, kind string, report HookReport) error {
	_, err := retryOnConflict(ctx, func() (struct{}, error) {
		rec, l, err := s.loadByRef(ctx, c, ref)
		if err != nil || isEnded(l.state.Ended) {
			return struct{}{}, err
		}
		switch {
		case kind == KindHooked && l.hooked, kind == KindStopped && l.attempts.Stops >= maxStopsRecorded:
			return struct{}{}, nil
		case kind == KindStopped:
			report.Step = rec.Step
		}
		return struct{}{}, s.recordAttempt(ctx, c, rec, l, kind, report)
	})
	return err
}
