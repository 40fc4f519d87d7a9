package compress

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/gosource"
	"pgregory.net/rapid"
)

// testFragments returns texts to which several splitting rules apply.
func testFragments() []string {
	return []string{
		" ", "  ", "\t", "\n", "\r\n", "\n\n", "\v", "\f", "\x00", "\x1c", "\x7f", "a", "Z", "foo", "Foo", "FOO", "fooBar", "HTTPServer", "x1", "12", "1234567",
		"'s", "'S", "'t", "'re", "'VE", "'ll", "'d", "'m", "'x", "'", "\"", "(", ")", "/", "//", "\\n", "--", "=>", "_", ".", ",", "{\"a\":", "é", "ſ", "日本", "\u0301",
		"\u00a0", "\u2028", "…", "… ", "—", "“", "’s", "\u2010", "\u2027", "\u200f", "\xe2\x80", "😀", "\xff", "<|endoftext|>", "0x1f", "don't", "it'sorry", strings.Repeat("a", 40), strings.Repeat("-", 70), strings.Repeat(" ", 90),
	}
}

// TestPiecesMatchTokenizer checks that counting by pieces equals the count of the tokenizer,
// with and without cached pieces.
func TestPiecesMatchTokenizer(t *testing.T) {
	t.Parallel()
	tokenizer := NewTokenizer()
	part := rapid.OneOf(rapid.SampledFrom(testFragments()), rapid.StringN(0, 6, -1), rapid.StringMatching(`[ -~\n\t]{0,12}`))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "")
		want := tokenizer.countExact(text)
		for range 2 {
			if got := tokenizer.Count(text); got != want {
				t.Fatalf("%q has %d tokens by its pieces, %d by the tokenizer", text, got, want)
			}
		}
	})
}

// TestPiecesMatchTokenizerOnRealTexts checks that counting by pieces equals the count of
// the tokenizer for typical content of contexts.
func TestPiecesMatchTokenizerOnRealTexts(t *testing.T) {
	t.Parallel()
	tokenizer := NewTokenizer()
	texts := map[string]string{}
	for _, name := range []string{"@code", "@diff", "@grep", "@buildlog", "@prose", "@log", "@trace", "@rows"} {
		texts[name] = longValueOf(t, name)
	}
	root := gosource.Dir()
	for _, name := range []string{"net/http/server.go", "strings/example_test.go", "unicode/utf8/utf8_test.go", "cmd/README.vendor"} {
		if text, err := os.ReadFile(filepath.Join(root, name)); err == nil {
			texts[name] = string(text)
		}
	}
	for name, text := range texts {
		if got, want := tokenizer.Count(text), tokenizer.countExact(text); got != want {
			t.Errorf("%s: %d by pieces, %d by the tokenizer", name, got, want)
		}
	}
	if n := len(tokenizer.pieces.known); n == 0 || n > maxPieces {
		t.Errorf("%d pieces are cached", n)
	}
}

// TestPiecesAreBounded checks that the cache is bounded, keeps no long piece, and is safe
// for concurrent use.
func TestPiecesAreBounded(t *testing.T) {
	t.Parallel()
	var p pieceCache
	exact := func(text string) int { return len(text) }
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range maxPieces / 2 {
				word := spellNumber(i*maxPieces + j)
				if got := p.countText(word, exact); got != len(word) {
					t.Errorf("%q has %d", word, got)
				}
			}
		})
	}
	wg.Wait()
	if n := len(p.known); n == 0 || n > maxPieces {
		t.Errorf("%d pieces are cached, want at most %d", n, maxPieces)
	}
	p = pieceCache{}
	p.countText(strings.Repeat("a", longestPiece+1), exact)
	if len(p.known) != 0 {
		t.Error("a long piece is cached")
	}
}

// spellNumber returns a different word for each number.
func spellNumber(n int) string {
	word := []byte("word")
	for ; n > 0; n /= 26 {
		word = append(word, byte('a'+n%26))
	}
	return string(word)
}

// FuzzPieces searches for a text that is counted differently by pieces.
func FuzzPieces(f *testing.F) {
	for _, text := range testFragments() {
		f.Add(text + " " + text)
	}
	tokenizer := NewTokenizer()
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := tokenizer.Count(text), tokenizer.countExact(text); got != want {
			t.Errorf("%q has %d tokens by its pieces, %d by the tokenizer", text, got, want)
		}
	})
}
