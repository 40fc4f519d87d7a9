package mcpserver

import (
	"context"
	"errors"
	"log/slog"

	"github.com/guideway-dev/guideway/internal/mcpserver/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var _ transport.Direct = (*Server)(nil)

var errNoToolResult = errors.New("the answer to a call is none of a tool")

// offer offers a tool. Where it is direct its plain calls are made without the SDK,
// and what stands around the call there stands around it here, but for what is about
// questions to the client.
func (s *Server) offer(t *tool, limits *allowed, logger *slog.Logger) {
	handler := t.server(logger)
	s.mcp.AddTool(t.definition(), handler)
	if !t.direct {
		return
	}
	around := transport.Recover(logger)(limits.middleware(func(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return nil, errNoToolResult
		}
		return handler(ctx, call)
	}))
	s.direct[t.name] = func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		out, err := around(ctx, "tools/call", req)
		if err != nil {
			return nil, err
		}
		result, ok := out.(*mcp.CallToolResult)
		if !ok {
			return nil, errNoToolResult
		}
		return result, nil
	}
}

// Direct implements transport.Direct.
func (s *Server) Direct(name string) mcp.ToolHandler { return s.direct[name] }

// Implementation implements transport.Direct.
func (s *Server) Implementation() *mcp.Implementation { return s.implementation }
