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

// parsed gives what a command line becomes, without running it.
func parsed(t *testing.T, args []string, terminal bool) (any, error) {
	t.Helper()
	host := &Host{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Dir: t.TempDir(),
		Getenv: func(string) string { return "" }, InTerminal: terminal, OutTerminal: terminal,
	}
	a := &app{host: host}
	root := &cobra.Command{Use: "guideway", SilenceErrors: true, SilenceUsage: true}
	a.flags = addSettingFlags(root.PersistentFlags())
	var got any
	root.AddCommand(
		newListCmd(a, func(_ context.Context, o *listOptions) error { got = *o; return nil }),
		newShowCmd(a, func(_ context.Context, o *showOptions) error { got = *o; return nil }),
		newRunCmd(a, func(_ context.Context, o *runOptions) error { got = *o; return nil }),
		newValidateCmd(a, func(_ context.Context, o *validateOptions) error { got = *o; return nil }),
		newSchemaCmd(a, func(_ context.Context, o *schemaOptions) error { got = *o; return nil }),
		newInitCmd(a, func(_ context.Context, o *initOptions) error { got = *o; return nil }),
		newSourcesCmd(a, func(_ context.Context, o *sourcesOptions) error { got = *o; return nil }),
		newDoctorCmd(a, func(_ context.Context, o *doctorOptions) error { got = *o; return nil }),
		newVersionCmd(a, func(_ context.Context, o *plainOptions) error { got = *o; return nil }),
	)
	usageErrors(root)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return got, err
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]any{
		"list":                               listOptions{Query: []string{}},
		"list bug fix --source user --json":  listOptions{Query: []string{"bug", "fix"}, Source: "user", JSON: true},
		"show x":                             showOptions{Name: "x"},
		"show ./x.yaml --graph mermaid":      showOptions{Name: "./x.yaml", Graph: "mermaid"},
		"run x":                              runOptions{Name: "x"},
		"run x --var a=1 --var b=c=d":        runOptions{Name: "x", Vars: []string{"a=1", "b=c=d"}},
		"run x --answers a.yaml --json":      runOptions{Name: "x", Answers: "a.yaml", JSON: true},
		"validate a b --strict":              validateOptions{Files: []string{"a", "b"}, Strict: true},
		"validate - --dialect steps --json":  validateOptions{Files: []string{"-"}, Dialect: "steps", JSON: true},
		"schema config":                      schemaOptions{Name: "config"},
		"init":                               initOptions{Dialect: "steps"},
		"init dir --json":                    initOptions{Dir: "dir", Dialect: "steps", JSON: true},
		"sources --json":                     sourcesOptions{JSON: true},
		"doctor --lint --json":               doctorOptions{Lint: true, JSON: true},
		"version --json":                     plainOptions{JSON: true},
		"list --log-level debug --workflows": nil, // the value is missing
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			got, err := parsed(t, strings.Fields(line), true)
			if want == nil {
				if err == nil {
					t.Fatalf("no error, but %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(
				listOptions{}, showOptions{}, runOptions{}, validateOptions{}, schemaOptions{}, initOptions{},
				sourcesOptions{}, doctorOptions{}, plainOptions{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongCommandLinesSayWhatToTry(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"show", "show a b", "show a --graph dot", "run", "run a b", "run a --var x", "run a --json", "run -",
		"run - --answers -", "validate", "validate a --dialect tea", "schema", "schema tea", "schema steps config", "init a b",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			got, err := parsed(t, strings.Fields(line), true)
			var usage usageError
			if !errors.As(err, &usage) || exitCode(err) != exitUsage {
				t.Fatalf("got %+v and %v, want a usage error", got, err)
			}
			if guideway.ErrorFix(err) == "" {
				t.Errorf("no fix: %v", err)
			}
		})
	}
	if _, err := parsed(t, []string{"run", "x"}, false); exitCode(err) != exitUsage {
		t.Errorf("to ask without a terminal: %v", err)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		exitFailed:  errors.New("x"),
		exitUsage:   usageError{err: guideway.Errorf(guideway.CodeInvalidDefinition, "x")},
		exitInvalid: guideway.Errorf(guideway.CodeInvalidDefinition, "x"),
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}
