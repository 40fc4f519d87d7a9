package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// checkedFlow is a workflow with one step that CHECK decides.
const checkedFlow = `id: flow
name: A flow
description: One step with a check.
version: 1.0.0
steps:
  - id: work
    title: Work
    prompt: Do it.
    validationCriteria: [CHECK]
`

// shellChecks has a test that passes if the file done exists.
const shellChecks = `checks:
  test: {argv: [sh, tests.sh, "{{name}}"], parameters: {name: {default: done, pattern: "[a-z]+"}}}
  slow: {argv: [sh, -c, "sleep 60"], timeout: 100ms}
  missing: {argv: [guideway-no-such-program]}
  protected: {protect: ["*_test.go"]}
`

// newShellProject returns a project whose checks run on every Unix system.
func newShellProject(t *testing.T) *hookProject {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	d := newCheckedProject(t)
	d.write(".guideway/checks.yaml", shellChecks)
	d.write("tests.sh", "echo testing $1\ntest -f \"$1\"\n")
	return d
}

// startAgent starts a client of guideway mcp and a run of the flow, and returns a function
// that submits the output of its step: the text of the answer, and whether it was refused.
func (d *hookProject) startAgent(rule string) (submit func() (text string, refused bool), id string) {
	d.Helper()
	d.write(".guideway/workflows/flow.yaml", strings.Replace(checkedFlow, "CHECK", rule, 1))
	c := d.startClient("mcp", "--toolsets", "steps,runs,gateway")
	d.Cleanup(c.end)
	call := func(tool string, arguments map[string]any) (answer map[string]any, text string, refused bool) {
		d.Helper()
		response := c.sendRequest("tools/call", map[string]any{"name": tool, "arguments": arguments})
		var result struct {
			Content    []struct{ Text string }
			Structured map[string]any `json:"structuredContent"`
			IsError    bool           `json:"isError"`
		}
		if err := json.Unmarshal(response.Result, &result); err != nil || len(result.Content) == 0 {
			d.Fatalf("%s: %v: %+v", tool, err, response)
		}
		return result.Structured, result.Content[0].Text, result.IsError
	}
	started, text, refused := call("workflow_start", map[string]any{"workflowId": "flow", "goal": "x"})
	if refused {
		d.Fatal(text)
	}
	id, _ = started["runId"].(string)
	return func() (string, bool) {
		_, text, refused := call("workflow_continue", map[string]any{"handle": started["handle"], "output": "All tests pass: ok x/pkg 0.31s"})
		return text, refused
	}, id
}

func (d *hookProject) wantRefused(submit func() (string, bool), want string) {
	d.Helper()
	if text, refused := submit(); !refused || !strings.Contains(text, want) {
		d.Errorf("refused: %t, without %q:\n%s", refused, want, text)
	}
}

func (d *hookProject) wantAccepted(submit func() (string, bool)) {
	d.Helper()
	if text, refused := submit(); refused {
		d.Errorf("refused:\n%s", text)
	}
}

// TestAgentCannotClaimATest checks that a step with a check waits until a person approves
// the check, is refused while the test fails, and is accepted when it passes. After the
// approval, an agent gains nothing from a change of the script, or from another, an empty
// or a missing check in the checks file.
func TestAgentCannotClaimATest(t *testing.T) {
	t.Parallel()
	d := newShellProject(t)
	submit, _ := d.startAgent("{ type: check, check: test }")
	d.wantRefused(submit, "guideway checks approve test")
	d.wantCommand(app.ExitOK, "Approved: test.", "checks approve test", "yes")
	d.wantRefused(submit, "exited with 1 instead of 0")
	for file, text := range map[string]string{
		"tests.sh": "exit 0\n", ".guideway/checks.yaml": "checks: {test: {argv: [\"true\"]}}\n", ".guideway/checks.yaml ": "checks: {}\n", ".guideway/checks.yaml  ": "checks: {test: {}}\n",
	} {
		name := filepath.Join(d.host.Dir, strings.TrimSpace(file))
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, name, text)
		d.wantRefused(submit, "the step waits for a check")
		writeFile(t, name, string(before))
	}
	d.wantRefused(submit, "exited with 1 instead of 0")
	d.write("done", "")
	d.wantAccepted(submit)
}

// TestUndefinedCheckIsAClaim checks that a step is accepted as a claim if the project does
// not define the named check.
func TestUndefinedCheckIsAClaim(t *testing.T) {
	t.Parallel()
	d := newShellProject(t)
	submit, _ := d.startAgent("{ type: check, check: build }")
	d.wantAccepted(submit)
}

// TestToolCheck checks that a check can call a tool of the gateway after its approval, and
// not before.
func TestToolCheck(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	submit, _ := d.startAgent("{ type: tool, tool: one__count }")
	d.wantRefused(submit, "guideway checks approve tool:")
	if _, err := os.Stat(count); err == nil {
		t.Error("the tool was called before the approval")
	}
	d.wantCommand(app.ExitOK, "tool:         one__count\n", "checks approve", "yes")
	d.wantAccepted(submit)
	if text, err := os.ReadFile(count); err != nil || string(text) != "once\n" {
		t.Errorf("the tool was called %q, %v", text, err)
	}
	missing, _ := d.startAgent("{ type: tool, tool: one__none }")
	d.wantCommand(app.ExitOK, "Approved: tool:", "checks approve", "yes")
	d.wantRefused(missing, "the gateway has no tool one__none")
}

// TestRunCheck checks the exit codes of guideway checks run, and its approval at a terminal.
func TestRunCheck(t *testing.T) {
	t.Parallel()
	d := newShellProject(t)
	person := d.host
	d.host.InTerminal = false
	d.wantCommand(app.ExitUsage, "the check test is not approved", "checks run test")
	d.host = person
	d.wantCommand(app.ExitUsage, "nothing was approved", "checks run test", "no")
	d.wantCommand(app.ExitFailed, "  testing done\ntest failed, exit code 1, in ", "checks run test", "yes")
	d.wantState("test", "approved")
	d.write("done", "")
	d.wantCommand(app.ExitOK, "  testing done\ntest passed, exit code 0, in ", "checks run test")
	d.wantCommand(app.ExitFailed, "testing other", "checks run test --param name=other")
	d.wantCommand(app.ExitOK, `"passed": true`, "checks run test --json")
	for _, value := range []string{"name=-x", "name=A;b", "name=", "nam=x", "x"} {
		d.wantCommand(app.ExitUsage, "", "checks run test --param "+value)
	}
	d.wantCommand(app.ExitUsage, "slow not executed to its end, in ", "checks run slow", "yes")
	d.wantCommand(app.ExitUsage, "must be on PATH", "checks run missing", "yes")
	d.wantCommand(app.ExitUsage, "did you mean test?", "checks run tset")
	d.wantCommand(app.ExitUsage, "is executed only in runs", "checks run protected")
}

// TestApproveProtectedChange checks that a change of a protected file needs the approval of
// a person, who sees the difference, and that the approval is for one version in one run.
func TestApproveProtectedChange(t *testing.T) {
	t.Parallel()
	d := newShellProject(t)
	d.write("a_test.go", "func TestA\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "one"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = d.host.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git %s: %v: %s", args, err, out)
		}
	}
	d.wantCommand(app.ExitOK, "protects:     [\"*_test.go\"]", "checks approve protected", "yes")
	submit, id := d.startAgent("{ type: check, check: protected }")
	d.write("a_test.go", "func TestA // \u202e weakened\n")
	d.wantRefused(submit, "guideway checks approve --run "+id)
	command := "checks approve --run " + id
	d.host.OutTerminal = false
	d.wantCommand(app.ExitUsage, "this command requires a terminal", command, "yes")
	d.host.OutTerminal = true
	d.wantCommand(app.ExitUsage, "--run cannot be used with --all", command+" --all", "yes")
	d.wantCommand(app.ExitFailed, "nothing was approved", command, "no")
	d.wantRefused(submit, "protected files differ")
	d.wantCommand(app.ExitOK, "-func TestA\n+func TestA // \\u{202E} weakened\n", command, "yes")
	d.wantCommand(app.ExitOK, "No change of a protected file waits for approval.", command)
	d.write("a_test.go", "func TestA // weakened more\n")
	d.wantRefused(submit, "protected files differ")
	d.write("a_test.go", "func TestA // \u202e weakened\n")
	other, _ := d.startAgent("{ type: check, check: protected }")
	d.write("a_test.go", "func TestA // more\n")
	d.wantRefused(other, "protected files differ")
	d.write("a_test.go", "func TestA // \u202e weakened\n")
	d.wantAccepted(submit)
}

// TestRunExecutesChecks checks that guideway run executes the checks of a workflow.
func TestRunExecutesChecks(t *testing.T) {
	t.Parallel()
	d := newShellProject(t)
	d.write("flow.yaml", strings.Replace(checkedFlow, "CHECK", "{ type: check, check: test }", 1))
	d.write("answers.yaml", "outputs: { work: done }\n")
	const command = "run ./flow.yaml --answers answers.yaml"
	d.wantCommand(app.ExitFailed, "the step waits for a check: the check test is not approved", command)
	d.wantCommand(app.ExitOK, "Approved: test.", "checks approve test", "yes")
	d.wantCommand(app.ExitFailed, "exited with 1 instead of 0", command)
	d.write("done", "")
	d.wantCommand(app.ExitOK, "Completed: 1 step done", command)
	d.write("flow.yaml", strings.Replace(checkedFlow, "CHECK", "{ type: check, check: build }", 1))
	d.wantCommand(app.ExitOK, "Completed: 1 step done", command)
}
