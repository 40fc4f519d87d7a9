package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

func TestMain(m *testing.M) { crash.Main(m, openWorkerDesk) }

// orderExecutor executes the orders of a worker.
type orderExecutor struct {
	place   place
	service *checkpoints.Checkpoints
}

// openDesk opens the checkpoints of a place with the same options as the program.
func (p place) openDesk(ctx context.Context) (*orderExecutor, error) {
	o := checkpoints.Options{
		DataDir: p.dataDir(), Store: p.Store,
		Limits: checkpoint.Limits{PerSeries: p.PerSeries}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Now: func() time.Time { return time.Now().Add(time.Duration(p.Ahead) * time.Second) },
	}
	if p.PerSeries == 0 {
		o.Limits.PerSeries = 10_000
	}
	if p.Sealed {
		o.Encryption = seal.File{Path: p.keyFile()}
	}
	c, err := checkpoints.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &orderExecutor{place: p, service: c}, nil
}

// openWorkerDesk opens the place of a worker.
func openWorkerDesk(ctx context.Context, p place) (crash.Handler[order, reply], reply) {
	d, err := p.openDesk(ctx)
	if err != nil {
		return nil, errorReply(err)
	}
	return d, reply{Mode: string(d.service.Store().Mode)}
}

// Close closes the checkpoints.
func (d *orderExecutor) Close() error { return d.service.Close() }

// testPrincipal returns the owner of all checkpoints.
func testPrincipal() guideway.Principal { return guideway.Principal{User: "ada", Client: "crashtest"} }

// Handle implements crash.Handler.
func (d *orderExecutor) Handle(ctx context.Context, o order) reply {
	r, err := d.execute(ctx, o)
	if err != nil {
		return errorReply(err)
	}
	r.Mode = string(d.service.Store().Mode)
	return r
}

func errorReply(err error) reply {
	return reply{Code: guideway.ErrorCode(err), Message: err.Error(), Fix: guideway.ErrorFix(err)}
}

func (d *orderExecutor) execute(ctx context.Context, o order) (reply, error) {
	switch o.Do {
	case opSave:
		return d.saveText(ctx, o.Text, o.Head)
	case opLoad:
		l, err := d.service.Load(ctx, testPrincipal(), checkpoint.LoadRequest{ID: o.Checkpoint, Session: o.Session})
		if err != nil {
			return reply{}, err
		}
		r := reply{listedCheckpoint: oneOf(l.Record), Degraded: l.Degraded != nil}
		r.Sum = contextSum(string(l.Context))
		return r, nil
	case opList:
		return d.listSession(ctx, o.Session)
	case opDelete:
		_, err := d.service.Delete(ctx, testPrincipal(), checkpoint.DeleteRequest{IDs: []string{o.Checkpoint}})
		return reply{}, err
	case opKeep:
		piece, err := d.service.StoreFragment(ctx, testPrincipal(), o.Session, json.RawMessage(o.Text.contextJSON()))
		return reply{listedCheckpoint: listedCheckpoint{Checkpoint: piece.Ref}}, err
	case opRecall:
		part, err := d.service.Load(ctx, testPrincipal(), checkpoint.LoadRequest{ID: o.Checkpoint})
		if err != nil {
			return reply{}, err
		}
		return reply{listedCheckpoint: listedCheckpoint{Sum: contextSum(string(part.Context))}}, nil
	case opVerify:
		return d.verifyAll(ctx)
	case opRebuild:
		_, err := d.service.Rebuild(ctx)
		return reply{}, err
	case opMaintain:
		_, err := d.service.Maintain(ctx)
		return reply{}, err
	case opCrowd:
		return d.runCrowd(ctx, *o.Crowd)
	case opFill:
		return reply{}, d.place.Disk().Fill(o.Room)
	case opDrain:
		return reply{}, d.place.Disk().Drain()
	case opReopen:
		return reply{}, d.reopenStore(ctx)
	default:
		return reply{}, fmt.Errorf("unknown order %s", o.Do)
	}
}

func oneOf(r checkpoint.Record) listedCheckpoint {
	return listedCheckpoint{Checkpoint: r.ID, Number: r.Number, Parent: r.Parent, Branch: r.Branch, Created: r.Created.UnixMicro(), Sum: fmt.Sprintf("%x", r.Sum)}
}

func (d *orderExecutor) saveText(ctx context.Context, x text, head string) (reply, error) {
	return d.saveContext(ctx, x, x.contextJSON(), head)
}

func (d *orderExecutor) saveContext(ctx context.Context, x text, context, head string) (reply, error) {
	s, err := d.service.Save(ctx, testPrincipal(), checkpoint.SaveRequest{
		Session: x.Session, Context: json.RawMessage(context), Workflow: "crash", Name: fmt.Sprint("step ", x.N), ExpectedHead: head,
	})
	if err != nil {
		return reply{}, err
	}
	r := reply{listedCheckpoint: oneOf(s.Record)}
	for _, w := range s.Warnings {
		r.Warnings = append(r.Warnings, w.Code)
	}
	return r, nil
}

// listSession returns all checkpoints of a session, the newest first.
func (d *orderExecutor) listSession(ctx context.Context, session string) (reply, error) {
	r := reply{List: []listedCheckpoint{}}
	request := checkpoint.ListRequest{Session: session, Limit: 200}
	for {
		page, err := d.service.List(ctx, testPrincipal(), request)
		if err != nil {
			return reply{}, err
		}
		for _, rec := range page.Checkpoints {
			c := oneOf(rec)
			if l, err := d.service.Load(ctx, testPrincipal(), checkpoint.LoadRequest{ID: rec.ID}); c.Sum == "" && err == nil && l.ID == rec.ID { // the hash is encrypted
				c.Sum = contextSum(string(l.Context))
			}
			r.List = append(r.List, c)
		}
		if page.Next == "" {
			return r, nil
		}
		request.Cursor = page.Next
	}
}

func (d *orderExecutor) verifyAll(ctx context.Context) (reply, error) {
	report, err := d.service.Verify(ctx)
	if err != nil {
		return reply{}, err
	}
	r := reply{Total: report.Checkpoints + report.Fragments}
	for _, f := range report.Damaged {
		r.Damaged = append(r.Damaged, f.Checkpoint+": "+f.Problem)
	}
	return r, nil
}

// reopenStore closes the checkpoints and opens them again, like a new process on the same
// file system. No other order may be in progress.
func (d *orderExecutor) reopenStore(ctx context.Context) error {
	if d.service != nil {
		if err := d.service.Close(); err != nil {
			return err
		}
		d.service = nil
	}
	next, err := d.place.openDesk(ctx)
	if err != nil {
		return err
	}
	*d = *next
	return nil
}
