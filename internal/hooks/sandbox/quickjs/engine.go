// Package quickjs is the JavaScript engine in a region of memory that can be
// copied. What the engine was at one moment is an Image, and to put it back costs
// a copy of some hundred kilobytes, where to make an engine anew costs a
// millisecond: so every call of a script can have an engine in which no other
// script has left anything. See docs/adr/0022.
//
// It binds the C of QuickJS as modernc.org/libquickjs translates it. The binding
// that modernc.org/quickjs has takes its memory from the one allocator of the
// whole process, which cannot be copied.
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

// Options are how an engine is made.
type Options struct {
	// Memory is the size of the region, in bytes: what scripts can fill at most,
	// whatever SetLimits allows. Pages of it that nothing was written to take no
	// memory.
	Memory int
	// Functions are the global functions that Go answers.
	Functions map[string]Function
	// Resolve gives the name of the module that one module imports by a name,
	// and Load its source. Without them nothing can be imported.
	Resolve func(importer, name string) (string, error)
	Load    func(name string) (string, error)
}

// Function is Go that a script calls. The arguments are strings, float64s, bools
// or nil for anything else; so is what it gives. An error is thrown as an
// InternalError.
type Function func(args []any) (any, error)

// Engine is one QuickJS with one realm. It is for one goroutine at a time, but
// for Interrupt.
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
	deadline    time.Time // zero is none
}

// engines finds the engine that a call of C is of: C can keep a number only.
var engines sync.Map // uintptr to *Engine

var lastHandle atomic.Uintptr

// New makes an engine. Its region lives as long as the process.
func New(o Options) (*Engine, error) {
	e := &Engine{options: o, tls: libc.NewTLS(), handle: lastHandle.Add(1)}
	at := libc.Xmalloc(e.tls, lib.Tsize_t(o.Memory))
	if at == 0 {
		return nil, fmt.Errorf("no %d bytes of memory for an engine", o.Memory)
	}
	e.region = bytesAt(at, uintptr(o.Memory))
	e.heap = newHeap((at+align-1)&^(align-1), uintptr(o.Memory)-align)
	engines.Store(e.handle, e)
	e.rt = lib.XJS_NewRuntime2(e.tls, uintptr(unsafe.Pointer(&e.heap.functions)), e.heap.address())
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
		if err := e.define(name, f); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Limits bound what a script may take.
type Limits struct {
	Memory int64 // of its objects, in bytes
	Stack  int64 // how deep calls may nest
	// Garbage is how much a script allocates before the engine looks for cycles.
	Garbage int64
}

// SetLimits sets the limits until an image is put back.
func (e *Engine) SetLimits(l Limits) {
	const least = 128 << 10 // the engine needs room to tell that there is none
	lib.XJS_SetMemoryLimit(e.tls, e.rt, lib.Tsize_t(max(l.Memory, least)))
	lib.XJS_SetGCThreshold(e.tls, e.rt, lib.Tsize_t(l.Garbage))
	lib.XJS_SetMaxStackSize(e.tls, e.rt, lib.Tsize_t(l.Stack))
}

// SetDeadline has scripts end at a time; the zero time is never.
func (e *Engine) SetDeadline(t time.Time) { e.deadline = t }

// Interrupt ends what runs, and whatever would run until an image is put back. It
// may be called from any goroutine.
func (e *Engine) Interrupt() { e.interrupted.Store(true) }

// Finish has RunJobs run no further job: what is wanted is there. The one that
// runs comes to its end.
func (e *Engine) Finish() { e.finished = true }

// stopped tells whether scripts have to end.
func (e *Engine) stopped() bool {
	return e.interrupted.Load() || !e.deadline.IsZero() && !time.Now().Before(e.deadline)
}

// pointerTo is a Go function as C has it.
func pointerTo(f any) uintptr {
	type iface [2]uintptr
	return (*iface)(unsafe.Pointer(&f))[1]
}
