package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// A row in the table words has the words of one commit. The number of the row is the number
// of the run followed by the sequence number, so that the rows of a run are adjacent: a
// descending scan returns the newest run first and can skip a run with many rows in one
// step.
const seqBits = 24

// wordsRow returns the row number of a commit.
func wordsRow(num, seq int64) int64 { return num<<seqBits | min(seq, 1<<seqBits-1) }

// runNumber returns the number of the run that a row belongs to.
func runNumber(row int64) int64 { return row >> seqBits }

// Limits of a search. A word in nearly every run costs no more than a rare one, because
// only the newest runs that contain it are considered.
const (
	// maxEffort bounds the rows that are read for all terms. It is divided among the terms,
	// but at least leastEffort rows may be read for each term. Each query counts as
	// queryEffort rows.
	maxEffort   = 1500
	leastEffort = 500
	queryEffort = 15
	// completedCandidates is the number of best candidates that are also checked for the
	// common terms.
	completedCandidates = 32
)

// runScope returns search tokens for the user, the project and the workflow of a run, which
// make a search within one of these cheap.
func runScope(r run.Record) string {
	return scopeToken('u', r.User) + " " + scopeToken('p', r.Project.ID) + " " + scopeToken('w', r.Workflow)
}

// scopeToken returns the search token for a name of the given kind.
func scopeToken(kind rune, name string) string {
	sum := sha256.Sum256([]byte(name))
	return string(kind) + hex.EncodeToString(sum[:8])
}

// term is a word to search for.
type term struct {
	// expr is the word as an FTS5 expression, and match is expr limited to the scope of the
	// search.
	expr, match string
	// runs are the runs that are known to contain the term, with one of their rows. all is
	// false if there were too many to list.
	runs map[int64]int64
	all  bool
	// weight is higher for a rarer term.
	weight float64
	// whole is the term of the whole word alone.
	whole *term
}

// newTerms returns the terms of a query: each whole word, and then the word with those that
// begin with it, so that a whole word weighs more.
func newTerms(query words.Query, scope string) []*term {
	var list []*term
	add := func(alternatives [][]string, whole *term) *term {
		expr := matchExpr(alternatives)
		list = append(list, &term{expr: expr, match: scope + expr, whole: whole})
		return list[len(list)-1]
	}
	for _, w := range query {
		whole := add(w.Whole, nil)
		if len(w.Partial) > 0 {
			add(w.Any(), whole)
		}
	}
	return list
}

// matchExpr returns alternatives as an FTS5 expression.
func matchExpr(alternatives [][]string) string {
	return "text : " + words.Render(alternatives, " AND ", " OR ", func(text string, prefix bool) string {
		if prefix {
			return `"` + text + `"*`
		}
		return `"` + text + `"`
	})
}

// scopeQuery returns the part of a query that limits it to a scope. Empty names are ignored.
func scopeQuery(user, session, project, workflow string) string {
	var scope strings.Builder
	for _, part := range []struct {
		kind rune
		name string
	}{{'u', user}, {'s', session}, {'p', project}, {'w', workflow}} {
		if part.name != "" {
			scope.WriteString("scope : " + scopeToken(part.kind, part.name) + " AND ")
		}
	}
	return scope.String()
}

// Search implements run.Index.
func (s *Store) Search(ctx context.Context, q run.Search) (hits []run.Hit, err error) {
	err = s.withReadAccess(ctx, "search runs", func() error {
		list, total, err := s.findTermRuns(ctx, newTerms(q.Query, scopeQuery(q.Filter.User, "", q.Filter.Project, q.Filter.Workflow)))
		if err != nil || len(list) == 0 {
			return err
		}
		found, err := s.rankCandidates(ctx, list, total)
		if err != nil {
			return err
		}
		hits, err = s.readHits(ctx, list, found, q.Filter)
		return err
	})
	return hits, err
}

// findTermRuns finds the runs of each term, and returns the terms that have runs. total is
// approximately the number of all runs.
func (s *Store) findTermRuns(ctx context.Context, list []*term) (there []*term, total float64, err error) {
	if len(list) == 0 {
		return nil, 0, nil
	}
	if err := s.readers.queryRow(ctx, `SELECT coalesce(max(num), 0) FROM runs`, nil, []any{&total}); err != nil {
		return nil, 0, err
	}
	for _, t := range list {
		if t.whole != nil && !t.whole.all {
			continue // the word is common, and FTS5 reads all words that begin with it at each query
		}
		if err := s.findRuns(ctx, t, max(maxEffort/len(list), leastEffort)); err != nil {
			return nil, 0, err
		}
		if len(t.runs) == 0 {
			continue
		}
		have := float64(len(t.runs))
		if !t.all {
			have = max(have, total/2)
		}
		t.weight = math.Log(1 + total/have)
		there = append(there, t)
	}
	return there, total, nil
}

// findRuns finds the runs that contain a term, from the newest to the oldest, until most
// rows were read. It skips the remaining rows of a run that was found.
func (s *Store) findRuns(ctx context.Context, t *term, most int) error {
	const fewest, largest = 4, 512 // limits of the number of rows per query
	t.runs = map[int64]int64{}
	below, limit := int64(math.MaxInt64), 64
	for effort := 0; effort < most; {
		list, err := rows.Collect(ctx, s.readers, rows.Query{
			Text: `SELECT rowid FROM words WHERE words MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?`,
			Args: []any{t.match, below, limit},
		}, scanValue[int64])
		if err != nil {
			return err
		}
		effort += len(list) + queryEffort
		before := len(t.runs)
		for _, row := range list {
			t.runs[runNumber(row)] = row
		}
		if len(list) < limit {
			t.all = true
			return nil
		}
		below = runNumber(list[len(list)-1]) << seqBits
		if found := len(t.runs) - before; found < limit/4 {
			limit = max(limit/4, fewest)
		} else {
			limit = min(limit*4, largest)
		}
	}
	return nil
}

// candidate is a run that contains some of the terms.
type candidate struct {
	num   int64
	score float64
}

// rankCandidates returns the runs that contain any of the terms, the best first. The best
// runs are also checked for the terms that occur in too many runs to list.
func (s *Store) rankCandidates(ctx context.Context, list []*term, total float64) ([]candidate, error) {
	scores := map[int64]float64{}
	common := 0.0
	for _, t := range list {
		for num := range t.runs {
			scores[num] += t.weight
		}
		if !t.all {
			common += t.weight
		}
	}
	found := make([]candidate, 0, len(scores))
	for num, score := range scores {
		// Of two runs with the same words the newer one ranks slightly higher.
		found = append(found, candidate{num, score + float64(num)/(1e6*max(total, 1))})
	}
	sortByScore(found)
	if common == 0 || common == scores[found[0].num] {
		return found, nil
	}
	for i := range found[:min(len(found), completedCandidates)] {
		for _, t := range list {
			num := found[i].num
			if t.all || t.runs[num] != 0 {
				continue
			}
			var row int64
			err := s.readers.queryRow(ctx, `SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? LIMIT 1`,
				[]any{t.expr, num << seqBits, (num + 1) << seqBits}, []any{&row})
			if errors.Is(err, errNoRow) {
				continue
			}
			if err != nil {
				return nil, err
			}
			t.runs[num] = row
			found[i].score += t.weight
		}
	}
	sortByScore(found)
	return found, nil
}

func sortByScore(list []candidate) {
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.num, a.num))
	})
}

// readHits reads the records of candidates until enough records match the filter.
func (s *Store) readHits(ctx context.Context, list []*term, found []candidate, f run.Filter) ([]run.Hit, error) {
	limit := rows.LimitOr(f.Limit, rows.DefaultLimit)
	chunk := min(max(limit, 20), 100)
	slices.SortStableFunc(list, func(a, b *term) int { return cmp.Compare(b.weight, a.weight) })
	var hits []run.Hit
	for batch := range slices.Chunk(found, chunk) {
		records, err := s.readRecords(ctx, batch, f)
		if err != nil {
			return nil, err
		}
		for _, c := range batch {
			r, chosen := records[c.num]
			if !chosen {
				continue
			}
			hit := run.Hit{Record: r, Score: c.score}
			for _, t := range list {
				if row := t.runs[c.num]; row != 0 {
					hit.Seq = row & (1<<seqBits - 1)
					break
				}
			}
			hits = append(hits, hit)
			if len(hits) == limit {
				return hits, nil
			}
		}
	}
	return hits, nil
}

// readRecords reads the records of those runs that match a filter, by their numbers.
func (s *Store) readRecords(ctx context.Context, batch []candidate, f run.Filter) (map[int64]run.Record, error) {
	c := rows.Conditions{Dialect: dialect()}
	c.AddRuns(f)
	numbers := make([]any, len(batch))
	for i := range batch {
		numbers[i] = batch[i].num
	}
	c.AddIn("r.num", numbers)
	const from = `SELECT num, ` + runColumns + ` FROM runs r NOT INDEXED`
	records := map[int64]run.Record{}
	err := s.readers.Each(ctx, c.Query(from+c.Where()), func(row rows.Scanner) error {
		var num int64
		var r run.Record
		err := row.Scan(append([]any{&num}, rows.RunFields(&r)...)...)
		records[num] = r
		return err
	})
	return records, err
}
