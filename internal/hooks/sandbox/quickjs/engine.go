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
	"fmt"
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
