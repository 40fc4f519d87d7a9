package llm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
)

// Kind says what kept a model from answering.
type Kind string

// The kinds.
const (
	// RateLimit is too many requests or tokens; RetryAfter says how long to wait.
	RateLimit Kind = "rate_limit"
	// Quota is that nothing more is paid for.
	Quota Kind = "quota"
	// Auth is a key that is missing or not accepted.
	Auth Kind = "auth"
	// ContextLength is a conversation that does not fit the model.
	ContextLength Kind = "context_length"
	// Refusal is a model that does not want to answer.
	Refusal Kind = "refusal"
	// Invalid is a request that the server does not take.
	Invalid Kind = "invalid"
	// NotFound is a model that the server does not have.
	NotFound Kind = "not_found"
	// Server is a failure of the server's.
	Server Kind = "server"
	// Network is a connection that failed, also in the middle of an answer.
	Network Kind = "network"
	// Timeout is an answer that did not come in time.
	Timeout Kind = "timeout"
	// Malformed is an answer that cannot be read.
	Malformed Kind = "malformed"
)

// Error is why a model did not answer.
type Error struct {
	Kind Kind
	// Status is that of HTTP; 0 if there was none.
	Status int
	// Message is what the server said, without anything secret.
	Message string
	// RetryAfter is how long the server asks to wait; 0 if it does not say.
	RetryAfter time.Duration
	// Usage is what the request used in spite of it, as far as it is known.
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

// Unwrap gives the cause, or the error's code for guideway.ErrorCode.
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
	coded := &guideway.Error{Code: code, Message: e.Error(), Fix: e.fix()}
	if e.Err == nil {
		return []error{coded}
	}
	return []error{coded, e.Err}
}

// fix says how to mend it.
func (e *Error) fix() string {
	switch e.Kind {
	case Auth:
		return "check the key of the model's server"
	case Quota:
		return "check the account at the model's server"
	case NotFound:
		return "check the name of the model"
	case ContextLength:
		return "lower max_tokens or max_length of the context, or choose another model"
	default:
		return ""
	}
}

// Transient says whether the same request may succeed later.
func (e *Error) Transient() bool {
	switch e.Kind {
	case RateLimit, Server, Network, Timeout, Malformed:
		return true
	default:
		return false
	}
}

// AsError gives the Error that err is; any other one is Network's.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Network, Message: err.Error(), Err: err}
}

// StatusError makes an error of an answer of HTTP that is none of the model's.
// The code and the message are those that the body gives, if any.
func StatusError(status int, header http.Header, code, message string, now time.Time) *Error {
	e := &Error{Status: status, Message: message, RetryAfter: retryAfter(header, now)}
	said := strings.ToLower(code + " " + message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
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

// retryAfter reads how long a server asks to wait: in milliseconds, seconds, or
// as a time.
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
