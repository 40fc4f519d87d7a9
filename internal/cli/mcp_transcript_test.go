package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/cli/app"
)

var updateTranscripts = flag.Bool("update-transcripts", false, "rewrite the recorded transcripts")

// transcriptClient talks to `guideway mcp` line by line and records the messages.
type transcriptClient struct {
	t      *testing.T
	in     io.Writer
	out    *bufio.Reader
	log    bytes.Buffer
	id     int
	modern bool
}

// sendRequest writes a request and returns its result.
func (w *transcriptClient) sendRequest(method string, params map[string]any) map[string]any {
	w.t.Helper()
	w.id++
	if w.modern {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "transcript", "version": "1"},
		}
	}
	w.writeMessage(map[string]any{"jsonrpc": "2.0", "id": w.id, "method": method, "params": params})
	line, err := w.out.ReadString('\n')
	if err != nil {
		w.t.Fatalf("%s: no answer: %v", method, err)
	}
	w.log.WriteString("< " + line)
	var answer struct {
		Result map[string]any `json:"result"`
		Error  any            `json:"error"`
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.Error != nil {
		w.t.Fatalf("%s: %v %v", method, err, answer.Error)
	}
	return answer.Result
}

func (w *transcriptClient) writeMessage(message map[string]any) {
	w.t.Helper()
	line, err := json.Marshal(message)
	if err != nil {
		w.t.Fatal(err)
	}
	w.log.WriteString("> " + string(line) + "\n")
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		w.t.Fatal(err)
	}
}

func (w *transcriptClient) callTool(name string, arguments map[string]any) map[string]any {
	w.t.Helper()
	res := w.sendRequest("tools/call", map[string]any{"name": name, "arguments": arguments})
	answer, ok := res["structuredContent"].(map[string]any)
	if !ok || res["isError"] == true {
		w.t.Fatalf("%s: %v", name, res)
	}
	return answer
}

// A client walks a bundled workflow with loops to its end over the program's standard input
// and output. The messages are recorded, so that a change of the wire format shows in
// a diff.
func TestTranscript(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			var stderr bytes.Buffer
			host := app.Host{
				In: inR, Out: outW, Err: &stderr, Dir: home,
				Getenv: func(name string) string {
					if name == "HOME" {
						return home
					}
					return ""
				},
			}
			done := make(chan int, 1)
			go func() { done <- Run(context.Background(), []string{"mcp"}, host) }()

			w := &transcriptClient{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), modern: era == "modern"}
			if w.modern {
				w.sendRequest("server/discover", map[string]any{})
			} else {
				w.sendRequest("initialize", map[string]any{
					"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
					"clientInfo": map[string]any{"name": "transcript", "version": "1"},
				})
				w.writeMessage(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
			}
			w.sendRequest("tools/list", map[string]any{})
			w.callTool("workflow_list", map[string]any{})
			walked := w.walkWorkflow()
			if want := "frame-decision agree-criteria widen-options probe-option probe-option compare-options attack-leader attack-leader recommend hand-over"; walked != want {
				t.Errorf("walked %s, want %s", walked, want)
			}
			_ = inW.Close()
			if code := <-done; code != app.ExitOK {
				t.Errorf("exit code %d: %s", code, stderr.String())
			}
			if stderr.Len() > 0 {
				t.Errorf("unexpected error output: %s", stderr.String())
			}
			compareTranscript(t, filepath.Join("testdata", "transcript", era+".txt"), w.log.String())
		})
	}
}

// walkWorkflow completes the workflow option-exploration, with high stakes and a first
// choice that fails once, and returns the IDs of the steps.
func (w *transcriptClient) walkWorkflow() string {
	sets := map[string]map[string]any{
		"frame-decision": {"stakes": "high", "recommendationStands": false},
		"widen-options": {"options": []any{
			map[string]any{"id": "A", "name": "Queue in the database", "bet": "b", "killer": "k"},
			map[string]any{"id": "B", "name": "Hosted queue", "bet": "b", "killer": "k"},
		}},
	}
	var ids []string
	var vars any = map[string]any{}
	for range 30 {
		res := w.callTool("workflow_next", map[string]any{"workflowId": "option-exploration", "completedSteps": ids, "context": vars})
		if res["isComplete"] == true {
			return strings.Join(ids, " ")
		}
		id := res["step"].(map[string]any)["id"].(string)
		ids = append(ids, id)
		own := res["context"].(map[string]any)
		for k, v := range sets[id] {
			own[k] = v
		}
		if id == "attack-leader" {
			own["recommendationStands"] = strings.Count(strings.Join(ids, " "), "attack-leader") == 2
		}
		vars = own
	}
	return fmt.Sprint("no end: ", ids)
}

func compareTranscript(t *testing.T, file, got string) {
	t.Helper()
	if *updateTranscripts {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the messages have changed; go test ./internal/cli -update-transcripts records them again (-want +got):\n%.4000s", d)
	}
}
