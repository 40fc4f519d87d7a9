package setup

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
)

// selfTestTimeout is the timeout of each check of a self-test.
const selfTestTimeout = 30 * time.Second

// runSelfTest adds the checks that test the program in an empty directory.
func runSelfTest(ctx context.Context, answer *doctorAnswer, getenv func(string) string) error {
	program, err := os.Executable()
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "cannot find the path of this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "guideway-selftest-")
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalid, "cannot create a temporary directory: %w", err).
			WithFix("set TMPDIR (TMP on Windows) to a writable directory whose disk is not full")
	}
	defer func() { _ = os.RemoveAll(dir) }() // files that cannot be removed stay in the system's temporary directory
	t := &selfTest{program: program, dir: dir, getenv: getenv}
	for _, each := range []struct {
		name string
		try  func(context.Context) (string, error)
	}{
		{"program", t.checkStart},
		{"definitions", t.checkBundled},
		{"sandbox", t.checkSandbox},
		{"enforcement", t.checkEnforcement},
		{"durability", t.checkDurability},
	} {
		c := Check{Name: each.name, Status: CheckOK}
		limited, cancel := context.WithTimeout(ctx, selfTestTimeout)
		c.Message, err = each.try(limited)
		cancel()
		if err != nil {
			c.Status, c.Message, c.Fix = CheckFail, err.Error(), guideway.ErrorFix(err)
		}
		answer.addChecks(c)
	}
	return nil
}

// selfTest runs the program in a temporary directory.
type selfTest struct {
	program, dir string
	getenv       func(string) string
}

// newCommand returns the program with arguments, in an environment without the user's files.
func (t *selfTest) newCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.program, args...) //nolint:gosec // the program is this one
	cmd.Dir = t.dir
	cmd.Env = []string{
		"HOME=" + t.dir, "USERPROFILE=" + t.dir, "APPDATA=" + t.dir, "LOCALAPPDATA=" + t.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(t.dir, "config"), "GUIDEWAY_DATA_DIR=" + filepath.Join(t.dir, "data"),
		"TMPDIR=" + os.TempDir(), "TEMP=" + os.TempDir(), "PATH=" + t.getenv("PATH"),
	}
	if root := t.getenv("SYSTEMROOT"); root != "" {
		cmd.Env = append(cmd.Env, "SYSTEMROOT="+root) // Windows needs SYSTEMROOT to open sockets
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// checkStart runs the smallest command.
func (t *selfTest) checkStart(ctx context.Context) (string, error) {
	out, err := t.newCommand(ctx, "version").Output()
	if err != nil {
		return "", wrapProcessError("cannot start "+t.program, err)
	}
	return fmt.Sprintf("%s starts: %s", t.program, strings.TrimSpace(string(out))), nil
}

// checkBundled loads the bundled definitions.
func (t *selfTest) checkBundled(ctx context.Context) (string, error) {
	out, err := t.newCommand(ctx, "list", "--json").Output()
	if err != nil {
		return "", wrapProcessError("cannot list the workflows", err)
	}
	var answer struct {
		Definitions []struct{}            `json:"definitions"`
		Diagnostics []guideway.Diagnostic `json:"diagnostics"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "read the list of workflows: %w", err)
	}
	const fix = "install Guideway again"
	if len(answer.Diagnostics) > 0 {
		first := answer.Diagnostics[0]
		return "", guideway.Errorf(guideway.CodeInternal, "the bundled file %s has an error: %s", first.File, first.Message).WithFix(fix)
	}
	if len(answer.Definitions) == 0 {
		return "", guideway.Errorf(guideway.CodeInternal, "this program contains no workflows").WithFix(fix)
	}
	return fmt.Sprintf("%d bundled workflows, all load", len(answer.Definitions)), nil
}

// checkSandbox sends a call through a bundled hook graph, whose script runs in a
// worker process.
func (t *selfTest) checkSandbox(ctx context.Context) (string, error) {
	cmd := t.newCommand(ctx, "hooks", "test", "redact-secrets", "--request", "-", "--response", "response.json", "--json")
	cmd.Stdin = strings.NewReader(`{"name":"read_file","arguments":{"path":"x"}}`)
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	response := `{"content":[{"type":"text","text":"token ` + secret + `"}]}`
	if err := os.WriteFile(filepath.Join(t.dir, "response.json"), []byte(response), 0o600); err != nil {
		return "", wrapProcessError("cannot write the input of a script", err)
	}
	out, err := cmd.Output()
	if err != nil {
		return "", wrapProcessError("cannot run a script in the sandbox", err)
	}
	var answer struct {
		Outcome  string          `json:"outcome"`
		Response json.RawMessage `json:"response"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "read the result of a script in the sandbox: %w", err)
	}
	if strings.Contains(string(answer.Response), secret) {
		return "", guideway.Errorf(guideway.CodeInternal, "the script in the sandbox did not redact a secret")
	}
	return "a script in the sandbox redacted a response, on " + runtime.GOOS + "/" + runtime.GOARCH, nil
}

// wrapProcessError returns the error of a process with the text that it wrote to stderr.
func wrapProcessError(what string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return guideway.Errorf(guideway.CodeInternal, "%s: %s", what, strings.TrimSpace(string(exit.Stderr)))
	}
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", what, err)
}
