package quickjs

import (
	"math/bits"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// heap is the memory that one engine allocates from: one region, with all that
// the allocator knows at its beginning. A copy of the region up to its top is the
// whole state of the engine, which is what Image is.
//
// It is the two-level segregated fit of Masmano and others (TLSF, 2004): a free
// block of the right size is found by two bit maps, neighbours that are free
// become one, and every operation takes the same time however full the region is.
// The engine keeps blocks below 512 bytes itself and asks for runs of them.
type heap struct {
	functions lib.TJSMallocFunctions
	top, end  uintptr // what is used ends at top, and can grow to end
	high      uintptr // where top was at most
	last      uintptr // the block below top, 0 if there is none
	classes   uint64  // the classes that have free blocks
	steps     [classCount]uint32
	free      [classCount][stepCount]uintptr
}

const (
	// Sizes between two powers of two are a class, in stepCount steps.
	stepBits   = 4
	stepCount  = 1 << stepBits
	classShift = 5 // blocks are 32 bytes at least
	classCount = 40 - classShift

	align     = 16
	headSize  = unsafe.Sizeof(block{}) - unsafe.Sizeof(links{})
	minBlock  = unsafe.Sizeof(block{})
	freeBit   = 1
	heapStart = (unsafe.Sizeof(heap{}) + align - 1) &^ (align - 1)
)

// block is the head of a piece of the region; its links are of use while it is
// free, and the caller's otherwise.
type block struct {
	previous uintptr // the block before it in the region, 0 for the first
	tagged   uintptr // its size with the head, and freeBit
	links
}

type links struct{ next, prior uintptr } // in the list of its step

func blockAt(at uintptr) *block { return (*block)(unsafe.Add(nil, at)) }

func (b *block) size() uintptr   { return b.tagged &^ freeBit }
func (b *block) isFree() bool    { return b.tagged&freeBit != 0 }
func heapAt(at uintptr) *heap    { return (*heap)(unsafe.Add(nil, at)) }
func (h *heap) address() uintptr { return uintptr(unsafe.Pointer(h)) }

// newHeap makes a heap of a region of zeros.
func newHeap(at, size uintptr) *heap {
	h := heapAt(at)
	h.top = at + heapStart
	h.high = h.top
	h.end = (at + size) &^ (align - 1)
	h.functions = lib.TJSMallocFunctions{
		Fjs_malloc: pointerTo(engineMalloc), Fjs_free: pointerTo(engineFree),
		Fjs_realloc: pointerTo(engineRealloc), Fjs_malloc_usable_size: pointerTo(engineUsableSize),
	}
	return h
}

// placeOf is the list that a free block of a size is in.
func placeOf(size uintptr) (class, step int) {
	log := bits.Len64(uint64(size)) - 1
	return log - classShift, int(size>>(log-stepBits)) & (stepCount - 1)
}

// allocate gives size bytes, or 0 where there is no room.
func (h *heap) allocate(size uintptr) uintptr {
	if size > h.end-h.address() {
		return 0
	}
	need := max((size+headSize+align-1)&^(align-1), minBlock)
	if at := h.find(need); at != 0 {
		h.take(at)
		h.split(at, need)
		return at + headSize
	}
	if need > h.end-h.top {
		return 0
	}
	at := h.top
	b := blockAt(at)
	b.previous, b.tagged = h.last, need
	h.last = at
	h.raise(at + need)
	return at + headSize
}

func (h *heap) raise(top uintptr) {
	h.top = top
	h.high = max(h.high, top)
}

// find gives a free block that is large enough: of the next step, where all are.
func (h *heap) find(need uintptr) uintptr {
	rounded := need + (uintptr(1)<<(bits.Len64(uint64(need))-1-stepBits) - 1)
	class, step := placeOf(rounded)
	if class >= classCount {
		return 0
	}
	steps := h.steps[class] & (^uint32(0) << step)
	if steps == 0 {
		classes := h.classes & (^uint64(0) << (class + 1))
		if classes == 0 {
			return 0
		}
		class = bits.TrailingZeros64(classes)
		steps = h.steps[class]
	}
	return h.free[class][bits.TrailingZeros32(steps)]
}

// take takes a free block out of its list.
func (h *heap) take(at uintptr) {
	b := blockAt(at)
	class, step := placeOf(b.size())
	if b.next != 0 {
		blockAt(b.next).prior = b.prior
	}
	if b.prior != 0 {
		blockAt(b.prior).next = b.next
	} else if h.free[class][step] = b.next; b.next == 0 {
		if h.steps[class] &^= 1 << step; h.steps[class] == 0 {
			h.classes &^= 1 << class
		}
	}
	b.tagged &^= freeBit
}

// put puts a block into its list.
func (h *heap) put(at uintptr) {
	b := blockAt(at)
	class, step := placeOf(b.size())
	b.tagged |= freeBit
	b.prior, b.next = 0, h.free[class][step]
	if b.next != 0 {
		blockAt(b.next).prior = at
	}
	h.free[class][step] = at
	h.steps[class] |= 1 << step
	h.classes |= 1 << class
}

// split gives back what a block in use has beyond need.
func (h *heap) split(at, need uintptr) {
	b := blockAt(at)
	if b.size()-need < minBlock {
		return
	}
	rest := at + need
	blockAt(rest).previous, blockAt(rest).tagged = at, b.size()-need
	b.tagged = need
	h.follow(rest)
	h.release(rest)
}

// follow tells the block behind a block where that begins.
func (h *heap) follow(at uintptr) {
	if next := at + blockAt(at).size(); next < h.top {
		blockAt(next).previous = at
	} else {
		h.last = at
	}
}

// release makes a block free, together with free neighbours; the last one falls
// back to what was never used.
func (h *heap) release(at uintptr) {
	b := blockAt(at)
	if next := at + b.size(); next < h.top && blockAt(next).isFree() {
		h.take(next)
		b.tagged += blockAt(next).size()
	}
	if before := b.previous; before != 0 && blockAt(before).isFree() {
		h.take(before)
		blockAt(before).tagged += b.size()
		at, b = before, blockAt(before)
	}
	if at+b.size() == h.top {
		h.top, h.last = at, b.previous
		return
	}
	h.follow(at)
	h.put(at)
}

// resize gives a block another size, where it lies if it can.
func (h *heap) resize(p, size uintptr) uintptr {
	at := p - headSize
	b := blockAt(at)
	if size > h.end-h.address() {
		return 0
	}
	need := max((size+headSize+align-1)&^(align-1), minBlock)
	if need > b.size() {
		h.widen(at, need)
	}
	if need <= b.size() {
		h.split(at, need)
		return p
	}
	moved := h.allocate(size)
	if moved == 0 {
		return 0
	}
	copy(bytesAt(moved, b.size()-headSize), bytesAt(p, b.size()-headSize))
	h.release(at)
	return moved
}

// widen lets a block grow into free room behind it, if there is enough.
func (h *heap) widen(at, need uintptr) {
	b := blockAt(at)
	next := at + b.size()
	if next == h.top {
		if need <= h.end-at {
			b.tagged = need
			h.raise(at + need)
		}
		return
	}
	n := blockAt(next)
	if !n.isFree() || b.size()+n.size() < need {
		return
	}
	h.take(next)
	b.tagged += n.size()
	h.follow(at)
}

func bytesAt(at, size uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(nil, at)), size)
}

// What follows is what the engine calls. It counts as the engine's own functions
// do, so that a limit of memory means the same.

const countedHead = lib.MMALLOC_OVERHEAD

func engineMalloc(_ *libc.TLS, state uintptr, size lib.Tsize_t) uintptr {
	s := (*lib.TJSMallocState)(unsafe.Add(nil, state))
	if size > s.Fmalloc_limit || s.Fmalloc_size+size > s.Fmalloc_limit {
		return 0
	}
	p := heapAt(s.Fopaque).allocate(uintptr(size))
	if p != 0 {
		s.Fmalloc_count++
		s.Fmalloc_size += usableSize(p) + countedHead
	}
	return p
}

func engineFree(_ *libc.TLS, state, p uintptr) {
	if p == 0 {
		return
	}
	s := (*lib.TJSMallocState)(unsafe.Add(nil, state))
	s.Fmalloc_count--
	s.Fmalloc_size -= usableSize(p) + countedHead
	heapAt(s.Fopaque).release(p - headSize)
}

func engineRealloc(tls *libc.TLS, state, p uintptr, size lib.Tsize_t) uintptr {
	switch {
	case p == 0 && size == 0:
		return 0
	case p == 0:
		return engineMalloc(tls, state, size)
	case size == 0:
		engineFree(tls, state, p)
		return 0
	}
	s := (*lib.TJSMallocState)(unsafe.Add(nil, state))
	before := usableSize(p)
	if size > s.Fmalloc_limit || s.Fmalloc_size+size-min(before, s.Fmalloc_size) > s.Fmalloc_limit {
		return 0
	}
	moved := heapAt(s.Fopaque).resize(p, uintptr(size))
	if moved != 0 {
		s.Fmalloc_size += usableSize(moved) - before
	}
	return moved
}

func engineUsableSize(_ *libc.TLS, p uintptr) lib.Tsize_t { return usableSize(p) }

func usableSize(p uintptr) lib.Tsize_t {
	return lib.Tsize_t(blockAt(p-headSize).size() - headSize)
}
