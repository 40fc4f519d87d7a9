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
	runcmd "github.com/guideway-dev/guideway/internal/cli/run"
	setupcmd "github.com/guideway-dev/guideway/internal/cli/setup"
	sourcescmd "github.com/guideway-dev/guideway/internal/cli/sources"
	workflowcmd "github.com/guideway-dev/guideway/internal/cli/workflow"
	"github.com/spf13/cobra"
)

// parseOptions returns the parsed options of a command line, without running it.
func parseOptions(t *testing.T, args []string) (any, error) {
	t.Helper()
	host := &app.Host{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Dir: t.TempDir(),
		Getenv: func(string) string { return "" }, InTerminal: true, OutTerminal: true,
	}
	a := &app.App{Host: host}
	root := &cobra.Command{Use: "guideway", SilenceErrors: true, SilenceUsage: true}
	a.Flags = app.AddSettingFlags(root.PersistentFlags())
	var got any
	root.AddCommand(
		workflowcmd.NewListCmd(a, func(_ context.Context, o *workflowcmd.ListOptions) error { got = *o; return nil }),
		workflowcmd.NewShowCmd(a, func(_ context.Context, o *workflowcmd.ShowOptions) error { got = *o; return nil }),
		runcmd.NewRunCmd(a, func(_ context.Context, o *runcmd.RunOptions) error { got = *o; return nil }),
		workflowcmd.NewValidateCmd(a, func(_ context.Context, o *workflowcmd.ValidateOptions) error { got = *o; return nil }),
		workflowcmd.NewSchemaCmd(a, func(_ context.Context, o *workflowcmd.SchemaOptions) error { got = *o; return nil }),
		workflowcmd.NewInitCmd(a, func(_ context.Context, o *workflowcmd.InitOptions) error { got = *o; return nil }),
		sourcescmd.NewSourcesCmd(a, func(_ context.Context, o *app.PlainOptions) error { got = *o; return nil }),
		setupcmd.NewDoctorCmd(a, func(_ context.Context, o *setupcmd.DoctorOptions) error { got = *o; return nil }),
		setupcmd.NewVersionCmd(a, func(_ context.Context, o *app.PlainOptions) error { got = *o; return nil }),
	)
	wrapArgErrors(root)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return got, err
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]any{
		"list":                               workflowcmd.ListOptions{Query: []string{}},
		"list bug fix --source user --json":  workflowcmd.ListOptions{Query: []string{"bug", "fix"}, Source: "user", JSON: true},
		"show x":                             workflowcmd.ShowOptions{Name: "x"},
		"show ./x.yaml --graph mermaid":      workflowcmd.ShowOptions{Name: "./x.yaml", Graph: "mermaid"},
		"run x":                              runcmd.RunOptions{Name: "x"},
		"run x --var a=1 --var b=c=d":        runcmd.RunOptions{Name: "x", Vars: []string{"a=1", "b=c=d"}},
		"run x --answers a.yaml --json":      runcmd.RunOptions{Name: "x", Answers: "a.yaml", JSON: true},
		"validate a b --strict":              workflowcmd.ValidateOptions{Files: []string{"a", "b"}, Strict: true},
		"validate - --dialect steps --json":  workflowcmd.ValidateOptions{Files: []string{"-"}, Dialect: "steps", JSON: true},
		"schema config":                      workflowcmd.SchemaOptions{Name: "config"},
		"init":                               workflowcmd.InitOptions{Dialect: "steps"},
		"init dir --json":                    workflowcmd.InitOptions{Dir: "dir", Dialect: "steps", JSON: true},
		"sources --json":                     app.PlainOptions{JSON: true},
		"doctor --lint --json":               setupcmd.DoctorOptions{Lint: true, JSON: true},
		"version --json":                     app.PlainOptions{JSON: true},
		"list --log-level debug --workflows": nil, // --workflows has no value
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			got, err := parseOptions(t, strings.Fields(line))
			if want == nil {
				if err == nil {
					t.Fatalf("got no error and %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(
				workflowcmd.ListOptions{}, workflowcmd.ShowOptions{}, runcmd.RunOptions{}, workflowcmd.ValidateOptions{}, workflowcmd.SchemaOptions{}, workflowcmd.InitOptions{},
				setupcmd.DoctorOptions{}), cmpopts.IgnoreFields(app.PlainOptions{}, "App")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidCommandLines(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"show", "show a b", "show a --graph dot", "run", "run a b", "run a --var x", "run a --json", "run -",
		"run - --answers -", "validate", "validate a --dialect tea", "schema", "schema tea", "schema steps config", "init a b",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			got, err := parseOptions(t, strings.Fields(line))
			var usage app.UsageError
			if !errors.As(err, &usage) || exitCode(err) != app.ExitUsage {
				t.Fatalf("got %+v and %v, want a usage error", got, err)
			}
			if guideway.ErrorFix(err) == "" {
				t.Errorf("no fix: %v", err)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		app.ExitFailed:  errors.New("x"),
		app.ExitUsage:   app.UsageError{Err: guideway.Errorf(guideway.CodeInvalidDefinition, "x")},
		app.ExitInvalid: guideway.Errorf(guideway.CodeInvalidDefinition, "x"),
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}
