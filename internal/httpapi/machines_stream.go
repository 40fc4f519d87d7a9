package httpapi

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/machine/driver"
)

const (
	// machinePollInterval is how often a stream polls a run that another process may
	// execute. machineSendInterval is the shortest time between two statuses.
	machinePollInterval = time.Second
	machineSendInterval = 250 * time.Millisecond
)

// machineDelta is a piece of an agent's text, or the name of a tool that it starts to call.
type machineDelta struct {
	RunID string `json:"runId"`
	State string `json:"state"`
	Agent string `json:"agent"`
	Text  string `json:"text,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// machineStream streams the progress of a run: its status after each change and, if this
// process executes the run, the text of its agents as it arrives.
func (a *api) machineStream(c *call) (any, error) {
	id, by := c.PathValue("id"), c.runCaller()
	first, err := a.Machines.Status(c.Context(), by, id)
	if err != nil {
		return nil, err
	}
	release, err := a.streams.reserveStream(by.User)
	if err != nil {
		return nil, err
	}
	defer release()
	updates, cancel := a.Machines.Watch(id)
	defer cancel()
	ctx, end := a.streamContext(c)
	defer end()
	s := &machineFollower{
		out: newStream(c.w), updates: updates,
		status: func(ctx context.Context) (*driver.Status, error) { return a.Machines.Status(ctx, by, id) },
	}
	if s.sendStatus(first) == nil {
		// An error means that the reader has disconnected or the process ends.
		_ = s.followRun(ctx)
	}
	return responseWritten{}, nil
}

// machineFollower copies the progress of one run into a stream.
type machineFollower struct {
	out     *stream
	updates <-chan driver.Update
	status  func(context.Context) (*driver.Status, error)
	seq     int64
}

func (f *machineFollower) sendStatus(s *driver.Status) error {
	f.seq = s.Seq
	if err := f.out.addEvent("status", s.Seq, s); err != nil {
		return err
	}
	return f.out.flushEvents()
}

// followRun copies the progress until the context is done or the reader disconnects.
func (f *machineFollower) followRun(ctx context.Context) error {
	look, alive := time.NewTicker(machinePollInterval), time.NewTicker(keepalive)
	defer look.Stop()
	defer alive.Stop()
	var due <-chan time.Time
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case u := <-f.updates:
			if u.Event != nil {
				if due == nil {
					due = time.After(machineSendInterval)
				}
				continue
			}
			if err := f.sendDeltas(u); err != nil {
				return err
			}
			continue
		case <-alive.C:
			f.out.addKeepalive(f.seq)
			if err := f.out.flushEvents(); err != nil {
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
			if err := f.sendStatus(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendDeltas sends a delta and all that are queued after it.
func (f *machineFollower) sendDeltas(u driver.Update) error {
	for {
		if u.Event == nil {
			d := machineDelta{u.RunID, u.State, u.Agent, u.Delta.Text, u.Delta.Tool}
			if err := f.out.addEvent("delta", f.seq, d); err != nil {
				return err
			}
		}
		if len(f.updates) == 0 {
			return f.out.flushEvents()
		}
		u = <-f.updates
	}
}
