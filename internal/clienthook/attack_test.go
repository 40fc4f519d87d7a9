package clienthook_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// manyRuns is a store with several runs, by their handles.
type manyRuns struct {
	*fakeRuns
	all map[string]*clienthook.Run
}

func (f manyRuns) Find(_ context.Context, handle string) (*clienthook.Run, error) {
	if r := f.all[handle]; r != nil {
		return r, nil
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no handle %q", handle)
}

func (f manyRuns) Load(_ context.Context, id string) (*clienthook.Run, error) {
	for _, r := range f.all {
		if r.ID == id {
			return r, nil
		}
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no run %q", id)
}

// newManyRuns returns a rig with runs whose steps deny Edit, and the handles of these runs.
func newManyRuns(t *testing.T, count int) (r *rig, store manyRuns, handles []string) {
	t.Helper()
	r = newRig(t, "claude-code")
	store = manyRuns{r.runs, map[string]*clienthook.Run{}}
	for i := range count {
		one := *r.runs.run
		one.ID, one.Handle = fmt.Sprintf("r_%023d", i), fmt.Sprintf("h_%021d", i)
		store.all[one.Handle], handles = &one, append(handles, one.Handle)
	}
	r.Open = func(context.Context) (clienthook.Runs, error) { return store, nil }
	return r, store, handles
}

// startRun reports the start of a run to the session s.
func startRun(t *testing.T, r *rig, server, result string) clienthook.Output {
	t.Helper()
	return r.Answer(t.Context(), "PostToolUse", strings.NewReader(
		fmt.Sprintf(`{"session_id":"s","tool_name":"mcp__%s__workflow_start","tool_input":{},"tool_response":%q}`, server, result)))
}

// TestRefusalBindsNothing checks that a refused call which names a run does not bind the
// session to it.
func TestRefusalBindsNothing(t *testing.T) {
	t.Parallel()
	r, store, handles := newManyRuns(t, 1)
	if out := startRun(t, r, "guideway", "run "+store.all[handles[0]].ID+" has ended"); !isEmpty(out) {
		t.Errorf("%s%s", out.Out, out.Err)
	}
	if got := callTool(t, r, "Edit"); got != "allow" {
		t.Errorf("Edit is answered %q, want allow", got)
	}
}

// callTool returns the effect of a call in the session s.
func callTool(t *testing.T, r *rig, tool string) string {
	t.Helper()
	out := r.Answer(t.Context(), "PreToolUse", strings.NewReader(fmt.Sprintf(`{"session_id":"s","tool_name":%q,"tool_input":{}}`, tool)))
	return effect(t, "claude-code", "PreToolUse", out)
}

// TestStartBindsTheRunItStarted checks that handles in the prompt of a started run, whose
// variables are texts of the agent, do not bind the session to another run.
func TestStartBindsTheRunItStarted(t *testing.T) {
	t.Parallel()
	for _, form := range []string{
		"Run %s of demo\nstep plan: Plan\nGoal: continue %s\nNext: workflow_continue {\"handle\":\"%s\"}",
		`{"runId":"%s","position":{"prompt":"continue %s"},"next":{"arguments":{"handle":"%s"}}}`,
	} {
		r, store, handles := newManyRuns(t, 2)
		store.all[handles[0]].Status = engine.StatusCompleted
		if out := startRun(t, r, "guideway", fmt.Sprintf(form, store.all[handles[1]].ID, handles[0], handles[1])); !isEmpty(out) {
			t.Fatalf("%s%s", out.Out, out.Err)
		}
		if got := callTool(t, r, "Edit"); got != "deny" {
			t.Errorf("%s: Edit is answered %q, want deny", form, got)
		}
	}
}

// TestManyRunsKeepTheFirst checks that a session which starts many runs is still bound to the
// first one, that ended runs make room, and that a run without room is reported.
func TestManyRunsKeepTheFirst(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		r, store, handles := newManyRuns(t, 18)
		var reports []string
		for i, handle := range handles {
			if i > 0 {
				store.all[handle].Position.Tools = nil
			}
			if out := startRun(t, r, "guideway", "Run "+store.all[handle].ID+" "+handle); len(out.Err) > 0 {
				reports = append(reports, string(out.Err))
			}
			if i > 0 && ended {
				store.all[handle].Status = engine.StatusAborted
			}
		}
		if got := callTool(t, r, "Edit"); got != "deny" {
			t.Errorf("ended %v: Edit is answered %q after %d runs, want deny", ended, got, len(handles))
		}
		if want := map[bool]int{false: 2, true: 0}[ended]; len(reports) != want || want > 0 && !strings.Contains(reports[0], "16") {
			t.Errorf("ended %v: the reports are %q, want %d", ended, reports, want)
		}
	}
}

// TestAnotherServerIsNotGuideway checks that a server with a tool of the same name neither
// exempts its tools from the policy nor subjects those of Guideway to it.
func TestAnotherServerIsNotGuideway(t *testing.T) {
	t.Parallel()
	r, store, handles := newManyRuns(t, 1)
	store.all[handles[0]].Position.Tools = &toolpolicy.Policy{Allow: []toolpolicy.Rule{}}
	startRun(t, r, "guideway", handles[0])
	startRun(t, r, "other", handles[0])
	for tool, want := range map[string]string{"mcp__other__delete": "deny", "mcp__guideway__workflow_status": "allow"} {
		if got := callTool(t, r, tool); got != want {
			t.Errorf("%s is answered %q, want %q", tool, got, want)
		}
	}
}

// TestHoldByAnotherName checks that a hold applies by any name of a tool, also if allow
// contains only another one.
func TestHoldByAnotherName(t *testing.T) {
	t.Parallel()
	r, store, handles := newManyRuns(t, 1)
	startRun(t, r, "guideway", handles[0])
	store.all[handles[0]].Position.Tools = &toolpolicy.Policy{
		Allow: []toolpolicy.Rule{{Tool: "mcp__github__*"}, {Tool: "Shell"}}, Hold: []toolpolicy.Rule{{Tool: "github__delete"}, {Tool: "Bash"}},
	}
	for tool, want := range map[string]string{"mcp__github__delete": "ask", "Shell": "ask", "mcp__github__read": "allow", "Bash": "deny"} {
		if got := callTool(t, r, tool); got != want {
			t.Errorf("%s is answered %q, want %q", tool, got, want)
		}
	}
}

// TestEveryEditorIsAnEdit checks that a step that denies Edit or Bash denies the client's
// other tools that edit files or start commands.
func TestEveryEditorIsAnEdit(t *testing.T) {
	t.Parallel()
	for denied, tools := range map[string][]string{
		"Edit": {"MultiEdit", "NotebookEdit", "Write", "write_file", "replace", "create", "apply_patch"},
		"Bash": {"PowerShell", "Monitor", "Shell", "shell", "bash", "powershell", "run_shell_command", "exec_command", "local_shell", "write_bash", "write_powershell", "write_stdin"},
	} {
		r, store, handles := newManyRuns(t, 1)
		startRun(t, r, "guideway", handles[0])
		store.all[handles[0]].Position.Tools = &toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: denied}}}
		for _, tool := range tools {
			if got := callTool(t, r, tool); got != "deny" {
				t.Errorf("%s is answered %q at a step that denies %s", tool, got, denied)
			}
		}
	}
}

// TestLargeCallIsDenied checks that the size of its arguments does not let a call pass that
// the policy may deny, and that the whole event is read: a client whose hook does not read it
// ignores the answer.
func TestLargeCallIsDenied(t *testing.T) {
	t.Parallel()
	command := map[string]string{"command": "rm *"}
	for name, tt := range map[string]struct {
		policy toolpolicy.Policy
		want   string
	}{
		"denied":                  {toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "Write"}}}, "deny"},
		"denied by an argument":   {toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "Write", Arguments: command}}}, "deny"},
		"held by an argument":     {toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "Write", Arguments: command}}}, "ask"},
		"not allowed":             {toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Read"}}}, "deny"},
		"allowed by an argument":  {toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Write", Arguments: command}}}, "deny"},
		"allowed, which is noted": {toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Write"}}}, "notice"},
	} {
		r, store, handles := newManyRuns(t, 1)
		startRun(t, r, "guideway", handles[0])
		store.all[handles[0]].Position.Tools = &tt.policy
		in := strings.NewReader(`{"session_id":"s","tool_name":"Write","tool_input":{"content":"` + strings.Repeat("x", 9<<20) + `"}}`)
		out := r.Answer(t.Context(), "PreToolUse", in)
		if got := effect(t, "claude-code", "PreToolUse", out); got != tt.want {
			t.Errorf("%s: the call is answered %q, want %q: %s%s", name, got, tt.want, out.Out, out.Err)
		}
		if rest, _ := io.Copy(io.Discard, in); rest > 0 {
			t.Errorf("%s: %d bytes are not read", name, rest)
		}
	}
}

// TestMainAgentIsHeldByARunItContinues checks that a run which a subagent started holds the
// main agent once it continues the run itself.
func TestMainAgentIsHeldByARunItContinues(t *testing.T) {
	t.Parallel()
	r := newRig(t, "claude-code")
	r.answer(t, "PostToolUse.subagent")
	r.answer(t, "PostToolUse.start")
	got := []string{effect(t, "claude-code", "Stop", r.answer(t, "Stop")), effect(t, "claude-code", "SubagentStop", r.answer(t, "SubagentStop"))}
	if want := []string{"refuse", "allow"}; !slices.Equal(got, want) {
		t.Errorf("the stops of the main agent and the subagent have the effects %q, want %q", got, want)
	}
}
