package run

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseQuery(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 18, 15, 4, 0, 0, time.UTC) // a Wednesday
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	tests := []struct {
		text         string
		words        string
		since, until time.Time
	}{
		{"resume the auth refactoring", "auth refactoring", time.Time{}, time.Time{}},
		{"Please continue what I did yesterday on billing.", "billing", day(17), day(18)},
		{"today", "", day(18), time.Time{}},
		{"parser fuzzing this week", "parser fuzzing", day(16), time.Time{}},
		{"last week's parser", "parser", day(9), day(16)},
		{"parser, last week", "parser", day(9), day(16)},
		{"last month: invoices", "invoices", time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		{"2026-11-03 release", "release", day(3), day(4)},
		{"feature/auth-tokens", "feature auth tokens", time.Time{}, time.Time{}},
		{`AND OR NEAR( "auth" *`, "near auth", time.Time{}, time.Time{}},
		{"where did we leave off?", "", time.Time{}, time.Time{}},
		{"", "", time.Time{}, time.Time{}},
		{strings.Repeat("word ", 100), "word", time.Time{}, time.Time{}},
	}
	for _, tt := range tests {
		q := parseQuery(tt.text, now)
		var list []string
		for _, w := range q.words {
			list = append(list, w.Text)
		}
		got := strings.Join(list, " ")
		if d := cmp.Diff([]any{tt.words, tt.since, tt.until}, []any{got, q.since, q.until}); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, d)
		}
	}
}

// FuzzParseQuery checks that the parser never panics, and that it returns at most 32 words,
// none of which is empty or contains a space or a quote.
func FuzzParseQuery(f *testing.F) {
	f.Add("resume the auth refactoring from last week")
	f.Add("2026-11-03 \x00 é")
	f.Fuzz(func(t *testing.T, text string) {
		q := parseQuery(text, time.Unix(0, 0).UTC())
		if len(q.words) > 32 {
			t.Errorf("%d words", len(q.words))
		}
		for _, w := range q.words {
			if w.Text == "" || strings.ContainsAny(w.Text, " \"'") {
				t.Errorf("a word is %q", w)
			}
		}
	})
}
