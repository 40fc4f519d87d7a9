//go:build unix

package clients

import (
	"path/filepath"
	"strings"
	"testing"
)

// A slash command of a workflow gives the model of each client that has such commands without
// a terminal the prompt of the server and all words of the goal.
func TestPromptInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
		if r.client.slash == "" {
			r.Skipf("no slash command of %s without a terminal is known", r.client.name)
		}
		r.write(filepath.Join("project", ".guideway", "workflows", "upload.json"), upload)
		r.goal = r.client.slash
		r.work([]step{{name: "start", tool: "workflow_start", arguments: `{"workflowId": "upload", "goal": "the goal of the user"}`}}, r.install)
		for _, want := range []string{"My goal: ", "count all files"} {
			if !strings.Contains(r.model.body, want) {
				r.Errorf("the model does not receive %q: %s", want, r.model.body)
			}
		}
	})
}
