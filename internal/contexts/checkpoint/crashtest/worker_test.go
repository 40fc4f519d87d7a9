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

func TestMain(m *testing.M) { crash.Main(m, begin) }

// desk is what a worker works at.
type desk struct {
	place   place
	service *checkpoints.Checkpoints
}

// open opens a place the way that the program does.
func (p place) open(ctx context.Context) (*desk, error) {
	o := checkpoints.Options{
		DataDir: p.data(), Store: p.Store,
		Limits: checkpoint.Limits{PerLine: p.PerLine}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Now: func() time.Time { return time.Now().Add(time.Duration(p.Ahead) * time.Second) },
	}
	if p.PerLine == 0 {
		o.Limits.PerLine = 10_000
	}
	if p.Sealed {
		o.Encryption = seal.File{Path: p.keyFile()}
	}
	c, err := checkpoints.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &desk{place: p, service: c}, nil
}

// begin opens a worker's place.
func begin(ctx context.Context, p place) (crash.Desk[order, reply], reply) {
	d, err := p.open(ctx)
	if err != nil {
		return nil, failed(err)
	}
	return d, reply{Mode: string(d.service.Store().Mode)}
}

// Close ends the worker's work.
func (d *desk) Close() error { return d.service.Close() }

// ada is whose checkpoints they all are.
func ada() guideway.Principal { return guideway.Principal{User: "ada", Client: "crashtest"} }

// CarryOut implements crash.Desk.
func (d *desk) CarryOut(ctx context.Context, o order) reply {
	r, err := d.do(ctx, o)
	if err != nil {
		return failed(err)
	}
	r.Mode = string(d.service.Store().Mode)
	return r
}

func failed(err error) reply {
	return reply{Code: guideway.ErrorCode(err), Message: err.Error(), Fix: guideway.ErrorFix(err)}
}

func (d *desk) do(ctx context.Context, o order) (reply, error) {
	switch o.Do {
	case opSave:
		return d.save(ctx, o.Text, o.Head)
	case opLoad:
		l, err := d.service.Load(ctx, ada(), checkpoint.LoadRequest{ID: o.Checkpoint, Session: o.Session})
		if err != nil {
			return reply{}, err
		}
		r := reply{one: oneOf(l.Record), Degraded: l.Degraded != nil}
		r.Sum = sum(string(l.Context))
		return r, nil
	case opList:
		return d.list(ctx, o.Session)
	case opDelete:
		_, err := d.service.Delete(ctx, ada(), checkpoint.DeleteRequest{IDs: []string{o.Checkpoint}})
		return reply{}, err
	case opKeep:
		piece, err := d.service.Keep(ctx, ada(), o.Session, json.RawMessage(o.Text.json()))
		return reply{one: one{Checkpoint: piece.Ref}}, err
	case opRecall:
		part, err := d.service.Recall(ctx, ada(), o.Checkpoint)
		return reply{one: one{Sum: sum(string(part))}}, err
	case opVerify:
		return d.verify(ctx)
	case opRebuild:
		_, err := d.service.Rebuild(ctx)
		return reply{}, err
	case opMaintain:
		_, err := d.service.Maintain(ctx)
		return reply{}, err
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

func oneOf(r checkpoint.Record) one {
	return one{Checkpoint: r.ID, Number: r.Number, Parent: r.Parent, Branch: r.Branch, Created: r.Created.UnixMicro(), Sum: fmt.Sprintf("%x", r.Sum)}
}

func (d *desk) save(ctx context.Context, x text, head string) (reply, error) {
	return d.saveContext(ctx, x, x.json(), head)
}

func (d *desk) saveContext(ctx context.Context, x text, context, head string) (reply, error) {
	s, err := d.service.Save(ctx, ada(), checkpoint.SaveRequest{
		Session: x.Session, Context: json.RawMessage(context), Workflow: "crash", Name: fmt.Sprint("step ", x.N), ExpectedHead: head,
	})
	if err != nil {
		return reply{}, err
	}
	r := reply{one: oneOf(s.Record)}
	for _, w := range s.Warnings {
		r.Warnings = append(r.Warnings, w.Code)
	}
	return r, nil
}

// list gives all checkpoints of a session, the newest first.
func (d *desk) list(ctx context.Context, session string) (reply, error) {
	r := reply{List: []one{}}
	request := checkpoint.ListRequest{Session: session, Limit: 200}
	for {
		page, err := d.service.List(ctx, ada(), request)
		if err != nil {
			return reply{}, err
		}
		for _, rec := range page.Checkpoints {
			r.List = append(r.List, oneOf(rec))
		}
		if page.Next == "" {
			return r, nil
		}
		request.Cursor = page.Next
	}
}

func (d *desk) verify(ctx context.Context) (reply, error) {
	report, err := d.service.Verify(ctx)
	if err != nil {
		return reply{}, err
	}
	r := reply{Total: report.Checkpoints + report.Pieces}
	for _, f := range report.Damaged {
		r.Damaged = append(r.Damaged, f.Checkpoint+": "+f.Problem)
	}
	return r, nil
}

// reopen stands for another process on the same file system. Nothing else may be
// under way.
func (d *desk) reopen(ctx context.Context) error {
	if d.service != nil {
		if err := d.service.Close(); err != nil {
			return err
		}
		d.service = nil
	}
	next, err := d.place.open(ctx)
	if err != nil {
		return err
	}
	*d = *next
	return nil
}
