package rollbackguard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gofrs/flock"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestHeldLock checks that every call returns an error after a timeout if another process
// holds the lock, and that the fix names the lock file. After the lock is released, the
// heads can be read.
func TestHeldLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFile(t)
		recordHeads(t, f, "r_a", 1)
		lock := flock.New(f.path + ".lock")
		if err := lock.Lock(); err != nil {
			t.Fatal(err)
		}
		begin := f.now()
		_, headsErr := f.Heads()
		for name, err := range map[string]error{"Heads": headsErr, "Record": f.Record("r_a", 2, nil), "Replace": f.Replace(nil)} {
			if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), f.path+".lock") {
				t.Errorf("%s: %v, fix %q", name, err, guideway.ErrorFix(err))
			}
		}
		if took := f.now().Sub(begin); took > 4*lockTimeout {
			t.Errorf("three calls took %s", took)
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
		checkHeads(t, f, map[string]int64{"r_a": 1})
	})
}

// TestOtherErrorsNameNoProcess checks that the fix for an error that no lock has caused
// names the permissions of the file.
func TestOtherErrorsNameNoProcess(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	if err := os.MkdirAll(f.path, 0o700); err != nil { // a directory is in the place of the file
		t.Fatal(err)
	}
	_, headsErr := f.Heads()
	for name, err := range map[string]error{"Heads": headsErr, "Record": f.Record("r_a", 1, nil), "Replace": f.Replace(nil)} {
		if fix := guideway.ErrorFix(err); guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(fix, "readable and writable") {
			t.Errorf("%s: %v, fix %q", name, err, fix)
		}
	}
}

// TestWitnessesAreBounded checks that a run that is rolled back again and again keeps its
// latest witnesses, also after a compaction, but at most maxWitnesses.
func TestWitnessesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	const rollbacks = 2 * maxWitnesses
	for i := range int64(rollbacks) {
		recordHeads(t, f, "r_a", 2*rollbacks-i)
	}
	check := func(when string) {
		heads, err := f.Heads()
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, w := range heads["r_a"].Witnesses {
			seqs = append(seqs, w.Seq)
		}
		first := int64(rollbacks + 2) // the last head is no witness
		want := make([]int64, 0, maxWitnesses)
		for seq := first + maxWitnesses - 1; seq >= first; seq-- {
			want = append(want, seq)
		}
		if !slices.Equal(seqs, want) {
			t.Errorf("%s the witnesses are %v, want %v", when, seqs, want)
		}
	}
	check("at first")
	f.compactFrom = 1
	for i := range 100 { // the file grows until it is compacted
		recordHeads(t, f, fmt.Sprint("r_", i%2), 1)
	}
	check("after a compaction")
}

// TestUnusualFirstLine checks that a file whose first line was edited is not compacted and
// does not crash the process: lines are added, and the edit is reported.
func TestUnusualFirstLine(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"", "#", "# begun", "# begun x", "# begun x y", "# begun x -5", "a b c 5", "# begun x 99999999999999999999"} {
		f := newFile(t)
		f.compactFrom = 100
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.path, []byte(first+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		recordHeads(t, f, "r_a", 1, 2, 3)
		heads, err := f.Heads()
		if guideway.ErrorCode(err) != guideway.CodeInvalid || !strings.Contains(err.Error(), "[1]") || heads["r_a"].Seq != 3 {
			t.Errorf("with the first line %q: %v, %v", first, heads, err)
		}
		if text, err := os.ReadFile(f.path); err != nil || !strings.HasPrefix(string(text), first+"\n") {
			t.Errorf("the first line %q is gone: %q, %v", first, text, err)
		}
	}
}

// TestCompactionIsRare checks that 400 records cause between 2 and 20 rewrites of the file.
func TestCompactionIsRare(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	heads := map[string]run.Head{}
	for i := range 20 {
		heads[fmt.Sprint("r_", i)] = run.Head{Seq: 1, MAC: testMAC("x", 1)}
	}
	if err := f.Replace(heads); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	f.compactFrom = 1
	last, rewritten, most := info.Size(), 0, int64(0)
	for seq := range int64(400) {
		recordHeads(t, f, "r_0", seq+2)
		info, err := os.Stat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < last {
			rewritten++
		}
		last, most = info.Size(), max(most, info.Size())
	}
	if rewritten < 2 || rewritten > 20 {
		t.Errorf("400 heads rewrote the file %d times, up to %d bytes", rewritten, most)
	}
}
