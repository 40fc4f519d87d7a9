package transport_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A panic fails its own call and nothing else.
func TestRecover(t *testing.T) {
	t.Parallel()
	b := newTestServer(t)
	var log bytes.Buffer
	b.server.AddReceivingMiddleware(transport.Recover(slog.New(slog.NewTextHandler(&log, nil))))
	b.addTool("boom", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("the secret reason") })
	p := startStdio(t.Context(), t, b.server)
	p.openSession("2025-11-25")
	p.sendLine(callLine("1", "boom"))
	if got := p.readLine(); !strings.Contains(got, `"code":-32603`) || strings.Contains(got, "secret") {
		t.Errorf("the answer is %s, want an internal error without the reason", got)
	}
	p.checkAlive()
	if !strings.Contains(log.String(), "the secret reason") || !strings.Contains(log.String(), "recover_test.go") {
		t.Errorf("the log has %q, want the reason and the stack", log.String())
	}
}
