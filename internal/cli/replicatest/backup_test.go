package replicatest

import (
	"crypto/rand"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// newDatabase makes the cluster use a new database and new secrets. The tables of machine runs
// have the same schema in all tests, so a test of backups needs another database.
func (c *cluster) newDatabase(t *testing.T) {
	t.Helper()
	server := os.Getenv("GUIDEWAY_TEST_POSTGRES")
	name := "backup_" + strings.ToLower(rand.Text())
	crash.Exec(t, server, "create database "+name)
	t.Cleanup(func() { crash.Exec(t, server, "drop database "+name+" with (force)") })
	u, err := url.Parse(server)
	checkError(t, err)
	u.Path = "/" + name
	c.store, c.secrets = u.String(), t.TempDir()
	c.env = []string{"GUIDEWAY_ENCRYPTION=key-file", "GUIDEWAY_ENCRYPTION_KEY_FILE=" + filepath.Join(c.secrets, "encryption.key")}
}

// mustCommand runs a command that must succeed, and returns its output.
func (c *cluster) mustCommand(t *testing.T, home string, args ...string) string {
	t.Helper()
	out, err := c.command(home, args...)
	if err != nil {
		t.Fatalf("guideway %q: %v\n%s", args, err, out)
	}
	return out
}

// TestBackup makes a backup of a PostgreSQL store while clients start runs, and restores it
// into another database on another machine: each run that was acknowledged before the backup
// is there and continues, with its document, its encrypted checkpoint, tokens and machine runs,
// and no rollback is reported.
func TestBackup(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.newDatabase(t)
	r := c.start()
	at, token := r.url(""), r.token()
	handles := map[string]any{}
	for range 20 {
		got, err := callTool(t, at, token, "workflow_start", map[string]any{"workflowId": "coding-task"})
		checkError(t, err)
		handles[got["runId"].(string)] = got["handle"]
	}
	_, err := callTool(t, at, token, "workrail_create_session", map[string]any{"workflowId": "bug", "sessionId": "D-1", "project": "/src/shop", "initialData": map[string]any{"notes": "documentword"}})
	checkError(t, err)
	_, err = callTool(t, at, token, "workflow_checkpoint_save", map[string]any{"sessionId": "s", "context": map[string]any{"plan": "the whole plan"}})
	checkError(t, err)
	c.mustCommand(t, r.home, "token", "create", "ci", "--all")
	c.mustCommand(t, r.home, "machine", "run", "code-and-review", "--demo", "--json")

	writing, stop := make(chan struct{}), make(chan struct{})
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := callTool(t, at, token, "workflow_start", map[string]any{"workflowId": "coding-task"}); err != nil {
					t.Errorf("a start during the backup: %v", err)
					return
				}
				if i == 0 && n == 0 {
					close(writing)
				}
			}
		})
	}
	<-writing
	archive := filepath.Join(t.TempDir(), "backup.zip")
	out := c.mustCommand(t, r.home, "backup", archive)
	close(stop)
	writers.Wait()
	if !strings.Contains(out, "machine runs: 1, session documents: 1, checkpoints: ") {
		t.Errorf("the backup:\n%s", out)
	}
	r.stop(syscall.SIGTERM)

	if out, err := c.command(t.TempDir(), "restore", archive); err == nil || !strings.Contains(out, "the schema guideway") {
		t.Errorf("a restore over the store: %v\n%s", err, out)
	}
	old := c.store
	c.newDatabase(t)
	second := c.newReplica()
	c.mustCommand(t, second.home, "restore", archive)
	for _, args := range [][]string{{"doctor"}, {"runs", "verify"}, {"audit", "verify"}} {
		c.mustCommand(t, second.home, args...)
	}
	if out := c.mustCommand(t, second.home, "token", "list") + c.mustCommand(t, second.home, "sessions", "show", "D-1") + c.mustCommand(t, second.home, "checkpoint", "load", "--session", "s"); !strings.Contains(out, "ci ") ||
		!strings.Contains(out, "documentword") || !strings.Contains(out, "the whole plan") {
		t.Errorf("after the restore:\n%s", out)
	}
	second.run()
	for id, handle := range handles {
		if _, err := callTool(t, second.url(""), token, "workflow_continue", map[string]any{"handle": handle, "output": "Done."}); err == nil || !strings.Contains(err.Error(), "criteria-failed") { // a refused attempt is an event
			t.Errorf("run %s: %v", id, err)
		}
	}
	_, err = callTool(t, second.url(""), token, "workflow_checkpoint_save", map[string]any{"sessionId": "s", "context": map[string]any{"plan": "a new plan"}})
	checkError(t, err)
	second.stop(syscall.SIGTERM)

	// The older state again: the tables are kept under another name, and the lost events are
	// reported on this machine.
	out = c.mustCommand(t, second.home, "restore", archive, "--replace")
	if !strings.Contains(out, "schemas whose names end with _replaced_") {
		t.Errorf("the restore with --replace:\n%s", out)
	}
	if out, err := c.command(second.home, "runs", "verify"); err == nil || !strings.Contains(out, "--accept-restore") {
		t.Errorf("verify after the restore of an older backup: %v\n%s", err, out)
	}
	c.mustCommand(t, second.home, "runs", "verify", "--accept-restore")
	c.store = old
	if out := c.mustCommand(t, second.home, "runs", "list"); strings.Count(out, "coding-task") < len(handles) { // the restored key is that of the old store
		t.Errorf("the old store has changed:\n%s", out)
	}
}
