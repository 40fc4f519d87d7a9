package crashtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

func TestMain(m *testing.M) { crash.Main(m, openWorker) }

// The files of a workerPlace.
const (
	databaseName = "guideway.db"
	dataName     = "data"
	stateName    = "state"
)

func (p workerPlace) databasePath() string { return filepath.Join(p.Dir, dataName, databaseName) }
func (p workerPlace) keyPath() string      { return filepath.Join(p.Dir, dataName, "journal.key") }
func (p workerPlace) headsPath() string    { return filepath.Join(p.Dir, stateName, "heads") }

// workerState is the open journal and service of a worker.
type workerState struct {
	place   workerPlace
	service *run.Service
	journal run.Journal
}

// openStore opens the key, the journal and the heads, as the program does.
func (p workerPlace) openStore(ctx context.Context) (*workerState, error) {
	shelf, err := newShelf()
	if err != nil {
		return nil, err
	}
	key, _, err := keyfile.LoadOrCreate(p.keyPath())
	if err != nil {
		return nil, err
	}
	var journal run.Journal
	if p.Postgres != "" {
		journal, err = postgres.Open(ctx, postgres.Options{URL: p.Postgres})
	} else {
		journal, err = sqlite.Open(ctx, sqlite.Options{Path: p.databasePath()})
	}
	if err != nil {
		return nil, err
	}
	heads, err := rollbackguard.Open(p.headsPath(), key)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	service, err := run.New(run.Options{Journal: journal, Definitions: shelf, Key: key, Heads: heads})
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return &workerState{place: p, service: service, journal: journal}, nil
}

// reopenStore opens the store again, like a new process on the same file system. No other
// call may be in progress.
func (d *workerState) reopenStore(ctx context.Context) error {
	if d.journal != nil {
		if err := d.journal.Close(); err != nil {
			return err
		}
		d.journal, d.service = nil, nil
	}
	next, err := d.place.openStore(ctx)
	if err != nil {
		return err
	}
	*d = *next
	return nil
}

// openWorker opens the storage of a worker.
func openWorker(ctx context.Context, p workerPlace) (crash.Handler[order, reply], reply) {
	d, err := p.openStore(ctx)
	if err != nil {
		return nil, errorReply(err)
	}
	return d, reply{}
}

// Close closes the journal.
func (d *workerState) Close() error { return d.journal.Close() }

// testCaller returns the owner of all runs.
func testCaller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada", Client: "crashtest"}, Via: run.ViaAgent}
}

// Handle implements crash.Handler.
func (d *workerState) Handle(ctx context.Context, o order) reply {
	r, err := d.runOrder(ctx, o)
	if err != nil {
		return errorReply(err)
	}
	return r
}

func (d *workerState) runOrder(ctx context.Context, o order) (reply, error) {
	switch o.Do {
	case opStart:
		return toReply(d.service.Start(ctx, testCaller(), run.StartRequest{WorkflowID: cmp.Or(o.Workflow, workflowID), Goal: o.Goal, RequestID: o.Request}))
	case opContinue:
		c := run.ContinueRequest{Handle: o.Handle, Output: o.Output, Notes: o.Notes, Context: o.Context}
		if o.Option != "" {
			c.Answer = &engine.Answer{OptionID: o.Option, Note: o.Notes}
			c.Notes = ""
		}
		if o.Skip != "" {
			c.Skip = &engine.Skip{Reason: o.Skip}
		}
		return toReply(d.service.Continue(ctx, testCaller(), c))
	case opAbort:
		return toReply(d.service.Abort(ctx, testCaller(), run.AbortRequest{Ref: run.Ref{RunID: o.Run}, Reason: o.Notes}))
	case opStatus:
		return toReply(d.service.Status(ctx, testCaller(), run.Ref{RunID: o.Run}))
	case opEvents:
		details, err := d.service.GetWithEvents(ctx, testCaller(), run.Ref{RunID: o.Run})
		if err != nil {
			return reply{}, err
		}
		return reply{Run: details.ID, Handle: details.Handle, Status: details.Status, Step: details.Step, Events: details.Events}, nil
	case opVerify:
		report, err := d.service.Verify(ctx, o.Run)
		return reply{Report: report}, err
	case opRestore:
		return reply{}, d.service.AcceptRestore(ctx)
	case opCrowd:
		return d.runCrowd(ctx, *o.Crowd)
	case opFill:
		return reply{}, d.place.Disk().Fill(o.Room)
	case opDrain:
		return reply{}, d.place.Disk().Drain()
	case opReopen:
		return reply{}, d.reopenStore(ctx)
	default:
		return reply{}, fmt.Errorf("unknown operation %s", o.Do)
	}
}

func toReply(a *run.Answer, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{Run: a.RunID, Handle: a.Handle, Status: a.Status, Step: a.Position.ID, Replayed: a.Replayed}, nil
}

func errorReply(err error) reply {
	r := reply{Code: guideway.ErrorCode(err), Message: err.Error(), Fix: guideway.ErrorFix(err)}
	if refusal, ok := run.AsRefusal(err); ok {
		r.Rule, r.Fix = refusal.Rule, refusal.Fix
	}
	return r
}
