package footprint

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram takes the pages of the program's own file out of this process. The
// start runs through a third of the program, and the kernel maps what lies around each
// page that is touched; of that a server needs half. What it needs comes back from the
// system's cache of files, a few hundred microseconds in all. The rest is the first
// that the system can do without.
func releaseProgram() {
	if name, err := os.Readlink("/proc/self/exe"); err == nil {
		releaseFile(name)
	}
}

// releaseFile takes the pages of a file out of this process where it is mapped to be
// read or run, and only as it is on disk: a page that this process has changed, as
// the relocations of some programs are, would come back unchanged.
func releaseFile(name string) {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // nothing depends on it
	}
	mappings := parseMappings(file)
	_ = file.Close()
	for _, m := range mappings {
		if m.file == name && !strings.ContainsAny(m.flags, "ws") && m.pristine {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
		}
	}
}

// mapping is a part of the address space, as /proc/self/smaps tells it.
type mapping struct {
	from, to uintptr
	// flags are the permissions: r, w, x, and p for private or s for shared.
	flags, file string
	// resident are the kilobytes in memory. pristine says that none of them is this
	// process's own.
	resident int
	pristine bool
}

// parseMappings reads what it understands and passes over the rest.
func parseMappings(smaps io.Reader) []mapping {
	var list []mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if name, ok := strings.CutSuffix(fields[0], ":"); ok {
			if len(list) == 0 {
				continue
			}
			last := &list[len(list)-1]
			switch name {
			case "Rss":
				last.resident, _ = strconv.Atoi(fields[1])
			case "Anonymous":
				last.pristine = fields[1] == "0"
			}
			continue
		}
		m := mapping{flags: fields[1]}
		begin, end, _ := strings.Cut(fields[0], "-")
		from, err1 := strconv.ParseUint(begin, 16, strconv.IntSize)
		to, err2 := strconv.ParseUint(end, 16, strconv.IntSize)
		if err1 != nil || err2 != nil {
			continue
		}
		m.from, m.to = uintptr(from), uintptr(to)
		if at := strings.IndexByte(line, '/'); at > 0 {
			m.file = line[at:]
		}
		list = append(list, m)
	}
	return list
}
