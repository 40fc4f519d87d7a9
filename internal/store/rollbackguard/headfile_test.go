package rollbackguard

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// childVariable is the environment variable with the id of the run whose heads a child
// process records. The child writes them to childFile in its directory.
const (
	childVariable = "GUIDEWAY_TEST_HEADS"
	childFile     = "heads"
)

func TestMain(m *testing.M) {
	if id := os.Getenv(childVariable); id != "" {
		if err := recordMany(id); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// headsPerChild is the number of heads that a child records.
const headsPerChild = 300

func recordMany(id string) error {
	f, err := Open(childFile, testKey())
	if err != nil {
		return err
	}
	f.compactFrom = 8 << 10
	for seq := range int64(headsPerChild) {
		if err := f.Record(id, seq+1, testMAC(id, seq+1)); err != nil {
			return err
		}
	}
	return nil
}

func testKey() run.Key { return bytes.Repeat([]byte{7}, run.KeySize) }

func testMAC(id string, seq int64) []byte { return fmt.Appendf(nil, "mac of %s at %d", id, seq) }

func newFile(t *testing.T) *File {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "state", childFile), testKey())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// recordHeads records heads or fails the test.
func recordHeads(t *testing.T, f *File, id string, seqs ...int64) {
	t.Helper()
	for _, seq := range seqs {
		if err := f.Record(id, seq, testMAC(id, seq)); err != nil {
			t.Fatal(err)
		}
	}
}

// checkHeads fails the test unless the file has these heads.
func checkHeads(t *testing.T, f *File, expected map[string]int64) {
	t.Helper()
	got, err := f.Heads()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]run.Head{}
	for id, seq := range expected {
		want[id] = run.Head{Seq: seq, MAC: testMAC(id, seq)}
	}
	if diff := cmp.Diff(want, got, ignoreWitnesses()); diff != "" {
		t.Fatalf("heads (-want +got):\n%s", diff)
	}
}

// ignoreWitnesses returns the option to compare heads without their witnesses.
func ignoreWitnesses() cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Witnesses" }, cmp.Ignore())
}

// TestWitnessesOfARollback checks that a head that was followed by a lower number is kept
// as evidence of a rollback, even after the run has more events again and the file was
// compacted. Replace removes it.
func TestWitnessesOfARollback(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.compactFrom = 1 << 10
	recordHeads(t, f, "r_a", 8, 9, 10)
	for seq := int64(9); seq < 200; seq++ { // from event 9, the history differs
		if err := f.Record("r_a", seq, fmt.Appendf(nil, "another %d", seq)); err != nil {
			t.Fatal(err)
		}
	}
	heads, err := f.Heads()
	if err != nil {
		t.Fatal(err)
	}
	want := run.Head{Seq: 199, MAC: []byte("another 199"), Witnesses: []run.Head{{Seq: 10, MAC: testMAC("r_a", 10)}}}
	if diff := cmp.Diff(want, heads["r_a"]); diff != "" {
		t.Errorf("the head (-want +got):\n%s", diff)
	}
	if err := f.Replace(map[string]run.Head{"r_a": {Seq: 199, MAC: []byte("another 199")}}); err != nil {
		t.Fatal(err)
	}
	heads, err = f.Heads()
	if err != nil || len(heads["r_a"].Witnesses) > 0 {
		t.Errorf("after an accepted restore the head is %+v, %v", heads["r_a"], err)
	}
}

// TestWitnessOfTheSameNumber checks that a head that was followed by a different event with
// the same number is kept as evidence, also after a compaction. This happens if the journal
// is rolled back by one event and a different event takes its place. If the same event is
// recorded again, it is not kept as evidence.
func TestWitnessOfTheSameNumber(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.compactFrom = 1 << 10
	recordHeads(t, f, "r_a", 8, 9, 9)
	recordHeads(t, f, "r_b", 9, 9, 10)
	for seq := int64(9); seq < 60; seq++ { // event 9 differs
		if err := f.Record("r_a", seq, fmt.Appendf(nil, "another %d", seq)); err != nil {
			t.Fatal(err)
		}
	}
	heads, err := f.Heads()
	if err != nil {
		t.Fatal(err)
	}
	want := []run.Head{{Seq: 9, MAC: testMAC("r_a", 9)}}
	if diff := cmp.Diff(want, heads["r_a"].Witnesses); diff != "" {
		t.Errorf("the witnesses of a rolled back run (-want +got):\n%s", diff)
	}
	if len(heads["r_b"].Witnesses) > 0 {
		t.Errorf("the witnesses of a run that only grew are %+v", heads["r_b"].Witnesses)
	}
}

func TestHighestHeadOfEachRun(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	checkHeads(t, f, nil)
	if _, err := os.Stat(filepath.Dir(f.path)); err == nil {
		t.Error("reading created a directory")
	}
	recordHeads(t, f, "r_a", 1, 2, 5, 4) // another process may record its head late
	recordHeads(t, f, "r_b", 3)
	recordHeads(t, f, "odd id\n# é", 1)
	checkHeads(t, f, map[string]int64{"r_a": 5, "r_b": 3, "odd id\n# é": 1})
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v (%v), want 0600", info.Mode().Perm(), err)
	}
	again, err := Open(f.path, testKey())
	if err != nil {
		t.Fatal(err)
	}
	checkHeads(t, again, map[string]int64{"r_a": 5, "r_b": 3, "odd id\n# é": 1})
}

// TestFirstOfTwoStays checks that a different event with the number of the recorded head
// does not replace the head.
func TestFirstOfTwoStays(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	recordHeads(t, f, "r_a", 5)
	if err := f.Record("r_a", 5, []byte("another event")); err != nil {
		t.Fatal(err)
	}
	checkHeads(t, f, map[string]int64{"r_a": 5})
}

// TestEditsAreFound checks that an edit of one byte of any line is detected.
func TestEditsAreFound(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	for seq := range int64(6) {
		recordHeads(t, f, fmt.Sprint("r_", seq), seq+1)
	}
	whole, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	start := 0
	for number, line := range strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n") {
		edited := bytes.Clone(whole)
		i := start + random.IntN(len(line)-1)
		edited[i] ^= 0x10
		start += len(line)
		if err := os.WriteFile(f.path, edited, 0o600); err != nil {
			t.Fatal(err)
		}
		heads, err := f.Heads()
		if guideway.ErrorCode(err) != guideway.CodeInvalid || !strings.Contains(err.Error(), fmt.Sprintf("[%d]", number+1)) {
			t.Errorf("byte %d of line %d was edited: got %v", i, number+1, err)
		}
		if guideway.ErrorFix(err) == "" {
			t.Error("the error has no fix")
		}
		if number > 0 && len(heads) != 5 {
			t.Errorf("%d heads of the other lines remain, want 5", len(heads))
		}
	}
}

func TestAnotherKeyIsFound(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	recordHeads(t, f, "r_a", 1)
	other, err := Open(f.path, bytes.Repeat([]byte{8}, run.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Heads(); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("Heads with a different key returns %v", err)
	}
	if _, err := Open(f.path, []byte("short")); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("Open with a short key returns %v", err)
	}
}

// TestTornEnd checks that the file stays usable after a power failure has truncated its
// last line at any byte.
func TestTornEnd(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	recordHeads(t, f, "r_a", 1)
	before, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	recordHeads(t, f, "r_a", 2)
	whole, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	for end := len(before); end < len(whole); end++ {
		if err := os.WriteFile(f.path, whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		checkHeads(t, f, map[string]int64{"r_a": 1})
		recordHeads(t, f, "r_b", 7)
		checkHeads(t, f, map[string]int64{"r_a": 1, "r_b": 7})
	}
	zeros := append(bytes.Clone(before), make([]byte, 100)...) // the file has grown but the data is lost
	if err := os.WriteFile(f.path, zeros, 0o600); err != nil {
		t.Fatal(err)
	}
	checkHeads(t, f, map[string]int64{"r_a": 1})
	recordHeads(t, f, "r_a", 3)
	checkHeads(t, f, map[string]int64{"r_a": 3})
	if err := os.Truncate(f.path, 0); err != nil {
		t.Fatal(err)
	}
	recordHeads(t, f, "r_a", 4)
	checkHeads(t, f, map[string]int64{"r_a": 4})
}

func TestReplaceSaysWhen(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	recordHeads(t, f, "r_a", 9)
	recordHeads(t, f, "r_gone", 4)
	for range 2 {
		if err := f.Replace(map[string]run.Head{"r_a": {Seq: 3, MAC: testMAC("r_a", 3)}}); err != nil {
			t.Fatal(err)
		}
	}
	checkHeads(t, f, map[string]int64{"r_a": 3})
	recordHeads(t, f, "r_a", 4)
	checkHeads(t, f, map[string]int64{"r_a": 4})
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "# restored "+strconv.Itoa(f.now().UTC().Year())); n != 2 {
		t.Errorf("the file records %d restores, want 2:\n%s", n, text)
	}
}

// TestCompacts checks that a file with many heads of few runs stays small and keeps all
// last heads.
func TestCompacts(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.compactFrom = 4 << 10
	if err := f.Replace(nil); err != nil { // compaction keeps the record of a restore
		t.Fatal(err)
	}
	want := map[string]int64{}
	for i := range int64(1000) {
		id := fmt.Sprint("r_", i%5)
		recordHeads(t, f, id, i+1)
		want[id] = i + 1
	}
	checkHeads(t, f, want)
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 8<<10 {
		t.Errorf("the file has %d bytes after 1000 records of 5 runs", len(text))
	}
	if strings.Count(string(text), "# restored") != 1 {
		t.Errorf("compaction lost a restore:\n%.500s", text)
	}
}

// TestDamageIsNotCompactedAway checks that compaction keeps a damaged line.
func TestDamageIsNotCompactedAway(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.compactFrom = 1 << 10
	recordHeads(t, f, "r_a", 1)
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("r_a 99 00 00\n")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	for seq := range int64(50) {
		recordHeads(t, f, "r_a", seq+2)
	}
	if _, err := f.Heads(); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("a forged line was compacted away: %v", err)
	}
}

// TestModel compares random calls with a map.
func TestModel(t *testing.T) {
	t.Parallel()
	dir, walk := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		walk++
		f := &File{path: filepath.Join(dir, fmt.Sprint(walk)), key: testKey(), now: newFile(t).now, compactFrom: 700}
		model := map[string]run.Head{}
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			id := rapid.SampledFrom([]string{"r_a", "r_b", "r c"}).Draw(rt, "run")
			h := run.Head{Seq: rapid.Int64Range(1, 20).Draw(rt, "seq")}
			h.MAC = testMAC(id, h.Seq)
			if rapid.IntRange(0, 9).Draw(rt, "replace") == 9 {
				model = map[string]run.Head{id: h}
				if err := f.Replace(maps.Clone(model)); err != nil {
					rt.Fatal(err)
				}
				continue
			}
			if err := f.Record(id, h.Seq, h.MAC); err != nil {
				rt.Fatal(err)
			}
			if h.Seq > model[id].Seq {
				model[id] = h
			}
		}
		got, err := f.Heads()
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(model, got, ignoreWitnesses()); diff != "" {
			rt.Fatalf("heads (-model +file):\n%s", diff)
		}
	})
}

// TestOneWrite checks that calls during a write share the next write, and that each call
// gets the result of that write.
func TestOneWrite(t *testing.T) {
	t.Parallel()
	const runs = 50
	for _, works := range []bool{true, false} {
		f := newFile(t)
		if !works {
			if err := os.WriteFile(filepath.Dir(f.path), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f.writeMu.Lock() // block the write
		want := map[string]int64{}
		var all sync.WaitGroup
		for i := range runs {
			id := fmt.Sprint("r_", i)
			want[id] = int64(i + 1)
			all.Go(func() {
				err := f.Record(id, int64(i+1), testMAC(id, int64(i+1)))
				if works != (err == nil) || !works && !strings.Contains(err.Error(), id+" ") {
					t.Errorf("writable: %v, but the run %s got %v", works, id, err)
				}
			})
		}
		for waiting := 0; waiting < runs; { // wait until all lines are in the next batch
			runtime.Gosched()
			f.mu.Lock()
			if f.next != nil {
				waiting = strings.Count(f.next.lines.String(), "\n")
			}
			f.mu.Unlock()
		}
		f.writeMu.Unlock()
		all.Wait()
		if works {
			checkHeads(t, f, want)
		}
	}
}

// TestManyProcesses checks that processes can record concurrently while the file is
// compacted.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	if err := os.Mkdir(filepath.Dir(f.path), 0o700); err != nil {
		t.Fatal(err)
	}
	var children []*exec.Cmd
	want := map[string]int64{}
	for i := range 4 {
		id := fmt.Sprint("r_", i)
		want[id] = headsPerChild
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Dir = filepath.Dir(f.path)
		child.Env = append(os.Environ(), childVariable+"="+id)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
	}
	for _, child := range children {
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}
	checkHeads(t, f, want)
}

func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	blocker := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(filepath.Join(blocker, "heads"), testKey())
	if err != nil {
		t.Fatal(err)
	}
	err = f.Record("r_a", 1, nil)
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("got %v (%s)", err, guideway.ErrorCode(err))
	}
}

// BenchmarkRecord measures whether the cost of recording a head depends on the length of
// the file.
func BenchmarkRecord(b *testing.B) {
	for _, runs := range []int{10, 20_000} {
		b.Run(fmt.Sprint("runs=", runs), func(b *testing.B) {
			f, err := Open(filepath.Join(b.TempDir(), childFile), testKey())
			if err != nil {
				b.Fatal(err)
			}
			heads := map[string]run.Head{}
			for i := range runs {
				id := fmt.Sprint("r_", i)
				heads[id] = run.Head{Seq: 1, MAC: bytes.Repeat([]byte{1}, 32)}
			}
			if err := f.Replace(heads); err != nil {
				b.Fatal(err)
			}
			mac, seq := bytes.Repeat([]byte{2}, 32), int64(1)
			for b.Loop() {
				seq++
				if err := f.Record("r_5", seq, mac); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
