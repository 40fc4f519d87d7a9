package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"

	"github.com/guideway-dev/guideway"
)

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
