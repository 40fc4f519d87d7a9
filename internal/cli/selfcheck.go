package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/spf13/cobra"
)

// selfCheckOptions is the command line of guideway self-check.
type selfCheckOptions struct {
	app  *app
	JSON bool
	// Executable gives the program that is checked.
	Executable func() (string, error)
}

func newSelfCheckCmd(a *app, run func(context.Context, *selfCheckOptions) error) *cobra.Command {
	o := &selfCheckOptions{app: a, Executable: os.Executable}
	cmd := &cobra.Command{
		Use:   "self-check",
		Short: "Try this program out in an empty directory",
		Long: `Try this program out after an installation, in a directory of its own that is
removed again: the bundled definitions load, a script runs in its sandbox, a client
begins a run over standard input and output, the server is killed, and another
server finds the run where it stood. Nothing of yours is read or changed; guideway
doctor looks at that. The exit code is 1 if anything fails.`,
		Example: "  guideway self-check\n  guideway self-check --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	return cmd
}

// selfCheckAnswer is the answer of guideway self-check --json.
type selfCheckAnswer struct {
	Status string  `json:"status"`
	Build  build   `json:"build"`
	Checks []check `json:"checks"`
}

// selfCheckTime bounds each check.
const selfCheckTime = 30 * time.Second

func runSelfCheck(ctx context.Context, o *selfCheckOptions) error {
	program, err := o.Executable()
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "cannot tell the path of this program (%w)", err)
	}
	dir, err := os.MkdirTemp("", "guideway-self-check-")
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalid, "cannot make a directory to check in (%w)", err).
			WithFix("set TMPDIR to a directory that this user may write")
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is in the system's temporary directory
	trial := &trial{program: program, dir: dir, getenv: o.app.host.Getenv}
	answer := selfCheckAnswer{Status: checkOK, Build: thisBuild()}
	for _, each := range []struct {
		name string
		try  func(context.Context) (string, error)
	}{
		{"program", trial.starts},
		{"definitions", trial.definitions},
		{"sandbox", trial.sandbox},
		{"enforcement", trial.enforces},
		{"durability", trial.survives},
	} {
		c := check{Name: each.name, Status: checkOK}
		limited, cancel := context.WithTimeout(ctx, selfCheckTime)
		c.Message, err = each.try(limited)
		cancel()
		if err != nil {
			answer.Status, c.Status, c.Message, c.Fix = checkFail, checkFail, err.Error(), guideway.ErrorFix(err)
		}
		answer.Checks = append(answer.Checks, c)
	}
	return o.say(answer)
}

func (o *selfCheckOptions) say(answer selfCheckAnswer) error {
	host := o.app.host
	if o.JSON {
		if err := writeJSON(host.Out, answer); err != nil {
			return err
		}
	} else {
		s := host.outStyles()
		fmt.Fprintf(host.Out, "%s\n\n", answer.Build)
		for _, c := range answer.Checks {
			fmt.Fprintf(host.Out, "%s  %-11s  %s\n", checkMark(s, c.Status), c.Name, oneLine(c.Message))
			if c.Fix != "" {
				fmt.Fprintf(host.Out, "      next: %s\n", oneLine(c.Fix))
			}
		}
	}
	if answer.Status == checkFail {
		return silentError{exitFailed}
	}
	return nil
}

// trial is the program in a directory of its own.
type trial struct {
	program, dir string
	getenv       func(string) string
}

// command starts the program where nothing of the user's is seen.
func (t *trial) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.program, args...) //nolint:gosec // it is this program
	cmd.Dir = t.dir
	cmd.Env = []string{
		"HOME=" + t.dir, "USERPROFILE=" + t.dir, "APPDATA=" + t.dir, "LOCALAPPDATA=" + t.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(t.dir, "config"), "GUIDEWAY_DATA_DIR=" + filepath.Join(t.dir, "data"),
		"TMPDIR=" + os.TempDir(), "TEMP=" + os.TempDir(), "PATH=" + t.getenv("PATH"),
	}
	if root := t.getenv("SYSTEMROOT"); root != "" {
		cmd.Env = append(cmd.Env, "SYSTEMROOT="+root) // Windows needs it to open sockets
	}
	cmd.WaitDelay = time.Second
	return cmd
}

func (t *trial) starts(ctx context.Context) (string, error) {
	out, err := t.command(ctx, "version").Output()
	if err != nil {
		return "", failedAs("cannot start "+t.program, err)
	}
	return fmt.Sprintf("%s starts: %s", t.program, strings.TrimSpace(string(out))), nil
}

// definitions loads what is linked in.
func (t *trial) definitions(ctx context.Context) (string, error) {
	out, err := t.command(ctx, "list", "--json").Output()
	if err != nil {
		return "", failedAs("cannot list the workflows", err)
	}
	var answer struct {
		Definitions []struct{}            `json:"definitions"`
		Diagnostics []guideway.Diagnostic `json:"diagnostics"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", err
	}
	if len(answer.Diagnostics) > 0 || len(answer.Definitions) == 0 {
		return "", guideway.Errorf(guideway.CodeInternal, "%d bundled workflows load, with %s",
			len(answer.Definitions), plural(len(answer.Diagnostics), "finding", "findings"))
	}
	return fmt.Sprintf("%d bundled workflows, all load", len(answer.Definitions)), nil
}

// sandbox takes a call through a bundled hook graph, whose script runs in a
// worker process.
func (t *trial) sandbox(ctx context.Context) (string, error) {
	cmd := t.command(ctx, "hooks", "test", "redact-secrets", "--request", "-", "--response", "response.json", "--json")
	cmd.Stdin = strings.NewReader(`{"name":"read_file","arguments":{"path":"x"}}`)
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	response := `{"content":[{"type":"text","text":"token ` + secret + `"}]}`
	if err := os.WriteFile(filepath.Join(t.dir, "response.json"), []byte(response), 0o600); err != nil {
		return "", err
	}
	out, err := cmd.Output()
	if err != nil {
		return "", failedAs("a script in its sandbox", err)
	}
	var answer struct {
		Outcome  string          `json:"outcome"`
		Response json.RawMessage `json:"response"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || strings.Contains(string(answer.Response), secret) {
		return "", guideway.Errorf(guideway.CodeInternal, "the sandbox has let a secret pass")
	}
	return "a script in its sandbox has redacted a response, on " + runtime.GOOS + "/" + runtime.GOARCH, nil
}

// failedAs is the error of a process with what it wrote.
func failedAs(what string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return guideway.Errorf(guideway.CodeInternal, "%s: %s", what, strings.TrimSpace(string(exit.Stderr)))
	}
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", what, err)
}
