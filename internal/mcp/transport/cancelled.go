package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// cancelMark is the message of the error with which the SDK answers a cancelled request. No
// upstream can guess it.
var cancelMark = sync.OnceValue(rand.Text)

// markCancelled marks the answers to the requests that legacy clients over HTTP have
// cancelled.
func markCancelled(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if session := req.GetSession(); ctx.Err() != nil && session != nil && session.ID() != "" {
			return nil, errors.New(cancelMark())
		}
		return result, err
	}
}

// cancelFilter drops marked answers: the protocol has no answer to a cancelled request. The
// SDK writes each answer at once.
type cancelFilter struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w cancelFilter) Write(text []byte) (int, error) {
	if len(text) < 8<<10 && bytes.Contains(text, []byte(cancelMark())) {
		return len(text), nil
	}
	return w.ResponseWriter.Write(text)
}

// Unwrap serves http.ResponseController.
func (w cancelFilter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
