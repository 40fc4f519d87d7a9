package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// selectCheckpoints is the beginning of all queries for records. The table checkpoints has
// the alias c.
const selectCheckpoints = `SELECT ` + checkpointColumns + `, num, EXISTS (SELECT 1 FROM checkpoints n WHERE n.parent = c.id)`

func scanCheckpoint(row scanner) (checkpoint.Record, error) {
	var r checkpoint.Record
	var tags string
	if err := row.Scan(append(rows.CheckpointFields(&r, &tags), &r.Pos, &r.Followed)...); err != nil {
		return r, err
	}
	if tags != "[]" {
		if err := json.Unmarshal([]byte(tags), &r.Tags); err != nil {
			return r, fmt.Errorf("decode the tags of checkpoint %s: %w", r.ID, errors.Join(errInvalidValue, err))
		}
	}
	return r, nil
}

// Checkpoint implements checkpoint.Finder.
func (s *Store) Checkpoint(ctx context.Context, id string) (checkpoint.Record, error) {
	list, err := queryList(ctx, s, "read a checkpoint's record", s.readers.queryRows, scanCheckpoint, selectCheckpoints+` FROM checkpoints c WHERE c.id = ?`, id)
	if err == nil && len(list) == 0 {
		err = guideway.Errorf(guideway.CodeNotFound, "there is no checkpoint %.80q", id)
	}
	if err != nil {
		return checkpoint.Record{}, err
	}
	return list[0], nil
}

// Chain implements checkpoint.Finder.
func (s *Store) Chain(ctx context.Context, id string, most int) ([]checkpoint.Record, error) {
	return queryList(ctx, s, "read the chain of a checkpoint", s.readers.queryRows, scanCheckpoint, `WITH RECURSIVE chain (one, needs, place) AS (
			SELECT id, base, 1 FROM checkpoints WHERE id = ?
			UNION ALL SELECT n.id, n.base, place + 1 FROM chain CROSS JOIN checkpoints n ON n.id = needs WHERE place < ?
		) `+selectCheckpoints+` FROM chain CROSS JOIN checkpoints c ON c.id = one ORDER BY place`, id, most)
}

// checkpointMatchQuery returns the FTS5 query for the words of a filter, or "" if there is
// no word to search for. Words are quoted, so that none of them is an operator.
func checkpointMatchQuery(f checkpoint.Filter) string {
	list := parseTerms(f.Words, "")
	if len(list) == 0 {
		return ""
	}
	phrases := make([]string, 0, len(list))
	for _, t := range list {
		phrases = append(phrases, t.phrase)
	}
	joint := " AND "
	if f.Any {
		joint = " OR "
	}
	return scopeQuery(f.User, f.Session, f.Project, f.Workflow) + "(" + strings.Join(phrases, joint) + ")"
}

// Checkpoints implements checkpoint.Finder.
func (s *Store) Checkpoints(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Record, error) {
	text, args := checkpointListQuery(f)
	if text == "" {
		return nil, nil
	}
	ask := s.readers.db.QueryContext
	if f.Heads && len(f.Tags) == 0 {
		ask = s.readers.queryRows // prepared, because each load runs this query
	}
	return queryList(ctx, s, "list checkpoints", ask, scanCheckpoint, text, args...)
}

// checkpointListQuery returns the query of a list, or "" if it cannot have any result.
func checkpointListQuery(f checkpoint.Filter) (text string, args []any) {
	c := rows.Conditions{Dialect: dialect()}
	c.AddCheckpoints(f)
	from, order := ` FROM checkpoints c`, ` ORDER BY c.num DESC`
	if len(f.Words) > 0 {
		match := checkpointMatchQuery(f)
		if match == "" {
			return "", nil
		}
		// CROSS JOIN makes SQLite scan the full-text index first. Without Any, SQLite reads
		// the matching rows from the newest to the oldest and stops at the limit.
		from, order = ` FROM checkpoint_words w CROSS JOIN checkpoints c ON c.num = w.rowid`, ` ORDER BY w.rowid DESC`
		c.Add("w.checkpoint_words MATCH %s", match)
		if f.Any {
			order = ` ORDER BY bm25(checkpoint_words, 0.0, 1.0), c.num DESC`
		}
	}
	text = selectCheckpoints + from + c.Where() + order + ` LIMIT ` + c.Arg(rows.LimitOr(f.Limit, rows.DefaultLimit))
	return text, c.Args
}

// History implements checkpoint.Finder.
func (s *Store) History(ctx context.Context, key checkpoint.SeriesKey, h checkpoint.History) ([]checkpoint.Record, error) {
	c := rows.Conditions{Dialect: dialect()}
	rest := c.AddHistory(key, h)
	return queryList(ctx, s, "list the checkpoints of the session "+key.Session, s.readers.queryRows, scanCheckpoint,
		selectCheckpoints+` FROM checkpoints c`+c.Where()+rest, c.Args...)
}

const selectLines = `SELECT user, session, run, workflow, project, last, count, stored, bytes, touched FROM checkpoint_lines`

func scanLine(row scanner) (l checkpoint.Series, err error) {
	err = row.Scan(rows.SeriesFields(&l)...)
	if l.Touched.UnixMicro() == 0 { // the series was never used
		l.Touched = time.Time{}
	}
	return l, err
}

// Series implements checkpoint.Finder.
func (s *Store) Series(ctx context.Context, key checkpoint.SeriesKey) (checkpoint.Series, error) {
	list, err := queryList(ctx, s, "read the session "+key.Session, s.readers.queryRows, scanLine, selectLines+` WHERE user = ? AND session = ?`, key.User, key.Session)
	if err != nil || len(list) == 0 {
		return checkpoint.Series{SeriesKey: key}, err
	}
	return list[0], nil
}

// ListSeries implements checkpoint.Finder.
func (s *Store) ListSeries(ctx context.Context, f checkpoint.SeriesFilter) ([]checkpoint.Series, error) {
	c := rows.Conditions{Dialect: dialect()}
	rest := c.AddSeries(f)
	return queryList(ctx, s, "list the sessions", s.readers.db.QueryContext, scanLine, selectLines+c.Where()+rest, c.Args...)
}

// Totals implements checkpoint.Finder.
func (s *Store) Totals(ctx context.Context) (t checkpoint.Totals, err error) {
	err = s.withReadAccess(ctx, "sum up the checkpoints", func() error {
		return s.readers.queryRow(ctx, `SELECT count(*), coalesce(sum(count), 0), coalesce(sum(bytes), 0), coalesce(sum(stored), 0) FROM checkpoint_lines`,
			nil, []any{&t.Series, &t.Count, &t.Bytes, &t.Stored})
	})
	return t, err
}

// Deleted implements checkpoint.Finder.
func (s *Store) Deleted(ctx context.Context, ids []string) (map[string]bool, error) {
	text, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	_, err = queryList(ctx, s, "look up deleted checkpoints", s.readers.queryRows, func(row scanner) (id string, err error) {
		err = row.Scan(&id)
		gone[id] = true
		return id, err
	}, `SELECT id FROM checkpoint_gone WHERE id IN (SELECT value FROM json_each(?))`, string(text))
	return gone, err
}

// Notes implements checkpoint.Auditor.
func (s *Store) Notes(ctx context.Context, user string, limit int) ([]checkpoint.Entry, error) {
	c := rows.Conditions{Dialect: dialect()}
	rest := c.AddEntries(user, limit)
	text := `SELECT at, action, user, session, checkpoint, client, detail FROM checkpoint_audit` + c.Where() + rest
	return queryList(ctx, s, "read the audit log", s.readers.db.QueryContext, func(row scanner) (e checkpoint.Entry, err error) {
		err = row.Scan(rows.EntryFields(&e)...)
		return e, err
	}, text, c.Args...)
}
