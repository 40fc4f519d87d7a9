package worker

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ownPages finds the resident pages of the program's own file, and returns a function that
// releases them. Most are needed only at the start, and the others are reloaded from the
// page cache. They are three quarters of the worker's resident memory.
func ownPages() (letGo func()) {
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return func() {}
	}
	self, err := os.Executable()
	if err != nil {
		return func() {}
	}
	clean := cleanMappings(string(maps), self)
	return func() {
		for _, m := range clean {
			// If the call fails, the pages stay resident.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
		}
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings returns the mappings of a file that contain only the file's bytes: they are
// neither writable nor modified, unlike pages with relocations.
func cleanMappings(smaps, file string) []mapping {
	var found []mapping
	var current mapping
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if strings.HasSuffix(fields[0], ":") {
			own := fields[0] == "Anonymous:" || fields[0] == "Locked:"
			if own && fields[1] != "0" && len(found) > 0 && found[len(found)-1] == current {
				found = found[:len(found)-1]
			}
			continue
		}
		current = mapping{}
		from, to, ok := strings.Cut(fields[0], "-")
		if !ok || len(fields) < 6 || fields[5] != file || !strings.HasPrefix(fields[1], "r-") {
			continue
		}
		start, err1 := strconv.ParseUint(from, 16, strconv.IntSize)
		end, err2 := strconv.ParseUint(to, 16, strconv.IntSize)
		if err1 == nil && err2 == nil && end > start {
			current = mapping{uintptr(start), uintptr(end)}
			found = append(found, current)
		}
	}
	return found
}
