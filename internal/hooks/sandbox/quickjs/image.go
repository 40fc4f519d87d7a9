package quickjs

import (
	"bytes"
	"math/rand/v2"
	"time"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// Image is an engine at one moment: good for the engine that it was taken of.
type Image struct {
	engine *Engine
	base   *Image // what it differs from, nil for a whole one
	bytes  []byte // a whole one
	size   int
	pieces []piece
}

// piece is where an image differs from its base.
type piece struct {
	at    int
	bytes []byte
}

// pieceSize is the step in which images are compared, in bytes.
const pieceSize = 1 << 10

// Size is what the image takes beyond its base, in bytes.
func (i *Image) Size() int {
	size := len(i.bytes)
	for _, p := range i.pieces {
		size += len(p.bytes)
	}
	return size
}

// offsetOfRandom is where a context has the state of Math.random.
const offsetOfRandom = unsafe.Offsetof(lib.TJSContext{}.Frandom_state)

// used is what the engine has written to.
func (e *Engine) used() []byte {
	return bytesAt(e.heap.address(), e.heap.top-e.heap.address())
}

// Image takes an image; with a base, which has to be a whole one, it keeps what is
// different there. Nothing may run.
func (e *Engine) Image(base *Image) *Image {
	used := e.used()
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
		i.pieces[n].bytes = bytes.Clone(i.pieces[n].bytes) // without room to grow
	}
	return i
}

// Restore makes the engine what it was when the image was taken, to the last bit
// but the state of Math.random, and forgets interrupts and deadlines. What was
// written beyond the image is gone too. Nothing may run.
func (e *Engine) Restore(i *Image) {
	if i.engine != e {
		panic("engine: the image is of another engine") // its addresses would be wrong
	}
	at, high := e.heap.address(), e.heap.high
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
		erase(bytesAt(e.heap.top, high-e.heap.top))
	}
	e.interrupted.Store(false)
	e.finished = false
	e.deadline = time.Time{}
	*(*uint64)(unsafe.Add(nil, e.ctx+offsetOfRandom)) = rand.Uint64() | 1 //nolint:gosec // Math.random promises no secrets
}
