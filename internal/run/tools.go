package run

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// ToolScopes returns the policies of the current steps of those of the runs that are open,
// in the order of the runs. A run that does not exist or belongs to another user is left
// out. An error means that the position of a run is unknown, so that the caller must not
// allow a call because of it.
//
// It reads the record of each run, so a policy is current even if another process continued
// the run, but loads a run only if its definition restricts tools.
func (s *Service) ToolScopes(ctx context.Context, c Caller, runs ...string) ([]toolpolicy.Scope, error) {
	if err := s.openJournal(ctx); err != nil {
		return nil, err
	}
	var scopes []toolpolicy.Scope
	for _, id := range runs {
		rec, err := s.journal.Run(ctx, id)
		if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && !s.mayUse(ctx, c, rec) {
			continue
		}
		if err != nil {
			return nil, err
		}
		scope, open, err := s.toolScope(ctx, rec)
		if err != nil {
			return nil, err
		}
		if open {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// toolScope returns the policy of the current step of a run, and reports whether the run is
// open.
func (s *Service) toolScope(ctx context.Context, rec Record) (scope toolpolicy.Scope, open bool, err error) {
	scope = toolpolicy.Scope{Run: rec.ID, Workflow: rec.Workflow, Step: rec.Step}
	program, err := s.compiledProgram(ctx, rec.Hash)
	if err != nil {
		return scope, false, err
	}
	if !program.hasTools {
		return scope, !isEnded(rec.Status), nil
	}
	l, err := s.loadRun(ctx, rec)
	if err != nil {
		return scope, false, err
	}
	pos := l.program.PositionOf(l.state)
	scope.Step, scope.Policy = pos.ID, pos.Tools
	return scope, pos.Kind != engine.PositionEnd, nil
}

// OpenRuns returns the ids of the open runs of the caller, the last changed one first. If
// client is not empty, it returns only the runs that this client started.
func (s *Service) OpenRuns(ctx context.Context, c Caller, client string) ([]string, error) {
	if err := s.openJournal(ctx); err != nil {
		return nil, err
	}
	f := Filter{User: c.User, Statuses: []engine.Status{engine.StatusRunning, engine.StatusWaiting}, Limit: pageSize}
	var ids []string
	for {
		page, err := s.journal.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if client == "" || page[i].Client == client {
				ids = append(ids, page[i].ID)
			}
		}
		if len(page) < f.Limit {
			return ids, nil
		}
		f.Before = &page[len(page)-1]
	}
}
