package footprint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const size = 1 << 20

// mapFile maps a file of its own into the process, with every page touched.
func mapFile(t *testing.T) (name string, data []byte) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "a program")
	if err := os.WriteFile(name, bytes.Repeat([]byte("program "), size/8), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err = unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(data); err != nil {
			t.Error(err)
		}
	})
	for i := 0; i < size; i += 4096 {
		if data[i] != 'p' {
			t.Fatalf("the file has %q", data[i])
		}
	}
	return name, data
}

// resident gives the kilobytes of a file that are in this process.
func resident(t *testing.T, name string) int {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, m := range parseMappings(bytes.NewReader(smaps)) {
		if m.file == name {
			total += m.resident
		}
	}
	return total
}

// Pages that are as they are on disk leave the process, and come back when they are
// read.
func TestPagesOfAFileAreGivenBack(t *testing.T) {
	t.Parallel()
	name, data := mapFile(t)
	if err := unix.Mprotect(data, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if before := resident(t, name); before != size>>10 {
		t.Fatalf("%d kB of the file are in memory", before)
	}
	releaseFile(name)
	if after := resident(t, name); after != 0 {
		t.Errorf("%d kB of the file are in memory still", after)
	}
	if !bytes.Equal(data[size-8:], []byte("program ")) {
		t.Error("what comes back is not the file")
	}
}

// What can be written stays, and so does what was: relocations are made before a
// mapping becomes one to read.
func TestChangedPagesStay(t *testing.T) {
	t.Parallel()
	for _, protect := range []int{unix.PROT_READ | unix.PROT_WRITE, unix.PROT_READ} {
		name, data := mapFile(t)
		copy(data, "changed!")
		if err := unix.Mprotect(data, protect); err != nil {
			t.Fatal(err)
		}
		releaseFile(name)
		if !bytes.HasPrefix(data, []byte("changed!program ")) {
			t.Errorf("with protection %d the change is gone: %q", protect, data[:16])
		}
	}
}

// Lines that are not what is known are passed over.
func TestParseMappings(t *testing.T) {
	t.Parallel()
	got := parseMappings(strings.NewReader(`Rss: 12 kB
00400000-0171f000 r-xp 00000000 fe:00 5898 /opt/a b/guideway (deleted)
Size:              19580 kB
Rss:               12800 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me

c000000000-c000400000 rw-p 00000000 00:00 0
Rss:                 340 kB
Anonymous:           340 kB
zz-10 r--p 00000000 00:00 0 /x
`))
	want := []mapping{
		{from: 0x400000, to: 0x171f000, flags: "r-xp", file: "/opt/a b/guideway (deleted)", resident: 12800, pristine: true},
		{from: 0xc000000000, to: 0xc000400000, flags: "rw-p", resident: 340},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
}
