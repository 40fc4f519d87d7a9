package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// commonRows is the number of newest rows that are considered for each word of a search. A
// word in more rows is not selective, and reading all its rows would be expensive.
const commonRows = 2000

// userLexeme returns the lexeme that marks the rows of a user's runs. Terms never contain
// "!".
func userLexeme(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "u!" + hex.EncodeToString(sum[:8])
}

// tsquery returns alternatives as a query of PostgreSQL.
func tsquery(alternatives [][]string) string {
	return words.Render(alternatives, " & ", " | ", func(text string, prefix bool) string {
		if prefix {
			return "'" + text + "':*"
		}
		return "'" + text + "'"
	})
}

// The statement of a search selects rows for each word, and for each whole word alone, so
// that it weighs more. The score of a run for a word depends on how rare the word is. $1 are
// the words, $2 is the lexeme of the user or empty, $3 is the maximum number of rows per word.
// More conditions on a row can be inserted between the parts.
const (
	sqlSearchStart = `
with asked as materialized (
	select n, case when $2::text = '' then query::tsquery else query::tsquery && quote_literal($2::text)::tsquery end as query
	from unnest($1::text[]) with ordinality u (query, n)
), found as materialized (
	select a.n, t.run, max(t.id) as last
	from asked a cross join lateral (
		select id, run from run_words where vector @@ a.query`

	sqlSearchMiddle = ` order by id desc limit $3
	) t
	group by a.n, t.run
), weighed as (
	select n, ln(1 + 2.0 * $3 / count(*))::float8 as weight from found group by n
), scored as (
	select f.run, sum(w.weight) as score, max(array[w.weight, f.last::float8]) as best
	from found f join weighed w using (n) group by f.run
), ranked as (
	select r.*, s.score, s.best[2]::bigint as words from scored s join runs r on r.id = s.run`
	sqlSearchEnd = `
)
select ` + recordColumns + `, r.score, w.seq from ranked r join run_words w on w.id = r.words
order by r.score desc, r.updated desc, r.id desc`
)

// Search implements run.Index.
func (s *Store) Search(ctx context.Context, q run.Search) (hits []run.Hit, err error) {
	var queries []string
	for _, w := range q.Query {
		if queries = append(queries, tsquery(w.Any())); len(w.Partial) > 0 {
			queries = append(queries, tsquery(w.Whole))
		}
	}
	if len(queries) == 0 {
		return nil, nil
	}
	user := ""
	if q.Filter.User != "" {
		user = userLexeme(q.Filter.User)
	}
	w := rows.Conditions{Dialect: dialect(), Args: []any{queries, user, commonRows}}
	w.AddRuns(q.Filter)
	inner := ""
	if w.Len() > 1 || (user == "" && w.Len() > 0) {
		// Without this condition the newest rows could all belong to runs that do not match
		// the filter.
		inner = ` and exists (select from runs r` + w.Where() + ` and r.id = run_words.run)`
	}
	sql := sqlSearchStart + inner + sqlSearchMiddle + w.Where() + ` order by s.score desc, r.updated desc, r.id desc limit ` +
		w.Arg(rows.LimitOr(q.Filter.Limit, rows.DefaultLimit)) + sqlSearchEnd
	err = s.retryRead(ctx, "search runs", func(ctx context.Context) error {
		found, err := s.pool.Query(ctx, sql, w.Args...)
		if err != nil {
			return err
		}
		hits, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (h run.Hit, err error) {
			err = row.Scan(append(rows.RunFields(&h.Record), &h.Score, &h.Seq)...)
			return h, err
		})
		return err
	})
	return hits, err
}
