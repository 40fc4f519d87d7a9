package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// Missing inputs of a machine are asked for at a terminal only.
func TestMachinePromptsForInputs(t *testing.T) {
	t.Parallel()
	url := serveScriptedModel(t, func(last modelMessage, _ []string) (text, name, arguments string) {
		return "heard " + last.Content, "", ""
	})
	machine := machineOf(t, t.TempDir(), `[]`)
	host, out := newTerminal(t, map[string]string{"OPENAI_BASE_URL": url}, "a tidy desk")
	if code := Run(t.Context(), []string{"machine", "run", machine, "--model", "openai:m"}, host); code != app.ExitOK || !strings.Contains(out.String(), "heard a tidy desk") {
		t.Errorf("exit code %d: %s", code, out)
	}
	host, out = newTerminal(t, map[string]string{"OPENAI_BASE_URL": url}, "a tidy desk")
	host.InTerminal = false
	if code := Run(t.Context(), []string{"machine", "run", machine, "--model", "openai:m"}, host); code == app.ExitOK || !strings.Contains(out.String(), `needs the input "task"`) {
		t.Errorf("without a terminal: exit code %d: %s", code, out)
	}
}

// TestMachineProgress checks that a client that waits for a run with a progress token is
// notified of the answer of its agent and of its end, with legacy and modern protocols.
// Without a token, it gets only the answer to its call.
func TestMachineProgress(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) { machineProgress(t, era == "modern") })
	}
}

// machineProgress starts runs as a client with one protocol version.
func machineProgress(t *testing.T, modern bool) {
	t.Helper()
	t.Parallel()
	listened, once := make(chan struct{}), sync.Once{}
	url := serveScriptedModel(t, func(modelMessage, []string) (text, name, arguments string) {
		<-listened // the run is active until the client has received a notification
		return "all done", "", ""
	})
	d := newHookProject(t)
	environment := d.host.Getenv
	d.host.Getenv = func(name string) string {
		switch name {
		case "OPENAI_BASE_URL":
			return url
		case "GUIDEWAY_MODEL":
			return "openai:m"
		}
		return environment(name)
	}
	machineOf(t, filepath.Join(d.host.Dir, "workflows", "machines"), `[]`)
	a := d.connectClient("--toolsets", "machines", "--source-trust", "project=trusted")
	defer a.end()
	ask := func(meta map[string]any, tool string, arguments map[string]any) (progress []string, answer string) {
		a.id++
		if modern {
			meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
			meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
			meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "test", "version": "1"}
		}
		a.writeMessage(map[string]any{"jsonrpc": "2.0", "id": a.id, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments, "_meta": meta}})
		for {
			line, err := a.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID     int
				Params struct {
					ProgressToken string
					Message       string
				}
				Result json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if m.ID == a.id {
				return progress, string(m.Result)
			}
			if m.Params.ProgressToken == "mine" {
				progress = append(progress, m.Params.Message)
				once.Do(func() { close(listened) })
			}
		}
	}
	progress, answer := ask(map[string]any{"progressToken": "mine"}, "machine_start", map[string]any{"machine": "helper", "inputs": map[string]any{"task": "x"}, "wait": 20})
	if text := strings.Join(progress, "\n"); !strings.Contains(text, "helper answered: all done") || !strings.Contains(text, "completed") {
		t.Errorf("the progress is %q", progress)
	}
	if !strings.Contains(answer, `"status":"completed"`) || modern != strings.Contains(answer, `io.modelcontextprotocol/serverInfo`) { // modern clients also get the server's metadata
		t.Errorf("the answer is %s", answer)
	}
	if progress, _ := ask(map[string]any{}, "machine_start", map[string]any{"machine": "helper", "inputs": map[string]any{"task": "x"}, "wait": 20}); len(progress) > 0 {
		t.Errorf("without a progress token, the progress is %q", progress)
	}
}
