package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// waitingMachines is a service whose runs wait for input. It maps each run to the
// permissions of its agents.
type waitingMachines struct {
	mcpserver.Machines
	// given receives the runs that got input.
	given chan string
	begun chan json.RawMessage
}

func (m *waitingMachines) Start(_ context.Context, _ run.Caller, r driver.StartRequest) (*driver.Status, error) {
	m.begun <- r.Allow
	if r.RequestID == "theirs" {
		return &driver.Status{RunID: "m_other"}, nil
	}
	return &driver.Status{RunID: "m_mine"}, nil
}

func (m *waitingMachines) Status(_ context.Context, _ run.Caller, id string) (*driver.Status, error) {
	return &driver.Status{RunID: id, Status: machineengine.StatusWaiting, Allow: map[string]json.RawMessage{
		"m_all": nil, "m_named": json.RawMessage(`{"all":true,"token":"2"}`), "m_other": json.RawMessage(`{"upstreams":["files"],"token":"2"}`),
		"m_same": json.RawMessage(`{"toolsets":["machines"],"token":"2"}`), "m_none": json.RawMessage(`{}`), "m_mine": json.RawMessage(`{"toolsets":["machines"],"token":"1"}`), "m_broken": json.RawMessage(`7`),
	}[id]}, nil
}

func (m *waitingMachines) Wait(ctx context.Context, c run.Caller, id string, _ time.Duration) (*driver.Status, error) {
	return m.Status(ctx, c, id)
}

func (m *waitingMachines) Input(ctx context.Context, c run.Caller, id string, _ driver.InputAnswer) (*driver.Status, error) {
	m.given <- id
	return m.Status(ctx, c, id)
}

func (m *waitingMachines) Cancel(ctx context.Context, c run.Caller, id, _ string) (*driver.Status, error) {
	m.given <- id
	return m.Status(ctx, c, id)
}

func (m *waitingMachines) Decide(ctx context.Context, c run.Caller, id string, _ driver.OutcomeAnswer) (*driver.Status, error) {
	m.given <- id
	return m.Status(ctx, c, id)
}

// A client with a limited token only sees the runs that it has started. It can neither read
// nor cancel other runs of the same user, nor send them input, since their agents may have
// more permissions. The agents of its own runs have its permissions.
func TestClientsSeeOnlyTheirRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		allow auth.Allow
		may   []string
	}{
		{"a toolset", auth.Allow{Toolsets: []string{"machines"}}, []string{"m_mine"}},
		{"an upstream", auth.Allow{Toolsets: []string{"machines"}, Upstreams: []string{"files"}}, []string{"m_mine"}},
		{"everything", auth.Allow{All: true}, []string{"m_all", "m_named", "m_other", "m_same", "m_none", "m_broken", "m_mine"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := &waitingMachines{given: make(chan string, 1), begun: make(chan json.RawMessage, 1)}
			r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets, o.Machines = mcpserver.Toolsets(), m })
			cs := connectWithToken(t, r, tt.allow)
			call := func(name string, args map[string]any) *mcp.CallToolResult {
				result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
				if err != nil {
					t.Fatal(err)
				}
				return result
			}
			for _, id := range []string{"m_all", "m_named", "m_other", "m_same", "m_none", "m_broken", "m_mine"} {
				want := slices.Contains(tt.may, id)
				if got := call("machine_status", map[string]any{"runId": id, "wait": 1}); got.IsError == want {
					t.Errorf("%s accessed the run: %+v", id, got.Content)
				}
				for _, args := range []map[string]any{{"runId": id, "value": "do it"}, {"runId": id, "outcome": "retry"}, {"runId": id}} {
					for _, name := range []string{"machine_input", "machine_cancel"} {
						if name == "machine_cancel" && len(args) > 1 {
							continue
						}
						refused := call(name, args)
						told := len(m.given) == 1
						if told {
							<-m.given
						}
						if refused.IsError == want || told != want {
							t.Errorf("%s of %s with %v: %+v, told %v", name, id, args, refused.Content, told)
						}
						if text, _ := json.Marshal(refused.Content); !want && !strings.Contains(string(text), "run-unknown") {
							t.Errorf("%s of %s says %s", name, id, text)
						}
					}
				}
			}
			call("machine_start", map[string]any{"machine": "x"})
			var lent auth.Delegation
			if err := json.Unmarshal(<-m.begun, &lent); err != nil || lent.Token != "1" || !lent.Covers(&tt.allow) || !tt.allow.Covers(&lent.Allow) {
				t.Errorf("the agents of the started run may use %+v, %v", lent, err)
			}
			// Only a client with an unlimited token gets the run of another client's
			// request ID.
			again := call("machine_start", map[string]any{"machine": "x", "requestId": "theirs"})
			<-m.begun
			if again.IsError == tt.allow.All {
				t.Errorf("another client's request returns %+v", again.Content)
			}
		})
	}
}

// recordingMachines is a service that records the values of inputs.
type recordingMachines struct {
	*waitingMachines
	values chan json.RawMessage
}

func (m recordingMachines) Input(ctx context.Context, c run.Caller, id string, a driver.InputAnswer) (*driver.Status, error) {
	m.values <- a.Value
	return m.Status(ctx, c, id)
}

// machine_input accepts values of all types that an input can have, as JSON or as the text of
// JSON.
func TestMachineInputTypes(t *testing.T) {
	t.Parallel()
	m := recordingMachines{&waitingMachines{}, make(chan json.RawMessage, 1)}
	r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets, o.Machines = mcpserver.Toolsets(), m })
	cs := connectWithToken(t, r, auth.Allow{All: true})
	for given, want := range map[string]string{
		`"go on"`: `"go on"`, `true`: `"true"`, `"true"`: `"true"`, `1.50`: `"1.50"`, `{"a":[null]}`: `"{\"a\":[null]}"`, `[1,"b"]`: `"[1,\"b\"]"`, `null`: ``,
	} {
		result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "machine_input", Arguments: map[string]any{"runId": "m_all", "value": json.RawMessage(given)}})
		if err != nil || result.IsError {
			t.Errorf("%s: %+v, %v", given, result, err)
			continue
		}
		if got := string(<-m.values); got != want {
			t.Errorf("%s: got %s", given, got)
		}
	}
}
