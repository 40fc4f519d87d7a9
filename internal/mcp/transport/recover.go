package transport

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Recover is receiving middleware that answers a call whose handler panics with an internal
// error, and logs the panic with its stack. Without it a panic ends the process and every
// other session: the SDK runs handlers on its own goroutines. Add it last, so that it wraps
// other middleware.
func Recover(logger *slog.Logger) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if reason := recover(); reason != nil {
					logger.ErrorContext(ctx, "a handler panicked", "method", method, "reason", reason, "stack", string(debug.Stack()))
					result, err = nil, &jsonrpc.Error{
						Code: jsonrpc.CodeInternalError, Message: "internal error; see the server's log",
					}
				}
			}()
			return next(ctx, method, req)
		}
	}
}
