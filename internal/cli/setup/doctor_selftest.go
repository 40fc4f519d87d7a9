package setup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
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

// selfTestClient is an MCP client on the standard input and output of a server, with
// the few methods that a self-test needs.
type selfTestClient struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	last int
}

func (t *selfTest) startServer(ctx context.Context) (*selfTestClient, error) {
	c := &selfTestClient{cmd: t.newCommand(ctx, "mcp", "--answers", "structured")}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, wrapProcessError("cannot start the server", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, wrapProcessError("cannot start the server", err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, wrapProcessError("cannot start the server", err)
	}
	if _, err := c.sendRequest("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "guideway-selftest", "version": app.Version()},
	}); err != nil {
		c.killServer()
		return nil, err
	}
	if err := c.sendMessage(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		c.killServer()
		return nil, wrapProcessError("cannot send notifications/initialized to the server", err)
	}
	return c, nil
}

// killServer kills the server without a chance to shut down.
func (c *selfTestClient) killServer() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *selfTestClient) sendMessage(message map[string]any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(text, '\n'))
	return err
}

// sendRequest sends a request and waits for its answer.
func (c *selfTestClient) sendRequest(method string, params map[string]any) (json.RawMessage, error) {
	c.last++
	if err := c.sendMessage(map[string]any{"jsonrpc": "2.0", "id": c.last, "method": method, "params": params}); err != nil {
		return nil, wrapProcessError("cannot send "+method+" to the server", err)
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return nil, wrapProcessError("the server did not answer "+method, err)
		}
		var m struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "the server wrote a line that is not a message: %.80s", line)
		}
		if m.ID == nil || *m.ID != c.last {
			continue // the message is a notification
		}
		if m.Error != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "%s was refused: %s", method, m.Error.Message)
		}
		return m.Result, nil
	}
}

// selfTestAnswer is the part of a run tool's answer that a self-test reads.
type selfTestAnswer struct {
	RunID    string `json:"runId"`
	Handle   string `json:"handle"`
	Status   string `json:"status"`
	Position struct {
		ID string `json:"id"`
	} `json:"position"`
	Candidates []struct {
		RunID    string `json:"runId"`
		Position struct {
			ID string `json:"id"`
		} `json:"position"`
	} `json:"candidates"`
	refused bool
}

func (c *selfTestClient) callTool(tool string, arguments map[string]any) (selfTestAnswer, error) {
	result, err := c.sendRequest("tools/call", map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return selfTestAnswer{}, err
	}
	var r struct {
		IsError           bool            `json:"isError"`
		StructuredContent json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return selfTestAnswer{}, wrapProcessError("cannot read the answer of "+tool, err)
	}
	m := selfTestAnswer{refused: r.IsError}
	if len(r.StructuredContent) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(r.StructuredContent, &m); err != nil {
		return m, wrapProcessError("cannot read the answer of "+tool, err)
	}
	return m, nil
}

// selfTestWorkflow is the bundled workflow that a self-test starts.
const selfTestWorkflow = "coding-task"

// checkEnforcement submits an output that violates the criteria, which must be refused.
func (t *selfTest) checkEnforcement(ctx context.Context) (string, error) {
	c, err := t.startServer(ctx)
	if err != nil {
		return "", err
	}
	defer c.killServer()
	began, err := c.callTool("workflow_start", map[string]any{"workflowId": selfTestWorkflow, "goal": "the self-test of an installation"})
	if err != nil {
		return "", err
	}
	if began.refused || began.RunID == "" || began.Position.ID == "" {
		return "", guideway.Errorf(guideway.CodeInternal, "the server did not start a run of %s", selfTestWorkflow)
	}
	cheat, err := c.callTool("workflow_continue", map[string]any{"handle": began.Handle, "output": "ok"})
	if err != nil {
		return "", err
	}
	if !cheat.refused {
		return "", guideway.Errorf(guideway.CodeInternal, "the server accepted an output that violates the criteria")
	}
	return fmt.Sprintf("a client started %s over MCP; an output that violates the criteria was refused", selfTestWorkflow), nil
}

// checkDurability kills the server and finds its run with a new server.
func (t *selfTest) checkDurability(ctx context.Context) (string, error) {
	first, err := t.startServer(ctx)
	if err != nil {
		return "", err
	}
	began, err := first.callTool("workflow_start", map[string]any{"workflowId": selfTestWorkflow, "goal": "a run that survives its server"})
	first.killServer()
	if err != nil {
		return "", err
	}
	second, err := t.startServer(ctx)
	if err != nil {
		return "", err
	}
	defer second.killServer()
	found, err := second.callTool("workflow_resume", map[string]any{"query": "survives its server"})
	if err != nil {
		return "", err
	}
	for _, each := range found.Candidates {
		if each.RunID == began.RunID && each.Position.ID == began.Position.ID {
			return fmt.Sprintf("the server was killed; a new server found the run at the step %s", each.Position.ID), nil
		}
	}
	return "", guideway.Errorf(guideway.CodeInternal, "after the server was killed, a new server did not find run %s", began.RunID)
}
