package quickjs

import (
	"math/bits"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// heap is the memory of one engine: one region, with all state of the allocator at its
// start. A copy of the region up to its top is the complete state of the engine, which
// Image uses.
//
// The algorithm is the two-level segregated fit of Masmano and others (TLSF, 2004): two bit
// maps lead to a free block of the right size, adjacent free blocks are merged, and every
// allocation and release takes constant time, even in a full region. The engine manages
// blocks below 512 bytes itself and allocates runs of them.
type heap struct {
	functions lib.TJSMallocFunctions
	top, end  uintptr // the used part ends at top, which can grow to end
	high      uintptr // the maximum of top
	last      uintptr // the block below top, 0 if none exists
	classes   uint64  // bit map of the classes that have free blocks
	steps     [classCount]uint32
	free      [classCount][stepCount]uintptr
}

const (
	// Sizes between two powers of two form a class, in stepCount steps.
	stepBits   = 4
	stepCount  = 1 << stepBits
	classShift = 5 // blocks have at least 32 bytes
	classCount = 40 - classShift

	align     = 16
	headSize  = unsafe.Sizeof(block{}) - unsafe.Sizeof(links{})
	minBlock  = unsafe.Sizeof(block{})
	freeBit   = 1
	heapStart = (unsafe.Sizeof(heap{}) + align - 1) &^ (align - 1)
)

// block is the header of a block. Its links are valid while the block is free; otherwise
// the memory of the links is part of the caller's data.
type block struct {
	previous uintptr // the previous block in the region, 0 for the first
	tagged   uintptr // size including the header, and freeBit
	links
}

type links struct{ next, prior uintptr } // neighbours in the list of its step

func blockAt(at uintptr) *block { return (*block)(unsafe.Add(nil, at)) }

func (b *block) blockSize() uintptr  { return b.tagged &^ freeBit }
func (b *block) isFree() bool        { return b.tagged&freeBit != 0 }
func heapAt(at uintptr) *heap        { return (*heap)(unsafe.Add(nil, at)) }
func (h *heap) baseAddress() uintptr { return uintptr(unsafe.Pointer(h)) }

// newHeap returns a heap on a zeroed region.
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

// listOf returns the list for a free block of a size.
func listOf(size uintptr) (class, step int) {
	log := bits.Len64(uint64(size)) - 1
	return log - classShift, int(size>>(log-stepBits)) & (stepCount - 1)
}

// allocateBlock returns size bytes, or 0 if the region is full.
func (h *heap) allocateBlock(size uintptr) uintptr {
	if size > h.end-h.baseAddress() {
		return 0
	}
	need := max((size+headSize+align-1)&^(align-1), minBlock)
	if at := h.findFree(need); at != 0 {
		h.unlinkBlock(at)
		h.splitBlock(at, need)
		return at + headSize
	}
	if need > h.end-h.top {
		return 0
	}
	at := h.top
	b := blockAt(at)
	b.previous, b.tagged = h.last, need
	h.last = at
	h.raiseTop(at + need)
	return at + headSize
}

func (h *heap) raiseTop(top uintptr) {
	h.top = top
	h.high = max(h.high, top)
}

// findFree returns a free block of the smallest step with free blocks that are all large
// enough, or 0.
func (h *heap) findFree(need uintptr) uintptr {
	rounded := need + (uintptr(1)<<(bits.Len64(uint64(need))-1-stepBits) - 1)
	class, step := listOf(rounded)
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

// unlinkBlock removes a free block from its list.
func (h *heap) unlinkBlock(at uintptr) {
	b := blockAt(at)
	class, step := listOf(b.blockSize())
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

// linkBlock adds a block to its list.
func (h *heap) linkBlock(at uintptr) {
	b := blockAt(at)
	class, step := listOf(b.blockSize())
	b.tagged |= freeBit
	b.prior, b.next = 0, h.free[class][step]
	if b.next != 0 {
		blockAt(b.next).prior = at
	}
	h.free[class][step] = at
	h.steps[class] |= 1 << step
	h.classes |= 1 << class
}

// splitBlock frees the part of a used block beyond need.
func (h *heap) splitBlock(at, need uintptr) {
	b := blockAt(at)
	if b.blockSize()-need < minBlock {
		return
	}
	rest := at + need
	blockAt(rest).previous, blockAt(rest).tagged = at, b.blockSize()-need
	b.tagged = need
	h.setPrevious(rest)
	h.freeBlock(rest)
}

// setPrevious stores the start of this block in the next one.
func (h *heap) setPrevious(at uintptr) {
	if next := at + blockAt(at).blockSize(); next < h.top {
		blockAt(next).previous = at
	} else {
		h.last = at
	}
}

// freeBlock frees a block and merges it with free neighbours. If the result is the last
// block, it becomes unused space.
func (h *heap) freeBlock(at uintptr) {
	b := blockAt(at)
	if next := at + b.blockSize(); next < h.top && blockAt(next).isFree() {
		h.unlinkBlock(next)
		b.tagged += blockAt(next).blockSize()
	}
	if before := b.previous; before != 0 && blockAt(before).isFree() {
		h.unlinkBlock(before)
		blockAt(before).tagged += b.blockSize()
		at, b = before, blockAt(before)
	}
	if at+b.blockSize() == h.top {
		h.top, h.last = at, b.previous
		return
	}
	h.setPrevious(at)
	h.linkBlock(at)
}

// resizeBlock changes the size of a block, in place if possible.
func (h *heap) resizeBlock(p, size uintptr) uintptr {
	at := p - headSize
	b := blockAt(at)
	if size > h.end-h.baseAddress() {
		return 0
	}
	need := max((size+headSize+align-1)&^(align-1), minBlock)
	if need > b.blockSize() {
		h.widenBlock(at, need)
	}
	if need <= b.blockSize() {
		h.splitBlock(at, need)
		return p
	}
	moved := h.allocateBlock(size)
	if moved == 0 {
		return 0
	}
	copy(bytesAt(moved, b.blockSize()-headSize), bytesAt(p, b.blockSize()-headSize))
	h.freeBlock(at)
	return moved
}

// widenBlock extends a block into free memory after it, if that is large enough.
func (h *heap) widenBlock(at, need uintptr) {
	b := blockAt(at)
	next := at + b.blockSize()
	if next == h.top {
		if need <= h.end-at {
			b.tagged = need
			h.raiseTop(at + need)
		}
		return
	}
	n := blockAt(next)
	if !n.isFree() || b.blockSize()+n.blockSize() < need {
		return
	}
	h.unlinkBlock(next)
	b.tagged += n.blockSize()
	h.setPrevious(at)
}

func bytesAt(at, size uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(nil, at)), size)
}

// The engine calls the following functions to allocate memory. They count memory like
// QuickJS's own allocator, so that a memory limit has the same meaning.

const countedHead = lib.MMALLOC_OVERHEAD

func engineMalloc(_ *libc.TLS, state uintptr, size lib.Tsize_t) uintptr {
	s := (*lib.TJSMallocState)(unsafe.Add(nil, state))
	if size > s.Fmalloc_limit || s.Fmalloc_size+size > s.Fmalloc_limit {
		return 0
	}
	p := heapAt(s.Fopaque).allocateBlock(uintptr(size))
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
	heapAt(s.Fopaque).freeBlock(p - headSize)
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
	moved := heapAt(s.Fopaque).resizeBlock(p, uintptr(size))
	if moved != 0 {
		s.Fmalloc_size += usableSize(moved) - before
	}
	return moved
}

func engineUsableSize(_ *libc.TLS, p uintptr) lib.Tsize_t { return usableSize(p) }

func usableSize(p uintptr) lib.Tsize_t {
	return lib.Tsize_t(blockAt(p-headSize).blockSize() - headSize)
}
