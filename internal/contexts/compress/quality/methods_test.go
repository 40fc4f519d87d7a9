package quality

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
)

// plainText returns the text of all items, the oldest first, for the methods that are
// compared with Compress. These methods need no tokens for keys or quotes.
func plainText(t testing.TB, items []compress.Item) string {
	t.Helper()
	var b strings.Builder
	for _, item := range items {
		b.WriteString(textOf(t, item.Value))
		b.WriteString("\n\n")
	}
	return b.String()
}

func textOf(t testing.TB, value []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		t.Fatal(err)
	}
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var lines []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				lines = append(lines, s)
			}
		}
		return strings.Join(lines, "\n")
	default:
		return string(value)
	}
}

// contextText returns a reduced context as text.
func contextText(t testing.TB, c compress.Context) string {
	t.Helper()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(c)) {
		b.WriteString(textOf(t, c[key]))
		b.WriteByte('\n')
	}
	return b.String()
}

// headOf returns the beginning of the text that approximately fits into the tokens, and
// tailOf the end.
func headOf(counter compress.Counter, text string, tokens int) string {
	return text[:largestFit(len(text), func(n int) bool { return counter.Count(text[:n]) <= tokens })]
}

func tailOf(counter compress.Counter, text string, tokens int) string {
	return text[len(text)-largestFit(len(text), func(n int) bool { return counter.Count(text[len(text)-n:]) <= tokens }):]
}

// largestFit returns approximately the greatest n up to limit for which ok returns true.
func largestFit(limit int, ok func(n int) bool) int {
	low, high := 0, limit
	for high-low > 16 {
		if mid := (low + high) / 2; ok(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// randomOf returns random sentences in their order.
func randomOf(r *rand.Rand, counter compress.Counter, text string, tokens int) string {
	sentences := strings.SplitAfter(text, ". ")
	order := r.Perm(len(sentences))
	keep := make([]bool, len(sentences))
	spent := 0
	for _, i := range order {
		cost := counter.Count(sentences[i])
		if spent+cost > tokens {
			continue
		}
		spent += cost
		keep[i] = true
	}
	var b strings.Builder
	for i, s := range sentences {
		if keep[i] {
			b.WriteString(s)
		}
	}
	return b.String()
}

// tally counts recalled facts.
type tally struct{ found, all, stale int }

func (t *tally) addFact(found, stale bool) {
	t.all++
	if found {
		t.found++
	}
	if stale {
		t.stale++
	}
}

func (t tally) recallShare() float64 { return float64(t.found) / float64(max(t.all, 1)) }

// wilsonInterval returns the 95 percent confidence interval of the share of recalled facts.
func (t tally) wilsonInterval() (low, high float64) {
	const z = 1.96
	n, p := float64(max(t.all, 1)), t.recallShare()
	mid := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n)) / (1 + z*z/n)
	return mid - half, mid + half
}
