package replicatest

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestFirstStarts checks that replicas that start at once on an empty database, with the keys
// that `guideway key init` made, all become ready, with encryption too.
func TestFirstStarts(t *testing.T) {
	t.Parallel()
	const replicas = 4
	c := newCluster(t)
	c.env = []string{"GUIDEWAY_ENCRYPTION=key-file", "GUIDEWAY_ENCRYPTION_KEY_FILE=" + filepath.Join(c.secrets, "encryption.key")}
	for _, state := range []string{"created", "exists"} {
		out, err := c.command(t.TempDir(), "key", "init")
		if err != nil || !strings.Contains(out, filepath.Join(c.secrets, "journal.key")+": "+state+", fingerprint ") {
			t.Fatalf("guideway key init: %v\n%s", err, out)
		}
	}
	started := make([]*replica, replicas)
	var starting sync.WaitGroup
	for i := range started {
		started[i] = c.newReplica()
		starting.Go(started[i].run)
	}
	starting.Wait()
	starts := make([]error, replicas)
	for i, r := range started {
		starting.Go(func() {
			_, starts[i] = callTool(t, r.url(""), r.token(), "workflow_start", map[string]any{"workflowId": "coding-task"})
		})
	}
	starting.Wait()
	for i, r := range started {
		if got := r.status(t, "/api/ready"); starts[i] != nil || got != http.StatusOK {
			t.Errorf("replica %d: ready %d, %v\n%s", i, got, starts[i], r.log)
		}
	}
}

// TestMissingKey checks that a machine that never had the key is told where the key comes
// from, and makes no other key, and that a server with another key does not start.
func TestMissingKey(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start().waitForStatus(t, "/api/ready", http.StatusOK)
	c.secrets = t.TempDir()
	home := t.TempDir()
	for range 2 {
		out, err := c.command(home, "runs", "list")
		if err == nil || !strings.Contains(out, "this computer does not have it") || !strings.Contains(out, "mount the key file of another computer that uses the store") {
			t.Errorf("runs list without the key: %v\n%s", err, out)
		}
	}
	if out, err := c.command(home, "key", "init"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := c.command(home, "serve"); err == nil || !strings.Contains(out, "created with a different key") {
		t.Errorf("serve with another key: %v\n%s", err, out)
	}
}
