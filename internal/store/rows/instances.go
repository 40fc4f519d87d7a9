package rows

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
)

// The statements for the instances that drive runs. {now} is the time of the database in
// milliseconds.
const (
	sqlRegister  = `INSERT INTO instances (id, seen) VALUES ($1, {now}) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen`
	sqlBeat      = `UPDATE instances SET seen = {now} WHERE id = $1`
	sqlCancelled = `SELECT run FROM drives WHERE instance = $1 AND cancelled <> 0`
	sqlInstance  = `SELECT 1 FROM instances WHERE id = $1`
	sqlEnded     = `SELECT 1 FROM instances WHERE seen < {now} - $1
		UNION ALL SELECT 1 FROM drives WHERE instance NOT IN (SELECT id FROM instances)`
	sqlRemoveSilent  = `DELETE FROM instances WHERE seen < {now} - $1`
	sqlRemoveOrphans = `DELETE FROM drives WHERE instance NOT IN (SELECT id FROM instances) RETURNING run, {user}, attended`
)

// Beat implements cluster.Store.
func (m *Methods) Beat(ctx context.Context, instance string, register bool) (known bool, cancelled []string, err error) {
	beat := m.query(sqlBeat, instance)
	if register {
		beat = m.query(sqlRegister, instance)
	}
	err = m.access.Write(ctx, Write{Doing: "record that the process is alive", Stored: notStored, Do: func(ctx context.Context, t Tx) error {
		n, err := t.Exec(ctx, beat)
		if err != nil {
			return err
		}
		known = n > 0
		cancelled, err = Collect(ctx, t, m.query(sqlCancelled, instance), func(row Scanner) (id string, err error) {
			return id, row.Scan((*Text)(&id))
		})
		return err
	}})
	return known, cancelled, err
}

// HasInstance implements cluster.Store.
func (m *Methods) HasInstance(ctx context.Context, instance string) (there bool, err error) {
	return m.hasRow(ctx, "look up a process", m.query(sqlInstance, instance))
}

// HasEndedInstances reports whether an instance was silent for a time, or a run belongs to an
// instance that does not exist.
func (m *Methods) HasEndedInstances(ctx context.Context, silent time.Duration) (bool, error) {
	return m.hasRow(ctx, "look for processes that ended", m.query(sqlEnded, silent.Milliseconds()))
}

func (m *Methods) hasRow(ctx context.Context, doing string, q Query) (there bool, err error) {
	err = m.access.Read(ctx, doing, func(ctx context.Context, r Reader) error {
		var one int64
		there, err = scanRow(ctx, r, q, &one)
		return err
	})
	return there, err
}

// RemoveEndedInstances removes the instances that were silent for a time, and returns the
// runs of instances that do not exist. schedule stores the jobs of those that are not
// attended.
func (m *Methods) RemoveEndedInstances(ctx context.Context, r interface {
	Reader
	Queue(ctx context.Context, list ...Query) error
}, silent time.Duration,
) (jobs []run.Job, err error) {
	if err := r.Queue(ctx, m.query(sqlRemoveSilent, silent.Milliseconds())); err != nil {
		return nil, err
	}
	err = r.Each(ctx, m.query(sqlRemoveOrphans), func(row Scanner) error {
		var j run.Job
		var attended int64
		err := row.Scan((*Text)(&j.Run), (*Text)(&j.User), &attended)
		if attended == 0 {
			jobs = append(jobs, j)
		}
		return err
	})
	return jobs, err
}

// LeaveInstance implements cluster.Store.
func (m *Methods) LeaveInstance(ctx context.Context, instance string) error {
	return m.access.Write(ctx, Write{Doing: "record the end of the process", Stored: notStored, Do: func(ctx context.Context, t Tx) error {
		return t.Queue(ctx, m.query(`DELETE FROM instances WHERE id = $1`, instance))
	}})
}
