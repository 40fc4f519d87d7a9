package httpapi

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/machine/driver"
)

const (
	// machineLook is how often a stream looks at a run that another process may
	// drive, and machinePause how often it tells of one that goes on.
	machineLook  = time.Second
	machinePause = 250 * time.Millisecond
)

// machineDelta is a piece of what an agent says, or the name of a tool that it begins
// to call.
type machineDelta struct {
	RunID string `json:"runId"`
	State string `json:"state"`
	Agent string `json:"agent"`
	Text  string `json:"text,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// machineStream tells a run while it is at work: where it stands, as often as that
// changes, and what its agents say, piece by piece, where this process drives it.
func (a *api) machineStream(c *call) (any, error) {
	id, by := c.PathValue("id"), c.caller()
	first, err := a.Machines.Status(c.Context(), by, id)
	if err != nil {
		return nil, err
	}
	release, err := a.streams.open(by.User)
	if err != nil {
		return nil, err
	}
	defer release()
	updates, cancel := a.Machines.Watch(id)
	defer cancel()
	s := &machineFollower{
		out: newStream(c.w), updates: updates, may: a.still(c),
		status: func(ctx context.Context) (*driver.Status, error) { return a.Machines.Status(ctx, by, id) },
	}
	if s.tell(first) == nil {
		// The reader is gone, or the process ends: there is nobody to tell.
		_ = s.follow(c.Context())
	}
	return responseWritten{}, nil
}

// machineFollower carries what happens in one run into a stream.
type machineFollower struct {
	out     *stream
	updates <-chan driver.Update
	may     func() bool
	status  func(context.Context) (*driver.Status, error)
	seq     int64
}

func (f *machineFollower) tell(s *driver.Status) error {
	f.seq = s.Seq
	if err := f.out.event("status", s.Seq, s); err != nil {
		return err
	}
	return f.out.flush()
}

// follow ends with the context, with the reader's right to read, or when the reader
// is gone.
func (f *machineFollower) follow(ctx context.Context) error {
	look, alive := time.NewTicker(machineLook), time.NewTicker(keepalive)
	defer look.Stop()
	defer alive.Stop()
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case u := <-f.updates:
			if u.Event != nil {
				if due == nil {
					due = time.After(machinePause)
				}
				continue
			}
			if err := f.deltas(u); err != nil {
				return err
			}
			continue
		case <-alive.C:
			if !f.may() {
				return nil
			}
			f.out.alive(f.seq)
			if err := f.out.flush(); err != nil {
				return err
			}
			continue
		case <-look.C:
		case <-due:
			due = nil
		}
		s, err := f.status(ctx)
		if err != nil {
			return err
		}
		if s.Seq != f.seq || s.Child != nil {
			if err := f.tell(s); err != nil {
				return err
			}
		}
	}
}

// deltas tells a piece, with all that wait behind it.
func (f *machineFollower) deltas(u driver.Update) error {
	for {
		if u.Event == nil {
			d := machineDelta{u.RunID, u.State, u.Agent, u.Delta.Text, u.Delta.Tool}
			if err := f.out.event("delta", f.seq, d); err != nil {
				return err
			}
		}
		select {
		case u = <-f.updates:
			continue
		default:
		}
		return f.out.flush()
	}
}
