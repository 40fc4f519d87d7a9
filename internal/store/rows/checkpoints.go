package rows

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// CheckpointColumns returns the columns of CheckpointFields.
func (d Dialect) CheckpointColumns() string {
	return `id, ` + d.User + `, session, run, run_seq, parent, branch, number, link, workflow, project, agent, name, tags, kind, ` +
		`created, bytes, tokens, sum, blob, stored, base, key, problem`
}

// selectCheckpoints returns the beginning of the queries for records, up to the FROM
// clause, in which the table checkpoints must have the alias c.
func (d Dialect) selectCheckpoints() string {
	return `SELECT ` + d.CheckpointColumns() + `, c.` + d.Number + `, EXISTS (SELECT 1 FROM checkpoints f WHERE f.parent = c.id) `
}

func (m *Methods) queryCheckpoints(ctx context.Context, doing string, q Query) ([]checkpoint.Record, error) {
	return List(ctx, m, doing, q, ScanFields(func(r *checkpoint.Record) []any {
		return append(CheckpointFields(r, m.dialect.ScanList(&r.Tags)), &r.Pos, &r.Followed)
	}))
}

// Checkpoint implements checkpoint.Finder.
func (m *Methods) Checkpoint(ctx context.Context, id string) (checkpoint.Record, error) {
	list, err := m.queryCheckpoints(ctx, "read a checkpoint's record", m.query(m.dialect.selectCheckpoints()+`FROM checkpoints c WHERE id = $1`, id))
	if err == nil && len(list) == 0 {
		err = guideway.Errorf(guideway.CodeNotFound, "there is no checkpoint %.80q", id)
	}
	if err != nil {
		return checkpoint.Record{}, err
	}
	return list[0], nil
}

// Chain implements checkpoint.Finder. SQLite executes a CROSS JOIN in the given order.
func (m *Methods) Chain(ctx context.Context, id string, most int) ([]checkpoint.Record, error) {
	return m.queryCheckpoints(ctx, "read the chain of a checkpoint", m.query(`WITH RECURSIVE chain (one, needs, place) AS (
			SELECT id, base, 1 FROM checkpoints WHERE id = $1
			UNION ALL SELECT n.id, n.base, place + 1 FROM chain CROSS JOIN checkpoints n WHERE n.id = needs AND place < $2
		) `+m.dialect.selectCheckpoints()+`FROM chain CROSS JOIN checkpoints c WHERE id = one ORDER BY place`, id, most))
}

// Checkpoints implements checkpoint.Finder.
func (m *Methods) Checkpoints(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Record, error) {
	return m.queryCheckpoints(ctx, "list checkpoints", m.dialect.CheckpointsQuery(f))
}

// CheckpointsQuery returns the query of a list.
func (d Dialect) CheckpointsQuery(f checkpoint.Filter) Query {
	c := Conditions{Dialect: d}
	c.AddCheckpoints(f)
	from, order := `FROM checkpoints c`, `c.`+d.Number+` DESC`
	if len(f.Query) > 0 {
		from, order = d.AddWords(&c, f)
	}
	q := c.Query(d.selectCheckpoints() + from + c.Where() + ` ORDER BY ` + order + ` LIMIT ` + c.Arg(LimitOr(f.Limit, DefaultLimit)))
	q.Varies = len(f.Tags) > 0 || len(f.Query) > 0 // each save and load runs this query
	return q
}

// History implements checkpoint.Finder.
func (m *Methods) History(ctx context.Context, key checkpoint.SeriesKey, h checkpoint.History) ([]checkpoint.Record, error) {
	c := Conditions{Dialect: m.dialect}
	rest := c.AddHistory(key, h)
	q := c.Query(m.dialect.selectCheckpoints() + `FROM checkpoints c` + c.Where() + rest)
	q.Varies = false
	return m.queryCheckpoints(ctx, "list the checkpoints of the session "+key.Session, q)
}

// selectSeries returns the beginning of the queries for series.
func (m *Methods) selectSeries() string {
	return `SELECT ` + m.dialect.User + `, session, run, workflow, project, last, count, stored, bytes, touched FROM checkpoint_lines`
}

// Series implements checkpoint.Finder.
func (m *Methods) Series(ctx context.Context, key checkpoint.SeriesKey) (checkpoint.Series, error) {
	s := checkpoint.Series{SeriesKey: key}
	q := m.query(m.selectSeries()+` WHERE `+m.dialect.User+` = $1 AND session = $2`, key.User, key.Session)
	err := QueryOne(ctx, m, "read the session "+key.Session, nil, q, SeriesFields(&s)...)
	return s, err
}

// ListSeries implements checkpoint.Finder.
func (m *Methods) ListSeries(ctx context.Context, f checkpoint.SeriesFilter) ([]checkpoint.Series, error) {
	c := Conditions{Dialect: m.dialect}
	rest := c.AddSeries(f)
	return List(ctx, m, "list the sessions", c.Query(m.selectSeries()+c.Where()+rest), ScanFields(SeriesFields))
}

// Totals implements checkpoint.Finder.
func (m *Methods) Totals(ctx context.Context) (t checkpoint.Totals, err error) {
	q := m.query(`SELECT count(*), CAST(coalesce(sum(count), 0) AS bigint), CAST(coalesce(sum(bytes), 0) AS bigint), CAST(coalesce(sum(stored), 0) AS bigint)
		FROM checkpoint_lines`)
	err = QueryOne(ctx, m, "sum up the checkpoints", nil, q, &t.Series, &t.Count, &t.Bytes, &t.Stored)
	return t, err
}

// Deleted implements checkpoint.Finder.
func (m *Methods) Deleted(ctx context.Context, ids []string) (map[string]bool, error) {
	q := m.query(`SELECT id FROM checkpoint_gone WHERE id IN (SELECT value FROM `+m.dialect.Unnest+`)`, m.dialect.List(ids))
	found, err := List(ctx, m, "look up deleted checkpoints", q, ScanFields(func(id *Text) []any { return []any{id} }))
	gone := map[string]bool{}
	for _, id := range found {
		gone[string(id)] = true
	}
	return gone, err
}

// Notes implements checkpoint.Auditor.
func (m *Methods) Notes(ctx context.Context, user string, limit int) ([]checkpoint.Entry, error) {
	c := Conditions{Dialect: m.dialect}
	rest := c.AddEntries(user, limit)
	q := c.Query(`SELECT at, action, ` + m.dialect.User + `, session, checkpoint, client, detail FROM checkpoint_audit` + c.Where() + rest)
	return List(ctx, m, "read the audit log", q, ScanFields(EntryFields))
}
