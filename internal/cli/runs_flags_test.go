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
	"github.com/spf13/cobra"
)

// parsedRuns gives what a command line on runs and sessions becomes, without
// running it.
func parsedRuns(t *testing.T, args []string, terminal bool) (any, error) {
	t.Helper()
	host := &Host{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Dir: t.TempDir(),
		Getenv: func(string) string { return "" }, InTerminal: terminal, OutTerminal: terminal,
	}
	if terminal {
		host.ReadSecret = func(context.Context) (string, error) { return "", io.EOF }
	}
	a := &app{host: host}
	root := &cobra.Command{Use: "guideway", SilenceErrors: true, SilenceUsage: true}
	a.flags = addSettingFlags(root.PersistentFlags())
	var got any
	runs, sessions := newRunsCmd(a), newSessionsCmd(a)
	runs.ResetCommands()
	runs.AddCommand(
		newRunsListCmd(a, func(_ context.Context, o *runsListOptions) error { got = *o; return nil }),
		newRunsShowCmd(a, func(_ context.Context, o *runsShowOptions) error { got = *o; return nil }),
		newRunsResumeCmd(a, func(_ context.Context, o *runsResumeOptions) error { got = *o; return nil }),
		newRunsForkCmd(a, func(_ context.Context, o *runsForkOptions) error { got = *o; return nil }),
		newRunsApproveCmd(a, func(_ context.Context, o *runsApproveOptions) error { got = *o; return nil }),
		newRunsAbortCmd(a, func(_ context.Context, o *runsAbortOptions) error { got = *o; return nil }),
		newRunsVerifyCmd(a, func(_ context.Context, o *runsVerifyOptions) error { got = *o; return nil }),
		newRunsExportCmd(a, func(_ context.Context, o *runsExportOptions) error { got = *o; return nil }),
		newRunsImportCmd(a, func(_ context.Context, o *runsImportOptions) error { got = *o; return nil }),
	)
	sessions.ResetCommands()
	sessions.AddCommand(
		newSessionsListCmd(a, func(_ context.Context, o *sessionsListOptions) error { got = *o; return nil }),
		newSessionsShowCmd(a, func(_ context.Context, o *sessionsShowOptions) error { got = *o; return nil }),
		newSessionsDeleteCmd(a, func(_ context.Context, o *sessionsDeleteOptions) error { got = *o; return nil }),
	)
	root.AddCommand(runs, sessions, newOpenCmd(a, func(_ context.Context, o *openOptions) error { got = *o; return nil }))
	usageErrors(root)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return got, err
}

func TestCommandLinesOnRuns(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]any{
		"runs list": runsListOptions{Limit: 100},
		"runs list --status running,waiting --status aborted --here --person --limit 3 --workflow w --json": runsListOptions{
			Statuses: []string{"running", "waiting", "aborted"}, Here: true, Person: true, Limit: 3, Workflow: "w", JSON: true,
		},
		"runs show r_1 --events --vars":         runsShowOptions{Run: "r_1", Events: true, Vars: true},
		"runs show r_1 --state":                 runsShowOptions{Run: "r_1", State: true},
		"runs resume":                           runsResumeOptions{Words: []string{}},
		"runs resume auth refactoring --here":   runsResumeOptions{Words: []string{"auth", "refactoring"}, Here: true},
		"runs fork r_1 --seq 3 --json":          runsForkOptions{Run: "r_1", Seq: 3, JSON: true},
		"runs approve r_1":                      runsApproveOptions{Run: "r_1"},
		"runs approve --set-passphrase":         runsApproveOptions{SetPassphrase: true},
		"runs abort r_1 --reason done":          runsAbortOptions{Run: "r_1", Reason: "done"},
		"runs verify":                           runsVerifyOptions{},
		"runs verify r_1 --json":                runsVerifyOptions{Run: "r_1", JSON: true},
		"runs verify --accept-restore":          runsVerifyOptions{AcceptRestore: true},
		"runs export r_1 -o x.json --force":     runsExportOptions{Run: "r_1", Output: "x.json", Force: true},
		"runs import - --json":                  runsImportOptions{File: "-", JSON: true},
		"sessions list --here --project p":      sessionsListOptions{Here: true, Project: "p", Limit: 100},
		"sessions show S-1 --path a.b":          sessionsShowOptions{Name: "S-1", Path: "a.b"},
		"sessions show w/S-1 --log --json":      sessionsShowOptions{Name: "w/S-1", Log: true, JSON: true},
		"sessions delete S-1":                   sessionsDeleteOptions{Name: "S-1"},
		"sessions delete --undo p/w/S-1":        sessionsDeleteOptions{Name: "p/w/S-1", Undo: true},
		"open --browser":                        openOptions{Browser: true},
		"runs list --store postgres://u:p@h/db": runsListOptions{Limit: 100},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			got, err := parsedRuns(t, strings.Fields(line), true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(
				runsListOptions{}, runsShowOptions{}, runsResumeOptions{}, runsForkOptions{}, runsApproveOptions{},
				runsAbortOptions{}, runsVerifyOptions{}, runsExportOptions{}, runsImportOptions{},
				sessionsListOptions{}, sessionsShowOptions{}, sessionsDeleteOptions{}, openOptions{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongCommandLinesOnRunsSayWhatToTry(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"runs show", "runs show a b", "runs list x", "runs list --status done", "runs list --limit 0", "runs fork", "runs fork r_1 --seq 0",
		"runs fork r_1 --seq -1", "runs approve", "runs approve --set-passphrase r_1", "runs abort", "runs verify a b",
		"runs verify r_1 --accept-restore", "runs show r_1 --state --events", "runs show r_1 --state --vars", "runs export", "runs import", "runs frobnicate", "sessions show",
		"sessions show S-1 --log --path x", "sessions list --limit 0", "sessions delete", "sessions frobnicate",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			wrong(t, line, true)
		})
	}
	// What a person alone does takes a terminal: no flag and no pipe stands in.
	for _, line := range []string{"runs approve r_1", "runs approve --set-passphrase", "runs resume", "runs resume r_1", "open"} {
		wrong(t, line, false)
	}
	if got, err := parsedRuns(t, []string{"runs", "resume", "x", "--json"}, false); err != nil || got == nil {
		t.Errorf("to find runs without a terminal: %v, %v", got, err)
	}
}

func wrong(t *testing.T, line string, terminal bool) {
	t.Helper()
	got, err := parsedRuns(t, strings.Fields(line), terminal)
	var usage usageError
	if !errors.As(err, &usage) || exitCode(err) != exitUsage {
		t.Fatalf("%s: got %+v and %v, want a usage error", line, got, err)
	}
	if guideway.ErrorFix(err) == "" {
		t.Errorf("%s: no fix: %v", line, err)
	}
}
