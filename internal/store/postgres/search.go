package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

const (
	// commonRows is the number of newest rows that are considered for each word of a
	// search. A word in more rows is not selective, and reading all its rows would be
	// expensive.
	commonRows = 2000
	// maxWords is the maximum number of words of a search that are used.
	maxWords = 32
	// maxExcerpt bounds an excerpt, in bytes.
	maxExcerpt = 300
	// excerptStart and excerptEnd enclose the matches in an excerpt that the server makes.
	// No displayed text contains them.
	excerptStart, excerptEnd = "\x02", "\x03"
)

// The statement of a search selects rows for each word. The score of a run for a word
// depends on how rare the word is and on where it is: words in the record weigh more than
// words in notes. $1 are the words, $2 is the lexeme of the user or empty, $3 is the
// maximum number of rows per word. More conditions on a row can be inserted between the
// parts.
const (
	sqlSearchStart = `
with asked as materialized (
	select n, query, case when $2::text = '' then query else query && quote_literal($2::text)::tsquery end as own
	from (select n, plainto_tsquery('guideway_words', word) as query from unnest($1::text[]) with ordinality u (word, n)) q
	where numnode(query) > 0
), found as materialized (
	select a.n, t.run, max(array[ts_rank(t.vector, a.query)::float8, t.id::float8]) as best
	from asked a cross join lateral (
		select id, run, vector from run_words where vector @@ a.own`

	sqlSearchMiddle = ` order by id desc limit $3
	) t
	group by a.n, t.run
), weighed as (
	select n, ln(1 + 2.0 * $3 / count(*))::float8 as weight from found group by n
), scored as (
	select f.run, sum(w.weight * (1 + f.best[1])) as score, max(array[w.weight * (1 + f.best[1]), f.best[2]]) as best
	from found f join weighed w using (n) group by f.run
), ranked as (
	select r.*, s.score, s.best[2]::bigint as words from scored s join runs r on r.id = s.run`
	sqlSearchEnd = `
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
	w := rows.Conditions{Dialect: dialect(), Args: []any{words, user, commonRows}}
	w.AddRuns(q.Filter)
	inner := ""
	if w.Len() > 1 || (user == "" && w.Len() > 0) {
		// Without this condition the newest rows could all belong to runs that do not match
		// the filter.
		inner = ` and exists (select from runs r` + w.Where() + ` and r.id = run_words.run)`
	}
	sql := sqlSearchStart + inner + sqlSearchMiddle + w.Where() + ` order by s.score desc, r.updated desc, r.id desc limit ` +
		w.Arg(rows.LimitOr(q.Filter.Limit, rows.DefaultLimit)) + sqlSearchEnd
	var hits []run.Hit
	err := s.retryRead(ctx, "search runs", func(ctx context.Context) error {
		var texts []string
		found, err := s.pool.Query(ctx, sql, w.Args...)
		if err != nil {
			return err
		}
		hits, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (run.Hit, error) {
			var h run.Hit
			var text string
			err := row.Scan(append(rows.RunFields(&h.Record), &h.Score, &text)...)
			texts = append(texts, text)
			return h, err
		})
		if err != nil || len(hits) == 0 {
			return err
		}
		return s.addExcerpts(ctx, hits, texts, words)
	})
	return hits, err
}

// searchWords returns the words as they are indexed, without duplicates. A word of several
// parts matches a text that contains all its parts.
func searchWords(words []string) []string {
	var plain []string
	for _, word := range words {
		if p := plainWords(rows.Truncate(word, maxNote)); p != "" && !slices.Contains(plain, p) && len(plain) < maxWords {
			plain = append(plain, p)
		}
	}
	return plain
}

// addExcerpts adds to each hit a part of the text that matched. If the server does not find
// the match in the original text, for example because it is in a path or has accents, the
// excerpt comes from the indexed text.
func (s *Store) addExcerpts(ctx context.Context, hits []run.Hit, texts, words []string) error {
	const sql = `
		select ts_headline('guideway_words', t.text, q.query, $3::text)
		from unnest($1::text[]) with ordinality t (text, n),
			(select string_agg('(' || part::text || ')', ' | ')::tsquery as query
				from (select plainto_tsquery('guideway_words', word) as part from unnest($2::text[]) word) p where numnode(part) > 0) q
		order by t.n`
	const how = `StartSel="` + excerptStart + `", StopSel="` + excerptEnd + `", MaxWords=18, MinWords=6, ShortWord=0`
	look := func(texts []string) ([]string, error) {
		found, err := s.pool.Query(ctx, sql, texts, words, how)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(found, pgx.RowTo[string])
	}
	found, err := look(texts)
	if err != nil {
		return err
	}
	var missed []int
	var plain []string
	for i := range hits {
		if i < len(found) && strings.Contains(found[i], excerptStart) {
			hits[i].Excerpt = cleanExcerpt(found[i])
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
		if n < len(found) && strings.Contains(found[n], excerptStart) {
			hits[i].Excerpt = cleanExcerpt(found[n])
		}
	}
	return nil
}

// cleanExcerpt turns an excerpt that the server made with ts_headline into one line.
func cleanExcerpt(found string) string {
	found = strings.NewReplacer(excerptStart, "", excerptEnd, "").Replace(found)
	return strings.ToValidUTF8(rows.Truncate(strings.Join(strings.Fields(found), " "), maxExcerpt), "")
}
