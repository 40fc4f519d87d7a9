package run

import (
	"context"
)

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
