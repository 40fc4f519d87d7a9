package ci

import (
	"context"

	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
)

// execute executes a check of the project with approvals that no store has: those of the
// reviewed base.
func (o *verifyOptions) execute(ctx context.Context, approved approval.Records, r evidence.Request) (evidence.Result, error) {
	checker := execute.New(execute.Options{
		Approvals: func() (approval.Records, error) { return approved, nil }, Now: o.app.Host.CurrentTime,
	})
	return checker.Check(ctx, r)
}
