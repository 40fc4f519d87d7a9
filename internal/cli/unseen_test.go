package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
)

// changeConcurrently changes a run while a person reads the terminal: another person
// rejects the step, and the agent does it again.
func changeConcurrently(t *testing.T, host app.Host, id string) {
	t.Helper()
	root := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	err := root.WithRuns(t.Context(), func(ctx context.Context, d *app.RunDeps) error {
		user, err := auth.SystemUser()
		if err != nil {
			return err
		}
		person := run.Caller{Principal: guideway.Principal{User: user}, Via: run.ViaBrowser}
		again, err := d.Runs.Answer(ctx, person, run.AnswerRequest{Ref: run.Ref{RunID: id}, Answer: engine.Answer{OptionID: "revise"}})
		if err != nil {
			return err
		}
		_, err = d.Runs.Continue(ctx, d.Caller, run.ContinueRequest{Handle: again.Handle, Output: "the second round"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An answer at the terminal is for the shown position: if the run has since continued to
// the same gate with another output, it confirms nothing.
func TestAnswerAppliesToShownPosition(t *testing.T) {
	t.Parallel()
	const flow = `{"id": "flow", "name": "Flow", "description": "A gate.", "version": "1.0.0",
		"steps": [{"id": "one", "title": "One", "prompt": "Do it.", "requireConfirmation": true, "approval": "human"},
		{"id": "two", "title": "Two", "prompt": "End it."}]}`
	begun := func(t *testing.T) (app.Host, *bytes.Buffer, string) {
		host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
		writeFile(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.json"), flow)
		id := agent(t, host, `start {"WorkflowID":"flow"}
			continue {"Output":"the first round"}`)
		in := &fakeTerminal{lines: []string{personsWords, personsWords}, echo: out}
		typeSecrets(&host, in)
		if code := Run(t.Context(), []string{"runs", "approve", "--set-passphrase"}, host); code != app.ExitOK {
			t.Fatal(out)
		}
		return host, out, id
	}
	type test struct {
		command string
		typed   []string
		want    string
	}
	for _, tt := range []test{
		{"approve", []string{"1", ""}, "has changed in the meantime; your answer was not recorded"},
		{"resume", []string{"1", "", "^D"}, "Not recorded: the run has changed in the meantime."},
	} {
		t.Run(tt.command, func(t *testing.T) {
			t.Parallel()
			host, out, id := begun(t)
			in := &fakeTerminal{lines: tt.typed, echo: out}
			host.In = in
			asked := 0
			host.ReadSecret = func(context.Context) (string, error) {
				if asked++; asked == 1 {
					changeConcurrently(t, host, id)
				}
				return personsWords, nil
			}
			code := Run(t.Context(), []string{"runs", tt.command, id}, host)
			if tt.command == "approve" && code != app.ExitFailed || !strings.Contains(out.String(), tt.want) {
				t.Errorf("exit code %d, want %q in\n%s", code, tt.want, out)
			}
			shown, rest, _ := strings.Cut(out.String(), tt.want)
			if !strings.Contains(shown, "the first round") || strings.Contains(shown, "the second round") {
				t.Errorf("the terminal shows:\n%s", shown)
			}
			if tt.command == "resume" && !strings.Contains(rest, "the second round") {
				t.Errorf("the changed gate is not shown:\n%s", rest)
			}
			out.Reset()
			if Run(t.Context(), []string{"runs", "show", id, "--json"}, host); !strings.Contains(out.String(), `"status": "waiting"`) {
				t.Errorf("the second round was confirmed without being shown:\n%s", out)
			}
		})
	}
}
