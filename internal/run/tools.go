package run

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// ToolScopes returns the policies of the current steps of those of the runs that are open.
// A run that does not exist or belongs to another user is left out. An error means that the
// position of a run is unknown, so that the caller must not allow a call because of it.
func (s *Service) ToolScopes(ctx context.Context, c Caller, runs ...string) ([]toolpolicy.Scope, error) {
	var scopes []toolpolicy.Scope
	for _, id := range runs {
		rec, l, err := s.loadByRef(ctx, c, Ref{RunID: id})
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if pos := l.program.PositionOf(l.state); pos.Kind != engine.PositionEnd {
			scopes = append(scopes, toolpolicy.Scope{Run: rec.ID, Workflow: rec.Workflow, Step: pos.ID, Policy: pos.Tools})
		}
	}
	return scopes, nil
}
