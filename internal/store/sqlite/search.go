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
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/run"
)

// A row in words stands for one commit. Its number is the run's with the
// sequence number behind it, so that all rows of a run lie together: the newest
// run comes first when they are read backwards, and a run with many rows is
// passed over in one step.
const seqBits = 24

// wordsRow gives the number of the row of a commit.
func wordsRow(num, seq int64) int64 { return num<<seqBits | min(seq, 1<<seqBits-1) }

// runOf gives the number of the run that a row belongs to.
func runOf(row int64) int64 { return row >> seqBits }

// Bounds of a search. A word that nearly every run has costs no more than one
// that few have: of its runs only the newest count.
const (
	// maxTerms and maxTermBytes bound what is searched for.
	maxTerms     = 32
	maxTermBytes = 256
	// maxEffort bounds the reading for all words, in rows, of which each has
	// its share, but leastEffort; a query costs as much as queryEffort rows.
	maxEffort   = 1500
	leastEffort = 500
	queryEffort = 15
	// completed is how many of the best candidates are looked at for the
	// common words that they may have, too.
	completed = 32
	// excerpts is how many of the best hits have one.
	excerpts = 16
	// maxExcerpt bounds an excerpt, in bytes. None is taken from a text of more
	// than maxExcerptFrom: finding the best piece of it would cost too much.
	maxExcerpt     = 240
	maxExcerptFrom = 8192
)

// wordsOf gives the words of a record that a run is found by.
func wordsOf(r run.Record) string {
	return strings.Join([]string{r.Goal, r.Workflow, r.Name, r.Project.Path, r.Project.Branch}, "\n")
}

// scopeOf gives marks for the user, the project and the workflow of a run. They
// make a search in one of them as cheap as the runs there are few.
func scopeOf(r run.Record) string {
	return mark('u', r.User) + " " + mark('p', r.Project.ID) + " " + mark('w', r.Workflow)
}

// mark is a word that stands for a name.
func mark(kind rune, name string) string {
	sum := sha256.Sum256([]byte(name))
	return string(kind) + hex.EncodeToString(sum[:8])
}

// term is a word that is searched for, as a phrase of FTS5.
type term struct {
	phrase string
	// match is the phrase within the scope of the search.
	match string
	// runs are those that have it; not all where there are too many.
	runs map[int64]bool
	all  bool
	// weight is higher for a rarer term.
	weight float64
}

// terms turns words into phrases. In quotes nothing is an operator. A word with
// neither letter nor digit is nothing to search for.
func terms(words []string, scope string) []*term {
	var list []*term
	seen := map[string]bool{}
	for _, word := range words {
		word = strings.ToLower(cut(strings.ReplaceAll(word, "\x00", " "), maxTermBytes))
		if seen[word] || !strings.ContainsFunc(word, isWordy) {
			continue
		}
		seen[word] = true
		phrase := `text : "` + strings.ReplaceAll(word, `"`, `""`) + `"`
		list = append(list, &term{phrase: phrase, match: scope + phrase})
		if len(list) == maxTerms {
			break
		}
	}
	return list
}

func isWordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// cut shortens a text to so many bytes, at the end of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// within gives the part of a query that bounds it to the scope of a filter.
func within(f run.Filter) string {
	var scope strings.Builder
	for _, part := range []struct {
		kind rune
		name string
	}{{'u', f.User}, {'p', f.Project}, {'w', f.Workflow}} {
		if part.name != "" {
			scope.WriteString("scope : " + mark(part.kind, part.name) + " AND ")
		}
	}
	return scope.String()
}

// Search implements run.Index.
func (s *Store) Search(ctx context.Context, q run.Search) (hits []run.Hit, err error) {
	err = s.read(ctx, "search runs", func() error {
		list, total, err := s.lookUp(ctx, terms(q.Words, within(q.Filter)))
		if err != nil || len(list) == 0 {
			return err
		}
		found, err := s.rank(ctx, list, total)
		if err != nil {
			return err
		}
		hits, err = s.hits(ctx, list, found, q.Filter)
		return err
	})
	return hits, err
}

// lookUp finds the runs of each term and drops terms that nothing has. total is
// about the number of all runs.
func (s *Store) lookUp(ctx context.Context, list []*term) (there []*term, total float64, err error) {
	if len(list) == 0 {
		return nil, 0, nil
	}
	if err := s.readers.row(ctx, `SELECT coalesce(max(num), 0) FROM runs`, nil, []any{&total}); err != nil {
		return nil, 0, err
	}
	for _, t := range list {
		// A phrase of no token that FTS5 knows would not bound the scope at
		// all; alone it finds nothing.
		var one int
		err := s.readers.row(ctx, `SELECT 1 FROM words WHERE words MATCH ? LIMIT 1`, []any{t.phrase}, []any{&one})
		if errors.Is(err, errNone) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if err := s.runsOf(ctx, t, max(maxEffort/len(list), leastEffort)); err != nil {
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

// runsOf finds the runs that have a term, the newest first, until there are no
// more or it has cost enough. It passes over the rows of runs that have many.
func (s *Store) runsOf(ctx context.Context, t *term, most int) error {
	const fewest, largest = 4, 512 // rows that a query gives
	t.runs = map[int64]bool{}
	below, limit := int64(math.MaxInt64), 64
	for effort := 0; effort < most; {
		rows, err := s.readers.rows(ctx,
			`SELECT rowid FROM words WHERE words MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?`, t.match, below, limit)
		list, err := collect(rows, err, func(row scanner) (id int64, err error) {
			err = row.Scan(&id)
			return id, err
		})
		if err != nil {
			return err
		}
		effort += len(list) + queryEffort
		before := len(t.runs)
		for _, row := range list {
			t.runs[runOf(row)] = true
		}
		if len(list) < limit {
			t.all = true
			return nil
		}
		below = runOf(list[len(list)-1]) << seqBits
		if found := len(t.runs) - before; found < limit/4 {
			limit = max(limit/4, fewest)
		} else {
			limit = min(limit*4, largest)
		}
	}
	return nil
}

// candidate is a run that has some of the terms.
type candidate struct {
	num   int64
	score float64
}

// rank gives the runs that have any of the terms, the best first. The best of
// them are also looked at for the terms that too many runs have to list all.
func (s *Store) rank(ctx context.Context, list []*term, total float64) ([]candidate, error) {
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
		// A newer run is a little better than an older one with the same words.
		found = append(found, candidate{num, score + float64(num)/(1e6*max(total, 1))})
	}
	byScore(found)
	if common == 0 || common == scores[found[0].num] {
		return found, nil
	}
	for i := range found[:min(len(found), completed)] {
		for _, t := range list {
			if t.all || t.runs[found[i].num] {
				continue
			}
			has, err := s.has(ctx, t, found[i].num)
			if err != nil {
				return nil, err
			}
			if has {
				t.runs[found[i].num] = true
				found[i].score += t.weight
			}
		}
	}
	byScore(found)
	return found, nil
}

func byScore(list []candidate) {
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.num, a.num))
	})
}

// has says whether a run has a term.
func (s *Store) has(ctx context.Context, t *term, num int64) (bool, error) {
	var one int
	err := s.readers.row(ctx, `SELECT 1 FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? LIMIT 1`,
		[]any{t.phrase, num << seqBits, (num + 1) << seqBits}, []any{&one})
	if errors.Is(err, errNone) {
		return false, nil
	}
	return err == nil, err
}

// hits reads the records of candidates until there are enough that a filter
// chooses.
func (s *Store) hits(ctx context.Context, list []*term, found []candidate, f run.Filter) ([]run.Hit, error) {
	chunk := min(max(limitOf(f), 20), 100)
	slices.SortStableFunc(list, func(a, b *term) int { return cmp.Compare(b.weight, a.weight) })
	var hits []run.Hit
	for batch := range slices.Chunk(found, chunk) {
		records, err := s.records(ctx, batch, f)
		if err != nil {
			return nil, err
		}
		for _, c := range batch {
			r, chosen := records[c.num]
			if !chosen {
				continue
			}
			hit := run.Hit{Record: r, Score: c.score}
			if len(hits) < excerpts {
				if hit.Excerpt, err = s.excerpt(ctx, list, c.num); err != nil {
					return nil, err
				}
			}
			hits = append(hits, hit)
			if len(hits) == limitOf(f) {
				return hits, nil
			}
		}
	}
	return hits, nil
}

// records reads those of some runs that a filter chooses, by their numbers.
func (s *Store) records(ctx context.Context, batch []candidate, f run.Filter) (map[int64]run.Record, error) {
	c := choose(f)
	args := make([]any, len(batch))
	for i := range batch {
		args[i] = batch[i].num
	}
	c.add("num IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	rows, err := s.readers.db.QueryContext(ctx, c.query(`SELECT num, `+runColumns+` FROM runs NOT INDEXED`, ""), c.args...)
	records := map[int64]run.Record{}
	_, err = collect(rows, err, func(row scanner) (struct{}, error) {
		var num int64
		r, err := scanRunAnd(row, &num)
		records[num] = r
		return struct{}{}, err
	})
	return records, err
}

// excerpt gives a piece of a run's words with the rarest term that it has.
func (s *Store) excerpt(ctx context.Context, list []*term, num int64) (string, error) {
	for _, t := range list {
		if !t.runs[num] {
			continue
		}
		var text string
		err := s.readers.row(ctx,
			`SELECT iif(length(text) > ?, '', snippet(words, 1, '', '', '…', 16))
			FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? LIMIT 1`,
			[]any{maxExcerptFrom, t.phrase, num << seqBits, (num + 1) << seqBits}, []any{&text})
		if err != nil && !errors.Is(err, errNone) {
			return "", err
		}
		return cut(strings.Join(strings.Fields(text), " "), maxExcerpt), nil
	}
	return "", nil
}
