package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

const projectChecks = `checks:
  test: {argv: [make, test], description: run the tests}
  lint: {argv: [make, lint]}
`

const projectMakefile = "test:\n\t./run-tests\nlint:\n\tvet\n"

// newCheckedProject returns a project with checks, and a person at a terminal in it.
func newCheckedProject(t *testing.T) *hookProject {
	t.Helper()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	host.Dir = filepath.Join(host.Dir, "work")
	d := &hookProject{T: t, host: host, out: out}
	d.write(".guideway/checks.yaml", projectChecks)
	d.write("Makefile", projectMakefile)
	return d
}

// write writes a file of the project, as an agent could.
func (d *hookProject) write(name, text string) {
	d.Helper()
	writeFile(d.T, filepath.Join(d.host.Dir, filepath.FromSlash(name)), text)
}

// state returns the state of a check in the list, or "" if it is not listed.
func (d *hookProject) state(name string) string {
	d.Helper()
	_, out := d.runCommand("checks list --json")
	var answer struct {
		Checks []struct{ Name, State string }
	}
	_, text, _ := strings.Cut(out, "{") // after the diagnostics
	if err := json.Unmarshal([]byte("{"+text), &answer); err != nil {
		d.Fatalf("%v: %s", err, out)
	}
	for _, c := range answer.Checks {
		if c.Name == name || strings.HasSuffix(name, ":") && strings.HasPrefix(c.Name, name) {
			return c.State
		}
	}
	return ""
}

func (d *hookProject) wantState(name, want string) {
	d.Helper()
	if got := d.state(name); got != want {
		d.Errorf("%s is %q, want %q", name, got, want)
	}
}

// TestApproveChecks checks that a person sees exactly what runs before the approval, and
// after a change of the check or of a defining file the differences, with hidden characters
// made visible.
func TestApproveChecks(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	code, out := d.runCommand("checks approve", "yes", "no")
	for _, want := range []string{
		"\ntest (not approved before)\ndescription:  run the tests\ncommand:      [\"make\",\"test\"]\n", "file:         Makefile (sha256 ", "  | \t./run-tests\n",
		"Approve test? Type yes: yes\n", "Approve lint? Type yes: no\n", "Approved: test. Not approved: lint.",
	} {
		if code != app.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q:\n%s", code, want, out)
		}
	}
	d.wantState("test", "approved")
	d.wantState("lint", "waiting")
	for _, change := range []struct{ file, text, shown string }{
		{"run-tests", "exit 0\n", "+file:         run-tests"},
		{"Makefile", strings.Replace(projectMakefile, "./run-tests", "true", 1), "-  | \t./run-tests\n+  | \ttrue\n"},
		{"Makefile", strings.Replace(projectMakefile, "./run-tests", "true \u202e#", 1), `+  | ` + "\ttrue " + `\u{202E}#`},
		{"GNUmakefile", "test:\n\ttrue\n", "+file:         GNUmakefile"},
		{".guideway/checks.yaml", strings.Replace(projectChecks, "[make, test]", "[make, -i, test]", 1), `+command:      ["make","-i","test"]`},
	} {
		d.write(change.file, change.text)
		d.wantState("test", "changed")
		d.wantCommand(app.ExitFailed, "nothing was approved", "checks approve test", "no")
		d.wantState("test", "changed")
		d.wantCommand(app.ExitOK, change.shown, "checks approve test", "yes")
		d.wantState("test", "approved")
	}
	d.wantCommand(app.ExitOK, "Approved already: test.", "checks approve test")
	d.wantCommand(app.ExitOK, "Approve lint? Type yes: ", "checks approve", "yes")
	d.wantCommand(app.ExitOK, "check lint", "audit list")
	d.wantCommand(app.ExitOK, "No check waits for approval.", "checks approve")
}

// TestApproveAllChecks checks that --all asks once, and that an end of the input approves
// nothing.
func TestApproveAllChecks(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	d.wantCommand(app.ExitFailed, "Approve test? Type yes: yes", "checks approve", "yes", "^D")
	d.wantState("test", "waiting")
	d.wantCommand(app.ExitFailed, "nothing was approved", "checks approve --all", "y")
	d.wantState("test", "waiting")
	code, out := d.runCommand("checks approve --all --json", "yes")
	if code != app.ExitOK || strings.Count(out, "Type yes") != 1 || !strings.Contains(out, "Approve 2 checks? Type yes: ") || !strings.Contains(out, `"changed": true`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	d.wantState("test", "approved")
	d.wantState("lint", "approved")
	d.wantCommand(app.ExitFailed, "did you mean test?", "checks approve tets")
}

// TestApproveNeedsTerminal checks that an agent, which has no terminal, cannot approve, even
// if it writes the answers.
func TestApproveNeedsTerminal(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*app.Host){
		"input": func(h *app.Host) { h.InTerminal = false }, "output": func(h *app.Host) { h.OutTerminal = false },
	} {
		d := newCheckedProject(t)
		change(&d.host)
		d.wantCommand(app.ExitUsage, "this command requires a terminal", "checks approve --all", "yes")
		if got := d.state("test"); got != "waiting" {
			t.Errorf("without a terminal as the %s, the check is %s", name, got)
		}
	}
}

// TestCheckApprovalNeedsPassphrase checks that, if a passphrase is set, a wrong one approves
// nothing.
func TestCheckApprovalNeedsPassphrase(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	d.wantCommand(app.ExitOK, "The passphrase is set", "runs approve --set-passphrase", "correct horse battery", "correct horse battery")
	d.wantCommand(app.ExitFailed, "incorrect passphrase", "checks approve test", "yes", "wrong")
	d.wantState("test", "waiting")
	d.wantCommand(app.ExitOK, "Approved: test.", "checks approve test", "yes", "correct horse battery")
	d.wantState("test", "approved")
}

// TestApprovalIsForOneWorkspace checks that a copy of an approved project is not approved.
func TestApprovalIsForOneWorkspace(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	d.wantCommand(app.ExitOK, "Approved", "checks approve --all", "yes")
	first := d.host.Dir
	d.host.Dir = filepath.Join(filepath.Dir(first), "copy")
	d.write(".guideway/checks.yaml", projectChecks)
	d.write("Makefile", projectMakefile)
	d.wantState("test", "waiting")
	d.host.Dir = first
	d.wantState("test", "approved")
}

// TestEditedApprovals checks that no check is approved after an edit of the approval file
// without its key, and that the edited file is not replaced.
func TestEditedApprovals(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	d.wantCommand(app.ExitOK, "Approved", "checks approve test", "yes")
	cfg, err := (&app.App{Host: &d.host, Flags: &app.SettingFlags{}}).Load()
	if err != nil {
		t.Fatal(err)
	}
	path := app.ApprovalsPath(cfg)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(text), `"subject": "test"`, `"subject": "lint"`, 1)
	if forged == string(text) {
		t.Fatal("the file is unchanged")
	}
	writeFile(t, path, forged)
	d.wantCommand(app.ExitFailed, "was edited", "checks list")
	d.wantCommand(app.ExitFailed, "was edited", "checks approve", "yes", "yes")
	if after, err := os.ReadFile(path); err != nil || string(after) != forged {
		t.Error("the edited file was replaced", err)
	}
	_, out := d.runCommand("doctor")
	if !strings.Contains(out, "so no check counts as approved: ") {
		t.Errorf("the doctor does not report it:\n%s", out)
	}
}

// TestRemovedCheck checks that a person has to confirm the removal of an approved check, and
// that it is not listed afterwards.
func TestRemovedCheck(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	d.wantCommand(app.ExitOK, "Approved", "checks approve --all", "yes")
	d.write(".guideway/checks.yaml", "checks: {lint: {argv: [make, lint]}}")
	d.wantState("test", "removed")
	d.wantState("lint", "approved")
	d.wantCommand(app.ExitOK, "no longer defines it", "checks list")
	d.wantCommand(app.ExitFailed, "nothing was approved", "checks approve", "no")
	d.wantState("test", "removed")
	d.wantCommand(app.ExitOK, "Removed: test.", "checks approve", "yes")
	d.wantState("test", "")
	d.write(".guideway/checks.yaml", projectChecks)
	d.wantState("test", "waiting")
}

// TestBrokenChecks checks that a check with an error cannot be approved, and that it does not
// affect the others.
func TestBrokenChecks(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	d.write(".guideway/checks.yaml", projectChecks+"  bad: {argv: [x], timeout: 2h}\n  lost: {argv: [make], dir: up}\n")
	if err := os.Symlink("../..", filepath.Join(d.host.Dir, "up")); err != nil {
		t.Fatal(err)
	}
	d.wantCommand(app.ExitInvalid, "time limit is more than zero", "checks approve bad", "yes")
	d.wantCommand(app.ExitInvalid, "is not a readable directory inside the workspace", "checks approve lost", "yes")
	d.wantState("bad", "broken")
	d.wantState("lost", "broken")
	d.wantCommand(app.ExitOK, "Approved: test, lint.", "checks approve --all", "yes")
}

// TestApproveRulesOfRuns checks that the commands, tools and addresses of this machine that
// an active run uses are listed and can be approved. Other rules need no approval.
func TestApproveRulesOfRuns(t *testing.T) {
	t.Parallel()
	d := newCheckedProject(t)
	d.write(".guideway/workflows/flow.yaml", `id: flow
name: A flow
description: One step with checks.
version: 1.0.0
steps:
  - id: work
    title: Work
    prompt: Do it.
    validationCriteria:
      and:
        - { type: command, argv: [bash, scripts/x.sh, "{{name}}"] }
        - { type: http, url: "http://localhost:8080/{{name}}" }
        - { type: http, url: "https://example.com/" }
        - { type: check, check: test }
        - { type: file, path: a.txt }
`)
	d.write("scripts/x.sh", "exit 1\n")
	project, err := json.Marshal((&d.host).Project())
	if err != nil {
		t.Fatal(err)
	}
	id := agent(t, d.host, `start {"WorkflowID":"flow","Goal":"x","Context":{"port":8080,"name":"n"},"Project":`+string(project)+`}`)
	code, out := d.runCommand("checks list")
	for _, want := range []string{"http://localhost:8080", "bash scripts/x.sh {{name}}", "scripts/x.sh"} {
		if code != app.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q:\n%s", code, want, out)
		}
	}
	if strings.Contains(out, "example.com") || strings.Contains(out, "a.txt") || strings.Count(out, "waiting") != 4 {
		t.Errorf("a rule is listed that needs no approval:\n%s", out)
	}
	code, out = d.runCommand("checks approve", "yes", "yes", "yes", "yes")
	for _, want := range []string{"used by " + id, "address:      http://localhost:8080\n", "  | exit 1\n", "Approved: test, lint, command:"} {
		if code != app.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q:\n%s", code, want, out)
		}
	}
	d.wantState("command:", "approved")
	d.wantState("http:", "approved")
	d.write("scripts/x.sh", "exit 0\n")
	d.wantState("command:", "changed")
	d.wantCommand(app.ExitOK, "+  | exit 0\n", "checks approve", "yes")
	d.wantState("command:", "approved")
	d.wantCommand(app.ExitFailed, "none of the 50 most recently changed active runs of this project uses the rule", "checks approve command:0")
}
