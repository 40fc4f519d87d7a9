package sandbox

import (
	"fmt"

	"github.com/guideway-dev/guideway"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
)

// Kind is the kind of a script error.
type Kind = scriptwire.Kind

// The kinds of script errors.
const (
	Syntax         = scriptwire.Syntax
	Exception      = scriptwire.Exception
	Timeout        = scriptwire.Timeout
	Memory         = scriptwire.Memory
	Stack          = scriptwire.Stack
	Output         = scriptwire.Output
	Rejected       = scriptwire.Rejected
	Crashed        = scriptwire.Crashed
	Unserialisable = scriptwire.Unserialisable
)

// Error is the error of a script. Its position is in the user's file. If that file has an
// inline source map, the position is in the original TypeScript.
type Error struct {
	Kind    Kind
	Message string
	// File, Line and Column are the position, if known; lines and columns count from 1.
	File         string
	Line, Column int
	// Stack has a line for each frame of the user's code, innermost first.
	Stack string
	// Console is the script's console output before the error.
	Console   []Line
	Truncated bool
}

// Error returns the position and message of the error.
func (e *Error) Error() string {
	switch {
	case e.File != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	case e.File != "":
		return e.File + ": " + e.Message
	}
	return e.Message
}

// Unwrap returns the error with its code.
func (e *Error) Unwrap() error {
	code := guideway.CodeInvalid
	switch e.Kind {
	case Syntax:
		code = guideway.CodeInvalidDefinition
	case Timeout, Memory, Stack, Output:
		code = guideway.CodeTooLarge
	case Crashed:
		code = guideway.CodeUnavailable
	}
	return &guideway.Error{Code: code, Message: e.Error()}
}

func errorOf(a *scriptwire.Answer) *Error {
	return &Error{
		Kind: a.Kind, Message: a.Message, File: a.File, Line: a.Line, Column: a.Column, Stack: a.Stack,
		Console: a.Console, Truncated: a.Truncated,
	}
}
