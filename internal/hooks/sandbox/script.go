// Package sandbox runs users' JavaScript in a sandbox that a hostile script can neither
// crash nor escape: worker processes with QuickJS, each call in a fresh engine, with limits
// on time, memory, stack and output that are enforced both by the engine and by the process
// around it. The hooks of the gateway and the handlers of agent machines run in it.
//
// A script is an ES module with exports, or the body of an async function. It gets its
// arguments, a console, sleep and a few pure utilities, which Types describes; no files, no
// network, no environment, and no modules other than those of the call's library.
package sandbox

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Line is a line of a script's console output.
type Line = scriptwire.Line

// Module is a script.
type Module struct {
	// Name is the file name in errors; script.js if empty.
	Name string
	// Source is an ES module, or the body of an async function with the parameters Params.
	Source string
	// Hash, if set, must equal Hash of Source, so that only the approved text runs.
	Hash string
	// Params are the parameters of a function body; if nil, there is one, "context".
	Params []string
}

// Call is one call of a script: its body, or the default function of its module.
type Call struct {
	Module Module
	// Library holds the sources that the script can import, by name.
	Library map[string]string
	// Args are the function's arguments.
	Args []json.RawMessage
	// Limits limit the call.
	Limits Limits
	// Owner is the user for whom the script runs. If calls wait, an owner with the fewest
	// running calls is served first. One owner gets at most half of Options.Burst workers,
	// but at least one.
	Owner string
	// Fixed makes the call deterministic; if nil, the call uses the real time and real
	// random numbers.
	Fixed *Fixed
	// Host answers the questions of the script; if nil, they are refused.
	Host Host
}

// Host answers a question of a script, which is JSON that the script may have forged. The
// script waits for the answer or gets the error as an exception. ctx ends with the script's
// time.
type Host func(ctx context.Context, question []byte) (json.RawMessage, error)

// Fixed sets a clock and random numbers that are equal in every run. Only sleep advances
// the clock, without waiting.
type Fixed struct {
	Now  time.Time
	Seed uint64
}

// Result is the result of a call.
type Result struct {
	// Value is the return value of the function, nil for undefined.
	Value json.RawMessage
	// Args include the script's changes. Unchanged values keep the caller's bytes.
	Args []json.RawMessage
	// Audit holds the script's audit records in order.
	Audit []json.RawMessage
	// Console is the console output; Truncated reports whether the script wrote more.
	Console   []Line
	Truncated bool
	// Wall and CPU are the elapsed time and the CPU time of the call in the worker.
	Wall, CPU time.Duration
}

// Hash returns the SHA-256 of a source in hexadecimal.
func Hash(source string) string {
	return digest.Hex(source)
}

//go:embed api.d.ts
var types string

// Types returns a TypeScript declaration file for editors that describes the environment of
// scripts.
func Types() string { return types }

// Limits of the size of a call.
const (
	// MaxSource is the maximum size of a source, and of a library in total, in bytes.
	MaxSource = 1 << 20
	// MaxInput is the maximum size of the arguments in total, in bytes.
	MaxInput = 16 << 20

	maxName    = 200
	maxLibrary = 200
	maxArgs    = 32
)

// minMemory is the minimum for a VM and a small script.
const minMemory = 4 << 20

var paramName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// newRequest checks a call and builds the worker's request.
func (c *Call) newRequest(o *Options) (*scriptwire.Request, error) {
	r, err := c.Module.newRequest(c.Library)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, a := range c.Args {
		size += len(a)
		r.Args = append(r.Args, nonNil(a))
	}
	if size > MaxInput {
		return nil, rejectCall("the arguments take %d bytes, over the limit of %d", size, MaxInput)
	}
	if len(c.Args) > maxArgs {
		return nil, rejectCall("the call has %d arguments; at most %d are allowed", len(c.Args), maxArgs)
	}
	if r.Limits, err = o.limitsFor(c.Limits); err != nil {
		return nil, err
	}
	if c.Fixed != nil {
		r.Fixed, r.Now, r.Seed = true, c.Fixed.Now.UnixMilli(), c.Fixed.Seed
	}
	return r, nil
}

// nonNil converts nil to an empty slice: an empty argument is invalid JSON, not a missing
// one.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (m *Module) newRequest(library map[string]string) (*scriptwire.Request, error) {
	r := &scriptwire.Request{Name: m.Name, Source: m.Source, Params: m.Params}
	if r.Name == "" {
		r.Name = "script.js"
	}
	if r.Params == nil {
		r.Params = []string{"context"}
	}
	if m.Hash != "" && m.Hash != Hash(m.Source) {
		return nil, rejectCall("the source of %s does not match its hash", r.Name)
	}
	if err := checkSource(r.Name, len(m.Source)); err != nil {
		return nil, err
	}
	for _, p := range r.Params {
		if !paramName.MatchString(p) || len(p) > maxName {
			return nil, rejectCall("invalid argument name %q", p)
		}
	}
	if len(r.Params) > maxArgs {
		return nil, rejectCall("the script has %d argument names; at most %d are allowed", len(r.Params), maxArgs)
	}
	if len(library) > maxLibrary {
		return nil, rejectCall("the library has %d modules; at most %d are allowed", len(library), maxLibrary)
	}
	size := 0
	for name, source := range library {
		size += len(source)
		if err := checkSource(name, size); err != nil {
			return nil, err
		}
		if name == r.Name {
			return nil, rejectCall("the library has a module with the script's own name, %s", name)
		}
		r.Library = append(r.Library, scriptwire.File{Name: name, Source: source})
	}
	slices.SortFunc(r.Library, func(a, b scriptwire.File) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

func checkSource(name string, size int) error {
	strange := func(r rune) bool { return r < ' ' || strings.ContainsRune("<>()\x7f\u2028\u2029", r) }
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, strange) {
		return rejectCall("invalid module name %q", name)
	}
	if size > MaxSource {
		return rejectCall("the source, including %[2]s, takes %[1]d bytes, over the limit of %[3]d", size, name, MaxSource)
	}
	return nil
}

// newResult converts an answer to the caller's result.
func (c *Call) newResult(a *scriptwire.Answer) *Result {
	r := &Result{
		Value: a.Value, Args: slices.Clone(c.Args),
		Console: a.Console, Truncated: a.Truncated, Wall: a.Wall, CPU: a.CPU,
	}
	for i, left := range a.Args {
		if i < len(r.Args) && left != nil {
			r.Args[i] = left
		}
	}
	for _, record := range a.Audit {
		r.Audit = append(r.Audit, record)
	}
	return r
}

// limitsFor applies the defaults and refuses limits above the pool's maximum.
func (o *Options) limitsFor(l Limits) (Limits, error) {
	var err error
	pick := func(what string, asked, usual, most int64) int64 {
		switch {
		case asked == 0:
			return usual
		case asked < 0 || asked > most:
			if err == nil {
				err = rejectCall("the limit for %s must be from 1 to %d, but it is %d", what, most, asked)
			}
		}
		return asked
	}
	l.Wall = time.Duration(pick("wall time in ns", int64(l.Wall), int64(o.Limits.Wall), int64(o.Most.Wall)))
	l.CPU = time.Duration(pick("processor time in ns", int64(l.CPU), int64(o.Limits.CPU), int64(o.Most.CPU)))
	l.Memory = max(pick("memory in bytes", l.Memory, o.Limits.Memory, o.Most.Memory), minMemory)
	l.Stack = pick("nested calls", l.Stack, o.Limits.Stack, o.Most.Stack)
	l.Output = pick("output in bytes", l.Output, o.Limits.Output, o.Most.Output)
	l.Console = pick("console in bytes", l.Console, o.Limits.Console, o.Most.Console)
	return l, err
}

func rejectCall(format string, args ...any) *Error {
	return &Error{Kind: Rejected, Message: fmt.Sprintf(format, args...)}
}

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
