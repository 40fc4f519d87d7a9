package guideway

import (
	"errors"
	"fmt"
)

// Code classifies an error for every way out: HTTP status, JSON-RPC answer and
// exit code are read from one table each.
type Code string

// The error codes.
const (
	// CodeInternal is a defect or an environment failure; its detail goes to
	// the log, never to a caller.
	CodeInternal Code = "internal"
	// CodeInvalid is input that a caller can mend.
	CodeInvalid Code = "invalid"
	// CodeInvalidDefinition is a document that failed validation.
	CodeInvalidDefinition Code = "invalid_definition"
	// CodeNotFound names something that does not exist, or that the caller
	// may not know of.
	CodeNotFound Code = "not_found"
	// CodeConflict is a change that lost against another.
	CodeConflict Code = "conflict"
	// CodeTooLarge is input over a stated limit.
	CodeTooLarge Code = "too_large"
	// CodeUnauthorized is a missing or wrong credential.
	CodeUnauthorized Code = "unauthorized"
	// CodeForbidden is a credential that does not allow the call, or a
	// foreign origin.
	CodeForbidden Code = "forbidden"
	// CodeUnavailable is something that may work later, such as a full disk.
	CodeUnavailable Code = "unavailable"
	// CodeRefused is an illegal move in a run.
	CodeRefused Code = "refused"
)

// Error is an error with a code and, where there is one, the way out of it.
type Error struct {
	Code Code
	// Message says what happened, its cause included, in lower case and
	// without a full stop.
	Message string
	// Fix is the next step: a call or a command that would work.
	Fix string
	// Err is the cause, for errors.Is and errors.As; it may be nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with a code; a %w in the format keeps its cause
// reachable for errors.Is.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithFix returns e with the way out set.
func (e *Error) WithFix(format string, args ...any) *Error {
	e.Fix = fmt.Sprintf(format, args...)
	return e
}

// ErrorCode gives the code of err: "" for nil, CodeInternal for an error
// without one.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// ErrorFix gives the way out that err carries, or "".
func ErrorFix(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Fix
	}
	return ""
}
