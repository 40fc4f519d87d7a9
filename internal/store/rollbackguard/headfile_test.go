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

// childVariable has the run that a child process records, in the file childFile
// of its directory.
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

// perChild is how many heads a child records.
const perChild = 300

func recordMany(id string) error {
	f, err := Open(childFile, testKey())
	if err != nil {
		return err
	}
	f.compactFrom = 8 << 10
	for seq := range int64(perChild) {
		if err := f.Record(id, seq+1, macOf(id, seq+1)); err != nil {
			return err
		}
	}
	return nil
}

func testKey() run.Key { return bytes.Repeat([]byte{7}, run.KeySize) }

func macOf(id string, seq int64) []byte { return fmt.Appendf(nil, "mac of %s at %d", id, seq) }

func newFile(t *testing.T) *File {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "state", childFile), testKey())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// record records heads, or ends the test.
func record(t *testing.T, f *File, id string, seqs ...int64) {
	t.Helper()
	for _, seq := range seqs {
		if err := f.Record(id, seq, macOf(id, seq)); err != nil {
			t.Fatal(err)
		}
	}
}

// wantHeads ends the test where the file does not have these heads.
func wantHeads(t *testing.T, f *File, expected map[string]int64) {
	t.Helper()
	got, err := f.Heads()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]run.Head{}
	for id, seq := range expected {
		want[id] = run.Head{Seq: seq, MAC: macOf(id, seq)}
	}
	if diff := cmp.Diff(want, got, withoutWitnesses()); diff != "" {
		t.Fatalf("heads (-want +got):\n%s", diff)
	}
}

// withoutWitnesses compares heads alone.
func withoutWitnesses() cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Witnesses" }, cmp.Ignore())
}

// A head that was followed by a lower number is kept, also when the run has
// outgrown it and the file was compacted: it tells a rollback.
func TestWitnessesOfARollback(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.compactFrom = 1 << 10
	record(t, f, "r_a", 8, 9, 10)
	for seq := int64(9); seq < 200; seq++ { // another history, from 9 on
		if err := f.Record("r_a", seq, fmt.Appendf(nil, "another %d", seq)); err != nil {
			t.Fatal(err)
		}
	}
	heads, err := f.Heads()
	if err != nil {
		t.Fatal(err)
	}
	want := run.Head{Seq: 199, MAC: []byte("another 199"), Witnesses: []run.Head{{Seq: 10, MAC: macOf("r_a", 10)}}}
	if diff := cmp.Diff(want, heads["r_a"]); diff != "" {
		t.Errorf("the head (-want +got):\n%s", diff)
	}
	if err := f.Replace(map[string]run.Head{"r_a": {Seq: 199, MAC: []byte("another 199")}}); err != nil {
		t.Fatal(err)
	}
	heads, err = f.Heads()
	if err != nil || len(heads["r_a"].Witnesses) > 0 {
		t.Errorf("after a restore that was accepted: %+v, %v", heads["r_a"], err)
	}
}

func TestHighestHeadOfEachRun(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	wantHeads(t, f, nil)
	if _, err := os.Stat(filepath.Dir(f.path)); err == nil {
		t.Error("reading has made a directory")
	}
	record(t, f, "r_a", 1, 2, 5, 4) // another process may be a little late
	record(t, f, "r_b", 3)
	record(t, f, "odd id\n# é", 1)
	wantHeads(t, f, map[string]int64{"r_a": 5, "r_b": 3, "odd id\n# é": 1})
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v (%v), want 0600", info.Mode().Perm(), err)
	}
	again, err := Open(f.path, testKey())
	if err != nil {
		t.Fatal(err)
	}
	wantHeads(t, again, map[string]int64{"r_a": 5, "r_b": 3, "odd id\n# é": 1})
}

// TestFirstOfTwoStays: a journal that was rolled back and went on differently
// must not make its new event the known one.
func TestFirstOfTwoStays(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	record(t, f, "r_a", 5)
	if err := f.Record("r_a", 5, []byte("another event")); err != nil {
		t.Fatal(err)
	}
	wantHeads(t, f, map[string]int64{"r_a": 5})
}

// TestEditsAreFound edits one byte of each line in turn.
func TestEditsAreFound(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	for seq := range int64(6) {
		record(t, f, fmt.Sprint("r_", seq), seq+1)
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
			t.Error("the error says no way out")
		}
		if number > 0 && len(heads) != 5 {
			t.Errorf("of the other lines %d heads are left, want 5", len(heads))
		}
	}
}

func TestAnotherKeyIsFound(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	record(t, f, "r_a", 1)
	other, err := Open(f.path, bytes.Repeat([]byte{8}, run.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Heads(); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("with another key: %v", err)
	}
	if _, err := Open(f.path, []byte("short")); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("with a short key: %v", err)
	}
}

// TestTornEnd cuts the file at every byte of its last line, as a power failure
// may, and goes on.
func TestTornEnd(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	record(t, f, "r_a", 1)
	before, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	record(t, f, "r_a", 2)
	whole, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	for end := len(before); end < len(whole); end++ {
		if err := os.WriteFile(f.path, whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		wantHeads(t, f, map[string]int64{"r_a": 1})
		record(t, f, "r_b", 7)
		wantHeads(t, f, map[string]int64{"r_a": 1, "r_b": 7})
	}
	zeros := append(bytes.Clone(before), make([]byte, 100)...) // a file grown, its bytes lost
	if err := os.WriteFile(f.path, zeros, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHeads(t, f, map[string]int64{"r_a": 1})
	record(t, f, "r_a", 3)
	wantHeads(t, f, map[string]int64{"r_a": 3})
	if err := os.Truncate(f.path, 0); err != nil {
		t.Fatal(err)
	}
	record(t, f, "r_a", 4)
	wantHeads(t, f, map[string]int64{"r_a": 4})
}

func TestReplaceSaysWhen(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	record(t, f, "r_a", 9)
	record(t, f, "r_gone", 4)
	for range 2 {
		if err := f.Replace(map[string]run.Head{"r_a": {Seq: 3, MAC: macOf("r_a", 3)}}); err != nil {
			t.Fatal(err)
		}
	}
	wantHeads(t, f, map[string]int64{"r_a": 3})
	record(t, f, "r_a", 4)
	wantHeads(t, f, map[string]int64{"r_a": 4})
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "# restored "+strconv.Itoa(f.now().UTC().Year())); n != 2 {
		t.Errorf("the file tells of %d restores, want 2:\n%s", n, text)
	}
}

// TestCompacts records much about few runs: the file stays small, and loses
// nothing.
func TestCompacts(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.compactFrom = 4 << 10
	if err := f.Replace(nil); err != nil { // a restore is never forgotten
		t.Fatal(err)
	}
	want := map[string]int64{}
	for i := range int64(1000) {
		id := fmt.Sprint("r_", i%5)
		record(t, f, id, i+1)
		want[id] = i + 1
	}
	wantHeads(t, f, want)
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 8<<10 {
		t.Errorf("the file has %d bytes after 1000 records of 5 runs", len(text))
	}
	if strings.Count(string(text), "# restored") != 1 {
		t.Errorf("compaction has forgotten a restore:\n%.500s", text)
	}
}

// TestDamageIsNotCompactedAway: a damaged line stays until a person has looked.
func TestDamageIsNotCompactedAway(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.compactFrom = 1 << 10
	record(t, f, "r_a", 1)
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("r_a 99 00 00\n")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	for seq := range int64(50) {
		record(t, f, "r_a", seq+2)
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
			h.MAC = macOf(id, h.Seq)
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
		if diff := cmp.Diff(model, got, withoutWitnesses()); diff != "" {
			rt.Fatalf("heads (-model +file):\n%s", diff)
		}
	})
}

// TestOneWrite: those who come while others write are written at once, each with
// the outcome of its own.
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
		f.writing.Lock() // somebody writes
		want := map[string]int64{}
		var all sync.WaitGroup
		for i := range runs {
			id := fmt.Sprint("r_", i)
			want[id] = int64(i + 1)
			all.Go(func() {
				err := f.Record(id, int64(i+1), macOf(id, int64(i+1)))
				if works != (err == nil) || !works && !strings.Contains(err.Error(), id+" ") {
					t.Errorf("works: %v, the run %s was told %v", works, id, err)
				}
			})
		}
		for waiting := 0; waiting < runs; { // all in the batch that is written next
			runtime.Gosched()
			f.mu.Lock()
			if f.next != nil {
				waiting = strings.Count(f.next.lines.String(), "\n")
			}
			f.mu.Unlock()
		}
		f.writing.Unlock()
		all.Wait()
		if works {
			wantHeads(t, f, want)
		}
	}
}

// TestManyProcesses has processes record at once while the file is compacted
// again and again.
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
		want[id] = perChild
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
	wantHeads(t, f, want)
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

// BenchmarkRecord shows that a head costs the same in a long file.
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
