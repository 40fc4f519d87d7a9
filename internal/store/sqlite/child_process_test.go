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
	"time"

	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// A test starts its own binary as a child process. The environment variable childVariable
// selects the command that the child runs; testFile is the store in the child's directory.
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
	if err := childCommands()[name](context.Background(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v (%s)\n", name, err, guideway.ErrorCode(err))
		os.Exit(1)
	}
}

// childCommands returns the commands of child processes by name.
func childCommands() map[string]func(context.Context, io.Writer) error {
	return map[string]func(context.Context, io.Writer) error{
		"append forever":       appendForever,
		"grow":                 appendShared,
		"fill the disk":        fillDisk,
		"fill the disk shared": fillDiskShared,
		"open":                 openStore,
	}
}

// childCommand returns a child process that runs a command in a directory.
func childCommand(t *testing.T, name, dir string) *exec.Cmd {
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

// openTestStore opens a store for a test.
func openTestStore(t testing.TB, o Options) *Store {
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

// newTestRun returns the record of a run whose last event has the given number.
func newTestRun(id string, seq int64) run.Record {
	return run.Record{
		ID: id, User: "ada", Workflow: "coding-task", Name: "Coding task", Hash: "sha256:1", Goal: "repair the gate of " + id,
		Status: engine.StatusRunning, Kind: engine.PositionStep, Created: time.UnixMicro(1).UTC(), Updated: time.UnixMicro(seq).UTC(),
		Seq: seq, Head: fmt.Appendf(nil, "head %d", seq), Handle: fmt.Sprintf("h_%s_%d", id, seq),
	}
}

// newTestCommit returns a commit of one event.
func newTestCommit(id string, seq int64, text string) run.Commit {
	data, err := json.Marshal(map[string]any{"run": id, "seq": seq, "text": text})
	if err != nil {
		panic(err) // unreachable: the map has only plain values
	}
	r := newTestRun(id, seq)
	return run.Commit{
		Record: r, Expected: seq - 1, Handle: r.Handle, Key: fmt.Sprintf("key %s %d", id, seq), Terms: words.Of("note " + text),
		Events:   []run.Event{{Seq: seq, At: time.UnixMicro(seq).UTC(), Kind: "step_completed", By: run.By{Via: run.ViaAgent}, Data: data, MAC: r.Head}},
		Snapshot: &run.Snapshot{Seq: seq, Head: r.Head, State: data, MAC: r.Head},
	}
}

// putCommit creates a run or appends to it.
func putCommit(ctx context.Context, s run.Writer, c run.Commit) error {
	if c.Expected == 0 {
		return s.Create(ctx, run.Definition{Hash: c.Record.Hash, Text: "{}"}, c)
	}
	return s.Append(ctx, c)
}

// appendForever appends from two goroutines, each to its own run, and prints each
// acknowledged event. It runs until it is killed.
func appendForever(ctx context.Context, out io.Writer) error {
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
				if err := putCommit(ctx, s, newTestCommit(id, seq, strings.Repeat("x", int(seq%7)*900))); err != nil {
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

// TestKilled checks that after a process was killed while it appends, every acknowledged
// event is stored once and in order, and no commit is stored in part.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[string]int64{}
	for round := range 6 {
		c := childCommand(t, "append forever", dir)
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
				break // the last line is incomplete
			}
			acknowledged[id] = max(acknowledged[id], seq)
			if n == 20+round*17 {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = c.Wait() // the process was killed
		checkConsistent(t, dir, acknowledged)
	}
}

// checkConsistent fails the test if the store lacks an acknowledged event or if its tables
// are inconsistent.
func checkConsistent(t *testing.T, dir string, acknowledged map[string]int64) {
	t.Helper()
	ctx := t.Context()
	s := openTestStore(t, Options{Path: filepath.Join(dir, testFile)})
	defer s.Close()
	var commits int64
	for id, seq := range acknowledged {
		r, err := s.Run(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		// The child may have been killed after a commit and before it printed the event.
		if r.Seq != seq && r.Seq != seq+1 {
			t.Fatalf("%s has %d events, %d were acknowledged", id, r.Seq, seq)
		}
		commits += r.Seq
		events, err := s.Events(ctx, id, 0, int(r.Seq)+10)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(events)) != r.Seq {
			t.Fatalf("%s has %d events, its record has %d", id, len(events), r.Seq)
		}
		for i, e := range events {
			if e.Seq != int64(i)+1 || !strings.Contains(string(e.Data), fmt.Sprintf(`"seq":%d,`, e.Seq)) {
				t.Fatalf("event %d of %s is %d: %.60s", i+1, id, e.Seq, e.Data)
			}
			h, err := s.Handle(ctx, fmt.Sprintf("h_%s_%d", id, e.Seq))
			if err != nil || h.Seq != e.Seq {
				t.Fatalf("the handle of event %d of %s is %+v, %v", e.Seq, id, h, err)
			}
			if e.Seq > 1 {
				if h, err = s.Outcome(ctx, id, "", fmt.Sprintf("key %s %d", id, e.Seq)); err != nil || h.Seq != e.Seq {
					t.Fatalf("the outcome of event %d of %s is %+v, %v", e.Seq, id, h, err)
				}
			}
		}
		snap, err := s.Snapshot(ctx, id)
		if err != nil || snap.Seq != r.Seq {
			t.Fatalf("the snapshot of %s is %+v, %v", id, snap, err)
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

// eventsPerChild is the number of events that each child adds to the common run.
const eventsPerChild = 60

// appendShared appends to a run that other processes append to at the same time.
func appendShared(ctx context.Context, out io.Writer) error {
	s, err := Open(ctx, Options{Path: testFile})
	if err != nil {
		return err
	}
	for done, conflicts := 0, 0; done < eventsPerChild; {
		r, err := s.Run(ctx, "r_shared")
		if err != nil {
			return err
		}
		c := newTestCommit("r_shared", r.Seq+1, fmt.Sprintf("by-%d-%d", os.Getpid(), done))
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

// TestProcesses checks that processes that start and append to one run at the same time
// neither lose nor duplicate an event.
func TestProcesses(t *testing.T) {
	t.Parallel()
	const processes = 4
	dir := t.TempDir()
	s := openTestStore(t, Options{Path: filepath.Join(dir, testFile)})
	if err := putCommit(t.Context(), s, newTestCommit("r_shared", 1, "first")); err != nil {
		t.Fatal(err)
	}
	var running []*exec.Cmd
	for range processes {
		c := childCommand(t, "grow", dir)
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
	if len(texts) != processes*eventsPerChild+1 {
		t.Errorf("there are %d events, want %d", len(texts), processes*eventsPerChild+1)
	}
}

// openStore opens the store and prints the result.
func openStore(ctx context.Context, out io.Writer) error {
	s, err := Open(ctx, Options{Path: testFile})
	if err == nil {
		fmt.Fprintln(out, "opened")
		return s.Close()
	}
	fmt.Fprintf(out, "%s | %v | %s\n", guideway.ErrorCode(err), err, guideway.ErrorFix(err))
	return nil
}

// TestFirstProcesses checks that several processes can create the same store at the same
// time.
func TestFirstProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outputs := make(chan string)
	const processes = 6
	for range processes {
		c := childCommand(t, "open", dir)
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
