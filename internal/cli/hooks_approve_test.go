package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

const projectGraph = `id: theirs
name: Theirs
workflowType: tools/call
nodes:
  - { id: start, type: start }
  - { id: h, type: hook, data: { hook: { script: "context.request.params.mark = 1;" } } }
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`

// hookProject is a project with a hook graph, and a person at a terminal in it.
type hookProject struct {
	*testing.T
	host app.Host
	out  *bytes.Buffer
	file string
}

func newHookProject(t *testing.T) *hookProject {
	t.Helper()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	host.Dir = filepath.Join(host.Dir, "work")
	d := &hookProject{T: t, host: host, out: out, file: filepath.Join(host.Dir, "workflows", "hooks", "theirs.yaml")}
	writeFile(t, d.file, projectGraph)
	return d
}

// runCommand runs a command with typed input, and returns the exit code and the content of the
// terminal.
func (d *hookProject) runCommand(command string, typed ...string) (int, string) {
	d.Helper()
	d.out.Reset()
	in := &fakeTerminal{echo: d.out, lines: typed}
	d.host.In = in
	typeSecrets(&d.host, in)
	code := Run(d.Context(), strings.Fields(command), d.host)
	return code, d.out.String()
}

// wantCommand runs a command and checks its exit code and that a text is on the terminal.
func (d *hookProject) wantCommand(code int, text, command string, typed ...string) {
	d.Helper()
	got, out := d.runCommand(command, typed...)
	if got != code || !strings.Contains(out, text) {
		d.Errorf("%s: exit code %d, want %d and %q:\n%s", command, got, code, text, out)
	}
}

// TestProjectHooksNeedApproval checks that a project's hook graph is off until a person has
// seen its scripts and typed its id. An edited graph needs a new approval. A deleted graph
// is reported as missing and can be disabled.
func TestProjectHooksNeedApproval(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	d.wantCommand(app.ExitOK, "theirs             tools/call  off", "hooks list")
	d.wantCommand(app.ExitFailed, "not approved", "hooks enable theirs", "yes")
	d.wantCommand(app.ExitFailed, "not approved", "hooks enable theirs")
	d.wantCommand(app.ExitOK, "theirs             tools/call  off", "hooks list")
	code, out := d.runCommand("hooks enable theirs", "theirs")
	for _, want := range []string{"| context.request.params.mark = 1;", "This graph is from project:", "Type the id of the graph to approve this version (theirs): ", "Enabled theirs"} {
		if code != app.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q:\n%s", code, want, out)
		}
	}
	d.wantCommand(app.ExitOK, "theirs  tools/call  active", "hooks list --active")
	if err := os.WriteFile(d.file, []byte(strings.Replace(projectGraph, "mark = 1", "mark = 2", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	d.wantCommand(app.ExitOK, "theirs  tools/call  changed", "hooks list --active")
	d.wantCommand(app.ExitOK, "Enabled theirs", "hooks enable theirs", "theirs")
	d.wantCommand(app.ExitOK, "theirs", "audit list")
	if err := os.Remove(d.file); err != nil {
		t.Fatal(err)
	}
	d.wantCommand(app.ExitOK, "the hook graph theirs is enabled but missing from the source project:", "hooks list --active")
	d.wantCommand(app.ExitOK, "Disabled theirs.", "hooks disable theirs")
	d.wantCommand(app.ExitFailed, "is not enabled", "hooks disable theirs")
}

// TestHookApprovalNeedsPassphrase checks that, if a passphrase is set, a wrong passphrase
// does not disable a hook graph, and hook graphs cannot be enabled or disabled without a
// terminal.
func TestHookApprovalNeedsPassphrase(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	d.wantCommand(app.ExitOK, "Enabled redact-secrets", "hooks enable redact-secrets")
	d.wantCommand(app.ExitOK, "The passphrase is set", "runs approve --set-passphrase", "correct horse battery", "correct horse battery")
	d.wantCommand(app.ExitFailed, "", "hooks disable redact-secrets", "wrong horse battery")
	d.wantCommand(app.ExitOK, "redact-secrets  tools/call  active", "hooks list --active")
	d.host.InTerminal = false
	d.wantCommand(app.ExitUsage, "this command requires a terminal", "hooks disable redact-secrets")
	d.wantCommand(app.ExitUsage, "this command requires a terminal", "hooks enable cap-result-size")
	d.host.InTerminal = true
	d.wantCommand(app.ExitOK, "redact-secrets  tools/call  active", "hooks list --active")
}
