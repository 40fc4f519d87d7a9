package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// A test runs itself again as another process. The variable names what the
// child does, with the file testFile in its directory.
const (
	childVariable = "GUIDEWAY_TEST_SQLITE"
	testFile      = "guideway.db"
)

func TestMain(m *testing.M) {
	name := os.Getenv(childVariable)
	if name == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := children()[name](context.Background(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v (%s)\n", name, err, guideway.ErrorCode(err))
		os.Exit(1)
	}
}

// children are what a child process may do.
func children() map[string]func(context.Context, io.Writer) error {
	return map[string]func(context.Context, io.Writer) error{
		"append for good":  appendForGood,
		"grow":             growShared,
		"fill the disk":    fillDisk,
		"fill it together": fillTogether,
		"open":             openOnly,
	}
}

// child prepares a process that does something in a directory.
func child(t *testing.T, name, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Dir, c.Stderr = dir, os.Stderr
	c.Env = append(os.Environ(), childVariable+"="+name)
	return c
}

// openAt opens a file for a test.
func openAt(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// aRun gives a run's record at a sequence number.
func aRun(id string, seq int64) run.Record {
	return run.Record{
		ID: id, User: "ada", Workflow: "coding-task", Name: "Coding task", Hash: "sha256:1", Goal: "mend the gate of " + id,
		Status: engine.StatusRunning, Kind: engine.PositionStep, Created: toTime(1), Updated: toTime(seq),
		Seq: seq, Head: fmt.Appendf(nil, "head %d", seq), Handle: fmt.Sprintf("h_%s_%d", id, seq),
	}
}

// aCommit gives the commit of one event.
func aCommit(id string, seq int64, text string) run.Commit {
	data, err := json.Marshal(map[string]any{"run": id, "seq": seq, "text": text})
	if err != nil {
		panic(err) // a map of plain values
	}
	r := aRun(id, seq)
	return run.Commit{
		Record: r, Expected: seq - 1, Handle: r.Handle, Key: fmt.Sprintf("key %s %d", id, seq), Words: "note " + text,
		Events:   []run.Event{{Seq: seq, At: toTime(seq), Kind: "step_completed", By: run.By{Via: run.ViaAgent}, Data: data, MAC: r.Head}},
		Snapshot: &run.Snapshot{Seq: seq, Head: r.Head, State: data, MAC: r.Head},
	}
}

// put creates a run or appends to it.
func put(ctx context.Context, s run.Writer, c run.Commit) error {
	if c.Expected == 0 {
		return s.Create(ctx, run.Definition{Hash: c.Record.Hash, Text: "{}"}, c)
	}
	return s.Append(ctx, c)
}

// appendForGood has two goroutines append to a run each, beginning behind what
// is there, and prints each event that was acknowledged. It ends by being
// killed.
func appendForGood(ctx context.Context, out io.Writer) error {
	s, err := Open(ctx, Options{Path: testFile})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	errs := make(chan error)
	for _, id := range []string{"r_a", "r_b"} {
		go func() {
			seq := int64(0)
			if r, err := s.Run(ctx, id); err == nil {
				seq = r.Seq
			}
			for {
				seq++
				if err := put(ctx, s, aCommit(id, seq, strings.Repeat("x", int(seq%7)*900))); err != nil {
					errs <- err
				}
				mu.Lock()
				fmt.Fprintf(out, "%s %d\n", id, seq)
				mu.Unlock()
			}
		}()
	}
	return <-errs
}

// TestKilled kills a process in the middle of its appends, again and again:
// what it has acknowledged is there, once and in order, and nothing is half
// done.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[string]int64{}
	for round := range 6 {
		c := child(t, "append for good", dir)
		pipe, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		for n := 0; lines.Scan(); n++ {
			var id string
			var seq int64
			if _, err := fmt.Sscan(lines.Text(), &id, &seq); err != nil {
				break // the last line, half written
			}
			acknowledged[id] = max(acknowledged[id], seq)
			if n == 20+round*17 {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = c.Wait() // it was killed
		wantConsistent(t, dir, acknowledged)
	}
}

// wantConsistent ends the test where a file lacks what was acknowledged, or its
// tables contradict each other.
func wantConsistent(t *testing.T, dir string, acknowledged map[string]int64) {
	t.Helper()
	ctx := t.Context()
	s := openAt(t, Options{Path: filepath.Join(dir, testFile)})
	defer s.Close()
	var commits int64
	for id, seq := range acknowledged {
		r, err := s.Run(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		// One more may be there: it was killed before it could say so.
		if r.Seq != seq && r.Seq != seq+1 {
			t.Fatalf("%s has %d events, %d were acknowledged", id, r.Seq, seq)
		}
		commits += r.Seq
		events, err := s.Events(ctx, id, 0, int(r.Seq)+10)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(events)) != r.Seq {
			t.Fatalf("%s has %d events, its record says %d", id, len(events), r.Seq)
		}
		for i, e := range events {
			if e.Seq != int64(i)+1 || !strings.Contains(string(e.Data), fmt.Sprintf(`"seq":%d,`, e.Seq)) {
				t.Fatalf("event %d of %s is %d: %.60s", i+1, id, e.Seq, e.Data)
			}
			h, err := s.Handle(ctx, fmt.Sprintf("h_%s_%d", id, e.Seq))
			if err != nil || h.Seq != e.Seq {
				t.Fatalf("the handle of event %d of %s: %+v, %v", e.Seq, id, h, err)
			}
			if e.Seq > 1 {
				if h, err = s.Outcome(ctx, id, "", fmt.Sprintf("key %s %d", id, e.Seq)); err != nil || h.Seq != e.Seq {
					t.Fatalf("the outcome of event %d of %s: %+v, %v", e.Seq, id, h, err)
				}
			}
		}
		snap, err := s.Snapshot(ctx, id)
		if err != nil || snap.Seq != r.Seq {
			t.Fatalf("the snapshot of %s: %+v, %v", id, snap, err)
		}
	}
	latest, err := s.Latest(ctx)
	if err != nil || latest != commits {
		t.Fatalf("the feed has %d changes, want %d (%v)", latest, commits, err)
	}
	health, err := s.Check(ctx)
	if err != nil || len(health.Problems) > 0 {
		t.Fatalf("the file has problems: %v, %v", health.Problems, err)
	}
}

// perChild is how many events a child adds to the run that all share.
const perChild = 60

// growShared adds to a run that other processes add to as well.
func growShared(ctx context.Context, out io.Writer) error {
	s, err := Open(ctx, Options{Path: testFile})
	if err != nil {
		return err
	}
	for done, conflicts := 0, 0; done < perChild; {
		r, err := s.Run(ctx, "r_shared")
		if err != nil {
			return err
		}
		c := aCommit("r_shared", r.Seq+1, fmt.Sprintf("by-%d-%d", os.Getpid(), done))
		c.Key = ""
		switch err := s.Append(ctx, c); guideway.ErrorCode(err) {
		case "":
			done++
		case guideway.CodeConflict:
			conflicts++
		default:
			return err
		}
		if conflicts > 100_000 {
			return errors.New("never first")
		}
	}
	fmt.Fprintln(out, "done")
	return s.Close()
}

// TestProcesses has processes add to one run at once, and start at once, too:
// no event is lost or doubled.
func TestProcesses(t *testing.T) {
	t.Parallel()
	const processes = 4
	dir := t.TempDir()
	s := openAt(t, Options{Path: filepath.Join(dir, testFile)})
	if err := put(t.Context(), s, aCommit("r_shared", 1, "first")); err != nil {
		t.Fatal(err)
	}
	var running []*exec.Cmd
	for range processes {
		c := child(t, "grow", dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, c)
	}
	for _, c := range running {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	events, err := s.Events(t.Context(), "r_shared", 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for i, e := range events {
		var data struct{ Text string }
		if err := json.Unmarshal(e.Data, &data); err != nil || e.Seq != int64(i)+1 || texts[data.Text] {
			t.Fatalf("event %d is %d, %q: %v", i+1, e.Seq, data.Text, err)
		}
		texts[data.Text] = true
	}
	if len(texts) != processes*perChild+1 {
		t.Errorf("there are %d events, want %d", len(texts), processes*perChild+1)
	}
}

// openOnly opens the file and says how that went.
func openOnly(ctx context.Context, out io.Writer) error {
	s, err := Open(ctx, Options{Path: testFile})
	if err == nil {
		fmt.Fprintln(out, "opened")
		return s.Close()
	}
	fmt.Fprintf(out, "%s | %v | %s\n", guideway.ErrorCode(err), err, guideway.ErrorFix(err))
	return nil
}

// TestFirstProcesses has processes open a file at once that none has made yet.
func TestFirstProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outputs := make(chan string)
	const processes = 6
	for range processes {
		c := child(t, "open", dir)
		go func() {
			out, err := c.Output()
			outputs <- fmt.Sprint(string(out), err)
		}()
	}
	for range processes {
		if out := <-outputs; out != "opened\n<nil>" {
			t.Error(out)
		}
	}
}
