package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// selectCheckpoints is the beginning of all queries for records. The table checkpoints has
// the alias c.
const selectCheckpoints = `SELECT ` + checkpointColumns + `, num, EXISTS (SELECT 1 FROM checkpoints n WHERE n.parent = c.id)`

func scanCheckpoint(row scanner) (checkpoint.Record, error) {
	var r checkpoint.Record
	var tags string
	var created int64
	err := row.Scan(&r.ID, &r.User, &r.Session, &r.Run, &r.RunSeq, &r.Parent, &r.Branch, &r.Number, &r.Link, &r.Workflow, &r.Project,
		&r.Agent, &r.Name, &tags, &r.Kind, &created, &r.Bytes, &r.Tokens, &r.Sum, &r.Blob, &r.Stored, &r.Base, &r.Key, &r.Problem, &r.Pos, &r.Followed)
	if err != nil {
		return r, err
	}
	r.Created = toTime(created)
	if tags != "[]" {
		if err := json.Unmarshal([]byte(tags), &r.Tags); err != nil {
			return r, fmt.Errorf("decode the tags of checkpoint %s: %w", r.ID, errors.Join(errInvalidValue, err))
		}
	}
	return r, nil
}

// Checkpoint implements checkpoint.Finder.
func (s *Store) Checkpoint(ctx context.Context, id string) (r checkpoint.Record, err error) {
	err = s.withReadAccess(ctx, "read a checkpoint's record", func() error {
		stmt, err := s.readers.prepareStatement(ctx, selectCheckpoints+` FROM checkpoints c WHERE c.id = ?`)
		if err != nil {
			return err
		}
		r, err = scanCheckpoint(stmt.QueryRowContext(ctx, id))
		return orMissing(err, "there is no checkpoint %.80q", id)
	})
	return r, err
}

// Chain implements checkpoint.Finder.
func (s *Store) Chain(ctx context.Context, id string, most int) ([]checkpoint.Record, error) {
	return queryList(ctx, s, "read the chain of a checkpoint", s.readers.queryRows, scanCheckpoint, `WITH RECURSIVE chain (one, needs, place) AS (
			SELECT id, base, 1 FROM checkpoints WHERE id = ?
			UNION ALL SELECT n.id, n.base, place + 1 FROM chain CROSS JOIN checkpoints n ON n.id = needs WHERE place < ?
		) `+selectCheckpoints+` FROM chain CROSS JOIN checkpoints c ON c.id = one ORDER BY place`, id, most)
}

// checkpointConditions returns the conditions of a filter except for its words.
func checkpointConditions(f checkpoint.Filter) *conditions {
	c := &conditions{}
	c.addEqual("c.user", f.User)
	c.addEqual("c.session", f.Session)
	c.addEqual("c.workflow", f.Workflow)
	c.addEqual("c.project", f.Project)
	c.addEqual("c.run", f.Run)
	c.addEqual("c.parent", f.Parent)
	c.addEqual("c.base", f.Base)
	c.addEqual("c.key", f.Key)
	if !f.Since.IsZero() {
		c.addCondition("c.created >= ?", fromTime(f.Since))
	}
	if !f.Until.IsZero() {
		c.addCondition("c.created < ?", fromTime(f.Until))
	}
	for _, tag := range f.Tags {
		c.addCondition("c.num IN (SELECT t.num FROM checkpoint_tags t WHERE t.tag = ?)", tag)
	}
	if f.Heads {
		c.addCondition("NOT EXISTS (SELECT 1 FROM checkpoints n WHERE n.parent = c.id)")
	}
	switch {
	case f.All:
	case f.Fragments:
		c.addCondition("c.kind = 'piece'")
	default:
		c.addCondition("c.kind <> 'piece'")
	}
	if f.Before != nil && !f.Any {
		c.addCondition("c.num < ?", f.Before.Pos)
	}
	return c
}

// matchCheckpoints returns the FTS5 query for the words of a filter, or "" if there is no
// word to search for. Words are quoted, so that none of them is an operator.
func checkpointMatchQuery(f checkpoint.Filter) string {
	var scope strings.Builder
	for _, part := range []struct {
		kind rune
		name string
	}{{'u', f.User}, {'s', f.Session}, {'p', f.Project}, {'w', f.Workflow}} {
		if part.name != "" {
			scope.WriteString("scope : " + scopeToken(part.kind, part.name) + " AND ")
		}
	}
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
	return scope.String() + "(" + strings.Join(phrases, joint) + ")"
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
	c := checkpointConditions(f)
	from, order := ` FROM checkpoints c`, ` ORDER BY c.num DESC LIMIT ?`
	if len(f.Words) > 0 {
		match := checkpointMatchQuery(f)
		if match == "" {
			return "", nil
		}
		// The words drive the query: SQLite reads their rows from the newest to the oldest
		// and stops at the limit.
		from, order = ` FROM checkpoint_words w CROSS JOIN checkpoints c ON c.num = w.rowid`, ` ORDER BY w.rowid DESC LIMIT ?`
		c.addCondition("w.checkpoint_words MATCH ?", match)
		if f.Any {
			order = ` ORDER BY bm25(checkpoint_words, 0.0, 1.0), c.num DESC LIMIT ?`
		}
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	return c.buildQuery(selectCheckpoints+from, order), append(c.args, limit)
}

// History implements checkpoint.Finder.
func (s *Store) History(ctx context.Context, key checkpoint.SeriesKey, h checkpoint.History) ([]checkpoint.Record, error) {
	direction, limit, below := "DESC", h.Limit, h.Below
	if h.Oldest {
		direction = "ASC"
	}
	if limit <= 0 {
		limit = -1
	}
	if below <= 0 {
		below = 1 << 62
	}
	return queryList(ctx, s, "list the checkpoints of the session "+key.Session, s.readers.queryRows, scanCheckpoint, selectCheckpoints+` FROM checkpoints c
		WHERE c.user = ? AND c.session = ? AND c.kind <> 'piece' AND c.number < ? ORDER BY c.number `+direction+` LIMIT ?`,
		key.User, key.Session, below, limit)
}

const selectLines = `SELECT user, session, run, workflow, project, last, count, stored, bytes, touched FROM checkpoint_lines`

func scanLine(row scanner) (checkpoint.Series, error) {
	var l checkpoint.Series
	var touched int64
	err := row.Scan(&l.User, &l.Session, &l.Run, &l.Workflow, &l.Project, &l.Last, &l.Count, &l.Stored, &l.Bytes, &touched)
	if touched != 0 {
		l.Touched = toTime(touched)
	}
	return l, err
}

// Series implements checkpoint.Finder.
func (s *Store) Series(ctx context.Context, key checkpoint.SeriesKey) (l checkpoint.Series, err error) {
	err = s.withReadAccess(ctx, "read the session "+key.Session, func() error {
		stmt, err := s.readers.prepareStatement(ctx, selectLines+` WHERE user = ? AND session = ?`)
		if err != nil {
			return err
		}
		l, err = scanLine(stmt.QueryRowContext(ctx, key.User, key.Session))
		if errors.Is(err, errNoRow) {
			l, err = checkpoint.Series{SeriesKey: key}, nil
		}
		return err
	})
	return l, err
}

// ListSeries implements checkpoint.Finder.
func (s *Store) ListSeries(ctx context.Context, f checkpoint.SeriesFilter) ([]checkpoint.Series, error) {
	c := &conditions{}
	c.addEqual("user", f.User)
	if !f.Before.IsZero() {
		c.addCondition("touched < ?", fromTime(f.Before))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	return queryList(ctx, s, "list the sessions", s.readers.db.QueryContext, scanLine,
		c.buildQuery(selectLines, ` ORDER BY touched, user, session LIMIT ?`), append(c.args, limit)...)
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
	_, err = queryList(ctx, s, "look up what was deleted", s.readers.queryRows, func(row scanner) (id string, err error) {
		err = row.Scan(&id)
		gone[id] = true
		return id, err
	}, `SELECT id FROM checkpoint_gone WHERE id IN (SELECT value FROM json_each(?))`, string(text))
	return gone, err
}

// Notes implements checkpoint.Auditor.
func (s *Store) Notes(ctx context.Context, user string, limit int) ([]checkpoint.Entry, error) {
	c := &conditions{}
	c.addEqual("user", user)
	text := c.buildQuery(`SELECT at, action, user, session, checkpoint, client, detail FROM checkpoint_audit`, ` ORDER BY num DESC LIMIT ?`)
	return queryList(ctx, s, "read the audit log", s.readers.db.QueryContext, func(row scanner) (checkpoint.Entry, error) {
		var e checkpoint.Entry
		var at int64
		err := row.Scan(&at, &e.Action, &e.User, &e.Session, &e.Checkpoint, &e.Client, &e.Detail)
		e.At = toTime(at)
		return e, err
	}, text, append(c.args, limit)...)
}
