package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// defaultCheckpoints is the limit of a list without a limit.
const defaultCheckpoints = 100

// selectCheckpoints is the beginning of all queries for records. The table checkpoints has
// the alias c.
const selectCheckpoints = `select ` + checkpointColumns + `, c.n, exists (select from checkpoints f where f.parent = c.id) from checkpoints c`

func scanCheckpoint(row pgx.CollectableRow) (checkpoint.Record, error) {
	var r checkpoint.Record
	var tags [][]byte
	err := row.Scan((*byteString)(&r.ID), (*byteString)(&r.User), (*byteString)(&r.Session), (*byteString)(&r.Run), &r.RunSeq, (*byteString)(&r.Parent), &r.Branch,
		&r.Number, &r.Link, (*byteString)(&r.Workflow), (*byteString)(&r.Project), (*byteString)(&r.Agent), (*byteString)(&r.Name), &tags, (*byteString)(&r.Kind),
		&r.Created, &r.Bytes, &r.Tokens, &r.Sum, (*byteString)(&r.Blob), &r.Stored, (*byteString)(&r.Base), (*byteString)(&r.Key), (*byteString)(&r.Problem),
		&r.Pos, &r.Followed)
	for _, tag := range tags {
		r.Tags = append(r.Tags, string(tag))
	}
	r.Created = r.Created.UTC()
	return r, err
}

// Checkpoint implements checkpoint.Finder.
func (s *Store) Checkpoint(ctx context.Context, id string) (checkpoint.Record, error) {
	list, err := queryList(ctx, s, "read a checkpoint's record", scanCheckpoint, selectCheckpoints+` where c.id = $1`, byteString(id))
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
	return queryList(ctx, s, "read the chain of a checkpoint", scanCheckpoint, `with recursive chain (one, needs, place) as (
			select id, base, 1 from checkpoints where id = $1
			union all select n.id, n.base, place + 1 from chain join checkpoints n on n.id = needs where place < $2
		) `+selectCheckpoints+` join chain on c.id = one order by place`, byteString(id), most)
}

// Checkpoints implements checkpoint.Finder.
func (s *Store) Checkpoints(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Record, error) {
	var w conditions
	w.addCheckpointFilter(f)
	order := ` order by c.n desc`
	if len(f.Words) > 0 {
		words := searchWords(f.Words)
		if len(words) == 0 {
			return nil, nil
		}
		joint := " & "
		if f.Any {
			joint = " | "
		}
		// Each word is parsed like indexed text; nothing in it is an operator.
		query := `(select string_agg('(' || q::text || ')', ` + w.addArg(joint) + `)::tsquery from unnest(` + w.addArg(words) + `::text[]) word,
			plainto_tsquery('guideway_words', word) q where numnode(q) > 0)`
		w.conditions = append(w.conditions, "c.vector @@ "+query)
		if f.User != "" {
			w.addCondition("c.vector @@ quote_literal(%s::text)::tsquery", userLexeme(f.User))
		}
		if f.Any {
			order = ` order by ts_rank(c.vector, ` + query + `) desc, c.n desc`
		}
	}
	sql := selectCheckpoints + w.whereClause() + order + ` limit ` + w.addArg(limitOrDefault(f.Limit, defaultCheckpoints))
	return queryList(ctx, s, "list checkpoints", scanCheckpoint, sql, w.args...)
}

// addCheckpointFilter adds the conditions of a filter on checkpoints c except for its
// words.
func (w *conditions) addCheckpointFilter(f checkpoint.Filter) {
	for _, field := range [][2]string{
		{"c.user_id", f.User},
		{"c.session", f.Session},
		{"c.workflow", f.Workflow},
		{"c.project", f.Project},
		{"c.run", f.Run},
		{"c.parent", f.Parent},
		{"c.base", f.Base},
		{"c.key", f.Key},
	} {
		w.addEqual(field[0]+" = %s", field[1])
	}
	if !f.Since.IsZero() {
		w.addCondition("c.created >= %s", f.Since)
	}
	if !f.Until.IsZero() {
		w.addCondition("c.created < %s", f.Until)
	}
	if len(f.Tags) > 0 {
		tags := make([][]byte, len(f.Tags))
		for i, tag := range f.Tags {
			tags[i] = []byte(tag)
		}
		w.addCondition("c.tags @> %s::bytea[]", tags)
	}
	if f.Heads {
		w.conditions = append(w.conditions, "not exists (select from checkpoints f where f.parent = c.id)")
	}
	switch {
	case f.All:
	case f.Fragments:
		w.conditions = append(w.conditions, "c.kind = 'piece'")
	default:
		w.conditions = append(w.conditions, "c.kind <> 'piece'")
	}
	if f.Before != nil && !f.Any {
		w.addCondition("c.n < %s", f.Before.Pos)
	}
}

// History implements checkpoint.Finder.
func (s *Store) History(ctx context.Context, key checkpoint.SeriesKey, h checkpoint.History) ([]checkpoint.Record, error) {
	var w conditions
	w.addCondition("c.user_id = %s", byteString(key.User))
	w.addCondition("c.session = %s", byteString(key.Session))
	w.conditions = append(w.conditions, "c.kind <> 'piece'")
	if h.Below > 0 {
		w.addCondition("c.number < %s", h.Below)
	}
	order := ` order by c.number desc`
	if h.Oldest {
		order = ` order by c.number`
	}
	if h.Limit > 0 {
		order += ` limit ` + w.addArg(h.Limit)
	}
	return queryList(ctx, s, "list the checkpoints of a session", scanCheckpoint, selectCheckpoints+w.whereClause()+order, w.args...)
}

// queryLines returns the series of a query.
func (s *Store) queryLines(ctx context.Context, rest string, args ...any) ([]checkpoint.Series, error) {
	return queryList(ctx, s, "list the sessions", func(row pgx.CollectableRow) (checkpoint.Series, error) {
		var l checkpoint.Series
		err := row.Scan((*byteString)(&l.User), (*byteString)(&l.Session), (*byteString)(&l.Run), (*byteString)(&l.Workflow), (*byteString)(&l.Project),
			&l.Last, &l.Count, &l.Stored, &l.Bytes, &l.Touched)
		l.Touched = l.Touched.UTC()
		return l, err
	}, `select l.user_id, l.session, l.run, l.workflow, l.project, l.last, l.count, l.stored, l.bytes, l.touched from checkpoint_lines l`+rest, args...)
}

// Series implements checkpoint.Finder.
func (s *Store) Series(ctx context.Context, key checkpoint.SeriesKey) (checkpoint.Series, error) {
	list, err := s.queryLines(ctx, ` where l.user_id = $1 and l.session = $2`, byteString(key.User), byteString(key.Session))
	if err != nil || len(list) == 0 {
		return checkpoint.Series{SeriesKey: key}, err
	}
	return list[0], nil
}

// ListSeries implements checkpoint.Finder.
func (s *Store) ListSeries(ctx context.Context, f checkpoint.SeriesFilter) ([]checkpoint.Series, error) {
	var w conditions
	w.addEqual("l.user_id = %s", f.User)
	if !f.Before.IsZero() {
		w.addCondition("l.touched < %s", f.Before)
	}
	rest := w.whereClause() + ` order by l.touched, l.user_id, l.session`
	if f.Limit > 0 {
		rest += ` limit ` + w.addArg(f.Limit)
	}
	return s.queryLines(ctx, rest, w.args...)
}

// Totals implements checkpoint.Finder.
func (s *Store) Totals(ctx context.Context) (t checkpoint.Totals, err error) {
	err = s.retryRead(ctx, "sum up the checkpoints", func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `select count(*), coalesce(sum(count), 0)::bigint, coalesce(sum(bytes), 0)::bigint, coalesce(sum(stored), 0)::bigint
			from checkpoint_lines`).Scan(&t.Series, &t.Count, &t.Bytes, &t.Stored)
	})
	return t, err
}

// Deleted implements checkpoint.Finder.
func (s *Store) Deleted(ctx context.Context, ids []string) (map[string]bool, error) {
	list := make([][]byte, len(ids))
	for i, id := range ids {
		list[i] = []byte(id)
	}
	found, err := queryList(ctx, s, "look up what was deleted", pgx.RowTo[[]byte], `select id from checkpoint_gone where id = any($1::bytea[])`, list)
	gone := map[string]bool{}
	for _, id := range found {
		gone[string(id)] = true
	}
	return gone, err
}

// Notes implements checkpoint.Auditor.
func (s *Store) Notes(ctx context.Context, user string, limit int) ([]checkpoint.Entry, error) {
	var w conditions
	w.addEqual("user_id = %s", user)
	sql := `select at, action, user_id, session, checkpoint, client, detail from checkpoint_audit` + w.whereClause() + ` order by n desc limit ` + w.addArg(limit)
	return queryList(ctx, s, "read the audit log", func(row pgx.CollectableRow) (checkpoint.Entry, error) {
		var e checkpoint.Entry
		err := row.Scan(&e.At, (*byteString)(&e.Action), (*byteString)(&e.User), (*byteString)(&e.Session), (*byteString)(&e.Checkpoint), (*byteString)(&e.Client), (*byteString)(&e.Detail))
		e.At = e.At.UTC()
		return e, err
	}, sql, w.args...)
}
