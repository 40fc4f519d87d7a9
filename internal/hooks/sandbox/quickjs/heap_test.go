package quickjs

import (
	"bytes"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	"pgregory.net/rapid"
)

func testHeap(size int) *heap {
	at := libc.Xcalloc(nil, 1, lib.Tsize_t(size))
	return newHeap(at, uintptr(size))
}

// checkHeap checks all blocks: each starts at the end of the previous one and links to it,
// no two neighbours are free, and the lists hold exactly the free blocks.
func (h *heap) checkHeap(t *rapid.T) {
	t.Helper()
	free := map[uintptr]bool{}
	var before uintptr
	wasFree := false
	for at := h.baseAddress() + heapStart; at < h.top; {
		b := blockAt(at)
		if b.previous != before || b.blockSize() < minBlock || b.blockSize()%align != 0 {
			t.Fatalf("block %#x: %+v after %#x", at, *b, before)
		}
		if b.isFree() {
			free[at] = true
		}
		if b.isFree() && wasFree {
			t.Fatalf("block %#x and the previous block are both free", at)
		}
		wasFree, before = b.isFree(), at
		at += b.blockSize()
	}
	if before != h.last || wasFree {
		t.Fatalf("the last block is %#x (free: %v), not %#x", before, wasFree, h.last)
	}
	listed := 0
	for class := range h.free {
		if (h.steps[class] != 0) != (h.classes>>class&1 != 0) {
			t.Fatalf("class %d: steps %b, classes %b", class, h.steps[class], h.classes)
		}
		for step, at := range h.free[class] {
			if (at != 0) != (h.steps[class]>>step&1 != 0) {
				t.Fatalf("the list of class %d and step %d begins at %#x, but the bitmap is %b", class, step, at, h.steps[class])
			}
			for ; at != 0; at = blockAt(at).next {
				if !free[at] {
					t.Fatalf("block %#x is in a free list, but in use", at)
				}
				listed++
			}
		}
	}
	if listed != len(free) {
		t.Fatalf("%d of %d free blocks are in lists", listed, len(free))
	}
}

// For all sequences of allocations, resizes and frees: blocks keep their contents and do
// not overlap, the heap stays consistent, and after all blocks are freed it is empty.
func TestHeapKeepsContents(t *testing.T) {
	t.Parallel()
	h := testHeap(1 << 20)
	fresh := h.top
	sizes := rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(0, 10_000), rapid.IntRange(0, 1<<19))
	rapid.Check(t, func(t *rapid.T) {
		type held struct {
			p    uintptr
			text []byte
		}
		var all []held
		fill := func(p uintptr, n int) held {
			text := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
			copy(bytesAt(p, uintptr(n)), text)
			return held{p, text}
		}
		same := func(x held) {
			if !bytes.Equal(bytesAt(x.p, uintptr(len(x.text))), x.text) {
				t.Fatalf("the %d bytes at %#x have changed", len(x.text), x.p)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"allocate": func(t *rapid.T) {
				n := sizes.Draw(t, "size")
				if p := h.allocateBlock(uintptr(n)); p != 0 {
					if p%align != 0 || int(usableSize(p)) < n {
						t.Fatalf("%#x has %d bytes, want %d", p, usableSize(p), n)
					}
					all = append(all, fill(p, n))
				}
			},
			"resize": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("no block is allocated")
				}
				i, n := rapid.IntRange(0, len(all)-1).Draw(t, "which"), sizes.Draw(t, "size")
				p := h.resizeBlock(all[i].p, uintptr(n))
				if p == 0 {
					same(all[i])
					return
				}
				same(held{p, all[i].text[:min(n, len(all[i].text))]})
				all[i] = fill(p, n)
			},
			"free": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("no block is allocated")
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				same(all[i])
				h.freeBlock(all[i].p - headSize)
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
			},
			"": func(t *rapid.T) { h.checkHeap(t) },
		})
		for _, x := range all {
			same(x)
			h.freeBlock(x.p - headSize)
		}
		if h.top != fresh || h.classes != 0 || h.last != 0 {
			t.Fatalf("after all blocks were freed, the top is %d bytes above the start", h.top-fresh)
		}
	})
}

// A request that is too large for any region is refused, and does not cause an integer
// overflow.
func TestHeapRefusesHugeRequests(t *testing.T) {
	t.Parallel()
	h := testHeap(1 << 16)
	p := h.allocateBlock(100)
	for _, size := range []uintptr{1 << 16, 1 << 40, ^uintptr(0), ^uintptr(0) - 8, 1 << 63} {
		if got := h.allocateBlock(size); got != 0 {
			t.Errorf("allocating %d bytes returned %#x, want 0", size, got)
		}
		if got := h.resizeBlock(p, size); got != 0 {
			t.Errorf("resizing a block to %d bytes returned %#x, want 0", size, got)
		}
	}
}
