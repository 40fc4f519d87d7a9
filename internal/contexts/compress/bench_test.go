package compress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// quoteJSON returns the text as a JSON string.
func quoteJSON(text string) json.RawMessage { return jsontext.AppendString(nil, text) }

// bigContext returns a context of about 100 KB: prose, code, a log, tables and small
// values. Contexts of different seeds share no large value.
func bigContext(b testing.TB, seed int) Context {
	b.Helper()
	c := Context{
		"userGoal":      quoteJSON("Move the login to the new token service"),
		"decisions":     quoteJSON("We decided to use zstd instead of gzip."),
		"_currentLoop":  json.RawMessage(`{"loopId":"modules","iteration":2}`),
		"timestamp":     quoteJSON("2026-03-01T10:00:00Z"),
		"filesChanged":  json.RawMessage(`["a.go","b.go"]`),
		"products":      json.RawMessage(longValueOf(b, "@rows")),
		"debugOutput":   json.RawMessage(longValueOf(b, "@buildlog")),
		"requestLogs":   json.RawMessage(longValueOf(b, "@log")),
		"sourceOfStore": json.RawMessage(longValueOf(b, "@code")),
	}
	for i := 0; contextSize(c) < 100_000; i++ {
		var text strings.Builder
		for j := range 30 {
			fmt.Fprintf(&text, "In step %d of %d the importer read file-%d_%d.csv and set row %d aside, since its column was empty. ", j, seed, seed, i, i*31+j)
		}
		key := []string{"notes", "findings", "transcript", "analysis", "documentation", "stepOutput"}[i%6]
		c[fmt.Sprintf("%s%d", key, i)] = quoteJSON(text.String())
		if i%4 == 0 {
			var log strings.Builder
			for j := range 30 {
				fmt.Fprintf(&log, "2026-03-01T10:%02d:%02dZ INFO run=%d served path=/a/%d in %d ms\n", i%60, j, seed, i*j, j)
			}
			c[fmt.Sprintf("serverOutput%d", i)] = quoteJSON(log.String())
		}
	}
	return c
}

func contextSize(c Context) int {
	n := 0
	for key, value := range c {
		n += len(key) + len(value)
	}
	return n
}

// reportPercentiles reports the percentiles that docs/context.md lists.
func reportPercentiles(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	at := func(q float64) float64 {
		return float64(times[min(int(q*float64(len(times))), len(times)-1)].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.50), "p50-ms")
	b.ReportMetric(at(0.95), "p95-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(1), "max-ms")
}

// BenchmarkClassify measures the classification of all items of a 100 KB context. The
// budget is 1, 5 and 10 ms (p50, p95, p99), and at most 50 ms.
func BenchmarkClassify(b *testing.B) {
	c := bigContext(b, 1)
	classifier := NewClassifier(Hints{})
	var times []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		for key, value := range c {
			classifier.Classify(key, value)
		}
		times = append(times, time.Since(began))
	}
	reportPercentiles(b, times)
}

// BenchmarkCompress measures the compression of 100 KB to a quarter, including
// classification and counting. The budget is 10, 20 and 50 ms (p50, p95, p99), and at most
// 100 ms.
func BenchmarkCompress(b *testing.B) {
	exact := NewTokenizer()
	exact.Count("load the vocabulary")
	classifier, stems := NewClassifier(Hints{}), NewStemCache()
	run := func(b *testing.B, context func(i int) Context, counter Counter) {
		b.Helper()
		var times []time.Duration
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			c := context(i)
			b.StartTimer()
			began := time.Now()
			items := Items(c, classifier, counter)
			r := Compress(items, Options{Ratio: 4, Counter: counter, Stems: stems, Question: "what was set aside by the importer?"})
			times = append(times, time.Since(began))
			if r.OverReason != "" {
				b.Fatal(r.OverReason)
			}
		}
		reportPercentiles(b, times)
	}
	fresh := func(i int) Context { return bigContext(b, i) }
	same := bigContext(b, 0)
	b.Run("estimated", func(b *testing.B) { run(b, fresh, Estimator{}) })
	b.Run("counted, new texts", func(b *testing.B) { run(b, fresh, exact) })
	b.Run("counted, the same text", func(b *testing.B) {
		run(b, func(int) Context { return same }, exact)
	})
	b.Run("counted, one item in ten new", func(b *testing.B) {
		run(b, func(i int) Context {
			c, other, n := Context{}, bigContext(b, i+1), 0
			for _, item := range Items(same, classifier, Estimator{}) {
				c[item.Key] = item.Value
				if n++; n%10 == 0 && other[item.Key] != nil {
					c[item.Key] = other[item.Key]
				}
			}
			return c
		}, exact)
	})
}

// BenchmarkCount measures the token count of one megabyte.
func BenchmarkCount(b *testing.B) {
	text := strings.Repeat(string(bigContext(b, 1)["notes0"]), 10)
	exact := NewTokenizer()
	exact.Count("load the vocabulary")
	for name, counter := range map[string]Counter{"o200k": exact, "estimate": Estimator{}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				counter.Count(text)
			}
		})
	}
}
