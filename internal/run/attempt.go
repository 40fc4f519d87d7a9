package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// The limits of what is recorded at one position, because an agent may retry forever. Each
// rule has its own limit, so that many refusals by one rule do not hide a refusal by
// another.
const (
	maxRefusalsOfRule   = 100
	maxRefusedOutputs   = 10
	maxRefusedText      = 16 << 10
	maxRefusalIssues    = 20
	maxDeclinesRecorded = 20
)

// attempts counts the refused attempts and declined forms that were recorded at a position.
type attempts struct {
	// Rules counts the refusals by rule, Outputs the refused outputs that are kept.
	Rules   map[string]int `json:",omitempty"`
	Outputs int            `json:",omitempty"`
	// Declines counts the forms without an answer; Last is the last one.
	Declines int      `json:",omitempty"`
	Last     *Decline `json:",omitempty"`
	// Stops counts the stops of the client while the run was open.
	Stops int `json:",omitempty"`
}

// addEvent returns the attempts after an event. An event of the engine clears them.
func (a attempts) addEvent(e Event) attempts {
	switch e.Kind {
	case KindRefused:
		var r Refused
		if json.Unmarshal(e.Data, &r) == nil {
			rules := maps.Clone(a.Rules)
			if rules == nil {
				rules = map[string]int{}
			}
			rules[r.Rule]++
			a.Rules = rules
			if r.Output != "" || r.Notes != "" {
				a.Outputs++
			}
		}
	case KindDeclined, KindUnanswered:
		a.Declines++
		a.Last = &Decline{At: e.At, ByClient: e.Kind == KindUnanswered, Count: a.Declines}
	case KindStopped:
		a.Stops++
	case KindMarked, KindAbortConfirmed, KindCheckRun, KindHooked:
	default:
		return attempts{}
	}
	return a
}

// isServiceEvent reports whether an event was added by this package and not by the engine.
func isServiceEvent(kind string) bool {
	return slices.Contains([]string{KindCreated, KindRefused, KindMarked, KindDeclined, KindUnanswered, KindAbortConfirmed, KindCheckRun, KindHooked, KindStopped}, kind)
}

// IsFact reports whether an event was decided by the engine.
func (e Event) IsFact() bool { return !isServiceEvent(e.Kind) }

// cutText returns a text, or, if it is longer than maxRefusedText, its head and its tail
// with a note between them.
func cutText(text string) string {
	if len(text) <= maxRefusedText {
		return text
	}
	head := Truncate(text, maxRefusedText/2)
	tail := toValidUTF8(text[len(text)-maxRefusedText/2:])
	return fmt.Sprintf("%s\n… (%d bytes are not kept) …\n%s", head, len(text)-maxRefusedText, tail)
}

// recordRefusal records a refused attempt with its input for observers. The refusal is valid
// even if it cannot be stored.
func (s *Service) recordRefusal(ctx context.Context, c Caller, rec Record, l *loadedRun, cmd engine.Continue, r *engine.Refusal, checks []Event) {
	if isEnded(l.state.Ended) || l.attempts.Rules[r.Rule] >= maxRefusalsOfRule {
		return
	}
	refused := Refused{Rule: r.Rule, Message: r.Message, Step: rec.Step, Issues: r.Issues[:min(len(r.Issues), maxRefusalIssues)]}
	if l.attempts.Outputs < maxRefusedOutputs {
		refused.Output, refused.Notes = cutText(cmd.Output), cutText(cmd.Notes)
	}
	if err := s.recordAttempt(ctx, c, rec, l, KindRefused, refused, checks...); err != nil && guideway.ErrorCode(err) != guideway.CodeConflict {
		s.log.WarnContext(ctx, "cannot record a refused attempt", "run", rec.ID, "error", err)
	}
}

// recordAttempt records an event that does not change the position, after the events of its
// checks.
func (s *Service) recordAttempt(ctx context.Context, c Caller, rec Record, l *loadedRun, kind string, data any, checks ...Event) error {
	e, err := newEvent(kind, data)
	if err != nil {
		return err
	}
	_, _, err = s.commitChange(ctx, ByCaller(c), rec, l, runChange{checks: checks, otherEvents: []Event{e}})
	return err
}

// Decline describes the last form at a gate, if it was closed without an answer.
type Decline struct {
	At time.Time
	// ByClient reports whether the client closed or answered the form before a person could
	// read it.
	ByClient bool
	// Count is the number of forms without an answer at this position.
	Count int
}

// Declined is the data of an event about a form without an answer.
type Declined struct {
	Step string `json:"step"`
	// Action is "decline", "cancel", or "accept" if the client answered without a person.
	Action string `json:"action"`
	// AfterMS is the time between showing and closing the form, in milliseconds.
	AfterMS int64 `json:"afterMs"`
}

// DeclineRequest is a form of a gate that was closed without an answer.
type DeclineRequest struct {
	// Handle is the handle of the position that the form showed.
	Handle string
	Declined
	// ByClient reports whether the client closed or answered the form before a person could
	// read it.
	ByClient bool
}

// RecordDecline records that a person closed the form of a gate without an answer, or that
// the client closed or answered it before a person could read it. The position does not
// change. If the run is no longer at the position of the form, or maxDeclinesRecorded is
// reached, nothing is recorded.
func (s *Service) RecordDecline(ctx context.Context, c Caller, r DeclineRequest) error {
	_, err := retryOnConflict(ctx, func() (*Decline, error) {
		rec, l, err := s.loadByRef(ctx, c, Ref{Handle: r.Handle})
		if err != nil || rec.Handle != r.Handle || l.attempts.Declines >= maxDeclinesRecorded {
			return nil, err
		}
		kind := KindDeclined
		if r.ByClient {
			kind = KindUnanswered
		}
		r.Step = rec.Step
		return nil, s.recordAttempt(ctx, c, rec, l, kind, r.Declined)
	})
	return err
}
