package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// selectCheckpoints is the beginning of all queries for records. The table checkpoints has
// the alias c.
const selectCheckpoints = `select ` + checkpointColumns + `, c.n, exists (select from checkpoints f where f.parent = c.id) from checkpoints c`

func scanCheckpoint(row pgx.CollectableRow) (checkpoint.Record, error) {
	var r checkpoint.Record
	var tags [][]byte
	err := row.Scan(append(rows.CheckpointFields(&r, &tags), &r.Pos, &r.Followed)...)
	for _, tag := range tags {
		r.Tags = append(r.Tags, string(tag))
	}
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
	w := rows.Conditions{Dialect: dialect()}
	w.AddCheckpoints(f)
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
		// Each word is parsed like indexed text; no character of the word is an operator.
		query := `(select string_agg('(' || q::text || ')', ` + w.Arg(joint) + `)::tsquery from unnest(` + w.Arg(words) + `::text[]) word,
			plainto_tsquery('guideway_words', word) q where numnode(q) > 0)`
		w.Add("c.vector @@ " + query)
		if f.User != "" {
			w.Add("c.vector @@ quote_literal(%s::text)::tsquery", userLexeme(f.User))
		}
		if f.Any {
			order = ` order by ts_rank(c.vector, ` + query + `) desc, c.n desc`
		}
	}
	sql := selectCheckpoints + w.Where() + order + ` limit ` + w.Arg(rows.LimitOr(f.Limit, rows.DefaultLimit))
	return queryList(ctx, s, "list checkpoints", scanCheckpoint, sql, w.Args...)
}

// History implements checkpoint.Finder.
func (s *Store) History(ctx context.Context, key checkpoint.SeriesKey, h checkpoint.History) ([]checkpoint.Record, error) {
	w := rows.Conditions{Dialect: dialect()}
	rest := w.AddHistory(key, h)
	return queryList(ctx, s, "list the checkpoints of a session", scanCheckpoint, selectCheckpoints+w.Where()+rest, w.Args...)
}

// queryLines returns the series that a query selects.
func (s *Store) queryLines(ctx context.Context, rest string, args ...any) ([]checkpoint.Series, error) {
	return queryList(ctx, s, "list the sessions", func(row pgx.CollectableRow) (l checkpoint.Series, err error) {
		err = row.Scan(rows.SeriesFields(&l)...)
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
	w := rows.Conditions{Dialect: dialect()}
	rest := w.AddSeries(f)
	return s.queryLines(ctx, w.Where()+rest, w.Args...)
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
	found, err := queryList(ctx, s, "look up deleted checkpoints", pgx.RowTo[[]byte], `select id from checkpoint_gone where id = any($1::bytea[])`, byteSlices(ids))
	gone := map[string]bool{}
	for _, id := range found {
		gone[string(id)] = true
	}
	return gone, err
}

// Notes implements checkpoint.Auditor.
func (s *Store) Notes(ctx context.Context, user string, limit int) ([]checkpoint.Entry, error) {
	w := rows.Conditions{Dialect: dialect()}
	rest := w.AddEntries(user, limit)
	sql := `select at, action, user_id, session, checkpoint, client, detail from checkpoint_audit` + w.Where() + rest
	return queryList(ctx, s, "read the audit log", func(row pgx.CollectableRow) (e checkpoint.Entry, err error) {
		err = row.Scan(rows.EntryFields(&e)...)
		return e, err
	}, sql, w.Args...)
}
