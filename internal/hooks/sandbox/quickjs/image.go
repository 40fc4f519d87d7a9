package quickjs

import (
	"bytes"
	"math/rand/v2"
	"time"
	"unsafe"

	lib "modernc.org/libquickjs"
)

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
