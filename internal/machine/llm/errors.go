package llm

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
)

// Kind is the kind of a model's error.
type Kind string

// The kinds.
const (
	// RateLimit means that there were too many requests or tokens; RetryAfter is the wait.
	RateLimit Kind = "rate_limit"
	// Quota means that the account has no credit.
	Quota Kind = "quota"
	// Auth means that the key is missing or rejected.
	Auth Kind = "auth"
	// ContextLength means that the conversation exceeds the model's context.
	ContextLength Kind = "context_length"
	// Refusal means that the model refuses to answer.
	Refusal Kind = "refusal"
	// Invalid means that the server rejects the request.
	Invalid Kind = "invalid"
	// NotFound means that the server does not have the model.
	NotFound Kind = "not_found"
	// Server means that the server failed.
	Server Kind = "server"
	// Network means that the connection failed, possibly in the middle of an answer.
	Network Kind = "network"
	// Timeout means that the answer did not arrive in time.
	Timeout Kind = "timeout"
	// Malformed means that the answer cannot be parsed or is empty.
	Malformed Kind = "malformed"
)

// Error is the error of a model request.
type Error struct {
	Kind Kind
	// Status is the HTTP status; 0 if there is no response.
	Status int
	// Message describes the error, without secrets.
	Message string
	// RetryAfter is the wait that the server requests, or 0.
	RetryAfter time.Duration
	// Usage is the known usage of the failed request.
	Usage Usage
	// Err is the cause; it may be nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	text := strings.ReplaceAll(string(e.Kind), "_", " ")
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns an error with the code for guideway.ErrorCode, and the cause if there is
// one.
func (e *Error) Unwrap() []error {
	code := guideway.CodeUnavailable
	switch e.Kind {
	case Auth:
		code = guideway.CodeUnauthorized
	case ContextLength:
		code = guideway.CodeTooLarge
	case Invalid, Refusal:
		code = guideway.CodeInvalid
	case NotFound:
		code = guideway.CodeNotFound
	}
	coded := &guideway.Error{Code: code, Message: e.Error(), Fix: e.fixText()}
	if e.Err == nil {
		return []error{coded}
	}
	return []error{coded, e.Err}
}

// fixText returns the text of the fix.
func (e *Error) fixText() string {
	switch e.Kind {
	case Auth:
		return "check the API key for the model's server"
	case Quota:
		return "check the quota, the credit and the billing of the account that the API key belongs to"
	case NotFound:
		return "check the name of the model and the URL of its server"
	case ContextLength:
		return "lower max_tokens or max_length of the context, or choose a different model"
	default:
		return ""
	}
}

// Transient reports whether the same request may succeed later.
func (e *Error) Transient() bool {
	switch e.Kind {
	case RateLimit, Server, Network, Timeout, Malformed:
		return true
	default:
		return false
	}
}

// AsError returns err as an *Error. Any other error gets the kind Network.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Network, Message: err.Error(), Err: err}
}

// StatusError returns the error of an HTTP response with an error status. code and message
// come from the body of the response and may be empty.
func StatusError(status int, header http.Header, code, message string, now time.Time) *Error {
	e := &Error{Status: status, Message: message, RetryAfter: retryAfter(header, now)}
	said := strings.ToLower(code + " " + message)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	switch {
	case has("context_length", "context length", "maximum context", "prompt is too long", "too many tokens") || status == http.StatusRequestEntityTooLarge:
		e.Kind = ContextLength
	case has("insufficient_quota", "billing", "credit balance") || status == http.StatusPaymentRequired:
		e.Kind = Quota
	case has("content_filter", "content_policy"):
		e.Kind = Refusal
	case status == http.StatusTooManyRequests:
		e.Kind = RateLimit
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Kind = Auth
	case status == http.StatusNotFound:
		e.Kind = NotFound
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		e.Kind = Timeout
	case status >= http.StatusInternalServerError, status == http.StatusConflict:
		e.Kind = Server
	default:
		e.Kind = Invalid
	}
	return e
}

// retryAfter returns the wait that a server requests in milliseconds, seconds or as a time.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const longest = 24 * time.Hour
	d := time.Duration(0)
	if ms, err := time.ParseDuration(h.Get("Retry-After-Ms") + "ms"); err == nil {
		d = ms
	} else if text := h.Get("Retry-After"); text != "" {
		if s, err := time.ParseDuration(text + "s"); err == nil {
			d = s
		} else if at, err := http.ParseTime(text); err == nil {
			d = at.Sub(now)
		}
	}
	return min(max(d, 0), longest)
}
