package replicatest

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// talkMachine asks the model again and again.
const talkMachine = `{"workflow_name": "talk", "description": "Talks.",
	"input": {"name": "greeting", "type": "string", "description": "What is said."},
	"output": {"name": "reply", "type": "string", "description": "What is answered."},
	"contexts": [{"name": "talk"}], "agents": [{"agent_role": "host", "context": "talk", "role": "assistant"}],
	"budgets": {"states": 100000, "calls": 100000, "tokens": 100000000, "time": "1h"}, "states": [{"name": "start", "agent": "host", "pre_handler": "greet", "next_state": "more"},
	{"name": "more", "agent": "host", "pre_handler": "greet", "next_state": "start"}]}`

// startTalkModel starts a model that sends the first part of each answer, and the second part
// after next has received a value.
func startTalkModel(t *testing.T, next <-chan struct{}) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		part := func(text, finish string) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q},\"finish_reason\":%s}]}\n\n", text, finish)
			_ = http.NewResponseController(w).Flush()
		}
		part("early text", "null")
		select {
		case <-next:
		case <-r.Context().Done():
		}
		part(" and the rest", `"stop"`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// startTalks starts replicas with the machine "talk" and a model.
func (c *cluster) startTalks(n int, model string) {
	c.t.Helper()
	for range n {
		r := c.newReplica()
		dir := filepath.Join(r.home, ".config", "guideway")
		for name, text := range map[string]string{
			"workflows/machines/talk/machine.json": talkMachine, "workflows/machines/talk/roles.json": `{"host": {"systemMessage": "Greet."}}`,
			"workflows/machines/talk/script.js": `export default { greet() { this.workflow_contexts.get("talk").addMessage({role: "user", content: "Go on."}); } };`,
			"guideway.json":                     `{"toolsets": ["machines"], "models": {"base": {"provider": "openai", "model": "m", "baseUrl": "` + model + `"}}}`,
		} {
			file := filepath.Join(dir, filepath.FromSlash(name))
			checkError(c.t, os.MkdirAll(filepath.Dir(file), 0o700))
			checkError(c.t, os.WriteFile(file, []byte(text), 0o600))
		}
		r.run()
	}
}

// waitForText reads the stream of a machine run at a replica until it has a text.
func (r *replica) waitForText(ctx context.Context, id, want string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url("/api/machine-runs/"+id+"/stream"), http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.token())
	var seen strings.Builder
	for ctx.Err() == nil { // a stream ends when another replica takes the run over
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if seen.WriteString(lines.Text() + "\n"); strings.Contains(lines.Text(), want) {
				return answer.Body.Close()
			}
		}
		_ = answer.Body.Close()
	}
	return fmt.Errorf("the stream has no %q: %s", want, seen.String())
}

// TestMachineStreams checks that the text of agents, as it arrives, and progress reach the
// clients of every replica, whichever executes the run.
func TestMachineStreams(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	next := make(chan struct{})
	c := newCluster(t)
	c.startTalks(3, startTalkModel(t, next))
	status, text, _ := request(t, http.MethodPost, c.replicas[0].url("/api/machine-runs"), c.replicas[0].token(), nil,
		map[string]any{"machine": "talk", "inputs": map[string]any{"greeting": "hello"}})
	id := regexp.MustCompile(`"runId":"(\w+)"`).FindSubmatch(text)
	if status != http.StatusCreated || id == nil {
		t.Fatalf("start: %d %s", status, text)
	}
	run := string(id[1])
	streamed := make(chan error, len(c.replicas))
	for _, r := range c.replicas {
		go func() { streamed <- r.waitForText(ctx, run, "early text") }()
	}
	answerNext := func() {
		select {
		case next <- struct{}{}:
		default:
		}
	}
	waitFor(ctx, t, "text at every replica", func() bool {
		answerNext()
		return len(streamed) == len(c.replicas)
	})
	for range c.replicas {
		checkError(t, <-streamed)
	}
	calls, end := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer func() {
		end()
		waiting.Wait()
	}()
	told := make([]atomic.Int64, len(c.replicas))
	for i, r := range c.replicas {
		client := mcp.NewClient(&mcp.Implementation{Name: "watcher", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { told[i].Add(1) },
		})
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: r.url("/mcp"), HTTPClient: &http.Client{Transport: bearer(r.token())}}, nil)
		checkError(t, err)
		waiting.Go(func() {
			defer session.Close()
			_, _ = session.CallTool(calls, &mcp.CallToolParams{Name: "machine_status", Arguments: map[string]any{"runId": run, "wait": 60}, Meta: mcp.Meta{"progressToken": fmt.Sprint(i)}})
		})
	}
	waitFor(ctx, t, "progress at every replica", func() bool {
		answerNext()
		return told[0].Load() > 0 && told[1].Load() > 0 && told[2].Load() > 0
	})
}
