package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	runscmd "github.com/guideway-dev/guideway/internal/cli/runs"
	sessioncmd "github.com/guideway-dev/guideway/internal/cli/session"
	setupcmd "github.com/guideway-dev/guideway/internal/cli/setup"
	"github.com/spf13/cobra"
)

// parsedRuns returns the parsed options of a command line on runs and sessions, without
// running it.
func parsedRuns(t *testing.T, args []string, terminal bool) (any, error) {
	t.Helper()
	host := &app.Host{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Dir: t.TempDir(),
		Getenv: func(string) string { return "" }, InTerminal: terminal, OutTerminal: terminal,
	}
	if terminal {
		host.ReadSecret = func(context.Context) (string, error) { return "", io.EOF }
	}
	a := &app.App{Host: host}
	root := &cobra.Command{Use: "guideway", SilenceErrors: true, SilenceUsage: true}
	a.Flags = app.AddSettingFlags(root.PersistentFlags())
	var got any
	runs, sessions := runscmd.NewRunsCmd(a), sessioncmd.NewSessionsCmd(a)
	runs.ResetCommands()
	runs.AddCommand(
		runscmd.NewRunsListCmd(a, func(_ context.Context, o *runscmd.RunsListOptions) error { got = *o; return nil }),
		runscmd.NewRunsShowCmd(a, func(_ context.Context, o *runscmd.RunsShowOptions) error { got = *o; return nil }),
		runscmd.NewRunsResumeCmd(a, func(_ context.Context, o *runscmd.RunsResumeOptions) error { got = *o; return nil }),
		runscmd.NewRunsForkCmd(a, func(_ context.Context, o *runscmd.RunsForkOptions) error { got = *o; return nil }),
		runscmd.NewRunsApproveCmd(a, func(_ context.Context, o *runscmd.RunsApproveOptions) error { got = *o; return nil }),
		runscmd.NewRunsAbortCmd(a, func(_ context.Context, o *runscmd.RunsAbortOptions) error { got = *o; return nil }),
		runscmd.NewRunsVerifyCmd(a, func(_ context.Context, o *runscmd.RunsVerifyOptions) error { got = *o; return nil }),
		runscmd.NewRunsExportCmd(a, func(_ context.Context, o *runscmd.RunsExportOptions) error { got = *o; return nil }),
		runscmd.NewRunsImportCmd(a, func(_ context.Context, o *runscmd.RunsImportOptions) error { got = *o; return nil }),
	)
	sessions.ResetCommands()
	sessions.AddCommand(
		sessioncmd.NewSessionsListCmd(a, func(_ context.Context, o *sessioncmd.SessionsListOptions) error { got = *o; return nil }),
		sessioncmd.NewSessionsShowCmd(a, func(_ context.Context, o *sessioncmd.SessionsShowOptions) error { got = *o; return nil }),
		sessioncmd.NewSessionsDeleteCmd(a, func(_ context.Context, o *sessioncmd.SessionsDeleteOptions) error { got = *o; return nil }),
	)
	root.AddCommand(runs, sessions, setupcmd.NewOpenCmd(a, func(_ context.Context, o *setupcmd.OpenOptions) error { got = *o; return nil }))
	wrapArgErrors(root)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return got, err
}

func TestRunsCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]any{
		"runs list": runscmd.RunsListOptions{Limit: 100},
		"runs list --status running,waiting --status aborted --here --needs-approval --limit 3 --workflow w --json": runscmd.RunsListOptions{
			Statuses: []string{"running", "waiting", "aborted"}, Here: true, NeedsApproval: true, Limit: 3, Workflow: "w", JSON: true,
		},
		"runs show r_1 --events --vars":         runscmd.RunsShowOptions{Run: "r_1", Events: true, Vars: true},
		"runs show r_1 --state":                 runscmd.RunsShowOptions{Run: "r_1", State: true},
		"runs resume":                           runscmd.RunsResumeOptions{Words: []string{}},
		"runs resume auth refactoring --here":   runscmd.RunsResumeOptions{Words: []string{"auth", "refactoring"}, Here: true},
		"runs fork r_1 --seq 3 --json":          runscmd.RunsForkOptions{Run: "r_1", Seq: 3, JSON: true},
		"runs approve r_1":                      runscmd.RunsApproveOptions{Run: "r_1"},
		"runs approve --set-passphrase":         runscmd.RunsApproveOptions{SetPassphrase: true},
		"runs abort r_1 --reason done":          runscmd.RunsAbortOptions{Run: "r_1", Reason: "done"},
		"runs verify":                           runscmd.RunsVerifyOptions{},
		"runs verify r_1 --json":                runscmd.RunsVerifyOptions{Run: "r_1", JSON: true},
		"runs verify --accept-restore":          runscmd.RunsVerifyOptions{AcceptRestore: true},
		"runs export r_1 -o x.json --force":     runscmd.RunsExportOptions{Run: "r_1", Output: "x.json", Force: true},
		"runs import - --json":                  runscmd.RunsImportOptions{File: "-", JSON: true},
		"sessions list --here --project p":      sessioncmd.SessionsListOptions{Here: true, Project: "p", Limit: 100},
		"sessions show S-1 --path a.b":          sessioncmd.SessionsShowOptions{Name: "S-1", Path: "a.b"},
		"sessions show w/S-1 --log --json":      sessioncmd.SessionsShowOptions{Name: "w/S-1", Log: true, JSON: true},
		"sessions delete S-1":                   sessioncmd.SessionsDeleteOptions{Name: "S-1"},
		"sessions delete --undo p/w/S-1":        sessioncmd.SessionsDeleteOptions{Name: "p/w/S-1", Undo: true},
		"open --browser":                        setupcmd.OpenOptions{Browser: true},
		"runs list --store postgres://u:p@h/db": runscmd.RunsListOptions{Limit: 100},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			got, err := parsedRuns(t, strings.Fields(line), true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(
				runscmd.RunsListOptions{}, runscmd.RunsShowOptions{}, runscmd.RunsResumeOptions{}, runscmd.RunsForkOptions{}, runscmd.RunsApproveOptions{},
				runscmd.RunsAbortOptions{}, runscmd.RunsVerifyOptions{}, runscmd.RunsExportOptions{}, runscmd.RunsImportOptions{},
				sessioncmd.SessionsListOptions{}, sessioncmd.SessionsShowOptions{}, sessioncmd.SessionsDeleteOptions{}, setupcmd.OpenOptions{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidRunsCommandLines(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"runs show", "runs show a b", "runs list x", "runs list --status done", "runs list --limit 0", "runs fork", "runs fork r_1 --seq 0",
		"runs fork r_1 --seq -1", "runs approve", "runs approve --set-passphrase r_1", "runs abort", "runs verify a b",
		"runs verify r_1 --accept-restore", "runs show r_1 --state --events", "runs show r_1 --state --vars", "runs export", "runs import", "runs frobnicate", "sessions show",
		"sessions show S-1 --log --path x", "sessions list --limit 0", "sessions delete", "sessions frobnicate",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			wantUsageError(t, line, true)
		})
	}
	// Commands that are only for people need a terminal: neither a flag nor a pipe replaces
	// it.
	for _, line := range []string{"runs approve r_1", "runs approve --set-passphrase", "runs resume", "runs resume r_1", "open"} {
		wantUsageError(t, line, false)
	}
	if got, err := parsedRuns(t, []string{"runs", "resume", "x", "--json"}, false); err != nil || got == nil {
		t.Errorf("runs resume with --json and without a terminal: %v, %v", got, err)
	}
}

func wantUsageError(t *testing.T, line string, terminal bool) {
	t.Helper()
	got, err := parsedRuns(t, strings.Fields(line), terminal)
	var usage app.UsageError
	if !errors.As(err, &usage) || exitCode(err) != app.ExitUsage {
		t.Fatalf("%s: got %+v and %v, want a usage error", line, got, err)
	}
	if guideway.ErrorFix(err) == "" {
		t.Errorf("%s: no fix: %v", line, err)
	}
}
