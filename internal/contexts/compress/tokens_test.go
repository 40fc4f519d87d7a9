package compress

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/testutil/gosource"
	"pgregory.net/rapid"
)

// TestTokenizerCounts checks counts that the publisher of the vocabulary lists.
func TestTokenizerCounts(t *testing.T) {
	t.Parallel()
	tokenizer := NewTokenizer()
	for text, want := range map[string]int{"": 0, "hello world": 2, "tiktoken is great!": 6, "お誕生日おめでとう": 8} {
		if got := tokenizer.Count(text); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

// TestEstimate checks that for Go source, prose, logs and JSON the error of Estimate is
// within the bounds in docs/context.md.
func TestEstimate(t *testing.T) {
	t.Parallel()
	exact := NewTokenizer()
	texts := map[string]string{}
	for _, name := range []string{"@code", "@diff", "@grep", "@buildlog", "@prose", "@log", "@trace", "@rows"} {
		texts[name] = longValueOf(t, name)
	}
	root := gosource.Dir()
	for _, name := range []string{"net/http/server.go", "go/token/token.go", "cmd/README.vendor", "crypto/tls/common.go"} {
		if text, err := os.ReadFile(filepath.Join(root, name)); err == nil {
			texts[name] = string(text)
		}
	}
	total, guessed := 0, 0
	for name, text := range texts {
		want, got := exact.Count(text), Estimate(text)
		total += want
		guessed += got
		off := float64(got)/float64(want) - 1
		t.Logf("%-22s %7d tokens, %+.0f percent", name, want, 100*off)
		if math.Abs(off) > 0.35 {
			t.Errorf("%s: %d guessed, %d counted", name, got, want)
		}
	}
	if off := float64(guessed)/float64(total) - 1; math.Abs(off) > 0.10 {
		t.Errorf("the total differs by %+.0f percent", 100*off)
	}
}

// TestKeyWords checks the splitting of keys into whole words.
func TestKeyWords(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"userGoal": "user goal", "DEBUG_LOG": "debug log", "prURL": "pr url", "APIDesign": "api design", "catalog": "catalog",
		"user-goal.v2": "user goal v", "temp1": "temp", "": "", "_x": "x", "ünïcode": "ünïcode", "loginFlow": "login flow",
	} {
		if got := strings.Join(keyWords(key), " "); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// FuzzSplitSpans checks that the spans of any text cover the text, and that a reduced value
// is valid JSON.
func FuzzSplitSpans(f *testing.F) {
	f.Add("2026-03-01T10:00:00Z INFO a=1\n2026-03-01T10:00:01Z ERROR b\n\tat c\n", 10)
	f.Add("A sentence. Another one, e.g. this.\n\n- an entry\n", 3)
	f.Add("\xff\xfe.. \x00\n\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, budget int) {
		for _, kind := range []textKind{proseText, logText, codeText} {
			at := 0
			for _, s := range splitSpans(text, kind) {
				if s.from != at || s.to <= s.from {
					t.Fatalf("a part from %d to %d follows one that ends at %d", s.from, s.to, at)
				}
				at = s.to
			}
			if at != len(text) {
				t.Fatalf("the parts end at %d, want %d", at, len(text))
			}
		}
		value := quoteJSON(text)
		item := Item{Key: "notes", Value: value, Verdict: Verdict{Layer: Useful, Why: "x"}}
		item.Tokens = itemTokens(Estimator{}, item.Key, value)
		r := Compress([]Item{item}, Options{Budget: budget%4096 + 1})
		if out, ok := r.Context["notes"]; ok && !json.Valid(out) {
			t.Fatalf("no JSON: %q", out)
		}
		if back, err := Restore(r.Context, r.Omitted, readFrom([]Item{item})); err != nil || string(back["notes"]) != string(value) {
			t.Fatalf("read back %q, %v", back["notes"], err)
		}
	})
}

// TestReadLogLine checks the detection of log lines and levels.
func TestReadLogLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"2026-03-01T10:00:00Z INFO a": "info", "ERROR: b": "error", "[12:00:01] started": "", "level=warn msg=x": "warn",
		"10:00:01.123 DEBUG x": "debug",
	} {
		got, ok := readLogLine(line)
		if !ok || got.level != want {
			t.Errorf("%q: %q, %v", line, got.level, ok)
		}
	}
	for _, line := range []string{"The importer reads.", "", "12 monkeys", "a-b-c"} {
		if _, ok := readLogLine(line); ok {
			t.Errorf("%q is classified as a log line", line)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.String().Draw(t, "line")
		a, okA := readLogLine(line)
		b, okB := readLogLine(line)
		if a != b || okA != okB {
			t.Fatal("the result is not deterministic")
		}
	})
}

// TestStems checks that cached stems equal computed ones, that the cache is bounded, and
// that concurrent use is safe.
func TestStems(t *testing.T) {
	t.Parallel()
	const text = "The tests decided: testing, deciding and naïve décisions failed at ENOENT, by src/testing_file.go of a test…"
	alone := newLexicon(nil)
	defer alone.unlockStems()
	want := alone.readTerms(nil, text)
	shared := NewStemCache()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				x := newLexicon(shared)
				got := x.readTerms(nil, text)
				x.unlockStems()
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(term{})); diff != "" {
					t.Errorf("with a memory (-without):\n%s", diff)
				}
			}
		})
	}
	wg.Wait()
	for word, want := range map[string]string{"Decided": "decid", "the": "", "tests": "test", "a": "", "ENOENT": "enoent"} {
		if got := stemOf(word); got != want {
			t.Errorf("the stem of %q is %q, want %q", word, got, want)
		}
	}
	for i := 0; i < maxStems+10; i += 10 {
		words := map[string]string{}
		for j := range 10 {
			words[spellNumber(i+j)] = spellNumber(i + j)
		}
		shared.storeStems(words)
	}
	if n := len(shared.known); n == 0 || n > maxStems || len(shared.numbers) > maxStems {
		t.Errorf("%d words are cached, %d stems", n, len(shared.numbers))
	}
}

// TestReadJSONParts checks that the scanner returns the same parts as encoding/json, and
// that invalid JSON does not panic.
func TestReadJSONParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab\\\"/\n\t\b\x01\u2028é…😀<,:[]{} 1"))).Draw(t, "text")
		plain := string(jsontext.AppendString(nil, text))
		escaped, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []string{plain, string(escaped)} {
			if got, ok := unquoteText(raw); !ok || got != text {
				t.Fatalf("%s is parsed as %q, want %q", raw, got, text)
			}
		}
		list := []any{text, 1.5, nil, true, map[string]any{text: []any{text}, "b": text}, []any{}, map[string]any{}}
		for _, indent := range []string{"", " \t"} {
			raw, err := json.MarshalIndent(list, "", indent)
			if err != nil {
				t.Fatal(err)
			}
			var want []json.RawMessage
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			got, ok := readArray(string(raw))
			if !ok || len(got) != len(want) {
				t.Fatalf("%s has %d elements, not %d", raw, len(got), len(want))
			}
			for i := range got {
				if got[i] != string(want[i]) {
					t.Fatalf("element %d of %s is %s, not %s", i, raw, got[i], want[i])
				}
			}
			members, ok := readObject(got[4])
			if !ok || len(members) != 2 && text != "b" {
				t.Fatalf("%s is not an object with two members", got[4])
			}
			for _, m := range members {
				if value, ok := list[4].(map[string]any)[m.key]; !ok || m.key == "b" && m.value != plain && m.value != string(escaped) {
					t.Fatalf("member %q of %s is %s, not %v", m.key, got[4], m.value, value)
				}
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("[]{}\",:\\ a1"))).Draw(t, "text")
		readArray(text)
		readObject(text)
		unquoteText(text)
	})
}
