package clienthook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

// Client is a client with hooks.
type Client struct {
	// ID is the name on the command line, as in "guideway install".
	ID string
	// Title is the name for people.
	Title string
	// events maps the client's names of events to kinds.
	events map[string]Kind
	// names are the beginnings of the names by which the client introduces itself to an MCP
	// server.
	names []string
	// render writes an answer in the form of the client.
	render func(Event, Answer) []byte
	// restatesLater is set if the client reports no event after a compaction whose answer
	// can contain a text for the agent. The position is then restated at the next call.
	restatesLater bool
}

// Clients returns the clients with hooks. The contracts are those of
//
//   - Claude Code 2.1: https://code.claude.com/docs/en/hooks, and for PreCompact the text of
//     the command /hooks: the output is appended as custom compact instructions
//   - Codex 0.169: https://developers.openai.com/codex/hooks and the schemas in
//     codex-rs/hooks/schema/generated of openai/codex
//   - Cursor 3.7: https://cursor.com/docs/hooks
//   - Gemini CLI 0.61: docs/hooks/reference.md of google-gemini/gemini-cli
//   - Copilot CLI 1.0: https://docs.github.com/en/copilot/reference/hooks-reference. Event
//     names in PascalCase select the payloads with the tool names of Claude Code.
func Clients() []Client {
	return []Client{
		{
			ID: "claude-code", Title: "Claude Code", names: []string{"claude-code"}, render: renderClaudeCode,
			events: map[string]Kind{
				"PreToolUse": KindBeforeTool, "PostToolUse": KindAfterTool, "Stop": KindStop, "SubagentStop": KindSubagentStop,
				"SessionStart": KindSessionStart, "PreCompact": KindCompaction,
			},
		},
		{
			ID: "codex", Title: "Codex", names: []string{"codex"}, render: renderCodex,
			events: map[string]Kind{
				"PreToolUse": KindBeforeTool, "PostToolUse": KindAfterTool, "Stop": KindStop, "SubagentStop": KindSubagentStop,
				"SessionStart": KindSessionStart,
			},
		},
		{
			ID: "cursor", Title: "Cursor", names: []string{"cursor"}, render: renderCursor, restatesLater: true,
			events: map[string]Kind{
				"preToolUse": KindBeforeTool, "beforeShellExecution": KindBeforeTool, "beforeMCPExecution": KindBeforeTool,
				"postToolUse": KindAfterTool, "afterMCPExecution": KindAfterTool, "stop": KindStop, "preCompact": KindCompaction,
			},
		},
		{
			ID: "gemini", Title: "Gemini CLI", names: []string{"gemini-cli"}, render: renderGemini, restatesLater: true,
			events: map[string]Kind{
				"BeforeTool": KindBeforeTool, "AfterTool": KindAfterTool, "AfterAgent": KindStop,
				"SessionStart": KindSessionStart, "PreCompress": KindCompaction,
			},
		},
		{
			ID: "copilot", Title: "Copilot CLI", names: []string{"copilot-cli", "github-copilot"}, render: renderCopilot, restatesLater: true,
			events: map[string]Kind{
				"PreToolUse": KindBeforeTool, "PostToolUse": KindAfterTool, "Stop": KindStop, "SubagentStop": KindSubagentStop,
				"SessionStart": KindSessionStart, "PreCompact": KindCompaction,
			},
		},
	}
}

// FindClient returns the client with an id.
func FindClient(id string) (Client, error) {
	var known []string
	for _, c := range Clients() {
		if c.ID == id {
			return c, nil
		}
		known = append(known, c.ID)
	}
	return Client{}, guideway.Errorf(guideway.CodeNotFound, "unknown client %q; the clients with hooks are %s", id, strings.Join(known, ", ")).
		WithFix("guideway client-hook %s Stop", known[0])
}

// ClientNamed returns the client with hooks that introduces itself to a server with a name.
func ClientNamed(name string) (Client, bool) {
	clients := Clients()
	i := slices.IndexFunc(clients, func(c Client) bool {
		return slices.ContainsFunc(c.names, func(begin string) bool { return strings.HasPrefix(strings.ToLower(name), begin) })
	})
	if i < 0 {
		return Client{}, false
	}
	return clients[i], true
}

// payload is the union of the members that the clients send.
type payload struct {
	SessionID      string          `json:"session_id"`
	ConversationID string          `json:"conversation_id"`
	AgentID        string          `json:"agent_id"`
	ParentAgentID  string          `json:"parent_agent_id"`
	ToolName       string          `json:"tool_name"`
	ToolInput      json.RawMessage `json:"tool_input"`
	// The result of a call has a different name in each client.
	ToolResponse json.RawMessage `json:"tool_response"`
	ToolResult   json.RawMessage `json:"tool_result"`
	ToolOutput   json.RawMessage `json:"tool_output"`
	ResultJSON   json.RawMessage `json:"result_json"`
	// Command is the command of Cursor's beforeShellExecution, and the command of the server
	// in beforeMCPExecution.
	Command        string          `json:"command"`
	MCPServerName  string          `json:"mcp_server_name"`
	MCPContext     json.RawMessage `json:"mcp_context"`
	StopHookActive bool            `json:"stop_hook_active"`
	LoopCount      int             `json:"loop_count"`
	Status         string          `json:"status"`
}

// readEvent reads an event. If the input is broken, it returns the members before the error
// together with the error. The kind is empty if the event is unknown or needs no answer.
func (c Client) readEvent(name string, in io.Reader) (Event, error) {
	p, err := readPayload(in)
	ev := Event{Kind: c.events[name], Name: name, Session: p.SessionID, Agent: p.AgentID, Cut: err != nil, Continued: p.StopHookActive || p.LoopCount > 0}
	if ev.Session == "" {
		ev.Session = p.ConversationID
	}
	if p.ParentAgentID != "" && p.SessionID == p.AgentID {
		ev.Session = p.ParentAgentID // Copilot CLI gives the events in a subagent a session of their own
	}
	if ev.Kind == "" {
		return ev, guideway.Errorf(guideway.CodeNotFound, "unknown event %q of %s; the event is allowed", clip(name, 100), c.Title).
			WithFix("guideway install %s --hooks", c.ID)
	}
	if ev.Session == "" && err == nil {
		err = errors.New("the event has no session id; the event is allowed")
	}
	ev.Interrupted = p.Status == "aborted" || p.Status == "error"
	ev.Arguments = unquoteJSON(p.ToolInput)
	for _, result := range []json.RawMessage{p.ToolResponse, p.ToolResult, p.ToolOutput, p.ResultJSON} {
		if len(result) > 0 {
			ev.Result = result
		}
	}
	ev.Tool = p.toolName()
	if name == "beforeShellExecution" {
		ev.Tool = "Shell"
		ev.Arguments, _ = json.Marshal(map[string]string{"command": p.Command}) //nolint:errchkjson // a map of strings always marshals
	}
	if ev.Kind == KindStop && ev.Agent != "" {
		ev.Kind = "" // Copilot CLI also reports it by SubagentStop, where it heeds a refusal
	}
	if name == "preToolUse" && (ev.Tool == "Shell" || strings.HasPrefix(ev.Tool, "MCP:")) {
		ev.Kind = "" // Cursor reports these calls by an event of their own, too, in which it can ask the user
	}
	return ev, err
}

// toolName returns the name of the tool, with its server if the client reports it.
func (p payload) toolName() string {
	server, tool := p.MCPServerName, p.ToolName
	var mcp struct {
		Server string `json:"server_name"`
		Tool   string `json:"tool_name"`
	}
	if len(p.MCPContext) > 0 && json.Unmarshal(p.MCPContext, &mcp) == nil && mcp.Tool != "" {
		server, tool = mcp.Server, mcp.Tool
	}
	if server != "" {
		return "mcp__" + server + "__" + tool
	}
	return tool
}

// readPayload reads the members of an object one after another, so that the session of a
// broken or too large event is known.
func readPayload(in io.Reader) (payload, error) {
	members := map[string]json.RawMessage{}
	limited := &io.LimitedReader{R: in, N: maxInput}
	err := readMembers(json.NewDecoder(limited), members)
	if err != nil {
		cause, fix := "is not a JSON object", "if the client wrote this event, report the client and its version as an issue of Guideway"
		if limited.N <= 0 {
			cause, fix = "is larger than 8 MiB", "pass less data in one tool call, such as the path of a file instead of its content"
			_, _ = io.CopyN(io.Discard, in, maxRest) // the event is rejected in any case
		}
		err = guideway.Errorf(guideway.CodeInvalid, "the event on standard input %s", cause).WithFix("%s", fix)
	}
	var p payload
	for name, value := range members {
		one, marshalErr := json.Marshal(map[string]json.RawMessage{name: value})
		if marshalErr == nil {
			_ = json.Unmarshal(one, &p) // a member with another type is ignored
		}
	}
	return p, err
}

func readMembers(dec *json.Decoder, members map[string]json.RawMessage) error {
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errNoObject)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if name, ok := key.(string); ok {
			members[name] = value
		}
	}
	_, err := dec.Token()
	return err
}

var errNoObject = errors.New("not an object")

// unquoteJSON returns JSON that is sent as a text, or the value itself.
func unquoteJSON(value json.RawMessage) json.RawMessage {
	var text string
	if bytes.HasPrefix(bytes.TrimSpace(value), []byte(`"`)) && json.Unmarshal(value, &text) == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return value
}

// UnwatchedClient returns the client that started a run if that client has hooks
// and none of them has reported for the run.
func UnwatchedClient(name string, hooked bool) (c Client, unwatched bool) {
	if hooked {
		return Client{}, false
	}
	return ClientNamed(name)
}
