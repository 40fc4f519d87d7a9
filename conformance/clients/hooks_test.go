//go:build unix

package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// editing is a workflow whose first step allows no changes, and which ends at a gate of a
// person.
const editing = `{"id": "editing", "name": "Editing", "description": "A plan, then a change.", "version": "1.0.0", "steps": [
	{"id": "plan", "title": "Plan", "prompt": "Write the plan.", "tools": {
		"deny": ["Write", "Edit", "*create_issue", {"tool": "Bash", "arguments": {"command": "*forbidden*"}}],
		"hold": [{"tool": "Bash", "arguments": {"command": "git push*"}}]}},
	{"id": "change", "title": "Change", "prompt": "Change the file."},
	{"id": "ship", "title": "Ship", "prompt": "Ship it.", "requireConfirmation": true, "approval": "human"}]}`

// Hooks keep each client that has them on its run: a call that the step denies is not carried
// out, and the model reads which step denies it. A model that ends its turn too early gets the
// position and goes on, a subagent too. In a step that allows it, the same edit is carried
// out, and at the gate of a person the model may stop. After a compaction, and in a session
// that is resumed, the model reads the position.
func TestHooksInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
		if r.client.tools == nil {
			r.Skipf("%s has no hooks that Guideway knows", r.client.name)
		}
		r.write(filepath.Join("project", ".guideway", "workflows", "editing.json"), editing)
		r.write(filepath.Join("project", "notes.md"), "The notes.\n")
		forbidden, allowed := filepath.Join(r.project, "forbidden.txt"), filepath.Join(r.project, "allowed.txt")
		denied := false
		started := step{name: "start", tool: "workflow_start", arguments: `{"workflowId": "editing", "goal": "change the file"}`}
		script := r.callOwn("agent", "agent", "", []step{
			{name: "subagent", tool: started.tool, arguments: started.arguments},
			{name: "subagent stop", say: "The part is done."},
			{name: "abort", tool: "workflow_abort", arguments: `{"runId": "RUN", "reason": "the part is done"}`},
			{name: "subagent end", say: "The part is done."},
		}...)
		script = append(script, started)
		script = append(script, r.callOwn("read", "read", "")...)
		script = append(script, r.callOwn("plan", "plan", "")...)
		script = append(script, step{name: "mcp", tool: "create_issue", arguments: `{"q": "title"}`})
		script = append(script, r.callOwn("push", "shell", "")...)
		script = append(script, r.callOwn("edit", "edit", forbidden)...)
		script = append(script,
			step{name: "stop", say: "All is done.", before: func() { denied = !isFile(forbidden) }},
			step{name: "own", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "The plan is to write the file."}`})
		script = append(script, r.callOwn("edit", "allowed", allowed)...)
		script = append(script, step{name: "gate", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "The file was written."}`},
			step{name: "end", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "shipped"}`})
		r.work(script, func() {
			r.install()
			r.installTracker()
			r.runCommand(r.guideway, "install", r.client.name, "--hooks")
			r.recordHooks()
		})
		runID := r.model.last(`r_[0-9a-z]{23}`)
		if !denied {
			r.Errorf("the edit in the step plan was carried out: %s", r.model.text("edit"))
		}
		if !isFile(allowed) {
			r.Errorf("the edit in the step change was not carried out: %s", r.model.text("allowed"))
		}
		r.checkTexts(map[string][]string{
			"edit":  {runID, "is denied", "h_"},
			"mcp":   {runID, "is denied", "create_issue"},
			"shell": {"approval"},
			"stop":  {"Plan", "h_", runID},
			"end":   {"guideway runs approve " + runID},
		})
		if shown := r.runCommand(r.guideway, "runs", "show", runID); strings.Contains(shown, "unwatched") {
			r.Errorf("the run is unwatched: %s", shown)
		}
		for _, name := range []string{"edit", "shell", "stop", "subagent stop"} {
			r.Logf("%s: %s: %s", r.client.name, name, r.model.text(name))
		}
		for _, again := range r.client.again {
			for name, text := range again.settings {
				r.write(name, text)
			}
			r.goOn(append([]string{r.client.command(r)[0]}, again.arguments...))
		}
		if len(r.client.again) > 0 && !strings.Contains(r.model.body, "You work on run "+runID) {
			r.Errorf("the model does not receive the position after a compaction: %s", r.model.body)
		}
		r.compareEvents()
	})
}

// callOwn returns the step that calls a tool of the client, and the steps of a subagent that
// it starts. It returns nothing if the client has no such tool.
func (r *rig) callOwn(what, name, file string, inside ...step) []step {
	own, ok := r.client.tools[what]
	if !ok {
		return nil
	}
	arguments := strings.NewReplacer("$FILE", file, "$PROJECT", r.project, "$TASK", task).Replace(own.arguments)
	return append([]step{{name: name, tool: own.name, arguments: arguments, spawns: inside != nil}}, inside...)
}

// installTracker installs a second server: a gateway with one upstream.
func (r *rig) installTracker() {
	r.Helper()
	server, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	settings, err := json.Marshal(object{"toolsets": []string{"gateway"}, "upstreams": object{
		"issues": object{"command": server, "env": object{upstreamVariable: "issues"}, "tools": object{"create_issue": object{"readOnly": true}}},
	}})
	if err != nil {
		r.Fatal(err)
	}
	r.write("tracker.json", string(settings))
	r.runCommand(r.guideway, "install", r.client.name, "--name", "tracker", "--env", "GUIDEWAY_CONFIG="+filepath.Join(r.home, "tracker.json"))
}
