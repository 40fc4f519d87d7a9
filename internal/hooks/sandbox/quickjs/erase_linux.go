package quickjs

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// worthGiving is how much memory is worth a system call.
const worthGiving = 1 << 20

// erase makes bytes zeros. Whole pages of many bytes go back to the system.
func erase(b []byte) {
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
