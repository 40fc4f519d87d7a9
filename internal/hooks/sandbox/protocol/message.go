// Package protocol is the protocol between a pool of script workers and a worker: frames on a
// pipe, each with one message. Both sides treat their input as hostile, because a worker
// runs untrusted scripts.
package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Kind is the kind of a script error.
type Kind string

// The kinds of script errors.
const (
	// Syntax means that a source cannot be parsed or linked.
	Syntax Kind = "syntax"
	// Exception means that the script threw an error or rejected its promise.
	Exception Kind = "exception"
	// Timeout means that the script used up its wall or CPU time, or can never end.
	Timeout Kind = "timeout"
	// Memory means that the script exceeded its memory limit.
	Memory Kind = "memory"
	// Stack means that the recursion was too deep.
	Stack Kind = "stack"
	// Output means that the result exceeds its limit.
	Output Kind = "output"
	// Rejected means that the call was invalid, and nothing was run.
	Rejected Kind = "rejected"
	// Crashed means that the worker exited during the call. It is unknown which part of the
	// script has run.
	Crashed Kind = "crashed"
	// Unserialisable means that the result has no JSON form.
	Unserialisable Kind = "unserialisable"
)

// Spent reports whether a worker exits after an error of this kind.
func (k Kind) Spent() bool {
	switch k {
	case Timeout, Memory, Stack, Crashed:
		return true
	}
	return false
}

// Limits limit one call. Zero values use the pool's defaults.
type Limits struct {
	// Wall is the maximum elapsed time of the script.
	Wall time.Duration
	// CPU is the maximum CPU time of the script.
	CPU time.Duration
	// Memory is the maximum memory of the script's objects in bytes.
	Memory int64
	// Stack is the maximum depth of nested calls; a function call is one level, a call
	// through a getter, a proxy or a callback of a built-in function is several.
	Stack int64
	// Output is the maximum size of the result: value, arguments, this and audit records in
	// total, in bytes.
	Output int64
	// Console is the maximum size of all console lines in bytes; the rest is dropped, which
	// the result reports.
	Console int64
}

// Line is a line of a script's console output.
type Line struct {
	// Level is log, info, warn, error or debug.
	Level string `json:"level"`
	// Text is the line as a browser's console formats it.
	Text string `json:"text"`
}

// MaxRequest is the maximum size of a request in bytes.
const MaxRequest = 64 << 20

// Grace is the time that the engine has to end a script that is over a limit; after that,
// the worker answers without the engine and exits.
const Grace = 60 * time.Millisecond

// Setup is the first message to a worker, with settings for its lifetime.
type Setup struct {
	// Memory is the highest memory limit of any call in bytes.
	Memory int64
	// CPUSeconds limits the CPU time of the worker's lifetime.
	CPUSeconds uint64
}

// File is a module of the library.
type File struct{ Name, Source string }

// Request asks a worker to run a call or to check a source.
type Request struct {
	// Check parses the source without running it.
	Check   bool
	Name    string
	Source  string
	Params  []string
	Library []File
	Args    [][]byte
	Limits  Limits
	// Fixed makes the script use the clock Now, in milliseconds of the Unix epoch, and
	// random numbers from Seed.
	Fixed bool
	Now   int64
	Seed  uint64
}

// Answer is the result of a request.
type Answer struct {
	// Ask is a question of the running script to the host, as JSON. If it is set, the other
	// fields are empty, and the worker waits for a frame with the number of the call and a
	// Reply.
	Ask []byte
	// Kind is empty for a success.
	Kind         Kind
	Message      string
	File         string
	Line, Column int
	Stack        string

	// Value is JSON, or nil if the function returned nothing.
	Value []byte
	// Args are JSON with the script's changes; unchanged values are nil.
	Args  [][]byte
	Audit [][]byte

	Console   []Line
	Truncated bool
	Wall, CPU time.Duration
	// Body reports whether the source is a function body and not a module.
	Body bool
}

// Reply is the reply of the host to a question of a script, as JSON.
type Reply struct {
	Value json.RawMessage `json:"value,omitempty"`
	// Error is the message of the exception that the script gets, or "".
	Error string `json:"error,omitempty"`
}

// MaxReply is the maximum size of a reply in bytes.
const MaxReply = 1 << 20

// code writes or reads the message.
func (s *Setup) code(c *codec) {
	codeInt(c, &s.Memory)
	c.codeUint(&s.CPUSeconds)
}

// Append appends the message to b.
func (s Setup) Append(b []byte) []byte { return encode(b, s.code) }

// ReadSetup decodes a Setup from all of b.
func ReadSetup(b []byte) (Setup, error) {
	var s Setup
	err := decode(b, s.code)
	return s, err
}

// code writes or reads the message.
func (r *Request) code(c *codec) {
	c.codeBool(&r.Check)
	codeString(c, &r.Name)
	codeString(c, &r.Source)
	codeList(c, &r.Params, func(p *string) { codeString(c, p) })
	codeList(c, &r.Library, func(f *File) {
		codeString(c, &f.Name)
		codeString(c, &f.Source)
	})
	codeList(c, &r.Args, c.codeBytes)
	codeInt(c, &r.Limits.Wall)
	codeInt(c, &r.Limits.CPU)
	codeInt(c, &r.Limits.Memory)
	codeInt(c, &r.Limits.Stack)
	codeInt(c, &r.Limits.Output)
	codeInt(c, &r.Limits.Console)
	c.codeBool(&r.Fixed)
	codeInt(c, &r.Now)
	c.codeUint(&r.Seed)
}

// Append appends the message to b.
func (r *Request) Append(b []byte) []byte { return encode(b, r.code) }

// ReadRequest decodes a Request from all of b. Its byte slices share b's memory.
func ReadRequest(b []byte) (*Request, error) {
	r := &Request{}
	return r, decode(b, r.code)
}

// code writes or reads the message.
func (a *Answer) code(c *codec) {
	c.codeBytes(&a.Ask)
	codeString(c, &a.Kind)
	codeString(c, &a.Message)
	codeString(c, &a.File)
	codeInt(c, &a.Line)
	codeInt(c, &a.Column)
	codeString(c, &a.Stack)
	c.codeBytes(&a.Value)
	codeList(c, &a.Args, c.codeBytes)
	codeList(c, &a.Audit, c.codeBytes)
	codeList(c, &a.Console, func(l *Line) {
		codeString(c, &l.Level)
		codeString(c, &l.Text)
	})
	c.codeBool(&a.Truncated)
	codeInt(c, &a.Wall)
	codeInt(c, &a.CPU)
	c.codeBool(&a.Body)
}

// Append appends the message to b.
func (a *Answer) Append(b []byte) []byte { return encode(b, a.code) }

// ReadAnswer decodes an Answer from all of b. Its byte slices share b's memory.
func ReadAnswer(b []byte) (*Answer, error) {
	a := &Answer{}
	return a, decode(b, a.code)
}

// A frame is a mark, the length of its message, the number of the call and the message. The
// number is random for each call and never shown to a script: a frame with another number
// was not written by the worker's loop.

// mark is the start of every frame; its last byte is the version of the protocol.
const mark = "GWS\x01"

// headerSize is the length of the header before a message.
const headerSize = len(mark) + 4 + 8

// ErrTooLarge is returned for a frame over the reader's limit.
var ErrTooLarge = errors.New("the frame is too large")

// Begin starts a frame in b, which it overwrites. Append the message to the returned slice,
// then call Finish.
func Begin(b []byte, call uint64) []byte {
	b = append(b[:0], mark...)
	b = append(b, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint64(b, call)
}

// Finish completes a frame started by Begin.
func Finish(b []byte) ([]byte, error) {
	n := len(b) - headerSize
	if n > 1<<31 {
		return nil, ErrTooLarge
	}
	binary.BigEndian.PutUint32(b[len(mark):], uint32(n))
	return b, nil
}

// Read reads one frame with a message of at most limit bytes. It returns io.EOF only if the
// stream ends between two frames.
func Read(r io.Reader, limit int64) (call uint64, message []byte, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil, fmt.Errorf("read a frame header: %w", err)
		}
		return 0, nil, err
	}
	if string(header[:len(mark)]) != mark {
		return 0, nil, errMessage
	}
	n := int64(binary.BigEndian.Uint32(header[len(mark):]))
	if n > limit {
		return 0, nil, ErrTooLarge
	}
	call = binary.BigEndian.Uint64(header[len(mark)+4:])
	message, err = readMessage(r, n)
	if err != nil {
		return 0, nil, fmt.Errorf("read a frame of %d bytes: %w", n, err)
	}
	return call, message, nil
}

// readMessage allocates as data arrives, so that a false length cannot allocate memory.
func readMessage(r io.Reader, n int64) ([]byte, error) {
	const step = 1 << 20
	message := make([]byte, 0, min(n, step))
	for int64(len(message)) < n {
		have := len(message)
		more := int(min(n-int64(have), step))
		message = append(message, make([]byte, more)...)
		if _, err := io.ReadFull(r, message[have:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return message, nil
}

// errMessage is the error for an invalid message.
var errMessage = errors.New("invalid message of the script protocol")

// codec writes or reads the parts of a message, so that one function describes both. After
// the first missing or invalid part a reader sets zero values, and decode returns an error.
type codec struct {
	writing bool
	// bytes are the written bytes, or the bytes that were not read yet.
	bytes  []byte
	failed bool
}

// encode appends a message to b.
func encode(b []byte, code func(*codec)) []byte {
	c := codec{writing: true, bytes: b}
	code(&c)
	return c.bytes
}

// decode reads a message from all of b.
func decode(b []byte, code func(*codec)) error {
	c := codec{bytes: b}
	if code(&c); c.failed || len(c.bytes) > 0 {
		return errMessage
	}
	return nil
}

func (c *codec) setError() {
	c.failed = true
	c.bytes = nil
}

func (c *codec) codeUint(n *uint64) {
	if c.writing {
		c.bytes = binary.AppendUvarint(c.bytes, *n)
		return
	}
	v, size := binary.Uvarint(c.bytes)
	if size <= 0 {
		c.setError()
		return
	}
	*n, c.bytes = v, c.bytes[size:]
}

func codeInt[T ~int | ~int64](c *codec, n *T) {
	if c.writing {
		c.bytes = binary.AppendVarint(c.bytes, int64(*n))
		return
	}
	v, size := binary.Varint(c.bytes)
	if size <= 0 {
		c.setError()
		return
	}
	*n, c.bytes = T(v), c.bytes[size:]
}

func (c *codec) codeBool(b *bool) {
	switch {
	case c.writing && *b:
		c.bytes = append(c.bytes, 1)
	case c.writing:
		c.bytes = append(c.bytes, 0)
	case len(c.bytes) == 0 || c.bytes[0] > 1:
		c.setError()
	default:
		*b, c.bytes = c.bytes[0] == 1, c.bytes[1:]
	}
}

func codeString[T ~string](c *codec, s *T) {
	n := uint64(len(*s))
	if c.codeUint(&n); c.writing {
		c.bytes = append(c.bytes, *s...)
		return
	}
	*s = T(c.take(n))
}

// codeBytes encodes nil and empty differently.
func (c *codec) codeBytes(b *[]byte) {
	n := uint64(0)
	if c.writing && *b != nil {
		n = uint64(len(*b)) + 1
	}
	if c.codeUint(&n); c.writing {
		c.bytes = append(c.bytes, *b...)
	} else if n > 0 {
		*b = c.take(n - 1)
	}
}

// take returns the next n bytes.
func (c *codec) take(n uint64) []byte {
	if n > uint64(len(c.bytes)) {
		c.setError()
		return nil
	}
	taken := c.bytes[:n:n]
	c.bytes = c.bytes[n:]
	return taken
}

// codeList codes the number of elements and each of them. An element has at least one byte,
// so a larger number than the rest is invalid: it cannot make a reader loop or allocate.
func codeList[T any](c *codec, list *[]T, codeElement func(*T)) {
	n := uint64(len(*list))
	if c.codeUint(&n); c.writing {
		for i := range *list {
			codeElement(&(*list)[i])
		}
		return
	}
	if n > uint64(len(c.bytes)) {
		c.setError()
		return
	}
	for ; n > 0 && !c.failed; n-- {
		var element T
		codeElement(&element)
		*list = append(*list, element)
	}
}
