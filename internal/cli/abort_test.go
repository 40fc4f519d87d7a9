package cli

import (
	"context"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// TestAbortAtATerminalIsAPersons checks that only a person can fork a run that was aborted
// at a terminal. The commands of an agent have no terminal: a run that an agent aborts can
// be forked without a person.
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

// TestCancelAtATerminalIsAPersons checks that only a person, with the passphrase, can fork
// a machine run that was cancelled at a terminal. A machine run that an agent cancels can
// be forked without a person.
func TestCancelAtATerminalIsAPersons(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	writeFile(t, filepath.Join(host.Dir, "desk", "machine.json"), `{
  "workflow_name": "desk", "description": "Asks.", "inputs": [], "output": {"name": "go", "type": "string", "description": "The answer."},
  "contexts": [{"name": "talk"}], "agents": [{"agent_role": "helper", "context": "talk", "role": "assistant"}],
  "states": [{"name": "start", "input": {"name": "go", "type": "string", "description": "Go on?", "approval": "human"}}, {"name": "stop"}]
}`)
	writeFile(t, filepath.Join(host.Dir, "desk", "roles.json"), `{"helper": {"systemMessage": "Help."}}`)
	call := func(terminal bool, command string, typed ...string) (int, string) {
		t.Helper()
		out.Reset()
		in := &fakeTerminal{lines: typed, echo: out}
		host.In, host.InTerminal, host.OutTerminal, host.ReadSecret = in, terminal, terminal, nil
		if terminal {
			typeSecrets(&host, in)
		}
		code := Run(t.Context(), strings.Fields(command), host)
		return code, out.String()
	}
	start := func() string {
		t.Helper()
		_, text := call(false, "machine run ./desk")
		id := regexp.MustCompile(`m_[0-9a-z]{23}`).FindString(text)
		if id == "" {
			t.Fatal(text)
		}
		return id
	}
	byAgent, byPerson := start(), start()
	if code, text := call(false, "machine cancel "+byAgent); code != app.ExitOK {
		t.Fatal(text)
	}
	if code, text := call(true, "machine cancel "+byPerson); code != app.ExitOK {
		t.Fatal(text)
	}
	if code, text := call(false, "machine fork "+byAgent); code != app.ExitOK {
		t.Errorf("the fork of a run that an agent cancelled:\n%s", text)
	}
	if code, text := call(false, "machine fork "+byPerson); code == app.ExitOK || !strings.Contains(text, "a person cancelled the run") || !strings.Contains(text, "guideway machine fork "+byPerson) {
		t.Errorf("an agent's fork, exit code %d:\n%s", code, text)
	}
	if code, text := call(true, "runs approve --set-passphrase", "four words in a row", "four words in a row"); code != app.ExitOK {
		t.Fatal(text)
	}
	if code, text := call(true, "machine fork "+byPerson, "something else"); code == app.ExitOK || !strings.Contains(text, "incorrect passphrase") {
		t.Errorf("a fork with a wrong passphrase, exit code %d:\n%s", code, text)
	}
	if code, text := call(true, "machine fork "+byPerson, "four words in a row", ""); code != app.ExitOK {
		t.Errorf("a person's fork, exit code %d:\n%s", code, text)
	}
}
