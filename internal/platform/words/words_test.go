package words_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/testutil/searchcases"
)

// matches reports whether a text with terms has all words of a query.
func matches(terms []string, q words.Query) bool {
	return !slices.ContainsFunc(q, func(w words.Word) bool {
		return !slices.ContainsFunc(w.Any(), func(all []string) bool {
			return !slices.ContainsFunc(all, func(one string) bool {
				beginning, prefix := strings.CutSuffix(one, "*")
				return !slices.ContainsFunc(terms, func(term string) bool {
					return term == beginning || prefix && strings.HasPrefix(term, beginning)
				})
			})
		})
	})
}

func newHash() words.Hash {
	return func(text []byte) []byte { sum := sha256.Sum256(text); return sum[:] }
}

// TestCases checks which texts a query finds, with plain and with hashed terms.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, c := range searchcases.Cases() {
		for name, text := range searchcases.Texts() {
			terms, q := words.Of(text), words.Parse(c.Query)
			want := slices.Contains(c.Found, name)
			if got := matches(terms, q); got != want {
				t.Errorf("%q finds %q: %v", c.Query, text, got)
			}
			hash := newHash()
			if got := matches(hash.Terms(terms), hash.Query(q)); got != want {
				t.Errorf("hashed, %q finds %q: %v", c.Query, text, got)
			}
			if got := matches(terms, hash.Query(q)); got != want {
				t.Errorf("the hashed query %q finds the plain text %q: %v", c.Query, text, got)
			}
			if excerpt := words.Excerpt("before "+text, q); len(c.Found) > 0 && want && excerpt == "" && !strings.ContainsAny(c.Query, " _") {
				t.Errorf("%q has no excerpt of %q", c.Query, text)
			}
		}
	}
}

// TestTerms checks the terms of texts with punctuation, accents, other scripts, invalid bytes
// and very long words.
func TestTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \n\x00-_./", ""},
		{"Repairing the LOGIN", "repairing repair the login"},
		{"feature/oauth-token foo_bar a@b", "feature featur oauth token foo bar foobar a b"},
		{"validateJWT JWTToken", "validate valid jwt validatejwt token jwttoken"},
		{"naïve e\u0301 ﬁt", "naive naiv e fit"},
		{"日本語 🚀 Ελλάδα", "日本 本語 語 ελλαδα"},
		{"'a' & !b | (c):*", "a b c"},
		{"a\xff\xfeb", "a b"},
		{"short " + strings.Repeat("long", 1000) + " end", "short end"},
	} {
		if d := cmp.Diff(c.want, strings.Join(words.Of(c.text), " ")); d != "" {
			t.Errorf("%.60q (-want +got):\n%s", c.text, d)
		}
	}
}

// TestParse checks that stop words are left out unless a query has no other words.
func TestParse(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"find checkpoints about auth": "auth", "find the last run": "find the last run", "": "", "?!": "", "Auth AUTH": "auth",
	} {
		var list []string
		for _, w := range words.Parse(query) {
			list = append(list, w.Text)
		}
		if got := strings.Join(list, " "); got != want {
			t.Errorf("%q: %q", query, got)
		}
	}
}

// TestTermsAreOneToken checks that no text makes a term with a character that a store could
// take for a separator, a quote or an operator, and that each word of a text finds the text.
func TestTermsAreOneToken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z_0-9 ﷺ⑴½'*日本ไทย\x00]{1,30}`)).Draw(t, "text")
		terms := words.Of(text)
		for _, term := range append(terms, newHash().Terms(terms)...) {
			if term == "" || strings.ContainsFunc(term, func(r rune) bool { return r < 0x80 && !('a' <= r && r <= 'z' || '0' <= r && r <= '9') || r == 0xFFFD }) {
				t.Fatalf("%q has the term %q", text, term)
			}
		}
		if q := words.Parse(text); !matches(terms, q) {
			t.Fatalf("%q does not find itself: %q in %q", text, q, terms)
		}
	})
}

// BenchmarkTerms measures the terms of 100 KB of text, and those of the about 400 words of it
// that the index of a checkpoint has.
func BenchmarkTerms(b *testing.B) {
	var text strings.Builder
	for i := 0; text.Len() < 100<<10; i++ {
		text.WriteString("The cause of failure " + strings.Repeat(string(rune('a'+i%26)), 1+i%7) + " is a missing flush in journalTail; retries were exhausted. ")
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		words.Of(text.String())
	}
}
