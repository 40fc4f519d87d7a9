package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// commonRows is how many rows of words count for one word of a search, the
	// newest. A word that more rows have tells little, and would cost much.
	commonRows = 2000
	// maxWords is how many words of a search count.
	maxWords = 32
	// maxExcerpt is the size of an excerpt.
	maxExcerpt = 300
	// opens and closes enclose what was found in an excerpt that the server
	// makes; no text that is shown has them.
	opens, closes = "\x02", "\x03"
)

// The statement of a search looks for rows of words for each word asked for. A
// run counts for a word by how few others have it, and by where it has it: words
// of the record weigh more than those of notes. $1 are the words, $2 is the
// lexeme of the user or empty, $3 bounds the rows of a word. Between the two
// parts stands what else a row has to fulfil.
const (
	searchBegins = `
with asked as materialized (
	select n, query, case when $2::text = '' then query else query && quote_literal($2::text)::tsquery end as own
	from (select n, plainto_tsquery('guideway_words', word) as query from unnest($1::text[]) with ordinality u (word, n)) q
	where numnode(query) > 0
), found as materialized (
	select a.n, t.run, max(array[ts_rank(t.vector, a.query)::float8, t.id::float8]) as best
	from asked a cross join lateral (
		select id, run, vector from run_words where vector @@ a.own`

	searchGoesOn = ` order by id desc limit $3
	) t
	group by a.n, t.run
), weighed as (
	select n, ln(1 + 2.0 * $3 / count(*))::float8 as weight from found group by n
), scored as (
	select f.run, sum(w.weight * (1 + f.best[1])) as score, max(array[w.weight * (1 + f.best[1]), f.best[2]]) as best
	from found f join weighed w using (n) group by f.run
), ranked as (
	select r.*, s.score, s.best[2]::bigint as words from scored s join runs r on r.id = s.run`
	searchEnds = `
)
select ` + recordColumns + `, r.score, w.text from ranked r join run_words w on w.id = r.words
order by r.score desc, r.updated desc, r.id desc`
)

// Search implements run.Index.
func (s *Store) Search(ctx context.Context, q run.Search) ([]run.Hit, error) {
	words := searchWords(q.Words)
	if len(words) == 0 {
		return nil, nil
	}
	user := ""
	if q.Filter.User != "" {
		user = userLexeme(q.Filter.User)
	}
	w := where{args: []any{words, user, commonRows}}
	w.runs(q.Filter)
	inner := ""
	if len(w.conditions) > 1 || (user == "" && len(w.conditions) > 0) {
		// The newest rows may all be of runs that the filter does not choose.
		inner = ` and exists (select from runs r` + w.sql() + ` and r.id = run_words.run)`
	}
	sql := searchBegins + inner + searchGoesOn + w.sql() + ` order by s.score desc, r.updated desc, r.id desc limit ` +
		w.arg(limitOr(q.Filter.Limit, defaultRuns)) + searchEnds
	var hits []run.Hit
	err := s.read(ctx, "search runs", func(ctx context.Context) error {
		var texts []string
		rows, err := s.pool.Query(ctx, sql, w.args...)
		if err != nil {
			return err
		}
		hits, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (run.Hit, error) {
			var h run.Hit
			var text string
			err := row.Scan(append(recordTargets(&h.Record), &h.Score, &text)...)
			inUTC(&h.Record)
			texts = append(texts, text)
			return h, err
		})
		if err != nil || len(hits) == 0 {
			return err
		}
		return s.excerpts(ctx, hits, texts, words)
	})
	return hits, err
}

// searchWords gives the words as they are indexed, each once. One that has
// several parts stays together: it is found where all of them are.
func searchWords(words []string) []string {
	var plain []string
	for _, word := range words {
		if p := plainWords(cut(word, maxNote)); p != "" && !slices.Contains(plain, p) && len(plain) < maxWords {
			plain = append(plain, p)
		}
	}
	return plain
}

// excerpts adds to hits a piece of the words that matched. Where the server does
// not find it in the text as it is written, because it stands in a path or has
// accents, it is taken from the text as it is indexed.
func (s *Store) excerpts(ctx context.Context, hits []run.Hit, texts, words []string) error {
	const sql = `
		select ts_headline('guideway_words', t.text, q.query, $3::text)
		from unnest($1::text[]) with ordinality t (text, n),
			(select string_agg('(' || part::text || ')', ' | ')::tsquery as query
				from (select plainto_tsquery('guideway_words', word) as part from unnest($2::text[]) word) p where numnode(part) > 0) q
		order by t.n`
	const how = `StartSel="` + opens + `", StopSel="` + closes + `", MaxWords=18, MinWords=6, ShortWord=0`
	look := func(texts []string) ([]string, error) {
		rows, err := s.pool.Query(ctx, sql, texts, words, how)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	}
	found, err := look(texts)
	if err != nil {
		return err
	}
	var missed []int
	var plain []string
	for i := range hits {
		if i < len(found) && strings.Contains(found[i], opens) {
			hits[i].Excerpt = excerpt(found[i])
			continue
		}
		missed, plain = append(missed, i), append(plain, plainWords(texts[i]))
	}
	if len(missed) == 0 {
		return nil
	}
	if found, err = look(plain); err != nil {
		return err
	}
	for n, i := range missed {
		if n < len(found) && strings.Contains(found[n], opens) {
			hits[i].Excerpt = excerpt(found[n])
		}
	}
	return nil
}

// excerpt makes a line of what the server has found.
func excerpt(found string) string {
	found = strings.NewReplacer(opens, "", closes, "").Replace(found)
	return strings.ToValidUTF8(cut(strings.Join(strings.Fields(found), " "), maxExcerpt), "")
}
