package cheats

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is a connection of an agent to "guideway mcp".
type session struct {
	*mcp.ClientSession
	// onProgress, if set, receives what a call reports.
	onProgress func(message string)
}

// connect starts the server in the workspace of a stage.
func connect(ctx context.Context, s *stage) (*session, error) {
	cmd := exec.CommandContext(ctx, s.program, "mcp") //nolint:gosec // G204: the program under test
	cmd.Dir, cmd.Env = s.work(), s.environ()
	out := &session{}
	client := mcp.NewClient(&mcp.Implementation{Name: "cheating-agent", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if out.onProgress != nil {
				out.onProgress(r.Params.Message)
			}
		},
	})
	var err error
	out.ClientSession, err = client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to guideway mcp: %w", err)
	}
	return out, nil
}

// toolAnswer is what the tools for workflows answer.
type toolAnswer struct {
	RunID    string `json:"runId"`
	Handle   string `json:"handle"`
	Status   string `json:"status"`
	Position struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	} `json:"position"`
	// IsComplete and Context are of workflow_next.
	IsComplete bool           `json:"isComplete"`
	Context    map[string]any `json:"context"`
	// Rule and Message are those of a refusal.
	Rule    string   `json:"rule"`
	Message string   `json:"message"`
	Issues  []string `json:"issues"`

	refused bool
}

// callTool calls a tool. A refusal is an answer.
func (s *session) callTool(ctx context.Context, name string, args map[string]any) (*toolAnswer, string, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken("p")
	result, err := s.CallTool(ctx, params)
	if err != nil {
		return nil, "", fmt.Errorf("call %s: %w", name, err)
	}
	text := ""
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	data := []byte(text)
	if result.StructuredContent != nil {
		if data, err = json.Marshal(result.StructuredContent); err != nil {
			return nil, "", err
		}
	}
	a := &toolAnswer{refused: result.IsError}
	if err := json.Unmarshal(data, a); err != nil && !result.IsError {
		return nil, "", fmt.Errorf("read the answer of %s: %w: %s", name, err, text)
	}
	return a, text, nil
}
