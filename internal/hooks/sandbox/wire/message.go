// Package wire is what a pool of script workers and a worker say to each other:
// frames on a pipe, each with one message. Both sides check what they read as if
// the other were hostile, because a worker runs what strangers wrote.
package wire

import "time"

// Kind says how a script failed.
type Kind string

// The kinds of failures.
const (
	// Syntax is a source that cannot be parsed or linked.
	Syntax Kind = "syntax"
	// Exception is what the script threw, at once or by a rejected promise.
	Exception Kind = "exception"
	// Timeout is a script that used its wall or CPU time up, or can never end.
	Timeout Kind = "timeout"
	// Memory is a script that asked for more memory than it may have.
	Memory Kind = "memory"
	// Stack is a recursion that went too deep.
	Stack Kind = "stack"
	// Output is a result that is larger than it may be.
	Output Kind = "output"
	// Rejected is a call of which nothing was run, because it is not one that
	// could be.
	Rejected Kind = "rejected"
	// Crashed is a worker that died in the call. Whether the script had run, and
	// how far, is not known.
	Crashed Kind = "crashed"
	// Unserialisable is a result that JSON cannot hold.
	Unserialisable Kind = "unserialisable"
)

// Spent tells whether a worker ends with such a failure.
func (k Kind) Spent() bool {
	switch k {
	case Timeout, Memory, Stack, Crashed:
		return true
	}
	return false
}

// Limits bound one call. Zero values take the pool's defaults.
type Limits struct {
	// Wall is the time from the start of the script to its end.
	Wall time.Duration
	// CPU is the processor time in it.
	CPU time.Duration
	// Memory is what the script's objects may take, in bytes.
	Memory int64
	// Stack is how deep calls may nest; a call of a function is one level, one
	// through a getter, a proxy or a callback of a built-in function several.
	Stack int64
	// Output bounds the result: value, arguments, this and audit records
	// together, in bytes.
	Output int64
	// Console bounds the texts of console lines together, in bytes; what is
	// beyond is left out and the result says so.
	Console int64
}

// Line is what a script wrote on its console.
type Line struct {
	// Level is log, info, warn, error or debug.
	Level string `json:"level"`
	// Text is the line, as console of a browser would put it.
	Text string `json:"text"`
}

// MaxRequest bounds a request, in bytes.
const MaxRequest = 64 << 20

// Grace is how long the engine may take to end a script that is over a limit;
// then the worker answers without it and ends itself.
const Grace = 60 * time.Millisecond

// Setup is the first message to a worker: what holds for its whole life.
type Setup struct {
	// Memory is the most that any call may be allowed, in bytes.
	Memory int64
	// CPUSeconds bounds the processor time of the worker's life.
	CPUSeconds uint64
}

// File is a module of the library.
type File struct{ Name, Source string }

// Request asks a worker for one call, or for the check of a source.
type Request struct {
	// Check parses the source without running anything of it.
	Check    bool
	Name     string
	Source   string
	Params   []string
	Library  []File
	Function string
	// This is JSON, or nil for none.
	This   []byte
	Args   [][]byte
	Limits Limits
	// Fixed has the script see the clock Now, in milliseconds of the Unix
	// epoch, and random numbers of Seed.
	Fixed bool
	Now   int64
	Seed  uint64
}

// Answer is what became of a request.
type Answer struct {
	// Kind is empty where all went well.
	Kind         Kind
	Message      string
	File         string
	Line, Column int
	Stack        string

	// Value is JSON, or nil where the function returned nothing.
	Value []byte
	// This and Args are JSON as the script left them; nil ones are unchanged.
	This  []byte
	Args  [][]byte
	Audit [][]byte

	Console   []Line
	Truncated bool
	Wall, CPU time.Duration
	// Body says that the source is a function's body and not a module.
	Body bool
}

// Append appends the message to b.
func (s Setup) Append(b []byte) []byte {
	e := encoder(b)
	e.int(s.Memory)
	e.uint(s.CPUSeconds)
	return e
}

// ReadSetup reads a Setup; it must be the whole of b.
func ReadSetup(b []byte) (Setup, error) {
	d := decoder{rest: b}
	s := Setup{Memory: d.int(), CPUSeconds: d.uint()}
	return s, d.end()
}

// Append appends the message to b.
func (r *Request) Append(b []byte) []byte {
	e := encoder(b)
	e.bool(r.Check)
	e.string(r.Name)
	e.string(r.Source)
	e.uint(uint64(len(r.Params)))
	for _, p := range r.Params {
		e.string(p)
	}
	e.uint(uint64(len(r.Library)))
	for _, f := range r.Library {
		e.string(f.Name)
		e.string(f.Source)
	}
	e.string(r.Function)
	e.bytes(r.This)
	e.blocks(r.Args)
	for _, n := range []int64{
		int64(r.Limits.Wall), int64(r.Limits.CPU), r.Limits.Memory, r.Limits.Stack, r.Limits.Output, r.Limits.Console,
	} {
		e.int(n)
	}
	e.bool(r.Fixed)
	e.int(r.Now)
	e.uint(r.Seed)
	return e
}

// ReadRequest reads a Request; it must be the whole of b. Its byte slices share
// b's memory.
func ReadRequest(b []byte) (*Request, error) {
	d := decoder{rest: b}
	r := &Request{Check: d.bool(), Name: d.string(), Source: d.string()}
	for n := d.count(); n > 0; n-- {
		r.Params = append(r.Params, d.string())
	}
	for n := d.count(); n > 0; n-- {
		r.Library = append(r.Library, File{Name: d.string(), Source: d.string()})
	}
	r.Function = d.string()
	r.This = d.bytes()
	r.Args = d.blocks()
	r.Limits = Limits{
		Wall: time.Duration(d.int()), CPU: time.Duration(d.int()),
		Memory: d.int(), Stack: d.int(), Output: d.int(), Console: d.int(),
	}
	r.Fixed = d.bool()
	r.Now = d.int()
	r.Seed = d.uint()
	return r, d.end()
}

// Append appends the message to b.
func (a *Answer) Append(b []byte) []byte {
	e := encoder(b)
	e.string(string(a.Kind))
	e.string(a.Message)
	e.string(a.File)
	e.int(int64(a.Line))
	e.int(int64(a.Column))
	e.string(a.Stack)
	e.bytes(a.Value)
	e.bytes(a.This)
	e.blocks(a.Args)
	e.blocks(a.Audit)
	e.uint(uint64(len(a.Console)))
	for _, l := range a.Console {
		e.string(l.Level)
		e.string(l.Text)
	}
	e.bool(a.Truncated)
	e.int(int64(a.Wall))
	e.int(int64(a.CPU))
	e.bool(a.Body)
	return e
}

// ReadAnswer reads an Answer; it must be the whole of b. Its byte slices share
// b's memory.
func ReadAnswer(b []byte) (*Answer, error) {
	d := decoder{rest: b}
	a := &Answer{
		Kind: Kind(d.string()), Message: d.string(), File: d.string(),
		Line: int(d.int()), Column: int(d.int()), Stack: d.string(),
		Value: d.bytes(), This: d.bytes(), Args: d.blocks(), Audit: d.blocks(),
	}
	for n := d.count(); n > 0; n-- {
		a.Console = append(a.Console, Line{Level: d.string(), Text: d.string()})
	}
	a.Truncated = d.bool()
	a.Wall = time.Duration(d.int())
	a.CPU = time.Duration(d.int())
	a.Body = d.bool()
	return a, d.end()
}
