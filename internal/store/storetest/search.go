package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// searchTests are about finding runs by words.
func searchTests() []subtest {
	return []subtest{
		{"a run is found by the words of its record and of its commits", foundByAll},
		{"words are stemmed and their case does not matter", stemmed},
		{"more words, and rarer ones, rank higher", ranked},
		{"a run that is found is found once, with an excerpt", foundOnce},
		{"a filter bounds a search", searchFilter},
		{"notes of many commits stay found", manyNotes},
		{"common words do not hide rare ones", commonWords},
		{"words are never a query language", noLanguage},
	}
}

// find gives the ids of the runs that words find, the best first.
func find(t *testing.T, s run.Index, words ...string) []string {
	t.Helper()
	hits, err := s.Search(t.Context(), run.Search{Words: words})
	must(t, err)
	var ids []string
	for _, h := range hits {
		ids = append(ids, h.Record.ID)
	}
	return ids
}

// wantFound ends the test where words do not find just these runs, in any
// order.
func wantFound(t *testing.T, s run.Index, words []string, expected ...string) {
	t.Helper()
	ids := find(t, s, words...)
	slices.Sort(ids)
	want(t, fmt.Sprintf("what %q finds", words), ids, expected)
}

// about makes a run with a goal and nothing else that words would find.
func about(t *testing.T, s run.Journal, id, goal string) run.Record {
	t.Helper()
	r := newRecord(id, "ada")
	r.Goal, r.Workflow, r.Name, r.Project = goal, "w", "w", run.Project{}
	return create(t, s, r)
}

func foundByAll(t *testing.T, f *fixture) {
	s := f.open(t)
	about(t, s, "r_other", "something else")
	r := newRecord("r_a", "ada")
	r.Goal, r.Workflow = "mend the login", "bug-investigation"
	r.Project = run.Project{ID: "0123456789ab", Path: "/home/ada/src/warehouse", Branch: "feature/oauth-tokens"}
	c := first(r)
	c.Words = "the cache was stale"
	must(t, s.Create(t.Context(), definitionOf(r), c))
	c = next(r, "two")
	c.Words = "a thermometer was found"
	must(t, s.Append(t.Context(), c))
	for _, word := range []string{"login", "investigation", "bug", "warehouse", "oauth", "tokens", "stale", "thermometer"} {
		wantFound(t, s, []string{word}, "r_a")
		wantFound(t, s, []string{"zeppelin", word}, "r_a") // any of the words
	}
	wantFound(t, s, []string{"zeppelin"})
	wantFound(t, s, nil)
	wantFound(t, s, []string{""})
}

func stemmed(t *testing.T, f *fixture) {
	s := f.open(t)
	about(t, s, "r_a", "Refactor the AUTH modules")
	about(t, s, "r_b", "Überprüfe naïve tests")
	wantFound(t, s, []string{"refactoring"}, "r_a")
	wantFound(t, s, []string{"refactored"}, "r_a")
	wantFound(t, s, []string{"auth", "MODULE"}, "r_a")
	wantFound(t, s, []string{"überprüfe"}, "r_b")
	wantFound(t, s, []string{"testing"}, "r_b")
}

func ranked(t *testing.T, f *fixture) {
	s := f.open(t)
	for i := range 20 {
		about(t, s, fmt.Sprintf("r_common_%02d", i), "mend the service")
	}
	about(t, s, "r_rare", "mend the barometer")
	about(t, s, "r_both", "mend the service of the barometer")
	got := find(t, s, "service", "barometer")
	if len(got) != 22 || got[0] != "r_both" || got[1] != "r_rare" {
		t.Fatalf("got %v, want all runs: first r_both with both words, then r_rare with the rarer one", got)
	}
	hits, err := s.Search(t.Context(), run.Search{Words: []string{"service", "barometer"}})
	must(t, err)
	if !slices.IsSortedFunc(hits, func(a, b run.Hit) int { return int(b.Score*1e6) - int(a.Score*1e6) }) {
		t.Error("the scores are not in order")
	}
	if hits[0].Score <= hits[1].Score || hits[1].Score <= hits[2].Score || hits[21].Score <= 0 {
		t.Errorf("the scores do not tell the hits apart: %v, %v, %v, … %v", hits[0].Score, hits[1].Score, hits[2].Score, hits[21].Score)
	}
}

func foundOnce(t *testing.T, f *fixture) {
	s := f.open(t)
	r := about(t, s, "r_a", "count the zebras")
	for i := range 6 {
		c := next(r, fmt.Sprint(i))
		c.Words = "counted another zebra today"
		must(t, s.Append(t.Context(), c))
		r = c.Record
	}
	hits, err := s.Search(t.Context(), run.Search{Words: []string{"zebra", "zebras", "count"}})
	must(t, err)
	want(t, "hits", len(hits), 1)
	wantRecord(t, hits[0].Record, r)
	if hits[0].Excerpt != "" && !strings.Contains(strings.ToLower(hits[0].Excerpt), "zebra") {
		t.Errorf("the excerpt %q has none of the words", hits[0].Excerpt)
	}
	if len(hits[0].Excerpt) > 500 {
		t.Errorf("the excerpt has %d bytes", len(hits[0].Excerpt))
	}
}

func searchFilter(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	fill(t, s)
	search := func(filter run.Filter) []string {
		hits, err := s.Search(ctx, run.Search{Filter: filter, Words: []string{"aim"}})
		must(t, err)
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.Record.ID)
		}
		slices.Sort(ids)
		return ids
	}
	want(t, "by user", search(run.Filter{User: "bob"}), []string{"r_1"})
	want(t, "by project", search(run.Filter{User: "ada", Project: "ba9876543210"}), []string{"r_2"})
	want(t, "by workflow", search(run.Filter{Workflow: "review"}), []string{"r_3"})
	want(t, "by person", search(run.Filter{Person: true}), []string{"r_4"})
	want(t, "by status", search(run.Filter{Statuses: []engine.Status{engine.StatusWaiting}}), []string{"r_4", "r_5"})
	want(t, "by time", search(run.Filter{Since: at(2), Until: at(4)}), []string{"r_2", "r_3"})
	want(t, "by limit", len(search(run.Filter{Limit: 3})), 3)
	want(t, "all", len(search(run.Filter{})), 8)
}

func manyNotes(t *testing.T, f *fixture) {
	const commits = 40
	s, ctx := f.open(t), t.Context()
	r := about(t, s, "r_a", "a long run")
	about(t, s, "r_b", "a short run")
	for i := range commits {
		c := next(r, fmt.Sprint(i))
		c.Words = fmt.Sprintf("note marker%d of it", i)
		must(t, s.Append(ctx, c))
		r = c.Record
	}
	for i := range commits {
		wantFound(t, s, []string{fmt.Sprintf("marker%d", i)}, "r_a")
	}
}

func commonWords(t *testing.T, f *fixture) {
	const runs, notes = 150, 3
	s, ctx := f.open(t), t.Context()
	about(t, s, "r_old", "look at the albatross of the harbour")
	for i := range runs {
		r := about(t, s, fmt.Sprintf("r_%03d", i), "look at the harbour")
		for n := range notes {
			c := next(r, fmt.Sprint(n))
			c.Words = "the harbour again"
			must(t, s.Append(ctx, c))
			r = c.Record
		}
	}
	got := find(t, s, "harbour", "albatross", "the")
	want(t, "hits within the limit", len(got), 100)
	want(t, "the best hit", got[0], "r_old")
	want(t, "different hits", len(slices.Compact(slices.Sorted(slices.Values(got)))), 100)
}

// operators are words that are a language to one search engine or another.
func operators() []string {
	return []string{
		"AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR(a b)", `"`, `""`, `"unbalanced`, "*", "mar*", "^mark", "+", "-", "-mark",
		"words:mark", "goal : mark", "(", ")", "{words} : mark", "&", "|", "!", "<->", ":*", "mark:*", "'", "''", "a'b", `\`, `\'`, "%", "_",
		"mark & !mark", "$1", "?", ";", "--", "/*", "mark\tor\nmark", " ", "🚀", "日本語", "é", "mark\u0301",
	}
}

func noLanguage(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	about(t, s, "r_a", "lighthouse keeper")
	about(t, s, "r_b", "mark twain")
	for _, word := range operators() {
		if _, err := s.Search(ctx, run.Search{Words: []string{word}}); err != nil {
			t.Errorf("the word %q alone: %v", word, err)
		}
		ids := find(t, s, word, "lighthouse")
		if !slices.Contains(ids, "r_a") {
			t.Errorf("with the word %q a run is not found by the other word: %v", word, ids)
		}
	}
	wantFound(t, s, []string{"NOT", "mark"}, "r_b")
	wantFound(t, s, []string{"mar*"})       // no prefixes
	wantFound(t, s, []string{"words:keep"}) // no columns; both words would have to be there
	if ids := find(t, s, append(operators(), "lighthouse")...); !slices.Contains(ids, "r_a") {
		t.Errorf("with all operators at once a run is not found: %v", ids)
	}
	if ids := find(t, s, strings.Repeat("long", 100_000), "lighthouse"); !slices.Contains(ids, "r_a") {
		t.Errorf("beside a very long word a run is not found: %v", ids)
	}
}
