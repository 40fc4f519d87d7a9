package transport_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/mcpserver/transport"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// echoes is a server with a tool that can be called with the SDK and without, and
// counts both.
type echoes struct {
	server        *mcp.Server
	sdk, straight atomic.Int64
}

func newEchoes() *echoes {
	e := &echoes{server: mcp.NewServer(&mcp.Implementation{Name: "test", Title: "Té<st>", Version: "1"}, nil)}
	e.server.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			e.sdk.Add(1)
			return echo(ctx, req)
		})
	return e
}

// echo answers what the arguments say: a plain text, a structure, an error, or a
// protocol error.
func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Text       string          `json:"text"`
		Structured json.RawMessage `json:"structured"`
		Wrong      bool            `json:"wrong"`
		Fails      bool            `json:"fails"`
	}
	if len(req.Params.Arguments) > 0 {
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
	}
	if in.Fails {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "it <fails>"}
	}
	name := ""
	if info := req.ClientInfo(); info != nil {
		name = info.Name
	}
	r := &mcp.CallToolResult{IsError: in.Wrong, Content: []mcp.Content{&mcp.TextContent{Text: in.Text}, &mcp.TextContent{Text: "of " + name}}}
	if in.Structured != nil {
		r.StructuredContent = in.Structured
	}
	return r, nil
}

func (e *echoes) Direct(name string) mcp.ToolHandler {
	if name != "echo" {
		return nil
	}
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		e.straight.Add(1)
		return echo(ctx, req)
	}
}

func (e *echoes) Implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "test", Title: "Té<st>", Version: "1"}
}

// converse sends lines one after the other and gives the answers.
func converse(t *testing.T, e *echoes, past transport.Past, lines []string) []string {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- transport.StdioPast(t.Context(), e.server, past, inR, outW) }()
	out := bufio.NewReader(outR)
	var answers []string
	for _, line := range lines {
		if _, err := io.WriteString(inW, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(line, `"id"`) {
			continue
		}
		answer, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = outR.Close()
	return answers
}

const (
	hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"client","version":"1"}}}`
	said     = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ofClient = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	named    = ofClient + `,"io.modelcontextprotocol/clientInfo":{"name":"newer","version":"1"}`
)

func echoCall(params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
}

// A call that is answered without the SDK is answered as with it, in both eras, and
// whatever is not plain goes to the SDK.
func TestDirectAnswersAsTheSDK(t *testing.T) {
	t.Parallel()
	modern := func(meta, rest string) string { return echoCall(`{"_meta":{` + meta + `},"name":"echo"` + rest + `}`) }
	first := modern(named, "") // the SDK has to hear of the client first
	for name, c := range map[string]struct {
		begin  []string
		line   string
		direct bool
	}{
		"plain":              {[]string{hello, said}, echoCall(`{"name":"echo","arguments":{"text":"a <b> & \"c\" é \u2028 \u0000 🚀"}}`), true},
		"without arguments":  {[]string{hello, said}, echoCall(`{"name":"echo"}`), true},
		"structured":         {[]string{hello, said}, echoCall(` { "arguments" : {"structured":{"a":["<",1.50,null]}} , "name":"echo" } `), true},
		"a tool's error":     {[]string{hello, said}, echoCall(`{"name":"echo","arguments":{"text":"bad","structured":{"code":"x"},"wrong":true}}`), true},
		"a protocol error":   {[]string{hello, said}, echoCall(`{"name":"echo","arguments":{"fails":true}}`), true},
		"an error":           {[]string{hello, said}, echoCall(`{"name":"echo","arguments":{"text":3}}`), true},
		"a progress token":   {[]string{hello, said}, echoCall(`{"name":"echo","_meta":{"progressToken":3,"x/y":{"z":[]}},"arguments":{}}`), true},
		"an id of letters":   {[]string{hello, said}, `{"jsonrpc":"2.0","id":"é-7","method":"tools/call","params":{"name":"echo"}}`, true},
		"modern":             {[]string{first}, modern(named, `,"arguments":{"text":"x","structured":{}}`), true},
		"modern, an error":   {[]string{first}, modern(named, `,"arguments":{"wrong":true}`), true},
		"modern, nameless":   {[]string{first}, modern(ofClient, ""), true},
		"modern, no SDK yet": {nil, first, false},
		"modern, odd client": {[]string{first}, modern(ofClient+`,"io.modelcontextprotocol/clientInfo":3`, ""), false},
		"modern, no client":  {[]string{first}, modern(ofClient+`,"io.modelcontextprotocol/clientInfo":null`, ""), false},
		"modern, odd roots": {[]string{first}, modern(`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{"roots":3}`, ""), false},
		"modern, nothing said": {[]string{first}, modern(`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, ""), false},
		"a later version": {[]string{first}, modern(`"io.modelcontextprotocol/protocolVersion":"2099-01-01",`+
			`"io.modelcontextprotocol/clientCapabilities":{}`, ""), false},
		"modern after legacy": {[]string{hello, said}, modern(named, ""), false},
		"legacy after modern": {[]string{first}, echoCall(`{"name":"echo"}`), false},
		"before the hello":    {nil, echoCall(`{"name":"echo"}`), false},
		"another tool":        {[]string{hello, said}, echoCall(`{"name":"eco"}`), false},
		"an escaped name":     {[]string{hello, said}, echoCall(`{"name":"\u0065cho"}`), false},
		"two names":           {[]string{hello, said}, echoCall(`{"name":"echo","name":"echo"}`), false},
		"other case":          {[]string{hello, said}, echoCall(`{"Name":"echo"}`), false},
		"null arguments":      {[]string{hello, said}, echoCall(`{"name":"echo","arguments":null}`), false},
		"a list":              {[]string{hello, said}, echoCall(`{"name":"echo","arguments":[]}`), false},
		"one more member":     {[]string{hello, said}, echoCall(`{"name":"echo","requestState":"x"}`), false},
		"an answer to a question": {[]string{hello, said}, echoCall(
			`{"name":"echo","inputResponses":{"gate":{"action":"accept"}}}`), false},
		"no params":    {[]string{hello, said}, `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, false},
		"other method": {[]string{hello, said}, `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"name":"echo"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with, without := newEchoes(), newEchoes()
			lines := append(append([]string{}, c.begin...), c.line)
			want := converse(t, with, transport.Past{}, lines)
			got := converse(t, without, transport.Past{Direct: without}, lines)
			if diff := cmp.Diff(decoded(t, want), decoded(t, got)); diff != "" {
				t.Errorf("with the SDK and without (-want +got):\n%s", diff)
			}
			if direct := without.straight.Load() == 1; direct != c.direct {
				t.Errorf("without the SDK: %v", direct)
			}
			if with.straight.Load() != 0 || with.sdk.Load() != without.sdk.Load()+without.straight.Load() {
				t.Errorf("calls: %d with the SDK, or %d and %d", with.sdk.Load(), without.sdk.Load(), without.straight.Load())
			}
		})
	}
}

// decoded reads messages, numbers as they were written.
func decoded(t *testing.T, lines []string) (out []any) {
	t.Helper()
	for _, line := range lines {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, value)
	}
	return out
}
