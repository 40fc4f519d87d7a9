package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// client is a `guideway mcp` process, started like a client starts one, for the scripts:
//
//	mcp NAME start [ARGS...]       start it and shake hands
//	mcp NAME call TOOL JSON        call a tool and print its answer
//	[!] mcp ...                    "!" wants the tool to refuse
//	mcp NAME keep VARIABLE PATH    keep a field of the last answer in a variable
//	mcp NAME kill                  kill it, as kill -9 does
//	mcp NAME close                 end its input, and wait for it to end
type client struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	id     int
	answer map[string]any
}

// clients are the clients of one script, by name.
type clients struct {
	mu   sync.Mutex
	open map[string]*client
}

type clientsKey struct{}

func (cs *clients) runCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: mcp NAME start|call|keep|kill|close ...")
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	name, what, args := args[0], args[1], args[2:]
	if what == "start" {
		c := startClient(ts, args)
		cs.open[name] = c
		ts.Defer(func() { c.killProcess() })
		return
	}
	c := cs.open[name]
	if c == nil {
		ts.Fatalf("unknown client %s", name)
	}
	switch {
	case what == "call" && len(args) == 2:
		refused := c.callTool(ts, args[0], args[1])
		if refused != neg {
			ts.Fatalf("%s: refused is %v, want the opposite: %v", args[0], refused, c.answer)
		}
	case what == "keep" && len(args) == 2:
		ts.Setenv(args[0], c.answerField(ts, args[1]))
	case what == "kill":
		c.killProcess()
	case what == "close":
		_ = c.in.Close()
		ts.Check(c.cmd.Wait())
	default:
		ts.Fatalf("mcp %s: unknown action %q", name, what)
	}
}

func startClient(ts *testscript.TestScript, args []string) *client {
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		for _, name := range []string{"guideway", "guideway.exe"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil && program == "" {
				program = filepath.Join(dir, name)
			}
		}
	}
	c := &client{cmd: exec.Command(program, append([]string{"mcp"}, args...)...)} //nolint:noctx // the script ends the process
	c.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"PATH", "HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
		"APPDATA", "LOCALAPPDATA", "SystemRoot", "GUIDEWAY_LISTEN", "GUIDEWAY_GATES_APPROVAL", "GUIDEWAY_DATA_DIR",
	} {
		c.cmd.Env = append(c.cmd.Env, name+"="+ts.Getenv(name))
	}
	c.cmd.Stderr = os.Stderr // errors are shown in the test output
	in, err := c.cmd.StdinPipe()
	ts.Check(err)
	out, err := c.cmd.StdoutPipe()
	ts.Check(err)
	c.in, c.out = in, bufio.NewReaderSize(out, 1<<20)
	ts.Check(c.cmd.Start())
	c.sendRequest(ts, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "script", "version": "1"},
	})
	c.writeMessage(ts, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c
}

// callTool calls a tool and prints the JSON of its answer.
func (c *client) callTool(ts *testscript.TestScript, tool, arguments string) (refused bool) {
	var args map[string]any
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		ts.Fatalf("the arguments of %s are not JSON: %v: %s", tool, err, arguments)
	}
	result := c.sendRequest(ts, "tools/call", map[string]any{"name": tool, "arguments": args})
	c.answer, _ = result["structuredContent"].(map[string]any)
	if result["isError"] == true { // errors are only text
		content, _ := result["content"].([]any)
		block, _ := content[0].(map[string]any)
		text, _ := block["text"].(string)
		ts.Check(json.Unmarshal([]byte(text), &c.answer))
	}
	enc := json.NewEncoder(ts.Stdout())
	enc.SetEscapeHTML(false)
	ts.Check(enc.Encode(c.answer))
	return result["isError"] == true
}

func (c *client) sendRequest(ts *testscript.TestScript, method string, params map[string]any) map[string]any {
	c.id++
	c.writeMessage(ts, map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		ts.Fatalf("%s: no answer: %v", method, err)
	}
	var answer struct {
		Result map[string]any `json:"result"`
		Error  any            `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil || answer.Error != nil {
		ts.Fatalf("%s: %v %v", method, err, answer.Error)
	}
	return answer.Result
}

func (c *client) writeMessage(ts *testscript.TestScript, message map[string]any) {
	line, err := json.Marshal(message)
	ts.Check(err)
	_, err = c.in.Write(append(line, '\n'))
	ts.Check(err)
}

// answerField reads a field of the last answer, as in candidates.0.handle.
func (c *client) answerField(ts *testscript.TestScript, path string) string {
	var at any = c.answer
	for part := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(v) {
				ts.Fatalf("%s: no item %s in %v", path, part, v)
			}
			at = v[i]
		default:
			at = nil
		}
	}
	if at == nil {
		ts.Fatalf("the answer has no %s: %v", path, c.answer)
	}
	return fmt.Sprint(at)
}

func (c *client) killProcess() {
	_ = c.cmd.Process.Kill() // SIGKILL on Unix
	_ = c.cmd.Wait()
}
