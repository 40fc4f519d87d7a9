package guideway

import (
	"errors"
	"fmt"
)

// Code classifies an error. Separate tables map the codes to HTTP statuses, JSON-RPC errors
// and exit codes.
type Code string

// The error codes.
const (
	// CodeInternal is a defect or an environment failure. A server logs its detail and does
	// not send it to a caller.
	CodeInternal Code = "internal"
	// CodeInvalid is input that the caller can correct.
	CodeInvalid Code = "invalid"
	// CodeInvalidDefinition is a document that failed validation.
	CodeInvalidDefinition Code = "invalid_definition"
	// CodeNotFound is for something that does not exist, or that the caller may not know
	// about.
	CodeNotFound Code = "not_found"
	// CodeConflict is a request that conflicts with the current state.
	CodeConflict Code = "conflict"
	// CodeTooLarge is input above a stated limit.
	CodeTooLarge Code = "too_large"
	// CodeUnauthorized is a missing or wrong credential.
	CodeUnauthorized Code = "unauthorized"
	// CodeForbidden is a credential that does not allow the call, or a foreign origin.
	CodeForbidden Code = "forbidden"
	// CodeUnavailable is a temporary failure, such as a full disk.
	CodeUnavailable Code = "unavailable"
	// CodeRefused is a request that a rule forbids, such as an illegal command in a run.
	CodeRefused Code = "refused"
)

// Error is an error with a code and, if possible, a fix.
type Error struct {
	Code Code
	// Message describes the error and its cause, in lower case and without a full stop.
	Message string
	// Fix describes how to correct the error. It may be empty.
	Fix string
	// Err is the cause, for errors.Is and errors.As. It may be nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error with a code. A single %w in the format sets its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithFix sets the fix and returns e.
func (e *Error) WithFix(format string, args ...any) *Error {
	e.Fix = fmt.Sprintf(format, args...)
	return e
}

// ErrorCode returns the code of err: "" for nil, and CodeInternal for an error without a
// code.
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

// ErrorFix returns the fix of err, or "".
func ErrorFix(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Fix
	}
	return ""
}
