package mcp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestInternalErrorsAreOnlyLogged checks that the details of an internal error are not in
// the answer, and that the log names the tool.
func TestInternalErrorsAreOnlyLogged(t *testing.T) {
	t.Parallel()
	failing := []*tool{
		{declaration: declaration{Name: "failing"}, serve: func(context.Context, call) (any, error) {
			return nil, errors.New("secret detail")
		}},
		{declaration: declaration{Name: "unwritable"}, serve: func(context.Context, call) (any, error) {
			return map[string]any{"secret detail": func() {}}, nil
		}},
	}
	ctx := auth.WithPrincipal(t.Context(), guideway.Principal{User: "ann"})
	for _, broken := range failing {
		var log bytes.Buffer
		serve := broken.newHandler(&responder{logger: slog.New(slog.NewTextHandler(&log, nil)), answers: AnswersAuto})
		res, err := serve(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}})
		if err != nil || !res.IsError {
			t.Fatalf("%s: %v, %v", broken.Name, res, err)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		if strings.Contains(text, "secret") || !strings.Contains(text, broken.Name+" failed; see the server's log") {
			t.Errorf("%s: the answer is %s", broken.Name, text)
		}
		if !strings.Contains(log.String(), broken.Name) {
			t.Errorf("%s: the log is %s", broken.Name, log.String())
		}
	}
}
