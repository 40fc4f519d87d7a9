package replicatest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// knowsHead reports whether the files of heads of a replica have a run with a number.
func (r *replica) knowsHead(run, seq string) bool {
	files, err := filepath.Glob(filepath.Join(r.home, ".local", "state", "guideway", "heads", "*.heads"))
	checkError(r.t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		checkError(r.t, err)
		if strings.Contains(string(text), run+" "+seq+" ") {
			return true
		}
	}
	return false
}

// TestRollbackIsFoundElsewhere checks that a replica that never continued a run detects that
// the database was restored to before a commit of the run, after the replica that made the
// commit is gone with its files.
func TestRollbackIsFoundElsewhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.newReplica(), c.start()
	a.addWorkflow("gated", gatedWorkflow)
	a.run()
	started, err := callTool(t, a.url(""), a.token(), "workflow_start", map[string]any{"workflowId": "gated"})
	checkError(t, err)
	id, _ := started["runId"].(string)
	crash.Exec(t, c.store, `create table old_runs as select * from runs; create table old_events as select * from events`)
	_, err = callTool(t, a.url(""), a.token(), "workflow_continue", map[string]any{"handle": started["handle"], "output": "The plan is to write the tests first."})
	checkError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	waitFor(ctx, t, "the head of the run at the other replica", func() bool { return b.knowsHead(id, "3") })
	a.stop(syscall.SIGKILL)
	checkError(t, os.RemoveAll(a.home))
	out, err := c.command(b.home, "runs", "verify")
	if err != nil {
		t.Fatalf("before the restore: %v\n%s", err, out)
	}
	crash.Exec(t, c.store, `delete from events e where not exists (select from old_events o where (o.run, o.seq) = (e.run, e.seq));
		update runs r set seq = o.seq, head = o.head, updated = o.updated, status = o.status, kind = o.kind, step = o.step, title = o.title, done = o.done, person = o.person, handle = o.handle from old_runs o where o.id = r.id`)
	out, err = c.command(b.home, "runs", "verify")
	if err == nil || !strings.Contains(out, id) || !strings.Contains(out, "the database is an older copy") {
		t.Errorf("after the restore: %v\n%s", err, out)
	}
}
