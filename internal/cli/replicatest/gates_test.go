package replicatest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gatedWorkflow is a workflow whose first step needs a person.
const gatedWorkflow = `{"id": "gated", "name": "Gated", "description": "A gated workflow.", "version": "1.0.0",
	"steps": [{"id": "plan", "title": "Plan", "prompt": "Write the plan of the work.", "requireConfirmation": true},
	{"id": "work", "title": "Work", "prompt": "Do the work of the plan."}]}`

// addWorkflow adds a workflow to a replica that is not started.
func (r *replica) addWorkflow(name, text string) {
	dir := filepath.Join(r.home, ".config", "guideway", "workflows")
	checkError(r.t, os.MkdirAll(dir, 0o700))
	checkError(r.t, os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600))
}

// firstOption returns the first option of the form of a human approval.
func firstOption(t *testing.T, schema any) string {
	t.Helper()
	text, err := json.Marshal(schema)
	checkError(t, err)
	var form struct {
		Properties struct{ Option struct{ Enum []string } }
	}
	checkError(t, json.Unmarshal(text, &form))
	return form.Properties.Option.Enum[0]
}

// TestFormsAreShared checks that the form of a human approval that one replica sent is
// answered at another, and only once, and that a client has one open form at a gate.
func TestFormsAreShared(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.env = append(c.env, "GUIDEWAY_GATES_APPROVAL=human")
	a, b := c.newReplica(), c.newReplica()
	for _, r := range c.replicas {
		r.addWorkflow("gated", gatedWorkflow)
		r.run()
	}
	started, err := callTool(t, a.url(""), a.token(), "workflow_start", map[string]any{"workflowId": "gated"})
	checkError(t, err)
	at, err := callTool(t, b.url(""), a.token(), "workflow_continue", map[string]any{"handle": started["handle"], "output": "The plan is to write the tests first."})
	checkError(t, err)
	send := func(r *replica, more map[string]any) (result map[string]any) {
		call := modernCall("workflow_continue", map[string]any{"handle": at["handle"]}, map[string]any{"elicitation": map[string]any{}})
		for name, value := range more {
			call["params"].(map[string]any)[name] = value
		}
		status, text, _ := request(t, http.MethodPost, r.url("/mcp"), a.token(),
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "workflow_continue"}, call)
		if _, data, ok := strings.Cut(string(text), "data: "); ok {
			text = []byte(data)
		}
		var answer struct{ Result map[string]any }
		if err := json.NewDecoder(strings.NewReader(string(text))).Decode(&answer); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		return answer.Result
	}
	asked := send(a, nil)
	if asked["resultType"] != "input_required" {
		t.Fatalf("no form: %v", asked)
	}
	if second, _ := json.Marshal(send(b, nil)); !strings.Contains(string(second), "form-open") {
		t.Errorf("a second form at the other replica: %s", second)
	}
	requests, _ := asked["inputRequests"].(map[string]any)
	answers := map[string]any{}
	for id, q := range requests {
		params, _ := q.(map[string]any)["params"].(map[string]any)
		answers[id] = map[string]any{"action": "accept", "content": map[string]any{"option": firstOption(t, params["requestedSchema"])}}
	}
	answer := map[string]any{"requestState": asked["requestState"], "inputResponses": answers}
	<-time.After(1100 * time.Millisecond) // a person does not read a form in less than a second
	accepted := send(b, answer)
	if got, _ := json.Marshal(accepted["structuredContent"]); accepted["isError"] == true || !strings.Contains(string(got), `"work"`) {
		t.Fatalf("the other replica answers %v", accepted)
	}
	for _, r := range c.replicas {
		if again, _ := json.Marshal(send(r, answer)); !strings.Contains(string(again), "used before") {
			t.Errorf("a second use returns %s", again)
		}
	}
}
