// Package quickjs is the JavaScript engine in a memory region that can be copied. An Image
// is the state of the engine at one time. Restoring it copies a few hundred kilobytes,
// while creating an engine takes a millisecond. Therefore every call of a script can have
// an engine without traces of other scripts. See docs/adr/0022.
//
// It binds the C code of QuickJS as translated by modernc.org/libquickjs. The binding of
// modernc.org/quickjs uses the allocator of the whole process, whose memory cannot be
// copied.
package quickjs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Options configure an engine.
type Options struct {
	// Memory is the size of the region in bytes: the maximum memory of scripts, even if
	// SetLimits allows more. Unused pages take no memory.
	Memory int
	// Functions are the global functions that are implemented in Go.
	Functions map[string]Function
	// Resolve returns the name of an imported module, and Load its source. Without them
	// imports fail.
	Resolve func(importer, name string) (string, error)
	Load    func(name string) (string, error)
}

// Function is a Go function that a script can call. Arguments and result are strings,
// float64s, bools, or nil for any other value. An error is thrown as an InternalError.
type Function func(args []any) (any, error)

// Engine is one QuickJS runtime with one realm. It is not safe for concurrent use, except
// Interrupt.
type Engine struct {
	options   Options
	functions []Function
	tls       *libc.TLS
	region    []byte
	heap      *heap
	rt, ctx   uintptr
	handle    uintptr

	interrupted atomic.Bool
	finished    bool
	deadline    time.Time // zero means no deadline
}

// engines maps handles to engines, because C code can store only a number.
var engines sync.Map // maps uintptr to *Engine

var lastHandle atomic.Uintptr

// New returns an engine. Its region is never freed.
func New(o Options) (*Engine, error) {
	e := &Engine{options: o, tls: libc.NewTLS(), handle: lastHandle.Add(1)}
	at := libc.Xmalloc(e.tls, lib.Tsize_t(o.Memory))
	if at == 0 {
		return nil, fmt.Errorf("cannot allocate %d bytes of memory for an engine", o.Memory)
	}
	e.region = bytesAt(at, uintptr(o.Memory))
	e.heap = newHeap((at+align-1)&^(align-1), uintptr(o.Memory)-align)
	engines.Store(e.handle, e)
	e.rt = lib.XJS_NewRuntime2(e.tls, uintptr(unsafe.Pointer(&e.heap.functions)), e.heap.baseAddress())
	if e.rt == 0 {
		return nil, fmt.Errorf("the engine needs more than %d bytes", o.Memory)
	}
	lib.XJS_SetRuntimeOpaque(e.tls, e.rt, e.handle)
	lib.XJS_SetInterruptHandler(e.tls, e.rt, pointerTo(onInterrupt), e.handle)
	lib.XJS_SetModuleLoaderFunc2(e.tls, e.rt, pointerTo(onResolve), pointerTo(onLoad), 0, e.handle)
	if e.ctx = lib.XJS_NewContext(e.tls, e.rt); e.ctx == 0 {
		return nil, fmt.Errorf("the engine needs more than %d bytes", o.Memory)
	}
	for name, f := range o.Functions {
		if err := e.defineFunction(name, f); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Limits are the limits of a script.
type Limits struct {
	Memory int64 // maximum memory of its objects, in bytes
	Stack  int64 // maximum depth of nested calls
	// Garbage is the number of allocated bytes after which the engine collects cycles.
	Garbage int64
}

// SetLimits sets the limits until an image is restored.
func (e *Engine) SetLimits(l Limits) {
	const least = 128 << 10 // with less memory, the engine cannot report that memory is exhausted
	lib.XJS_SetMemoryLimit(e.tls, e.rt, lib.Tsize_t(max(l.Memory, least)))
	lib.XJS_SetGCThreshold(e.tls, e.rt, lib.Tsize_t(l.Garbage))
	lib.XJS_SetMaxStackSize(e.tls, e.rt, lib.Tsize_t(l.Stack))
}

// SetDeadline ends scripts at a given time; the zero time disables the deadline.
func (e *Engine) SetDeadline(t time.Time) { e.deadline = t }

// Interrupt ends the running script, and every later one until an image is restored. It is
// safe for concurrent use.
func (e *Engine) Interrupt() { e.interrupted.Store(true) }

// Finish makes RunJobs return after the current job, because the result is complete.
func (e *Engine) Finish() { e.finished = true }

// mustStop reports whether running scripts must end.
func (e *Engine) mustStop() bool {
	return e.interrupted.Load() || !e.deadline.IsZero() && !time.Now().Before(e.deadline)
}

// pointerTo returns a Go function as a C function pointer.
func pointerTo(f any) uintptr {
	type iface [2]uintptr
	return (*iface)(unsafe.Pointer(&f))[1]
}

// Eval runs a script in the global scope and returns its last value.
func (e *Engine) Eval(name, source string) (Value, error) {
	return e.evalSource(name, source, lib.MJS_EVAL_TYPE_GLOBAL)
}

// Parse parses a module and its imports without running them.
func (e *Engine) Parse(name, source string) error {
	v, err := e.evalSource(name, source, lib.MJS_EVAL_TYPE_MODULE|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
	e.freeValue(v)
	return err
}

func (e *Engine) evalSource(name, source string, flags int32) (Value, error) {
	file, err := libc.CString(name)
	if err != nil {
		return Value{}, fmt.Errorf("parse %s: %w", name, err)
	}
	defer libc.Xfree(e.tls, file)
	source = validWTF8(source)
	text, err := libc.CString(source)
	if err != nil {
		return Value{}, fmt.Errorf("parse %s: %w", name, err)
	}
	defer libc.Xfree(e.tls, text)
	return e.resultOf(lib.XJS_Eval(e.tls, e.ctx, text, lib.Tsize_t(len(source)), file, flags))
}

// Member returns a property of an object.
func (e *Engine) Member(object Value, name string) (Value, error) {
	text, err := libc.CString(name)
	if err != nil {
		return Value{}, fmt.Errorf("take %s: %w", name, err)
	}
	defer libc.Xfree(e.tls, text)
	return e.resultOf(lib.XJS_GetPropertyStr(e.tls, e.ctx, object.v, text))
}

// Call calls a function. The arguments are strings, float64s, bools or nil for undefined.
// The result is converted as in Function.
func (e *Engine) Call(f Value, args ...any) (any, error) {
	size := sizeofValue * max(len(args), 1)
	argv := libc.Xmalloc(e.tls, lib.Tsize_t(size))
	if argv == 0 {
		return nil, errors.New("not enough memory for arguments")
	}
	defer libc.Xfree(e.tls, argv)
	given := valuesAt(argv, len(args))
	for i, arg := range args {
		given[i] = e.fromGo(arg)
	}
	defer func() {
		for _, v := range given {
			lib.XFreeValue(e.tls, e.ctx, v)
		}
	}()
	for _, v := range given {
		if isException(v) {
			return nil, e.takeThrown()
		}
	}
	v, err := e.resultOf(lib.XJS_Call(e.tls, e.ctx, f.v, undefined, int32(len(args)), argv))
	if err != nil {
		return nil, err
	}
	defer e.freeValue(v)
	return e.toGo(v.v)
}

// RunJobs runs pending promise jobs, until none is left, a job throws, Finish was called or
// the engine must stop. more reports whether jobs may be left.
func (e *Engine) RunJobs() (more bool, err error) {
	context := libc.Xmalloc(e.tls, sizeofPointer)
	if context == 0 {
		return false, errors.New("not enough memory for jobs")
	}
	defer libc.Xfree(e.tls, context)
	for !e.finished && !e.mustStop() {
		switch n := lib.XJS_ExecutePendingJob(e.tls, e.rt, context); {
		case n == 0:
			return false, nil
		case n < 0:
			return true, e.takeThrown()
		}
	}
	return true, nil
}

// Image is the state of an engine at one time. It is valid for this engine only.
type Image struct {
	engine *Engine
	base   *Image // the image that the pieces differ from; nil for a full image
	bytes  []byte // the content of a full image
	size   int
	pieces []piece
}

// piece is a part of an image that differs from its base.
type piece struct {
	at    int
	bytes []byte
}

// pieceSize is the size of the compared pieces in bytes.
const pieceSize = 1 << 10

// Size returns the size of the image in bytes, without its base.
func (i *Image) Size() int {
	size := len(i.bytes)
	for _, p := range i.pieces {
		size += len(p.bytes)
	}
	return size
}

// offsetOfRandom is the offset of Math.random's state in a context.
const offsetOfRandom = unsafe.Offsetof(lib.TJSContext{}.Frandom_state)

// usedMemory returns the used part of the region.
func (e *Engine) usedMemory() []byte {
	return bytesAt(e.heap.baseAddress(), e.heap.top-e.heap.baseAddress())
}

// Image returns an image; if base is not nil, the image stores only the differences to
// base, which must be a full image. No script may be running.
func (e *Engine) Image(base *Image) *Image {
	used := e.usedMemory()
	i := &Image{engine: e, base: base, size: len(used)}
	if base == nil {
		i.bytes = bytes.Clone(used)
		return i
	}
	for at := 0; at < len(used); at += pieceSize {
		now := used[at:min(at+pieceSize, len(used))]
		if at+len(now) <= len(base.bytes) && bytes.Equal(now, base.bytes[at:at+len(now)]) {
			continue
		}
		if n := len(i.pieces); n > 0 && i.pieces[n-1].at+len(i.pieces[n-1].bytes) == at {
			i.pieces[n-1].bytes = append(i.pieces[n-1].bytes, now...)
			continue
		}
		i.pieces = append(i.pieces, piece{at, bytes.Clone(now)})
	}
	for n := range i.pieces {
		i.pieces[n].bytes = bytes.Clone(i.pieces[n].bytes) // a clone has no spare capacity
	}
	return i
}

// Restore restores the engine to an image, completely except the state of Math.random, and
// clears interrupts and deadlines. Memory beyond the image is cleared. No script may be
// running.
func (e *Engine) Restore(i *Image) {
	if i.engine != e {
		panic("quickjs: the image belongs to another engine") // the image contains addresses of its engine
	}
	at, high := e.heap.baseAddress(), e.heap.high
	whole := i
	if i.base != nil {
		whole = i.base
	}
	room := bytesAt(at, e.heap.end-at)
	copy(room, whole.bytes[:min(len(whole.bytes), i.size)])
	for _, p := range i.pieces {
		copy(room[p.at:], p.bytes)
	}
	e.heap.high = e.heap.top
	if high > e.heap.top {
		eraseBytes(bytesAt(e.heap.top, high-e.heap.top))
	}
	e.interrupted.Store(false)
	e.finished = false
	e.deadline = time.Time{}
	*(*uint64)(unsafe.Add(nil, e.ctx+offsetOfRandom)) = rand.Uint64() | 1 //nolint:gosec // Math.random promises no secrets
}
