package quickjs

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// worthGiving is the minimum size for which a system call is cheaper than clearing.
const worthGiving = 1 << 20

// eraseBytes clears bytes. Whole pages of a large slice are returned to the system.
func eraseBytes(b []byte) {
	if len(b) < worthGiving {
		clear(b)
		return
	}
	page := uintptr(os.Getpagesize())
	from := uintptr(unsafe.Pointer(&b[0]))
	before := int((from+page-1)&^(page-1) - from)
	after := int((from+uintptr(len(b)))&^(page-1) - from)
	if unix.Madvise(b[before:after], unix.MADV_DONTNEED) != nil {
		clear(b)
		return
	}
	clear(b[:before])
	clear(b[after:])
}
