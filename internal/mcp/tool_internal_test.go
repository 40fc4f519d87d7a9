package mcp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestInternalErrorsAreOnlyLogged checks that the details of an internal error are not in
// the answer, and that the log names the tool.
func TestInternalErrorsAreOnlyLogged(t *testing.T) {
	t.Parallel()
	failing := []*tool{
		{name: "failing", handle: func(context.Context, arguments) (any, error) {
			return nil, errors.New("secret detail")
		}},
		{name: "unwritable", handle: func(context.Context, arguments) (any, error) {
			return map[string]any{"secret detail": func() {}}, nil
		}},
	}
	for _, broken := range failing {
		var log bytes.Buffer
		serve := broken.newHandler(&responder{logger: slog.New(slog.NewTextHandler(&log, nil)), answers: AnswersAuto})
		res, err := serve(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}})
		if err != nil || !res.IsError {
			t.Fatalf("%s: %v, %v", broken.name, res, err)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		if strings.Contains(text, "secret") || !strings.Contains(text, broken.name+" failed; see the server's log") {
			t.Errorf("%s: the answer is %s", broken.name, text)
		}
		if !strings.Contains(log.String(), broken.name) {
			t.Errorf("%s: the log is %s", broken.name, log.String())
		}
	}
}
