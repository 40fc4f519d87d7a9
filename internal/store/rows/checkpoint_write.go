package rows

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// The statements that change checkpoints and that Methods.query completes.
const (
	checkpointInSeries = ` WHERE id = $1 AND {user} = $2 AND session = $3`
	sqlEnsureSeries    = `INSERT INTO checkpoint_lines ({user}, session, run, workflow, project, last, count, stored, bytes, touched)
		VALUES ($1, $2, '', '', '', 0, 0, 0, 0, $3) ON CONFLICT DO NOTHING`
	sqlSwapCheckpoint = `UPDATE checkpoints SET blob = $4, stored = $5, base = $6, key = $7` + checkpointInSeries + ` AND blob = $8`
	sqlMarkCheckpoint = `UPDATE checkpoints SET problem = $4` + checkpointInSeries
	sqlAddEntry       = `INSERT INTO checkpoint_audit (at, action, {user}, session, checkpoint, client, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	// sqlPruneEntries keeps about 100,000 entries. It deletes rarely, so that transactions
	// do not wait for each other.
	sqlPruneEntries   = `DELETE FROM checkpoint_audit WHERE {num} <= (SELECT max({num}) / 1024 * 1024 FROM checkpoint_audit) - 100000`
	sqlDescribeSeries = `UPDATE checkpoint_lines SET run = $3, workflow = $4, project = $5 WHERE {user} = $1 AND session = $2 AND last <= $6`
	sqlDropSeries     = `DELETE FROM checkpoint_lines WHERE {user} = $1 AND session = $2
		AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE {user} = $1 AND session = $2)`
)

// InsertsOfSave returns the statements by which a save writes the tables of series and of
// the audit log, to check the schema.
func (d Dialect) InsertsOfSave() []string {
	return []string{d.text(sqlEnsureSeries), d.text(sqlMarkCheckpoint), d.text(sqlAddEntry), d.text(d.sqlAddDeleted())}
}

func (d Dialect) sqlAddDeleted() string {
	return `INSERT INTO checkpoint_gone (id, at) SELECT value, $2 FROM ` + d.Unnest + ` WHERE true ON CONFLICT DO NOTHING`
}

// Apply implements checkpoint.Index.
func (m *Methods) Apply(ctx context.Context, c checkpoint.Change) error {
	return m.access.Write(ctx, Write{
		Doing:  "change the checkpoint index",
		Stored: func(ctx context.Context, r Reader) (bool, error) { return m.isApplied(ctx, r, c) },
		Do:     func(ctx context.Context, t Tx) error { return m.applyChange(ctx, t, c) },
	})
}

// isApplied reports whether a change was applied. It looks for one effect of the change.
func (m *Methods) isApplied(ctx context.Context, r Reader, c checkpoint.Change) (bool, error) {
	const withBlob = `SELECT id FROM checkpoints WHERE id = $1 AND blob = $2`
	switch {
	case c.Add != nil:
		return m.exists(ctx, r, withBlob, c.Add.ID, string(c.Add.Blob))
	case len(c.Swaps) > 0:
		return m.exists(ctx, r, withBlob, c.Swaps[0].ID, string(c.Swaps[0].New.Blob))
	case len(c.Remove) > 0:
		return m.exists(ctx, r, `SELECT id FROM checkpoint_gone WHERE id = $1`, c.Remove[0].ID)
	}
	return false, nil
}

// exists reports whether a query, which selects a text, has a row.
func (m *Methods) exists(ctx context.Context, r Reader, text string, args ...any) (bool, error) {
	return scanRow(ctx, r, m.query(text, args...), new(Text))
}

func (m *Methods) applyChange(ctx context.Context, t Tx, c checkpoint.Change) error {
	last, err := m.lockSeries(ctx, t, c)
	if err != nil {
		return err
	}
	if err := m.addCheckpoint(ctx, t, c, last); err != nil {
		return err
	}
	for _, swap := range c.Swaps {
		if err := m.swapCheckpoint(ctx, t, c.Series, swap); err != nil {
			return err
		}
	}
	if err := m.removeCheckpoints(ctx, t, c); err != nil {
		return err
	}
	var list []Query
	for _, mark := range c.Marks {
		list = append(list, m.query(sqlMarkCheckpoint, mark.ID, c.Series.User, c.Series.Session, mark.Problem))
	}
	list = append(list, m.updateSeries(c)...)
	return t.Queue(ctx, append(list, m.addEntries(c.Audit)...)...)
}

// lockSeries locks the row of the series until the end of the transaction, so that changes
// to a series are serialized, and returns the number of its last checkpoint. It creates the
// row if a checkpoint is added.
func (m *Methods) lockSeries(ctx context.Context, t Tx, c checkpoint.Change) (last int64, err error) {
	const most = 100 // a later attempt fails only if another transaction has just deleted the row
	for range most {
		q := m.query(`SELECT last FROM checkpoint_lines WHERE {user} = $1 AND session = $2`+m.dialect.ForUpdate, c.Series.User, c.Series.Session)
		found, err := scanRow(ctx, t, q, &last)
		if err != nil || found || c.Add == nil {
			return last, err
		}
		if err := t.Queue(ctx, m.query(sqlEnsureSeries, c.Series.User, c.Series.Session, time.UnixMicro(0))); err != nil {
			return 0, err
		}
	}
	return 0, Conflictf("the session %s was deleted repeatedly during the call", c.Series.Session)
}

// addCheckpoint adds a record, if the change has one. It returns a conflict if the series
// has changed since the caller read it, unless the change adopts the record.
func (m *Methods) addCheckpoint(ctx context.Context, t Tx, c checkpoint.Change, last int64) error {
	if c.Add == nil {
		return nil
	}
	r := *c.Add
	if r.Kind == checkpoint.KindFragment {
		r.Number = 0
	} else if !c.Adopt && r.Number != last+1 {
		return Conflictf("the session %s is at checkpoint %d, not %d", c.Series.Session, last, r.Number-1)
	}
	if !c.Adopt {
		if err := m.checkInSeries(ctx, t, c.Series, r.Parent); err != nil {
			return err
		}
	}
	return t.AddCheckpoint(ctx, c, r)
}

// checkInSeries returns an error if a checkpoint is not in the series, unless id is empty.
func (m *Methods) checkInSeries(ctx context.Context, t Tx, key checkpoint.SeriesKey, id string) error {
	if id == "" {
		return nil
	}
	there, err := m.exists(ctx, t, `SELECT id FROM checkpoints`+checkpointInSeries, id, key.User, key.Session)
	if err == nil && !there {
		return Conflictf("the checkpoint %s no longer exists", id)
	}
	return err
}

func (m *Methods) swapCheckpoint(ctx context.Context, t Tx, key checkpoint.SeriesKey, swap checkpoint.Swap) error {
	if err := m.checkInSeries(ctx, t, key, swap.New.Base); err != nil {
		return err
	}
	n, err := t.Exec(ctx, m.query(sqlSwapCheckpoint, swap.ID, key.User, key.Session,
		string(swap.New.Blob), swap.New.Stored, swap.New.Base, swap.New.Key, string(swap.Old)))
	if err == nil && n == 0 {
		return Conflictf("the checkpoint %s was deleted or stored again by another process", swap.ID)
	}
	return err
}

func (m *Methods) removeCheckpoints(ctx context.Context, t Tx, c checkpoint.Change) error {
	if len(c.Remove) == 0 {
		return nil
	}
	gone := make([]string, len(c.Remove))
	for i, r := range c.Remove {
		gone[i] = r.ID
		if err := m.removeCheckpoint(ctx, t, c.Series, r); err != nil {
			return err
		}
	}
	ids, needed := m.dialect.List(gone), Text("")
	found, err := scanRow(ctx, t, m.query(`SELECT base FROM checkpoints WHERE base IN (SELECT value FROM `+m.dialect.Unnest+`) LIMIT 1`, ids), &needed)
	if err != nil {
		return err
	}
	if found {
		return Conflictf("another checkpoint depends on the checkpoint %s", needed)
	}
	return t.Queue(ctx, m.query(m.dialect.sqlAddDeleted(), ids, c.At), m.query(`DELETE FROM checkpoint_gone WHERE at < $1`, c.At.Add(-deletedRetention)))
}

// removeCheckpoint deletes a record. Its children become children of its parent.
func (m *Methods) removeCheckpoint(ctx context.Context, t Tx, key checkpoint.SeriesKey, r checkpoint.Removal) error {
	var num int64
	var parent string
	found, err := scanRow(ctx, t, m.query(`DELETE FROM checkpoints`+checkpointInSeries+` AND blob = $4 RETURNING {num}, parent`, r.ID, key.User, key.Session, string(r.Blob)),
		&num, (*Text)(&parent))
	if err != nil {
		return err
	}
	if !found {
		return Conflictf("the checkpoint %s was deleted or stored again by another process", r.ID)
	}
	return t.Queue(ctx, append(m.queries(m.dialect.RemoveWords, num), m.query(`UPDATE checkpoints SET parent = $1 WHERE parent = $2`, parent, r.ID))...)
}

// updateSeries returns the statements that update the row of a series, and delete it if the
// series has no checkpoints left.
func (m *Methods) updateSeries(c checkpoint.Change) (list []Query) {
	user, session := c.Series.User, c.Series.Session
	if r := c.Add; r != nil && r.Kind != checkpoint.KindFragment {
		list = append(list, m.query(sqlDescribeSeries, user, session, r.Run, r.Workflow, r.Project, r.Number))
	}
	touched := time.UnixMicro(0)
	if c.Touch {
		touched = c.At
	}
	greatest := m.dialect.Greatest
	list = append(list, m.query(`UPDATE checkpoint_lines SET (last, count, stored, bytes) = (
			SELECT `+greatest+`(checkpoint_lines.last, coalesce(max(number), 0)), count(*) FILTER (WHERE kind <> 'piece'),
				coalesce(sum(stored), 0), coalesce(sum(bytes), 0)
			FROM checkpoints WHERE {user} = $1 AND session = $2
		), touched = `+greatest+`(touched, $3) WHERE {user} = $1 AND session = $2`, user, session, touched))
	if len(c.Remove) > 0 {
		list = append(list, m.query(sqlDropSeries, user, session))
	}
	return list
}

// addEntries returns the statements that append entries to the audit log and delete its
// oldest entries.
func (m *Methods) addEntries(entries []checkpoint.Entry) (list []Query) {
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		list = append(list, Query{Text: m.dialect.text(sqlAddEntry), Args: m.dialect.Values(EntryFields(&e))})
	}
	return append(list, m.query(sqlPruneEntries))
}

// Note implements checkpoint.Auditor. An entry may be written twice if the response of the
// server was lost.
func (m *Methods) Note(ctx context.Context, list []checkpoint.Entry) error {
	if len(list) == 0 {
		return nil
	}
	return m.access.Write(ctx, Write{
		Doing: "write the audit log", Stored: notStored,
		Do: func(ctx context.Context, t Tx) error { return t.Queue(ctx, m.addEntries(list)...) },
	})
}
