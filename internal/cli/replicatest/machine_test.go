package replicatest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// helperMachine is a machine whose agent answers once.
const helperMachine = `{
  "workflow_name": "helper", "description": "Helps.", "inputs": [],
  "output": {"name": "done", "type": "string", "description": "What was done."},
  "contexts": [{"name": "talk"}], "agents": [{"agent_role": "helper", "context": "talk", "role": "assistant"}],
  "states": [{"name": "start", "agent": "helper"}, {"name": "stop"}]
}`

// machineStatus is a part of the status of a machine run.
type machineStatus struct {
	RunID, Status string
	Pause         struct{ Code, Message string }
}

// machineRun sends a request about machine runs to a replica.
func (r *replica) machineRun(method, path string, body any) (answer struct{ Run machineStatus }) {
	r.t.Helper()
	status, text, _ := request(r.t, method, r.url("/api/machine-runs"+path), r.token(), nil, body)
	if err := json.Unmarshal(text, &answer); err != nil || status >= 300 {
		r.t.Fatalf("%s %s: %d %s\n%s", method, path, status, text, r.log)
	}
	return answer
}

// TestReplicaWithoutHookLeavesRun kills a replica that executes a machine run. The other
// replica does not have the hook graph of the run: it pauses the run with the reason, and
// sends no request to the model. After the first replica is back, it continues the run
// without a command.
func TestReplicaWithoutHookLeavesRun(t *testing.T) {
	t.Parallel()
	crash.SkipIfShort(t)
	arrived, held := make(chan struct{}, 100), make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-held:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}]}`))
	}))
	t.Cleanup(model.Close)
	c := newCluster(t)
	c.env = []string{"OPENAI_BASE_URL=" + model.URL + "/v1", "GUIDEWAY_MODEL=openai:m"}
	a := c.newReplica()
	dir := filepath.Join(a.home, ".config", "guideway", "workflows", "machines", "helper")
	checkError(t, os.MkdirAll(dir, 0o700))
	checkError(t, os.WriteFile(filepath.Join(dir, "machine.json"), []byte(helperMachine), 0o600))
	checkError(t, os.WriteFile(filepath.Join(dir, "roles.json"), []byte(`{"helper": {"systemMessage": "Help.", "includedTools": ["one__params"]}}`), 0o600))
	self, err := os.Executable()
	checkError(t, err)
	for _, args := range [][]string{
		{"upstream", "add", "one", "--env", upstreamtest.Variable + "=", "--", self},
		{"hooks", "import", "--template", "block-by-argument", "--id", "block", "--upstream", "one", "--tool", "params"},
		{"hooks", "enable", "block"},
	} {
		if out, err := c.command(a.home, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	a.run()
	id := a.machineRun(http.MethodPost, "", map[string]any{"machine": "helper"}).Run.RunID
	<-arrived
	b := c.start()
	a.stop(syscall.SIGKILL)
	wait := func(status string) (s machineStatus) {
		t.Helper()
		waitFor(t.Context(), t, "the run is "+status, func() bool {
			s = b.machineRun(http.MethodGet, "/"+id, nil).Run
			return s.Status == status
		})
		return s
	}
	s := wait("paused")
	if s.Pause.Code != "tools" || !strings.Contains(s.Pause.Message, "the hook graph block (") || len(arrived) > 0 {
		t.Errorf("the run is %+v, with %d more requests", s, len(arrived))
	}
	close(held)
	a.run()
	wait("completed")
	if len(arrived) != 1 {
		t.Errorf("%d requests were sent after the first replica was back, want 1\n%s", len(arrived), b.log)
	}
}
