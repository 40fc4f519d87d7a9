package replicatest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
)

// TestNoticesAreSentOnce checks that one of several replicas sends each notice to a webhook,
// also after a replica was killed.
func TestNoticesAreSentOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent := map[string]int{}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent[r.Header.Get("Webhook-Id")]++
	}))
	t.Cleanup(hook.Close)
	c := newCluster(t)
	c.env = append(c.env, "GUIDEWAY_GATES_APPROVAL=human")
	c.startWith(3, map[string]any{"notices": map[string]any{"team": map[string]any{"url": hook.URL}}})
	runs := 0
	reachGates := func(n int) {
		t.Helper()
		for range n {
			runs++
			r := c.replicas[runs%len(c.replicas)]
			started, err := callTool(t, r.url(""), r.token(), "workflow_start", map[string]any{"workflowId": "gated"})
			checkError(t, err)
			_, err = callTool(t, r.url(""), r.token(), "workflow_continue", map[string]any{"handle": started["handle"], "output": fmt.Sprint("The plan is to write the tests first: ", runs)})
			checkError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testTime)
		defer cancel()
		waitFor(ctx, t, "the notices", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(sent) == runs
		})
	}
	reachGates(9)
	c.replicas[0].stop(syscall.SIGKILL)
	c.replicas = c.replicas[1:]
	reachGates(4)
	c.replicas[0].stop(syscall.SIGTERM)
	c.replicas = c.replicas[1:]
	reachGates(2)
	mu.Lock()
	defer mu.Unlock()
	for id, n := range sent {
		if n != 1 {
			t.Errorf("the notice %s was sent %d times", id, n)
		}
	}
}
