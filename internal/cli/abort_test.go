package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// TestAbortAtATerminalIsAPersons checks that a run that a person aborts at a terminal cannot
// be forked without a person, and that an agent, whose commands have no terminal, aborts as
// an agent: that run can be forked.
func TestAbortAtATerminalIsAPersons(t *testing.T) {
	t.Parallel()
	const flow = `{"id": "flow", "name": "Flow", "description": "One step.", "version": "1.0.0",
		"steps": [{"id": "one", "title": "One", "prompt": "Do it."}]}`
	for name, tt := range map[string]struct {
		in, out, secret, person bool
	}{
		"a terminal":              {in: true, out: true, secret: true, person: true},
		"input from a pipe":       {out: true, secret: true},
		"output to a pipe":        {in: true, secret: true},
		"no terminal":             {},
		"a terminal without echo": {in: true, out: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
			writeFile(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.json"), flow)
			id := agent(t, host, `start {"WorkflowID":"flow"}`)
			call := func(command string) (int, string) {
				t.Helper()
				out.Reset()
				code := Run(t.Context(), append(strings.Fields(command), id), host)
				return code, out.String()
			}
			host.InTerminal, host.OutTerminal = tt.in, tt.out
			if tt.secret {
				host.ReadSecret = func(context.Context) (string, error) { return "", io.EOF }
			}
			if code, text := call("runs abort"); code != app.ExitOK {
				t.Fatal(text)
			}
			host.InTerminal, host.OutTerminal, host.ReadSecret = false, false, nil
			if _, text := call("runs show --events"); strings.Contains(text, "(person, at a terminal") != tt.person {
				t.Errorf("the events:\n%s", text)
			}
			switch code, text := call("runs fork"); {
			case tt.person && (code != app.ExitFailed || !strings.Contains(text, "a person aborted the run") || !strings.Contains(text, "guideway runs fork "+id)):
				t.Errorf("an agent's fork, exit code %d:\n%s", code, text)
			case !tt.person && code != app.ExitOK:
				t.Errorf("the fork of a run that an agent aborted:\n%s", text)
			}
		})
	}
}
