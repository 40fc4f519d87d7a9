package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// newTestRun returns the commit that creates a run.
func newTestRun(id, user, goal string) (run.Definition, run.Commit) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := run.Record{
		ID: id, User: user, Client: "test", Workflow: "coding-task", Name: "Coding task", Version: "1.0.0", Hash: "sha256:0",
		Goal: goal, Project: run.Project{ID: "0123456789ab", Path: "/work/it", Branch: "main"},
		Status: engine.StatusRunning, Kind: engine.PositionStep, Step: "plan", Title: "Plan it", Created: now, Updated: now,
	}
	c := newCommit(r, 1, nil)
	c.Terms = words.Of(r.SearchText())
	return run.Definition{Hash: r.Hash, Text: `{"id":"coding-task"}`}, c
}

// newCommit returns a commit of n events that follow the last event of a record.
func newCommit(r run.Record, n int, data []byte) run.Commit {
	c := run.Commit{Expected: r.Seq}
	now := time.Now().UTC().Truncate(time.Microsecond)
	for range n {
		r.Seq++
		c.Events = append(c.Events, run.Event{
			Seq: r.Seq, At: now, Kind: "step_completed", By: run.By{User: r.User, Via: run.ViaAgent},
			Data: data, MAC: fmt.Appendf(nil, "mac of %s %d", r.ID, r.Seq),
		})
	}
	r.Head, r.Updated, r.Done = c.Events[n-1].MAC, now, r.Done+1
	r.Handle = fmt.Sprintf("h_%s_%d", r.ID, r.Seq)
	c.Record, c.Handle = r, r.Handle
	return c
}

// newStepCommit returns a commit like the commits of workflow_continue: with an event of 1
// KB, words and a snapshot.
func newStepCommit(r run.Record, snapshot []byte) run.Commit {
	c := newCommit(r, 1, bytes.Repeat([]byte(`{"a": "0123456789"}, `), 50))
	c.Key = c.Handle
	c.Terms = words.Of(fmt.Sprintf("the cache of service %d was stale, so the token of the gateway could not be refreshed in time", r.Seq))
	if snapshot != nil {
		c.Snapshot = &run.Snapshot{Seq: c.Record.Seq, Head: c.Record.Head, State: snapshot, MAC: c.Record.Head}
	}
	return c
}

// measureClients runs b.N steps in total with concurrent clients and reports the time per
// step.
func measureClients(b *testing.B, clients int, do func(client int) error) {
	b.Helper()
	times := make([][]time.Duration, clients)
	errs := make([]error, clients)
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range clients {
		wg.Go(func() {
			for n := i; n < b.N; n += clients {
				started := time.Now()
				if errs[i] = do(i); errs[i] != nil {
					return
				}
				times[i] = append(times[i], time.Since(started))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(all[len(all)/2]), "p50-ms")
	b.ReportMetric(ms(all[len(all)*99/100]), "p99-ms")
	b.ReportMetric(ms(all[len(all)-1]), "max-ms")
}

func BenchmarkAppend(b *testing.B) {
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := openStore(b, postgres.Options{URL: newSchemaURL(b)})
			snapshot := bytes.Repeat([]byte("x0y1"), 1<<10)
			records := make([]run.Record, clients)
			for i := range records {
				d, c := newTestRun(fmt.Sprintf("r_%d", i), "ada", "an aim")
				if err := s.Create(b.Context(), d, c); err != nil {
					b.Fatal(err)
				}
				records[i] = c.Record
			}
			measureClients(b, clients, func(i int) error {
				c := newStepCommit(records[i], snapshot)
				records[i] = c.Record
				return s.Append(b.Context(), c)
			})
		})
	}
}

// BenchmarkAppendAt measures whether an append costs the same at the beginning and at the
// end of a long run.
func BenchmarkAppendAt(b *testing.B) {
	for _, at := range []int64{10, 50_000} {
		for _, size := range []int{4 << 10, 100 << 10} {
			b.Run(fmt.Sprintf("event=%d/snapshot=%dKB", at, size>>10), func(b *testing.B) {
				s := openStore(b, postgres.Options{URL: newSchemaURL(b)})
				d, c := newTestRun("r_a", "ada", "an aim")
				if err := s.Create(b.Context(), d, c); err != nil {
					b.Fatal(err)
				}
				for c.Record.Seq < at {
					c = newCommit(c.Record, int(min(1000, at-c.Record.Seq)), []byte(`{"a": 1}`))
					if err := s.Append(b.Context(), c); err != nil {
						b.Fatal(err)
					}
				}
				r, snapshot := c.Record, randomText(size)
				measureClients(b, 1, func(int) error {
					c := newStepCommit(r, snapshot)
					r = c.Record
					return s.Append(b.Context(), c)
				})
			})
		}
	}
}

// randomText returns text that compresses about as well as the state of a run.
func randomText(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `"finding %d": {"file": "internal/part%d/file.go", "line": %d, "note": "%x"},`, i, i%17, i*7919%1000, i*2654435761)
	}
	return b.Bytes()[:size]
}

func BenchmarkSearch(b *testing.B) {
	const runs = 20_000
	s := openStore(b, postgres.Options{URL: newSchemaURL(b)})
	ctx := context.Background()
	createSimilarRuns(b, s, runs)
	for _, text := range []string{"albatross", "service", "service number4711 gateway"} {
		b.Run(strings.ReplaceAll(text, " ", "+"), func(b *testing.B) {
			measureClients(b, 1, func(int) error {
				hits, err := s.Search(ctx, run.Search{Filter: run.Filter{User: "ada", Limit: 30}, Query: words.Parse(text)})
				if err == nil && len(hits) == 0 {
					err = errors.New("the search found nothing")
				}
				return err
			})
		})
	}
}

// createSimilarRuns creates runs that nearly all have the same words.
func createSimilarRuns(tb testing.TB, s *postgres.Store, runs int) {
	tb.Helper()
	const clients = 8
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := i; n < runs && errs[i] == nil; n += clients {
				goal := fmt.Sprintf("repair the service number%d of the gateway", n)
				if n == runs/2 {
					goal += " with an albatross"
				}
				d, c := newTestRun(fmt.Sprintf("r_%06d", n), "ada", goal)
				errs[i] = s.Create(context.Background(), d, c)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
}
