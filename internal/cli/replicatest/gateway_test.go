package replicatest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// startGateways starts replicas with the upstreams "one" and "two", one of each era, and
// settings of the gateway, and returns the URL of the proxy.
func (c *cluster) startGateways(n int, gateway map[string]any) string {
	c.t.Helper()
	self, err := os.Executable()
	checkError(c.t, err)
	return c.startWith(n, map[string]any{
		"gateway": gateway,
		"upstreams": map[string]any{
			"one": map[string]any{"command": self, "env": map[string]string{upstreamtest.Variable: ""}, "pins": "off"},
			"two": map[string]any{"command": self, "env": map[string]string{upstreamtest.Variable: upstreamtest.Modern}, "pins": "off"},
		},
	})
}

// startWith starts replicas with settings and the workflow "gated".
func (c *cluster) startWith(n int, settings map[string]any) string {
	c.t.Helper()
	text, err := json.Marshal(settings)
	checkError(c.t, err)
	for range n {
		r := c.newReplica()
		r.addWorkflow("gated", gatedWorkflow)
		dir := filepath.Join(r.home, ".config", "guideway")
		checkError(c.t, os.MkdirAll(dir, 0o700))
		checkError(c.t, os.WriteFile(filepath.Join(dir, "guideway.json"), text, 0o600))
		r.run()
	}
	return c.roundRobin()
}

// TestLimitsHoldInSum checks that the calls of a client through several replicas count
// together, and that refused calls do not count.
func TestLimitsHoldInSum(t *testing.T) {
	t.Parallel()
	const limit = 4
	c := newCluster(t)
	at := c.startGateways(3, map[string]any{"callsPerMinute": limit})
	passed := 0
	for i := range 3 * limit {
		_, err := callTool(t, at, c.replicas[0].token(), "one__echo", map[string]any{"text": fmt.Sprint(i)})
		if err == nil {
			passed++
		} else if !strings.Contains(err.Error(), "this client has sent too many calls") || i < limit {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if passed != limit {
		t.Errorf("%d calls passed through 3 replicas, and the limit is %d", passed, limit)
	}
}

// TestLargeResults checks that a result that one replica has stored is read through any, and
// that without that replica the client is told that the result is missing.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	at := c.startGateways(3, map[string]any{"largeResult": "1KB"})
	read := func(ref string) error {
		_, err := callTool(t, at, c.replicas[0].token(), "result_read", map[string]any{"ref": ref})
		return err
	}
	var ref string
	for range c.replicas {
		_, text, _ := request(t, http.MethodPost, at+"/mcp", c.replicas[0].token(),
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "one__big"}, modernCall("one__big", map[string]any{"size": 20_000}, nil))
		if ref = regexp.MustCompile(`result_[a-z0-9_]+`).FindString(strings.ReplaceAll(string(text), "result_read", "")); ref == "" {
			t.Fatalf("no reference: %.500s", text)
		}
		for range c.replicas {
			if err := read(ref); err != nil {
				t.Errorf("%s: %v", ref, err)
			}
		}
	}
	instance := strings.Split(ref, "_")[1]
	crash.Exec(t, c.store, `delete from shared where name = 'instances/`+instance+`'`)
	missing := 0
	for range c.replicas {
		if err := read(ref); err != nil && strings.Contains(err.Error(), "there is no result") {
			missing++
		}
	}
	if missing != len(c.replicas)-1 {
		t.Errorf("%d replicas state that the result is missing", missing)
	}
}

// bearer adds a token to requests.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestParkedCalls checks that clients of all protocol versions are asked by upstreams and at
// human approvals, and answer, through any replica.
func TestParkedCalls(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.env = append(c.env, "GUIDEWAY_GATES_APPROVAL=human")
	at := c.startGateways(3, map[string]any{})
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			client := mcp.NewClient(&mcp.Implementation{Name: "person", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if !strings.Contains(req.Params.Message, "question") { // it is the form of a human approval
						<-time.After(1100 * time.Millisecond) // a person does not read a form in less than a second
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"option": firstOption(t, req.Params.RequestedSchema)}}, nil
					}
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": "the answer to " + req.Params.Message}}, nil
				},
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at + "/mcp", HTTPClient: &http.Client{Transport: bearer(c.replicas[0].token())}},
				&mcp.ClientSessionOptions{ProtocolVersion: version})
			checkError(t, err)
			defer session.Close()
			call := func(tool string, args map[string]any) string {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
				checkError(t, err)
				text, err := json.Marshal(result)
				checkError(t, err)
				return string(text)
			}
			for i := range 6 {
				question := fmt.Sprint("question ", i)
				for _, tool := range []string{"one__ask", "two__ask"} {
					if got := call(tool, map[string]any{"text": question}); !strings.Contains(got, "the answer to") || !strings.Contains(got, question) {
						t.Errorf("call %d returns %s", i, got)
					}
				}
			}
			handle := regexp.MustCompile(`h_\w+`)
			next := func(tool string, args map[string]any) string { return handle.FindString(call(tool, args)) }
			at := next("workflow_continue", map[string]any{
				"handle": next("workflow_start", map[string]any{"workflowId": "gated"}), "output": "The plan is to write the tests first.",
			})
			if got := call("workflow_continue", map[string]any{"handle": at}); !strings.Contains(got, `"id":"work"`) {
				t.Errorf("the answer at the gate returns %s", got)
			}
		})
	}
}
