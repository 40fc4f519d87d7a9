package checkpoint_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/testutil/conversation"
)

// reportPercentiles reports percentiles of the call times.
func reportPercentiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, p := range []struct {
		name string
		of   int
	}{{"p50-ms", 500}, {"p95-ms", 950}, {"p99-ms", 990}, {"max-ms", 1000}} {
		i := min(len(took)*p.of/1000, len(took)-1)
		b.ReportMetric(float64(took[i].Microseconds())/1000, p.name)
	}
}

// benchSize is the context size of the latency budget.
const benchSize = 100_000

// BenchmarkSave measures saves of successive contexts of 100 KB to sessions of 20
// checkpoints.
func BenchmarkSave(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			r := openRig(b, checkpoint.ModeSQLite)
			var mu sync.Mutex
			var took []time.Duration
			var group sync.WaitGroup
			for client := range clients {
				group.Go(func() {
					for i := range b.N/clients + 1 {
						c := conversation.New(uint64(client), benchSize, 0.1)
						_ = i
						for range 20 {
							text := c.Next()
							start := time.Now()
							_, err := r.Save(b.Context(), testPrincipal(), checkpoint.SaveRequest{Session: fmt.Sprint("s", client, "_", i), Context: text, Workflow: "bench"})
							d := time.Since(start)
							if err != nil {
								b.Error(err)
								return
							}
							mu.Lock()
							took = append(took, d)
							mu.Unlock()
						}
					}
				})
			}
			group.Wait()
			reportPercentiles(b, took)
		})
	}
}

// BenchmarkLoad measures loads of the newest checkpoint of a session, and of older
// checkpoints, which are read through chains of up to 31 deltas.
func BenchmarkLoad(b *testing.B) {
	warm := openRig(b, checkpoint.ModeSQLite)
	var ids []string
	c := conversation.New(1, benchSize, 0.1)
	for range 100 {
		ids = append(ids, warm.mustSave(b, "work", string(c.Next())).ID)
	}
	for _, kind := range []string{"newest", "any", "deepest"} {
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/clients=%d", kind, clients), func(b *testing.B) {
				r := reopenRig(b, warm)
				var mu sync.Mutex
				var took []time.Duration
				var group sync.WaitGroup
				for client := range clients {
					group.Go(func() {
						for i := range b.N*25/clients + 1 {
							id := ids[len(ids)-1]
							switch kind {
							case "any":
								id = ids[(i*37+client*11)%len(ids)]
							case "deepest":
								id = ids[0]
							}
							start := time.Now()
							_, err := r.Load(b.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
							d := time.Since(start)
							if err != nil {
								b.Error(err)
								return
							}
							mu.Lock()
							took = append(took, d)
							mu.Unlock()
						}
					})
				}
				group.Wait()
				reportPercentiles(b, took)
			})
		}
	}
}

// BenchmarkFirst measures the first load or save of a process, including opening the store.
func BenchmarkFirst(b *testing.B) {
	first := openRig(b, checkpoint.ModeSQLite)
	c := conversation.New(1, benchSize, 0.1)
	for range 10 {
		first.mustSave(b, "work", string(c.Next()))
	}
	for name, call := range map[string]func(b *testing.B, r *rig){
		"load": func(b *testing.B, r *rig) {
			if _, err := r.Load(b.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "work"}); err != nil {
				b.Fatal(err)
			}
		},
		"save": func(b *testing.B, r *rig) { r.mustSave(b, "work", string(c.Next())) },
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for range b.N * 20 {
				start := time.Now()
				call(b, reopenRig(b, first))
				took = append(took, time.Since(start))
			}
			reportPercentiles(b, took)
		})
	}
}

// BenchmarkStored reports the stored size of successive contexts.
func BenchmarkStored(b *testing.B) {
	for _, fresh := range []float64{0.10, 0.03} {
		for _, n := range []int{20, 100} {
			b.Run(fmt.Sprintf("shared=%.0f%%/checkpoints=%d", 100*(1-fresh), n), func(b *testing.B) {
				var bytes, stored int64
				for session := range 6 {
					r := openRig(b, checkpoint.ModeMemory)
					c := conversation.New(uint64(session), benchSize, fresh)
					for range n {
						r.mustSave(b, "work", string(c.Next()))
					}
					r.FinishFolds()
					stats, err := r.Stats(b.Context(), "ada")
					if err != nil {
						b.Fatal(err)
					}
					bytes += stats.Bytes
					stored += stats.Stored
				}
				b.ReportMetric(float64(bytes)/float64(stored), "x-smaller")
				b.ReportMetric(float64(stored)/6/1000, "KB/session")
			})
		}
	}
}

// BenchmarkList measures lists of 100,000 checkpoints of 5,000 sessions.
func BenchmarkList(b *testing.B) {
	r := openRig(b, checkpoint.ModeSQLite)
	fillIndex(b, r.index, 100_000)
	for _, q := range []struct {
		name    string
		request checkpoint.ListRequest
	}{
		{"newest", checkpoint.ListRequest{}},
		{"session", checkpoint.ListRequest{Session: "s4000"}},
		{"workflow", checkpoint.ListRequest{Workflow: "workflow-7"}},
		{"project", checkpoint.ListRequest{Project: "project-11"}},
		{"tag, rare", checkpoint.ListRequest{Tags: []string{"rare-17"}}},
		{"tag, common", checkpoint.ListRequest{Tags: []string{"green"}}},
		{"time", checkpoint.ListRequest{Since: time.Now().Add(-time.Hour)}},
		{"words, rare", checkpoint.ListRequest{Query: "subject777"}},
		{"words, two", checkpoint.ListRequest{Query: "refactored topic17"}},
		{"words, common", checkpoint.ListRequest{Query: "refactor the module"}},
		{"words, none", checkpoint.ListRequest{Query: "refactor zeppelin"}},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := r.List(b.Context(), testPrincipal(), q.request); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			reportPercentiles(b, took)
		})
	}
}

// fillIndex adds n records without contents.
func fillIndex(b *testing.B, x checkpoint.Index, n int) {
	b.Helper()
	start := time.Now().Add(-time.Duration(n) * time.Second)
	for i := range n {
		session := i / 20
		at := start.Add(time.Duration(i) * time.Second)
		rec := checkpoint.Record{
			ID: fmt.Sprintf("c_%07d", i), SeriesKey: checkpoint.SeriesKey{User: "ada", Session: fmt.Sprint("s", session)},
			Number: int64(i%20) + 1, Link: int64(i % 20), Workflow: fmt.Sprint("workflow-", session%50), Project: fmt.Sprint("project-", session%40),
			Kind: checkpoint.KindManual, Created: at, Bytes: 100_000, Sum: []byte("sum"), Tags: []string{"green", fmt.Sprint("rare-", i%5000)},
			Form: checkpoint.Form{Blob: "blob", Stored: 5000},
		}
		if i%20 > 0 {
			rec.Parent = fmt.Sprintf("c_%07d", i-1)
		}
		text := fmt.Sprintf("refactor the module of topic%d, subject%d is done and the tests pass", i%1000, i%20_000)
		if err := x.Apply(b.Context(), checkpoint.Change{Series: rec.SeriesKey, Add: &rec, Terms: words.Of(text), At: at, Touch: true}); err != nil {
			b.Fatal(err)
		}
	}
}
