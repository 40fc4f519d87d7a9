//go:build unix

package clients

import (
	"path/filepath"
	"strings"
	"testing"
)

// editing is a workflow whose first step allows no changes of files.
const editing = `{"id": "editing", "name": "Editing", "description": "A plan, then a change.", "version": "1.0.0", "steps": [
	{"id": "plan", "title": "Plan", "prompt": "Write the plan.", "tools": {"deny": ["Write", "Edit", "Bash"]}},
	{"id": "change", "title": "Change", "prompt": "Change the file."}]}`

// Hooks keep each client that has them on its run: an edit in a step that forbids it is not
// carried out, and its model reads which step forbids it. A model that ends its turn too
// early gets the position and goes on. In a step that allows it, the same edit is carried
// out, and after the run the model may stop.
func TestHooksInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
		if r.client.edit == nil {
			r.Skipf("%s has no hooks that Guideway knows", r.client.name)
		}
		r.write(filepath.Join("project", ".guideway", "workflows", "editing.json"), editing)
		forbidden, allowed := filepath.Join(r.project, "forbidden.txt"), filepath.Join(r.project, "allowed.txt")
		denied := false
		tool, early := r.client.edit(forbidden)
		_, later := r.client.edit(allowed)
		r.work([]step{
			{name: "start", tool: "workflow_start", arguments: `{"workflowId": "editing", "goal": "change the file"}`},
			{name: "early edit", tool: tool, arguments: early},
			{name: "early stop", say: "All is done.", before: func() { denied = !isFile(forbidden) }},
			{name: "step", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "The plan is to write the file."}`},
			{name: "edit", tool: tool, arguments: later},
			{name: "end", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "The file was written."}`},
		}, func() {
			r.install()
			r.runCommand(r.guideway, "install", r.client.name, "--hooks")
		})
		runID := r.model.last(`r_[0-9a-z]{23}`)
		if !denied {
			r.Errorf("the edit in the step plan was carried out: %s", r.model.text("early edit"))
		}
		if !isFile(allowed) {
			r.Errorf("the edit in the step change was not carried out: %s", r.model.text("edit"))
		}
		for name, words := range map[string][]string{
			"early edit": {runID, "denies", "h_"},
			"early stop": {"Plan", "h_", runID},
			"end":        {"completed"},
		} {
			for _, want := range words {
				if text := r.model.text(name); !strings.Contains(text, want) {
					r.Errorf("the model does not receive %q at %s: %s", want, name, text)
				}
			}
		}
		if shown := r.runCommand(r.guideway, "runs", "show", runID); strings.Contains(shown, "unwatched") {
			r.Errorf("the run is unwatched: %s", shown)
		}
		r.Logf("%s: the refused edit: %s", r.client.name, r.model.text("early edit"))
		r.Logf("%s: the refused stop: %s", r.client.name, r.model.text("early stop"))
	})
}
