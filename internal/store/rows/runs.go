package rows

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// Run implements run.Index.
func (m *Methods) Run(ctx context.Context, id string) (r run.Record, err error) {
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no run %q", id)
	q := m.query(`SELECT `+m.dialect.RunColumns+` FROM runs r WHERE r.id = $1`, id)
	err = QueryOne(ctx, m, "read the run "+id, missing, q, RunFields(&r)...)
	return r, err
}

// Runs implements run.Index.
func (m *Methods) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	c := Conditions{Dialect: m.dialect}
	c.AddRuns(f)
	q := c.Query(`SELECT ` + m.dialect.RunColumns + ` FROM runs r` + c.Where() + ` ORDER BY r.updated DESC, r.id DESC LIMIT ` + c.Arg(LimitOr(f.Limit, DefaultLimit)))
	return List(ctx, m, "list runs", q, ScanFields(RunFields))
}

// Handle implements run.Index.
func (m *Methods) Handle(ctx context.Context, token string) (run.Handle, error) {
	h := run.Handle{Token: token}
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no such handle")
	err := QueryOne(ctx, m, "look up a handle", missing, m.query(`SELECT run, seq FROM handles WHERE token = $1`, token), (*Text)(&h.Run), &h.Seq)
	return h, err
}

// Outcome implements run.Log.
func (m *Methods) Outcome(ctx context.Context, id, user, key string) (run.Handle, error) {
	h := run.Handle{Run: id}
	q := m.query(`SELECT run, seq, handle FROM commands WHERE run = $1 AND key = $2`, id, key)
	missing := guideway.Errorf(guideway.CodeNotFound, "no command of run %s has the key %q", id, key)
	if id == "" {
		q = m.query(`SELECT run, seq, handle FROM requests WHERE `+m.dialect.User+` = $1 AND key = $2`, user, key)
		missing = guideway.Errorf(guideway.CodeNotFound, "no request has the key %q", key)
	}
	err := QueryOne(ctx, m, "look up a command", missing, q, (*Text)(&h.Run), &h.Seq, (*Text)(&h.Token))
	return h, err
}

// Events implements run.Log.
func (m *Methods) Events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	return List(ctx, m, "read the events of the run "+id, m.EventsQuery(id, after, limit), ScanFields(EventFields))
}

// EventsQuery returns the query of Events, whose rows have the fields of events.
func (m *Methods) EventsQuery(id string, after int64, limit int) Query {
	return m.query(`SELECT `+m.dialect.EventColumns+` FROM events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3`, id, after, max(limit, 0))
}

// Snapshot implements run.Log.
func (m *Methods) Snapshot(ctx context.Context, id string) (*run.Snapshot, error) {
	list, err := List(ctx, m, "read the snapshot of the run "+id, m.query(`SELECT seq, head, state, mac FROM snapshots WHERE run = $1`, id),
		ScanFields(func(s *run.Snapshot) []any { return []any{&s.Seq, &s.Head, (*[]byte)(&s.State), &s.MAC} }))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Definition implements run.Log.
func (m *Methods) Definition(ctx context.Context, hash string) (run.Definition, error) {
	d := run.Definition{Hash: hash}
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no definition %s", hash)
	err := QueryOne(ctx, m, "read a pinned definition", missing, m.query(`SELECT text FROM definitions WHERE hash = $1`, hash), (*Text)(&d.Text))
	return d, err
}
