package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Only pages that can be reloaded from the file are released, never modified ones.
func TestCleanMappings(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-00500000 r-xp 00000000 08:01 1 /bin/guideway
Size: 1024 kB
Private_Clean: 100 kB
Anonymous: 0 kB
00500000-00600000 r--p 00100000 08:01 1 /bin/guideway
Anonymous: 4 kB
00600000-00700000 rw-p 00200000 08:01 1 /bin/guideway
Anonymous: 0 kB
00700000-00800000 r--p 00300000 08:01 1 /bin/guideway
Anonymous: 0 kB
Locked: 8 kB
00800000-00900000 r--p 00000000 08:01 2 /lib/libc.so
Anonymous: 0 kB
00900000-00a00000 r--p 00400000 08:01 1 /bin/guideway
Anonymous: 0 kB
Locked: 0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous: 400 kB
nonsense
`
	want := []mapping{{0x400000, 0x500000}, {0x900000, 0xa00000}}
	if diff := cmp.Diff(want, cleanMappings(smaps, "/bin/guideway"), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
}
