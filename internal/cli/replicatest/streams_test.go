package replicatest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// writeWorkflow writes a workflow with many steps to the directory of the user's workflows.
func (r *replica) writeWorkflow(steps int) {
	var list []string
	for i := range steps {
		list = append(list, fmt.Sprintf(`{"id": "step-%d", "title": "Step %d", "prompt": "Do the work of this step."}`, i, i))
	}
	text := fmt.Sprintf(`{"id": "long", "name": "Long", "description": "A long workflow.", "version": "1.0.0", "steps": [%s]}`, strings.Join(list, ","))
	dir := filepath.Join(r.home, ".config", "guideway", "workflows")
	checkError(r.t, os.MkdirAll(dir, 0o700))
	checkError(r.t, os.WriteFile(filepath.Join(dir, "long.json"), []byte(text), 0o600))
}

// openStreams opens streams of events at a replica and counts their events.
func (r *replica) openStreams(n int, events *atomic.Int64) {
	token := r.token()
	for range n {
		req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url("/api/events"), http.NoBody)
		checkError(r.t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(req)
		checkError(r.t, err)
		if answer.StatusCode != http.StatusOK {
			r.t.Fatalf("a stream of events: %s", answer.Status)
		}
		go func() {
			defer answer.Body.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := answer.Body.Read(buf)
				events.Add(int64(strings.Count(string(buf[:n]), "data: ")))
				if err == io.EOF || err != nil {
					return
				}
			}
		}()
	}
}

// BenchmarkContinue measures workflow_continue of 16 clients at two replicas, without and
// with 100 open streams of events.
func BenchmarkContinue(b *testing.B) {
	for _, streams := range []int{0, 100} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			const clients, steps = 16, 400
			c := newCluster(b)
			for range 2 {
				r := c.start()
				r.writeWorkflow(steps)
				r.stop(syscall.SIGTERM)
				r.run()
			}
			var events atomic.Int64
			for _, r := range c.replicas {
				r.openStreams(streams/2, &events)
			}
			tokens := []string{c.replicas[0].token(), c.replicas[1].token()}
			handles := make([]string, clients)
			next := func(i int, tool string, args map[string]any) {
				r := c.replicas[i%2]
				got, err := callTool(b, r.url(""), tokens[i%2], tool, args)
				checkError(b, err)
				handles[i], _ = got["handle"].(string)
			}
			for i := range clients {
				next(i, "workflow_start", map[string]any{"workflowId": "long"})
			}
			times := make([][]time.Duration, clients)
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() {
					for n := i; n < b.N; n += clients {
						began := time.Now()
						next(i, "workflow_continue", map[string]any{"handle": handles[i], "output": fmt.Sprintf("Done: %d of %d.", n, i)})
						times[i] = append(times[i], time.Since(began))
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			all := slices.Concat(times...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(events.Load())/float64(b.N), "events/op")
		})
	}
}
