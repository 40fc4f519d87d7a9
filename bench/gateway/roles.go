package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveRole runs the server that is called, or the byte-level proxy. The HTTP roles print
// their address.
func serveRole(ctx context.Context, role, to string, out io.Writer) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, echoText)
	var handler http.Handler
	switch role {
	case "stdio":
		return server.Run(ctx, &mcp.StdioTransport{})
	case "http":
		handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	case "bytes":
		target, err := url.Parse(to)
		if err != nil {
			return fmt.Errorf("read -to: %w", err)
		}
		handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.URL.Path = target.Path }, FlushInterval: -1}
	default:
		return fmt.Errorf("unknown role %q", role)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(out, "MCP http://%s/mcp\n", listener.Addr())
	return http.Serve(listener, handler) //nolint:gosec // G114: only this measurement uses the server
}

func echoText(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil
}
