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

func TestMain(m *testing.M) { crash.Main(m, begin) }

// The files of a place.
const (
	databaseName = "guideway.db"
	dataName     = "data"
	stateName    = "state"
)

func (p place) database() string { return filepath.Join(p.Dir, dataName, databaseName) }
func (p place) key() string      { return filepath.Join(p.Dir, dataName, "journal.key") }
func (p place) heads() string    { return filepath.Join(p.Dir, stateName, "heads") }

// desk is what a worker works at.
type desk struct {
	place   place
	service *run.Service
	journal run.Journal
}

// open opens a place the way that the program does: key, journal, heads.
func (p place) open(ctx context.Context) (*desk, error) {
	shelf, err := newShelf()
	if err != nil {
		return nil, err
	}
	key, _, err := keyfile.LoadOrCreate(p.key())
	if err != nil {
		return nil, err
	}
	var journal run.Journal
	if p.Postgres != "" {
		journal, err = postgres.Open(ctx, postgres.Options{URL: p.Postgres})
	} else {
		journal, err = sqlite.Open(ctx, sqlite.Options{Path: p.database()})
	}
	if err != nil {
		return nil, err
	}
	heads, err := rollbackguard.Open(p.heads(), key)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	service, err := run.New(run.Options{Journal: journal, Definitions: shelf, Key: key, Heads: heads})
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return &desk{place: p, service: service, journal: journal}, nil
}

// reopen stands for another process on the same file system. Nothing else may be
// under way.
func (d *desk) reopen(ctx context.Context) error {
	if d.journal != nil {
		if err := d.journal.Close(); err != nil {
			return err
		}
		d.journal, d.service = nil, nil
	}
	next, err := d.place.open(ctx)
	if err != nil {
		return err
	}
	*d = *next
	return nil
}

// begin opens a worker's place.
func begin(ctx context.Context, p place) (crash.Handler[order, reply], reply) {
	d, err := p.open(ctx)
	if err != nil {
		return nil, failed(err)
	}
	return d, reply{}
}

// Close ends the worker's work.
func (d *desk) Close() error { return d.journal.Close() }

// caller is whose runs they all are.
func caller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada", Client: "crashtest"}, Via: run.ViaAgent}
}

// Handle implements crash.Handler.
func (d *desk) Handle(ctx context.Context, o order) reply {
	r, err := d.do(ctx, o)
	if err != nil {
		return failed(err)
	}
	return r
}

func (d *desk) do(ctx context.Context, o order) (reply, error) {
	switch o.Do {
	case opStart:
		return answered(d.service.Start(ctx, caller(), run.StartRequest{WorkflowID: cmp.Or(o.Workflow, workflowID), Goal: o.Goal, RequestID: o.Request}))
	case opContinue:
		c := run.ContinueRequest{Handle: o.Handle, Output: o.Output, Notes: o.Notes, Context: o.Context}
		if o.Option != "" {
			c.Answer = &engine.Answer{OptionID: o.Option, Note: o.Notes}
			c.Notes = ""
		}
		if o.Skip != "" {
			c.Skip = &engine.Skip{Reason: o.Skip}
		}
		return answered(d.service.Continue(ctx, caller(), c))
	case opAbort:
		return answered(d.service.Abort(ctx, caller(), run.AbortRequest{Ref: run.Ref{RunID: o.Run}, Reason: o.Notes}))
	case opStatus:
		return answered(d.service.Status(ctx, caller(), run.Ref{RunID: o.Run}))
	case opEvents:
		details, err := d.service.GetWithEvents(ctx, caller(), run.Ref{RunID: o.Run})
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
		return d.crowd(ctx, *o.Crowd)
	case opFill:
		return reply{}, d.place.Disk().Fill(o.Room)
	case opDrain:
		return reply{}, d.place.Disk().Drain()
	case opReopen:
		return reply{}, d.reopen(ctx)
	default:
		return reply{}, fmt.Errorf("nobody knows how to %s", o.Do)
	}
}

func answered(a *run.Answer, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{Run: a.RunID, Handle: a.Handle, Status: a.Status, Step: a.Position.ID, Replayed: a.Replayed}, nil
}

func failed(err error) reply {
	r := reply{Code: guideway.ErrorCode(err), Message: err.Error(), Fix: guideway.ErrorFix(err)}
	if refusal, ok := run.AsRefusal(err); ok {
		r.Rule, r.Fix = refusal.Rule, refusal.Fix
	}
	return r
}
