// Package answers measures what a run costs a model: the bytes that Guideway sends to each
// client, and the bytes that the model of the client reads.
package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// definition is the workflow of the run: a step with a criterion, and a step with a gate.
const definition = `{"id":"demo","name":"Demo","description":"A small change","version":"1.0.0","steps":[
	{"id":"plan","title":"Plan the change","prompt":"Read the code and write down what you will change, and why.",
		"validationCriteria":[{"type":"contains","value":"Plan:","message":"Begin with Plan:."}]},
	{"id":"change","title":"Make the change","prompt":"Make the change and run the tests.","requireConfirmation":true}]}`

// clients returns the clients with the parts of a result that they show their models, as
// docs/adr/0027 lists them.
func clients() []client {
	return []client{
		{"claude-code", structureFirst, textOnly},
		{"codex-mcp-client", structureFirst, structureFirst},
		{"copilot-cli", both, both},
		{"gemini-cli-mcp-client", textOnly, echoed},
		{"qwen-cli-mcp-client-guideway", both, echoed},
		{"opencode", textOnly, textOnly},
		{"@cline/core", wholeResult, wholeResult},
		{"continue-cli-client", blocks, blocks},
		{"Visual Studio Code", structureFirst, structureFirst},
		{"an unknown client that shows both", both, both},
	}
}

// client is a client and what it shows its model of an answer and of an error.
type client struct {
	name           string
	answer, refuse func(result) string
}

// result is the result of a call, in the parts that clients show.
type result struct {
	arguments, text, structure, whole, content string
	isError                                    bool
}

func textOnly(r result) string    { return r.text }
func wholeResult(r result) string { return r.whole }
func blocks(r result) string      { return r.content }

func structureFirst(r result) string {
	if r.structure != "" {
		return r.structure
	}
	return r.text
}

func both(r result) string {
	if r.structure == "" || r.structure == r.text {
		return r.text
	}
	return r.text + "\n\n" + r.structure
}

// echoed is a refusal with the arguments of the call and the result as JSON.
func echoed(r result) string { return r.arguments + r.whole }

// Run measures and prints the table.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := measure.Options{Stdout: stdout, Stderr: stderr}
	flags := flag.NewFlagSet("answers", flag.ContinueOnError)
	form := flags.String("answers", "auto", "the setting answers: auto, text, structured or both")
	remove, err := o.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	program, err := o.Program(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Dir, ".guideway", "workflows")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the workflow: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "demo.json"), []byte(definition), 0o600); err != nil {
		return fmt.Errorf("create the workflow: %w", err)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "client\ttools/list\tsent\tread: list\tstart\trefusal\tstep\tgate\tend\twithout list\t")
	for _, c := range clients() {
		line, err := c.follow(ctx, o.Dir, program, *form)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(w, "%s\t%s\n", c.name, line)
	}
	fmt.Fprintf(stdout, "Bytes of a run, with answers: %s. Sent are the parts of the results, without the list of workflows.\n\n", *form)
	return w.Flush()
}

// follow completes a run as a client, and returns the sizes of its answers.
func (c client) follow(ctx context.Context, home, program, form string) (string, error) {
	cmd := exec.CommandContext(ctx, program, "mcp", "--answers", form) //nolint:gosec // G204: the program under measurement
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "USERPROFILE=" + home, "APPDATA=" + home, "LOCALAPPDATA=" + home, "PATH=" + os.Getenv("PATH")}
	session, err := mcp.NewClient(&mcp.Implementation{Name: c.name, Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second}, nil)
	if err != nil {
		return "", fmt.Errorf("connect to guideway mcp: %w", err)
	}
	defer func() { _ = session.Close() }()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("list the tools: %w", err)
	}
	listed, err := json.Marshal(tools)
	if err != nil {
		return "", err
	}
	handle, sent, read := "", 0, 0
	var line string
	for i, call := range []struct {
		tool string
		args map[string]any
	}{
		{"workflow_list", map[string]any{}},
		{"workflow_start", map[string]any{"workflowId": "demo", "goal": "add retries"}},
		{"workflow_continue", map[string]any{"output": "done"}},
		{"workflow_continue", map[string]any{"output": "Plan: retry three times.", "context": map[string]any{"retries": 3}}},
		{"workflow_continue", map[string]any{"output": "All tests pass."}},
		{"workflow_continue", map[string]any{"answer": map[string]any{"optionId": "confirm"}}},
	} {
		if handle != "" {
			call.args["handle"] = handle
		}
		r, err := callTool(ctx, session, call.tool, call.args)
		if err != nil {
			return "", err
		}
		if r.isError != (i == 2) {
			return "", fmt.Errorf("call %s: %s", call.tool, r.text)
		}
		shown := c.answer(r)
		if r.isError {
			shown = c.refuse(r)
		}
		if found := regexp.MustCompile(`h_[0-9a-z]{21}`).FindString(r.text + r.structure); found != "" {
			handle = found
		}
		if i > 0 {
			sent += len(r.text) + len(r.structure)
			read += len(shown)
		}
		line += fmt.Sprintf("%d\t", len(shown))
	}
	return fmt.Sprintf("%d\t%d\t%s%d\t", len(listed), sent, line, read), nil
}

// callTool calls a tool and returns the parts of the result.
func callTool(ctx context.Context, session *mcp.ClientSession, tool string, args map[string]any) (result, error) {
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return result{}, fmt.Errorf("call %s: %w", tool, err)
	}
	res.Meta = nil
	r := result{isError: res.IsError}
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			r.text += t.Text
		}
	}
	for _, part := range []struct {
		value any
		text  *string
	}{{args, &r.arguments}, {res.StructuredContent, &r.structure}, {res, &r.whole}, {res.Content, &r.content}} {
		if part.value == nil {
			continue
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(part.value); err != nil {
			return result{}, fmt.Errorf("write the answer of %s: %w", tool, err)
		}
		*part.text = string(bytes.TrimSpace(b.Bytes()))
	}
	return r, nil
}
