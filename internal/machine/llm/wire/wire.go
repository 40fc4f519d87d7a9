// Package wire is shared by the model adapters: a request over HTTP whose response is JSON
// or a stream of events. It never logs, and its errors contain no request headers, so that
// keys are not leaked.
package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/machine/llm"
)

const (
	// maxBody is the maximum size of an answer, and maxLine the maximum size of a line in a
	// stream.
	maxBody = 32 << 20
	maxLine = 4 << 20
	// maxMessage is the maximum length of a server's error message.
	maxMessage = 1000
)

// Client sends requests to one server.
type Client struct {
	// URL is the address to send requests to.
	URL string
	// Header holds additional headers, including the key.
	Header http.Header
	// HTTP is the client; nil means http.DefaultClient.
	HTTP *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Secrets are removed from the server's messages.
	Secrets []string
}

// Post sends a request, with its idempotency key unless it is empty. The caller must close
// the body of the response. A status other than 200 is an error.
func (c *Client) Post(ctx context.Context, key string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, &llm.Error{Kind: llm.Invalid, Message: "the request cannot be encoded as JSON: " + err.Error(), Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(data))
	if err != nil {
		return nil, &llm.Error{Kind: llm.Invalid, Message: "the URL of the model's server cannot be parsed; set baseUrl of the model in the configuration to a URL such as https://api.example.com/v1"}
	}
	req.Header = c.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, c.ConnectionError(ctx, err)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, c.responseError(res)
	}
	return res, nil
}

// responseError returns the error of a response with an error status.
func (c *Client) responseError(res *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	code, message := c.ErrorMessage(data)
	if message == "" {
		message = http.StatusText(res.StatusCode)
	}
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	return llm.StatusError(res.StatusCode, res.Header, code, message, now())
}

// ErrorMessage returns the code and the message of an error body in any known form.
func (c *Client) ErrorMessage(data []byte) (code, message string) {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	if json.Unmarshal(data, &body) != nil {
		return "", c.cleanMessage(string(data))
	}
	type detail struct {
		Code    any    `json:"code"`
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	var inner detail
	var text string
	switch {
	case json.Unmarshal(body.Error, &inner) == nil && inner != (detail{}):
		code, _ = inner.Code.(string)
		return strings.TrimSpace(code + " " + inner.Type), c.cleanMessage(inner.Message)
	case json.Unmarshal(body.Error, &text) == nil:
		return "", c.cleanMessage(text)
	case body.Message != "":
		return "", c.cleanMessage(body.Message)
	default:
		return "", c.cleanMessage(body.Detail)
	}
}

// BodyError returns the error for a response with the status 200 whose body reports that
// the server failed in the middle of the answer.
func (c *Client) BodyError(data []byte) *llm.Error {
	code, message := c.ErrorMessage(data)
	e := llm.StatusError(http.StatusInternalServerError, nil, code, message, time.Time{})
	e.Status = 0
	if strings.Contains(code, "rate_limit") || strings.Contains(code, "overloaded") {
		e.Kind = llm.RateLimit
	}
	return e
}

// cleanMessage truncates a server's message and removes secrets: some servers repeat the
// key that they reject.
func (c *Client) cleanMessage(text string) string {
	for _, s := range c.Secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// ConnectionError converts the error of a failed connection to an *llm.Error.
func (c *Client) ConnectionError(ctx context.Context, err error) error {
	var known *llm.Error
	if errors.As(err, &known) {
		return err
	}
	kind := llm.Network
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		kind = llm.Timeout
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &llm.Error{Kind: kind, Message: c.cleanMessage(err.Error()), Err: err}
}

// ReadJSON reads a response that is one document.
func (c *Client) ReadJSON(ctx context.Context, body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	switch {
	case err != nil:
		return nil, c.ConnectionError(ctx, err)
	case len(data) > maxBody:
		return nil, &llm.Error{Kind: llm.Malformed, Message: fmt.Sprintf("the answer is larger than %d bytes", maxBody)}
	}
	return data, nil
}

// Event is one event of a stream.
type Event struct{ Name, Data string }

// Events calls each with the events of a stream until it returns done. A stream that ends
// earlier is an error, because the answer is incomplete.
func (c *Client) Events(ctx context.Context, body io.Reader, each func(Event) (done bool, err error)) error {
	in := bufio.NewScanner(io.LimitReader(body, maxBody))
	in.Buffer(make([]byte, 0, 8<<10), maxLine)
	var e Event
	var data []string
	for in.Scan() {
		line := strings.TrimSuffix(in.Text(), "\r")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "event" && line != "":
			e.Name = value
		case name == "data" && line != "":
			data = append(data, value)
		case line == "" && len(data) > 0:
			e.Data = strings.Join(data, "\n")
			done, err := each(e)
			if done || err != nil {
				return err
			}
			e, data = Event{}, nil
		}
	}
	if err := in.Err(); err != nil {
		return c.ConnectionError(ctx, err)
	}
	if len(data) > 0 {
		e.Data = strings.Join(data, "\n")
		if done, err := each(e); done || err != nil {
			return err
		}
	}
	return &llm.Error{Kind: llm.Network, Message: "the stream ended in the middle of the answer"}
}

// IsStream reports whether a response is a stream of events.
func IsStream(res *http.Response) bool {
	return strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
}
