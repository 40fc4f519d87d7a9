package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// openBench opens an empty store for a benchmark.
func openBench(b *testing.B) *Store {
	b.Helper()
	return openTestStore(b, Options{Path: filepath.Join(b.TempDir(), testFile)})
}

// reportPercentiles reports the percentiles of the durations of single calls.
func reportPercentiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, p := range []struct {
		name string
		of   int
	}{{"p50-µs", 50}, {"p99-µs", 99}, {"max-µs", 100}} {
		i := min(len(took)*p.of/100, len(took)-1)
		b.ReportMetric(float64(took[i].Microseconds()), p.name)
	}
}

// BenchmarkAppend measures whether the cost of an append depends on the length of the run.
func BenchmarkAppend(b *testing.B) {
	for _, from := range []int64{10, 50_000} {
		for _, size := range []int{4 << 10, 100 << 10} {
			b.Run(fmt.Sprintf("event=%d/snapshot=%dKB", from, size>>10), func(b *testing.B) {
				s := openBench(b)
				growTo(b, s, "r_a", from)
				state := []byte(strings.Repeat("s", size))
				var took []time.Duration
				for seq := from; b.Loop(); seq++ {
					c := newTestCommit("r_a", seq+1, "notes of a step, of a typical length")
					c.Snapshot.State = state
					start := time.Now()
					if err := putCommit(b.Context(), s, c); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
				}
				reportPercentiles(b, took)
			})
		}
	}
}

// growTo appends events to a run, a thousand per commit, until the run has the given number
// of events. Each commit has notes.
func growTo(b *testing.B, s *Store, id string, events int64) {
	b.Helper()
	for seq := int64(0); seq < events; {
		n := min(events-seq, 1000)
		c := newTestCommit(id, seq+n, "notes")
		c.Expected, c.Events = seq, nil
		for i := range n {
			c.Events = append(c.Events, newTestCommit(id, seq+i+1, "event").Events...)
		}
		if err := putCommit(b.Context(), s, c); err != nil {
			b.Fatal(err)
		}
		seq += n
	}
}

// BenchmarkWriters measures appends by concurrent goroutines of one process, each to its
// own run.
func BenchmarkWriters(b *testing.B) {
	for _, writers := range []int{1, 8} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := openBench(b)
			const each = 100
			var mu sync.Mutex
			var took []time.Duration
			for round := 0; b.Loop(); round++ {
				var group sync.WaitGroup
				for w := range writers {
					group.Go(func() {
						id := fmt.Sprintf("r_%d_%d", round, w)
						for seq := range int64(each) {
							start := time.Now()
							if err := putCommit(b.Context(), s, newTestCommit(id, seq+1, "notes")); err != nil {
								b.Error(err)
							}
							mu.Lock()
							took = append(took, time.Since(start))
							mu.Unlock()
						}
					})
				}
				group.Wait()
			}
			reportPercentiles(b, took)
		})
	}
}

// BenchmarkSearch searches 20,000 runs, each with two rows of words, for rare and common
// words.
func BenchmarkSearch(b *testing.B) {
	s := openBench(b)
	fillForSearch(b, s, 20_000)
	for _, c := range []struct {
		name   string
		filter run.Filter
		words  []string
	}{
		{"rare", run.Filter{}, []string{"subject77"}},
		{"some", run.Filter{}, []string{"topic7"}},
		{"common", run.Filter{}, []string{"refactoring"}},
		{"all kinds", run.Filter{}, []string{"refactor", "the", "module", "topic7", "subject77"}},
		{"two common", run.Filter{}, []string{"refactor", "module"}},
		{"in one project", run.Filter{Project: "p_3"}, []string{"refactor", "module", "topic7"}},
		{"of a status", run.Filter{Statuses: nil, Person: true}, []string{"refactor", "module"}},
		{"nothing", run.Filter{}, []string{"zeppelin"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.filter.User, c.filter.Limit = "ada", 30
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := s.Search(b.Context(), run.Search{Filter: c.filter, Query: words.Parse(strings.Join(c.words, " "))}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			reportPercentiles(b, took)
		})
	}
}

func fillForSearch(b *testing.B, s *Store, runs int) {
	b.Helper()
	for i := range runs {
		c := newTestCommit(fmt.Sprintf("r_%05d", i), 1, "")
		c.Record.Goal = fmt.Sprintf("refactor the module of topic%d", i%100)
		c.Record.Project.ID, c.Record.Person = fmt.Sprint("p_", i%20), i%1000 == 0
		c.Terms, c.Snapshot = words.Of(c.Record.SearchText()), nil
		if err := putCommit(b.Context(), s, c); err != nil {
			b.Fatal(err)
		}
		c = newTestCommit(c.Record.ID, 2, fmt.Sprintf("the tests pass now, subject%d is done", i%5000))
		c.Snapshot = nil
		if err := putCommit(b.Context(), s, c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens and closes an existing store.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), testFile)
	if err := openTestStore(b, Options{Path: path}).Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(b.Context(), Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
