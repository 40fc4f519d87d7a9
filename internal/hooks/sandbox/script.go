// Package sandbox runs JavaScript that users wrote, in a sandbox that a hostile
// script can neither crash nor leave: worker processes with QuickJS, each call
// in an engine as new, within limits on time, memory, stack and output that hold
// inside and outside of the engine. Hooks of the gateway and handlers of agent
// machines share it.
//
// A script is an ES module with exports, or the body of an async function. It
// sees the values it is given, a console, sleep and a few pure utilities, which
// Types describes; no files, no network, no environment, no other module than
// those of the call's library.
package sandbox

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// Limits bound one call; see the fields for what is counted. A zero field takes
// the pool's default.
type Limits = scriptwire.Limits

// Line is what a script wrote on its console.
type Line = scriptwire.Line

// Module is a script.
type Module struct {
	// Name is the file's name in errors; empty is script.js.
	Name string
	// Source is an ES module, or the body of an async function that gets the
	// arguments by the names of Params.
	Source string
	// Hash, unless empty, must be what Hash gives for Source: then what runs is
	// what was approved.
	Hash string
	// Params are the names of the arguments in a function's body; none is
	// "context" alone.
	Params []string
}

// Call is one run of a script's function.
type Call struct {
	Module Module
	// Library has the sources that the script can import, by name.
	Library map[string]string
	// Function is the name of the export to call, or of a function in the
	// object that is the default export. Empty is the default export itself.
	Function string
	// This is the function's this, or nil for none. Where it is an object, the
	// other functions of the module are its methods too.
	This json.RawMessage
	// Args are the function's arguments.
	Args []json.RawMessage
	// Limits bound the call.
	Limits Limits
	// Owner is for whom the script runs. Where workers are scarce, owners get
	// them in turn, and one alone gets half of them at most.
	Owner string
	// Fixed makes the call deterministic; nil has it see the real time and real
	// random numbers.
	Fixed *Fixed
}

// Fixed are a clock and random numbers that are the same at every run. The clock
// stands still, but for sleep, which moves it and does not wait.
type Fixed struct {
	Now  time.Time
	Seed uint64
}

// Result is what a script made of a call.
type Result struct {
	// Value is what the function returned, nil where that is undefined.
	Value json.RawMessage
	// Args and This are as the script left them: the caller's own bytes where
	// it changed nothing.
	Args []json.RawMessage
	This json.RawMessage
	// Audit has the records that the script gave to audit, in order.
	Audit []json.RawMessage
	// Console is what the script wrote; Truncated says that it wrote more.
	Console   []Line
	Truncated bool
	// Wall and CPU are what the call took in the worker.
	Wall, CPU time.Duration
}

// Hash identifies a source: SHA-256 in hexadecimal digits.
func Hash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}

//go:embed api.d.ts
var types string

// Types describes what scripts can use, as a TypeScript declaration file for
// editors.
func Types() string { return types }

// Bounds on what a call carries.
const (
	// MaxSource bounds a source, and a library in all.
	MaxSource = 1 << 20
	// MaxInput bounds the arguments and this in all.
	MaxInput = 16 << 20

	maxName    = 200
	maxLibrary = 200
	maxArgs    = 32
)

// minMemory is what a VM and a small script need.
const minMemory = 4 << 20

var paramName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// request checks a call and makes the worker's request of it.
func (c *Call) request(o *Options) (*scriptwire.Request, error) {
	r, err := c.Module.request(c.Library)
	if err != nil {
		return nil, err
	}
	size := len(c.This)
	for _, a := range c.Args {
		size += len(a)
		r.Args = append(r.Args, nonNil(a))
	}
	if size > MaxInput {
		return nil, reject("the arguments take %d bytes, over the limit of %d", size, MaxInput)
	}
	if len(c.Args) > maxArgs {
		return nil, reject("%d arguments, over the limit of %d", len(c.Args), maxArgs)
	}
	if c.This != nil {
		r.This = nonNil(c.This)
	}
	r.Function = c.Function
	if r.Limits, err = o.bound(c.Limits); err != nil {
		return nil, err
	}
	if c.Fixed != nil {
		r.Fixed, r.Now, r.Seed = true, c.Fixed.Now.UnixMilli(), c.Fixed.Seed
	}
	return r, nil
}

// nonNil keeps an empty argument, which is not JSON, from being none.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (m *Module) request(library map[string]string) (*scriptwire.Request, error) {
	r := &scriptwire.Request{Name: m.Name, Source: m.Source, Params: m.Params}
	if r.Name == "" {
		r.Name = "script.js"
	}
	if r.Params == nil {
		r.Params = []string{"context"}
	}
	if m.Hash != "" && m.Hash != Hash(m.Source) {
		return nil, reject("the source of %s is not the one that its hash names", r.Name)
	}
	if err := checkSource(r.Name, len(m.Source)); err != nil {
		return nil, err
	}
	for _, p := range r.Params {
		if !paramName.MatchString(p) || len(p) > maxName {
			return nil, reject("%q cannot be the name of an argument", p)
		}
	}
	if len(r.Params) > maxArgs || len(library) > maxLibrary {
		return nil, reject("%d names of arguments and %d modules, over the limits of %d and %d",
			len(r.Params), len(library), maxArgs, maxLibrary)
	}
	size := 0
	for name, source := range library {
		size += len(source)
		if err := checkSource(name, size); err != nil {
			return nil, err
		}
		if name == r.Name {
			return nil, reject("the library has a module of the script's own name, %s", name)
		}
		r.Library = append(r.Library, scriptwire.File{Name: name, Source: source})
	}
	slices.SortFunc(r.Library, func(a, b scriptwire.File) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

func checkSource(name string, size int) error {
	strange := func(r rune) bool { return r < ' ' || strings.ContainsRune("<>()\x7f\u2028\u2029", r) }
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, strange) {
		return reject("%q cannot be the name of a module", name)
	}
	if size > MaxSource {
		return reject("the source takes %d bytes with %s, over the limit of %d", size, name, MaxSource)
	}
	return nil
}

// result makes the caller's result of an answer.
func (c *Call) result(a *scriptwire.Answer) *Result {
	r := &Result{
		Value: a.Value, This: a.This, Args: slices.Clone(c.Args),
		Console: a.Console, Truncated: a.Truncated, Wall: a.Wall, CPU: a.CPU,
	}
	if r.This == nil {
		r.This = c.This
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

// bound fills in the defaults and refuses what is over the pool's limits.
func (o *Options) bound(l Limits) (Limits, error) {
	var err error
	pick := func(what string, asked, usual, most int64) int64 {
		switch {
		case asked == 0:
			return usual
		case asked < 0 || asked > most:
			if err == nil {
				err = reject("the limit of %s is %d, and can be 1 to %d", what, asked, most)
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

func reject(format string, args ...any) *Error {
	return &Error{Kind: Rejected, Message: fmt.Sprintf(format, args...)}
}
