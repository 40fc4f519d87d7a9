package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// TestPlainWords checks the indexed words of texts with punctuation, accents, other
// scripts, invalid bytes and very long words.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \n\x00-_./", ""},
		{"Repair the LOGIN", "repair the login"},
		{"feature/oauth-tokens auth.go foo_bar a@b", "feature oauth tokens auth go foo bar a b"},
		{"Überprüfe naïve Tests", "uberprufe naive tests"},
		{"e\u0301 é", "e e"},
		{"日本語 🚀 Ελλάδα", "日本語 ελλαδα"},
		{"'a' & !b | (c):*", "a b c"},
		{"v1.2 1e5", "v1 2 1e5"},
		{"a\xff\xfeb", "a b"},
		{"short " + strings.Repeat("long", 1000) + " end", "short end"},
	} {
		if got := postgres.PlainWords(c.text); got != c.want {
			t.Errorf("%.60q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// TestNotes checks that the rows for a text have all words of the text in order and that no
// row is too long for an excerpt.
func TestNotes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zäß日0-9./-]{1,12}`), 1, 30).Draw(t, "words")
		words = slices.Repeat(words, rapid.IntRange(1, 300).Draw(t, "times"))
		text := strings.Join(words, rapid.SampledFrom([]string{" ", "\n", "\x00", "\xff "}).Draw(t, "between"))
		texts, plain := postgres.Notes(text)
		for i, row := range texts {
			if len(row) > postgres.MaxNote || !utf8.ValidString(row) || strings.Contains(row, "\x00") || plain[i] == "" {
				t.Fatalf("row %d of %d bytes cannot be stored, or has no words", i, len(row))
			}
		}
		if diff := cmp.Diff(postgres.PlainWords(text), strings.Join(plain, " ")); diff != "" {
			t.Fatalf("words (-text +rows):\n%s", diff)
		}
	})
	// A word that is longer than a row is not stored.
	if texts, plain := postgres.Notes(strings.Repeat("é", 2*postgres.MaxNote)); len(texts) != 0 || len(plain) != 0 {
		t.Errorf("%d rows", len(texts))
	}
}

// TestSearchOfCommonWords checks a search for a word that very many runs contain: the
// filters for the user and the project apply, at most 100 runs are returned, and a run that
// also has a rare word is the first.
func TestSearchOfCommonWords(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgres.Options{URL: newSchemaURL(t)})
	d, c := newTestRun("r_old", "ada", "repair the service")
	c.Record.Project.ID = "ba9876543210"
	requireNoError(t, s.Create(t.Context(), d, c))
	createSimilarRuns(t, s, postgres.CommonRows+200)
	find := func(f run.Filter, words ...string) []string {
		hits, err := s.Search(t.Context(), run.Search{Filter: f, Words: words})
		requireNoError(t, err)
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.Record.ID)
		}
		return ids
	}
	for _, user := range []string{"", "ada"} {
		if got := find(run.Filter{User: user, Project: "ba9876543210"}, "service"); !slices.Equal(got, []string{"r_old"}) {
			t.Errorf("user %q finds in the project %v", user, got)
		}
		if got := find(run.Filter{User: user}, "service"); len(got) != 100 {
			t.Errorf("user %q: %d hits", user, len(got))
		}
	}
	rare := fmt.Sprintf("number%d", 7)
	if got := find(run.Filter{User: "ada", Limit: 3}, "service", rare, "gateway"); len(got) != 3 || got[0] != "r_000007" {
		t.Errorf("a search with a rare word finds %v", got)
	}
	if got := find(run.Filter{User: "bob"}, "service"); got != nil {
		t.Errorf("a different user finds %v", got)
	}
}
