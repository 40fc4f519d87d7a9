//go:build unix

package clients

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// modulesVariable is the directory of the installed npm packages. The tests of the
// programs are skipped without it.
const modulesVariable = "GUIDEWAY_TEST_CLIENTS"

// upload is a workflow with a criterion, a step and a gate that only a person opens.
const upload = `{"id": "upload", "name": "Upload", "description": "A change with a plan and a release.", "version": "1.0.0", "steps": [
	{"id": "plan", "title": "Plan", "prompt": "Write the plan.",
		"validationCriteria": [{"type": "contains", "value": "Plan:", "message": "Begin with Plan:."}]},
	{"id": "build", "title": "Build", "prompt": "Build it, and test it."},
	{"id": "ship", "title": "Ship", "prompt": "Ship it.", "requireConfirmation": true, "approval": "human"}]}`

// secretWords are the passphrase of the person.
const secretWords = "four words of one person"

// eachClient runs a test for each client, or skips it without the programs.
func eachClient(t *testing.T, run func(r *rig)) {
	t.Helper()
	modules := os.Getenv(modulesVariable)
	if modules == "" {
		t.Skipf("%s does not name the directory of the packages; conformance/clients/run installs them", modulesVariable)
	}
	for _, c := range programs() {
		t.Run(c.name, func(t *testing.T) {
			if program := c.command(&rig{modules: modules})[0]; !isFile(program) {
				if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
					t.Fatalf("%s has no program %s; was the version withdrawn?", c.module, program)
				}
				t.Skipf("%s has no program for this platform: %s", c.module, program)
			}
			run(newRig(t, modules, c))
		})
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// install configures the client with guideway install.
func (r *rig) install() {
	r.Helper()
	r.runCommand(r.guideway, "install", r.client.name)
}

// Each client lists the workflows, starts a run, hands in an output that is refused and
// one that is accepted, and waits at a gate that a person opens at a terminal. Its model
// receives the handle, the reason of the refusal and the command for the person.
func TestRunInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
		r.write(filepath.Join("project", ".guideway", "workflows", "upload.json"), upload)
		r.work(append(wholeRun(), step{name: "end", tool: "workflow_status", arguments: `{"runId": "RUN"}`, before: func() { r.approveRun("") }}), r.install)
		r.checkRun()
		r.checkTexts(map[string][]string{"end": {"completed"}})
		if r.model.instructed == r.client.ignores {
			r.Errorf("the model receives the instructions: %t", r.model.instructed)
		}
		r.checkBytes("start", "refusal", "step", "gate", "end")
	})
}

// wholeRun returns the steps of a run up to its gate: a list, a refusal, and calls at a gate
// that only a person opens.
func wholeRun() []step {
	return []step{
		{name: "list", tool: "workflow_list", arguments: `{}`},
		{name: "start", tool: "workflow_start", arguments: `{"workflowId": "upload", "goal": "upload files again"}`},
		{name: "refusal", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "did it"}`},
		{name: "step", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "Plan: count, then upload.", "context": {"files": 3}}`},
		{name: "ship", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "built and tested"}`},
		{name: "gate", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "shipped to all"}`},
		{name: "closed", tool: "workflow_continue", arguments: `{"handle": "HANDLE"}`},
	}
}

// checkRun checks the texts that the model receives at the steps of wholeRun.
func (r *rig) checkRun() {
	r.Helper()
	runID := r.model.last(`r_[0-9a-z]{23}`)
	r.checkTexts(map[string][]string{
		"list":    {"upload"},
		"start":   {runID, "h_", "Write the plan."},
		"refusal": {"Begin with Plan:.", "h_"},
		"step":    {"Build it, and test it.", "h_"},
		"ship":    {"Ship it.", "h_"},
		"gate":    {"guideway runs approve " + runID},
		"closed":  {"guideway runs approve " + runID},
	})
}

// mostBytes is the size of the answers of a run in a client that adds nothing to them.
const mostBytes = 1300

// checkBytes checks and prints the number of bytes that the model received at these steps.
func (r *rig) checkBytes(steps ...string) {
	r.Helper()
	sum := 0
	var cells []string
	for _, name := range steps {
		n := len(r.model.text(name))
		sum += n
		cells = append(cells, name+" "+strconv.Itoa(n))
	}
	r.Logf("%s: bytes to the model: list %d; %s, sum %d; %d searches for tools",
		r.client.name, len(r.model.text("list")), strings.Join(cells, ", "), sum, r.model.searches)
	if most := mostBytes + r.client.adds; sum > most {
		r.Errorf("the model receives %d bytes in a run; at most %d are expected", sum, most)
	}
}
