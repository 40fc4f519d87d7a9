package run

import (
	"context"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
)

// Connected is the guideway connect process of a client. It executes the checks of the runs
// that were started through it, on the computer of the client: their results prove what that
// computer reports.
type Connected struct {
	// Host is the name of the computer, as the process reports it.
	Host string
	// Foreign is set if the client has its own token. It may be on another computer, so its
	// paths mean nothing here.
	Foreign bool
	// Workspace is the answer to the start of a run. Results are the results of checks of Run.
	Workspace *evidence.Workspace
	Run       string
	Results   []evidence.Result
	// Err is the reason why the process did not do what it was asked for.
	Err error
}

// ConnectNeeded is the error of a command that needs the results of Checks from the guideway
// connect process of the caller, or without checks the workspace of ProjectPath.
type ConnectNeeded struct {
	ProjectPath string
	Checks      []evidence.Request
}

// Error implements error.
func (*ConnectNeeded) Error() string {
	return "guideway connect has to read the workspace and execute the checks on the computer of the client, and to repeat the call with the results"
}

// callerWorkspace returns the workspace of a new run, which may be nil. It belongs to the
// computer of the client if the client is connected through guideway connect and is foreign, or
// has a directory that this process cannot read. named is the directory that the client names;
// dir is it if the client may name directories of this computer.
func (s *Service) callerWorkspace(ctx context.Context, c Caller, p *program, dir, named string) (*evidence.Workspace, error) {
	var here *evidence.Workspace
	if c.Connect == nil || !c.Connect.Foreign {
		here = s.startWorkspace(ctx, p, dir)
	}
	switch {
	case c.Connect == nil || s.checker == nil || !p.HasChecks() || here != nil && here.Host == c.Connect.Host:
		return here, nil
	case c.Connect.Err != nil:
		return nil, c.Connect.Err
	case c.Connect.Workspace == nil:
		return nil, &ConnectNeeded{ProjectPath: named}
	}
	return c.Connect.Workspace.ViaConnect(), nil
}

// findResult returns the result of a check of a run that was started through guideway
// connect. It returns ConnectNeeded if the process was not asked yet.
func (c *Connected) findResult(_ context.Context, r evidence.Request) (evidence.Result, error) {
	if c == nil || c.Host != r.Start.Host {
		return evidence.Result{}, guideway.Errorf(guideway.CodeUnavailable, "the workspace %s of the run is on the computer %s, and this client is not connected from there through guideway connect", r.Start.Root, r.Start.Host).
			WithFix("continue the run with a client on the computer %s that starts guideway connect in %s", r.Start.Host, r.Start.Root)
	}
	if c.Err != nil {
		return evidence.Result{}, c.Err
	}
	i := slices.IndexFunc(c.Results, func(known evidence.Result) bool { return known.Step == r.Step && known.Key == r.Key })
	if c.Run != r.Run || i < 0 {
		return evidence.Result{}, &ConnectNeeded{}
	}
	return c.Results[i], nil
}
