package app

import (
	"os"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
)

// NewChecker returns a checker that executes checks on this machine, with the approvals of
// the user. tools calls the tools of the gateway; it is nil in a process without a gateway.
func (a *App) NewChecker(cfg *config.Config, tools execute.Tools) *execute.Checker {
	opts := execute.Options{
		Approvals: func() (approval.Records, error) { return ReadApprovals(cfg, a.Host.CurrentTime) },
		Tools:     tools, Now: a.Host.CurrentTime,
	}
	if name, err := os.Hostname(); err == nil {
		opts.Host = name
	}
	return execute.New(opts)
}
