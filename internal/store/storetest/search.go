package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/searchcases"
)

// searchTests cover the search of runs by words.
func searchTests() []subtest {
	return []subtest{
		{"a run is found by the words of its record and of its commits", testSearchableTexts},
		{"words are stemmed and their case does not matter", testStemming},
		{"words, beginnings of words, parts of identifiers and pairs of characters are found", testSearchCases},
		{"more words, and rarer ones, rank higher", testRanking},
		{"a matching run is one hit, with the event of a match", testSingleHit},
		{"a filter limits a search", testSearchFilter},
		{"notes of many commits are searchable", testManyNotes},
		{"common words do not hide rare ones", testCommonWords},
		{"words are never operators of a query", testNoQueryLanguage},
	}
}

// searchIDs returns the ids of the runs that match words, the best first.
func searchIDs(t *testing.T, s run.Index, query ...string) []string {
	t.Helper()
	hits, err := s.Search(t.Context(), run.Search{Query: words.Parse(strings.Join(query, " "))})
	requireNoError(t, err)
	var ids []string
	for _, h := range hits {
		ids = append(ids, h.Record.ID)
	}
	return ids
}

// checkFound fails the test unless words match exactly these runs, in any order.
func checkFound(t *testing.T, s run.Index, query []string, expected ...string) {
	t.Helper()
	ids := searchIDs(t, s, query...)
	slices.Sort(ids)
	checkEqual(t, fmt.Sprintf("what %q finds", query), ids, expected)
}

// createRunWithGoal creates a run whose only searchable text is its goal.
func createRunWithGoal(t *testing.T, s run.Journal, id, goal string) run.Record {
	t.Helper()
	r := newRecord(id, "ada")
	r.Goal, r.Workflow, r.Name, r.Project = goal, "w", "w", run.Project{}
	return createRun(t, s, r)
}

func testSearchableTexts(t *testing.T, f *fixture) {
	s := f.openStore(t)
	createRunWithGoal(t, s, "r_other", "something else")
	r := newRecord("r_a", "ada")
	r.Goal, r.Workflow = "repair the login", "bug-investigation"
	r.Project = run.Project{ID: "0123456789ab", Path: "/home/ada/src/warehouse", Branch: "feature/oauth-tokens"}
	c := createCommit(r)
	c.Terms = append(c.Terms, words.Of("the cache was stale")...)
	requireNoError(t, s.Create(t.Context(), newDefinition(r), c))
	c = appendCommit(r, "two")
	c.Terms = words.Of("a thermometer was found")
	requireNoError(t, s.Append(t.Context(), c))
	for _, word := range []string{"login", "investigation", "bug", "warehouse", "oauth", "tokens", "stale", "thermometer"} {
		checkFound(t, s, []string{word}, "r_a")
		checkFound(t, s, []string{"zeppelin", word}, "r_a") // any of the words
	}
	checkFound(t, s, []string{"zeppelin"})
	checkFound(t, s, nil)
	checkFound(t, s, []string{""})
}

func testStemming(t *testing.T, f *fixture) {
	s := f.openStore(t)
	createRunWithGoal(t, s, "r_a", "Refactor the AUTH modules")
	createRunWithGoal(t, s, "r_b", "Überprüfe naïve tests")
	checkFound(t, s, []string{"refactoring"}, "r_a")
	checkFound(t, s, []string{"refactored"}, "r_a")
	checkFound(t, s, []string{"auth", "MODULE"}, "r_a")
	checkFound(t, s, []string{"überprüfe"}, "r_b")
	checkFound(t, s, []string{"testing"}, "r_b")
}

func testSearchCases(t *testing.T, f *fixture) {
	s := f.openStore(t)
	for name, text := range searchcases.Texts() {
		createRunWithGoal(t, s, "r_"+name, text)
	}
	for _, c := range searchcases.Cases() {
		if len(words.Parse(c.Query)) > 1 && len(c.Found) == 0 {
			continue // one of the words is enough to find a run
		}
		got := searchIDs(t, s, c.Query)
		for i, name := range c.Found {
			if i >= len(got) || !slices.Contains(got[:len(c.Found)], "r_"+name) {
				t.Errorf("%q finds %q, not first %q", c.Query, got, c.Found)
			}
		}
		if len(c.Found) == 0 && len(got) > 0 {
			t.Errorf("%q finds %q", c.Query, got)
		}
	}
	createRunWithGoal(t, s, "r_whole", "auth")
	createRunWithGoal(t, s, "r_newer", "authority")
	if got := searchIDs(t, s, "auth"); len(got) != 3 || got[0] != "r_whole" {
		t.Errorf("the best match is not the whole word: %q", got)
	}
}

func testRanking(t *testing.T, f *fixture) {
	s := f.openStore(t)
	for i := range 20 {
		createRunWithGoal(t, s, fmt.Sprintf("r_common_%02d", i), "repair the service")
	}
	createRunWithGoal(t, s, "r_rare", "repair the barometer")
	createRunWithGoal(t, s, "r_both", "repair the service of the barometer")
	got := searchIDs(t, s, "service", "barometer")
	if len(got) != 22 || got[0] != "r_both" || got[1] != "r_rare" {
		t.Fatalf("got %v, want all runs: first r_both with both words, then r_rare with the rarer word", got)
	}
	hits, err := s.Search(t.Context(), run.Search{Query: words.Parse("service barometer")})
	requireNoError(t, err)
	if !slices.IsSortedFunc(hits, func(a, b run.Hit) int { return int(b.Score*1e6) - int(a.Score*1e6) }) {
		t.Error("the scores are not in order")
	}
	if hits[0].Score <= hits[1].Score || hits[1].Score <= hits[2].Score || hits[21].Score <= 0 {
		t.Errorf("the scores of different hits are equal: %v, %v, %v, … %v", hits[0].Score, hits[1].Score, hits[2].Score, hits[21].Score)
	}
}

func testSingleHit(t *testing.T, f *fixture) {
	s := f.openStore(t)
	r := createRunWithGoal(t, s, "r_a", "count the zebras")
	for i := range 6 {
		c := appendCommit(r, fmt.Sprint(i))
		c.Terms = words.Of("counted another zebra today")
		requireNoError(t, s.Append(t.Context(), c))
		r = c.Record
	}
	hits, err := s.Search(t.Context(), run.Search{Query: words.Parse("zebra zebras count")})
	requireNoError(t, err)
	checkEqual(t, "hits", len(hits), 1)
	checkRecord(t, hits[0].Record, r)
	if hits[0].Seq < 1 || hits[0].Seq > r.Seq {
		t.Errorf("the hit is at event %d of %d", hits[0].Seq, r.Seq)
	}
}

func testSearchFilter(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	createRuns(t, s)
	search := func(filter run.Filter) []string {
		hits, err := s.Search(ctx, run.Search{Filter: filter, Query: words.Parse("goal")})
		requireNoError(t, err)
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.Record.ID)
		}
		slices.Sort(ids)
		return ids
	}
	checkEqual(t, "by user", search(run.Filter{User: "bob"}), []string{"r_1"})
	checkEqual(t, "by project", search(run.Filter{User: "ada", Project: "ba9876543210"}), []string{"r_2"})
	checkEqual(t, "by workflow", search(run.Filter{Workflow: "review"}), []string{"r_3"})
	checkEqual(t, "by person", search(run.Filter{Person: true}), []string{"r_4"})
	checkEqual(t, "by status", search(run.Filter{Statuses: []engine.Status{engine.StatusWaiting}}), []string{"r_4", "r_5"})
	checkEqual(t, "by time", search(run.Filter{Since: minutesAfter(2), Until: minutesAfter(4)}), []string{"r_2", "r_3"})
	checkEqual(t, "by limit", len(search(run.Filter{Limit: 3})), 3)
	checkEqual(t, "all", len(search(run.Filter{})), 8)
}

func testManyNotes(t *testing.T, f *fixture) {
	const commits = 40
	s, ctx := f.openStore(t), t.Context()
	r := createRunWithGoal(t, s, "r_a", "a long run")
	createRunWithGoal(t, s, "r_b", "a short run")
	for i := range commits {
		c := appendCommit(r, fmt.Sprint(i))
		c.Terms = words.Of(fmt.Sprintf("note marker%d", i))
		requireNoError(t, s.Append(ctx, c))
		r = c.Record
	}
	for i := range commits {
		checkFound(t, s, []string{fmt.Sprintf("marker%d", i)}, "r_a")
	}
}

func testCommonWords(t *testing.T, f *fixture) {
	const runs, notes = 150, 3
	s, ctx := f.openStore(t), t.Context()
	createRunWithGoal(t, s, "r_old", "look at the albatross of the harbour")
	for i := range runs {
		r := createRunWithGoal(t, s, fmt.Sprintf("r_%03d", i), "look at the harbour")
		for n := range notes {
			c := appendCommit(r, fmt.Sprint(n))
			c.Terms = words.Of("the harbour again")
			requireNoError(t, s.Append(ctx, c))
			r = c.Record
		}
	}
	got := searchIDs(t, s, "harbour", "albatross", "the")
	checkEqual(t, "hits within the limit", len(got), 100)
	checkEqual(t, "the best hit", got[0], "r_old")
	checkEqual(t, "different hits", len(slices.Compact(slices.Sorted(slices.Values(got)))), 100)
}

// queryOperators returns words that are operators in the query languages of search engines.
func queryOperators() []string {
	return []string{
		"AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR(a b)", `"`, `""`, `"unbalanced`, "*", "mar*", "^mark", "+", "-", "-mark",
		"words:mark", "goal : mark", "(", ")", "{words} : mark", "&", "|", "!", "<->", ":*", "mark:*", "'", "''", "a'b", `\`, `\'`, "%", "_",
		"mark & !mark", "$1", "?", ";", "--", "/*", "mark\tor\nmark", " ", "🚀", "日本語", "é", "mark\u0301",
	}
}

func testNoQueryLanguage(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	createRunWithGoal(t, s, "r_a", "lighthouse keeper")
	createRunWithGoal(t, s, "r_b", "mark twain")
	for _, word := range queryOperators() {
		if _, err := s.Search(ctx, run.Search{Query: words.Parse(word)}); err != nil {
			t.Errorf("a search for the word %q returns %v", word, err)
		}
		ids := searchIDs(t, s, word, "lighthouse")
		if !slices.Contains(ids, "r_a") {
			t.Errorf("with the word %q a run is not found by the other word: %v", word, ids)
		}
	}
	checkFound(t, s, []string{"NOT", "mark"}, "r_b")
	checkFound(t, s, []string{"mar*"}, "r_b")
	checkFound(t, s, []string{"words:lighthouse"}, "r_a") // no column filter: one of the words is enough
	if ids := searchIDs(t, s, append(queryOperators(), "lighthouse")...); !slices.Contains(ids, "r_a") {
		t.Errorf("with all operators at once a run is not found: %v", ids)
	}
	if ids := searchIDs(t, s, strings.Repeat("long", 100_000), "lighthouse"); !slices.Contains(ids, "r_a") {
		t.Errorf("with a very long word a run is not found: %v", ids)
	}
}
