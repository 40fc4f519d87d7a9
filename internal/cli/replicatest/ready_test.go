package replicatest

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// testTime is the time limit of a wait.
const testTime = time.Minute

// status returns the status of a route, asked by the address of the replica as a balancer
// does, with a Host that the replica does not know.
func (r *replica) status(t *testing.T, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url(path), http.NoBody)
	checkError(t, err)
	req.Host = "balancer.example"
	answer, err := http.DefaultClient.Do(req)
	checkError(t, err)
	checkError(t, answer.Body.Close())
	return answer.StatusCode
}

// waitForStatus waits until a route has a status.
func (r *replica) waitForStatus(t *testing.T, path string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	waitFor(ctx, t, path, func() bool { return r.status(t, path) == status })
}

// TestReady checks that a replica without its database lives but is not ready, and is ready
// again when the database answers.
func TestReady(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	database := c.cuttableLink()
	r := c.start()
	if got := r.status(t, "/api/ready"); got != http.StatusOK {
		t.Fatalf("a new replica: %d\n%s", got, r.log)
	}
	if status, body, _ := request(t, http.MethodGet, c.roundRobin()+"/api/ready", "", nil, nil); status != http.StatusOK || string(body) != `{"status":"ready"}`+"\n" {
		t.Errorf("through the proxy: %d %s", status, body)
	}
	database.set(true)
	r.waitForStatus(t, "/api/ready", http.StatusServiceUnavailable)
	if got := r.status(t, "/api/health"); got != http.StatusOK {
		t.Errorf("the health without a database is %d", got)
	}
	database.set(false)
	r.waitForStatus(t, "/api/ready", http.StatusOK)
}
