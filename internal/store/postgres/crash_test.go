package postgres_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// envChild is the environment variable that makes the test binary run as a child process.
// Its value is a childWork as JSON.
const envChild = "GUIDEWAY_TEST_POSTGRES_CHILD"

// childWork is the work of a child process: clients append to the runs in turn and print
// the acknowledged commits.
type childWork struct {
	URL     string
	Name    string
	Clients int
	Runs    int
	Steps   int
}

// runChild does the work in the environment variable. It prints a line "run seq text µs"
// for each acknowledged commit.
func runChild() int {
	var w childWork
	if err := json.Unmarshal([]byte(os.Getenv(envChild)), &w); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	s, err := postgres.Open(ctx, postgres.Options{URL: w.URL})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	var mu sync.Mutex
	acknowledged := func(run string, seq int64, text string, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(os.Stdout, "%s %d %s %d\n", run, seq, text, took.Microseconds())
	}
	errs := make([]error, w.Clients)
	var wg sync.WaitGroup
	for i := range w.Clients {
		wg.Go(func() { errs[i] = w.runClient(ctx, s, i, acknowledged) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runClient appends commits to the runs in turn, and retries after conflicts.
func (w childWork) runClient(ctx context.Context, s *postgres.Store, i int, acknowledged func(string, int64, string, time.Duration)) error {
	for n := 0; n < w.Steps; {
		id, text := fmt.Sprintf("r_%d", (i+n)%w.Runs), fmt.Sprintf("%s-%d-%d", w.Name, i, n)
		started := time.Now()
		r, err := s.Run(ctx, id)
		if err != nil {
			return err
		}
		c := newNamedCommit(r, text)
		switch err := s.Append(ctx, c); guideway.ErrorCode(err) {
		case "":
			acknowledged(id, c.Record.Seq, text, time.Since(started))
			n++
		case guideway.CodeConflict:
		default:
			return err
		}
	}
	return nil
}

// newNamedCommit returns a commit of two events with a unique text and all optional parts.
func newNamedCommit(r run.Record, text string) run.Commit {
	c := newCommit(r, 2, fmt.Appendf(nil, "%q", text))
	c.Handle, c.Key, c.Terms = "h_"+text, "k_"+text, words.Of("note "+text)
	c.Record.Handle = c.Handle
	c.Snapshot = &run.Snapshot{Seq: c.Record.Seq, Head: c.Record.Head, State: []byte(text), MAC: []byte(text)}
	return c
}

// startChild starts a child process and returns its output.
func startChild(tb testing.TB, w childWork) (*exec.Cmd, io.Reader) {
	tb.Helper()
	setting, err := json.Marshal(w)
	requireNoError(tb, err)
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+string(setting))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	requireNoError(tb, err)
	requireNoError(tb, cmd.Start())
	return cmd, out
}

// acks maps the text of each acknowledged commit to its run and its last event number.
type acks map[string]struct {
	run string
	seq int64
}

// readOutput reads the output of a child. It returns the durations of its commits.
func (a acks) readOutput(tb testing.TB, out io.Reader) (times []time.Duration) {
	tb.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var run, text string
		var seq, took int64
		if n, err := fmt.Sscan(lines.Text(), &run, &seq, &text, &took); n != 4 {
			tb.Logf("truncated line: %q (%v)", lines.Text(), err)
			continue
		}
		a.addAck(run, seq, text)
		times = append(times, time.Duration(took)*time.Microsecond)
	}
	return times
}

func (a acks) addAck(run string, seq int64, text string) {
	a[text] = struct {
		run string
		seq int64
	}{run, seq}
}

// checkJournal fails the test unless each acknowledged commit is stored once, completely
// and at its position, no other commit is stored in part, and the runs and the feed have no
// gaps. It returns the number of stored commits.
func (a acks) checkJournal(tb testing.TB, s *postgres.Store, u string) int {
	tb.Helper()
	ctx := context.Background()
	runs, err := s.Runs(ctx, run.Filter{})
	requireNoError(tb, err)
	there := acks{}
	for _, r := range runs {
		events, err := s.Events(ctx, r.ID, 0, int(r.Seq)+10)
		requireNoError(tb, err)
		if int64(len(events)) != r.Seq {
			tb.Fatalf("run %s has %d events, its record has %d", r.ID, len(events), r.Seq)
		}
		for i, e := range events[1:] { // the first event creates the run
			text := strings.Trim(string(e.Data), `"`)
			if e.Seq != int64(i)+2 {
				tb.Fatalf("event %d of %s has the number %d", i+2, r.ID, e.Seq)
			}
			if i%2 == 0 {
				continue
			}
			if _, twice := there[text]; twice || text != strings.Trim(string(events[i].Data), `"`) {
				tb.Fatalf("the commit %s is stored twice or in part", text)
			}
			there.addAck(r.ID, e.Seq, text)
			h, err := s.Outcome(ctx, r.ID, "", "k_"+text)
			requireNoError(tb, err)
			if h.Token != "h_"+text || h.Seq != e.Seq {
				tb.Fatalf("the outcome of %s is %+v", text, h)
			}
		}
	}
	for text, ack := range a {
		if there[text] != ack {
			tb.Errorf("%s was acknowledged at %v and stored at %v", text, ack, there[text])
		}
	}
	whole := fmt.Sprintf(`select ((select count(*) from handles) = %[1]d + %[2]d and (select count(*) from commands) = %[1]d
		and (select count(*) from run_words where seq > 1) = %[1]d)::int`, len(there), len(runs))
	if queryNumber(tb, u, whole) != 1 {
		tb.Errorf("a handle, a key or words of the %d commits are missing", len(there))
	}
	a.checkFeed(tb, s, len(there)+len(runs))
	return len(there)
}

// checkFeed fails the test unless the feed has n changes, each of them once, and the
// changes of a run are in order.
func (a acks) checkFeed(tb testing.TB, s *postgres.Store, n int) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	list, _, err := s.Changes(ctx, 0, n+10)
	for err == nil && len(list) < n && ctx.Err() == nil { // a store that watches the feed adds changes a little later
		list, _, err = s.Changes(ctx, 0, n+10)
	}
	requireNoError(tb, err)
	last := map[string]int64{}
	for _, c := range list {
		if c.Seq <= last[c.ID] {
			tb.Errorf("the feed has event %[2]d of %[1]s after %[3]d", c.ID, c.Seq, last[c.ID])
		}
		last[c.ID] = c.Seq
	}
	if len(list) != n {
		tb.Errorf("the feed has %d changes, want %d", len(list), n)
	}
}

// TestKilledProcess checks that killed processes lose no acknowledged commit and leave no
// partial commit.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	const runs, rounds = 4, 12
	for i := range runs {
		createTestRun(t, s, fmt.Sprintf("r_%d", i))
	}
	seeds := crash.Seeds(t)
	seed := seeds[len(seeds)-1]
	random := rand.New(rand.NewPCG(seed, 0))
	name := schemaName(t, u)
	kept := acks{}
	for round := range rounds {
		cmd, out := startChild(t, childWork{URL: withParameter(t, u, "application_name", name), Name: fmt.Sprint("round", round), Clients: 4, Runs: runs, Steps: 1 << 20})
		lines := bufio.NewReader(out)
		var said strings.Builder
		for range 1 + random.IntN(80) {
			line, err := lines.ReadString('\n')
			requireNoError(t, err)
			said.WriteString(line)
		}
		requireNoError(t, cmd.Process.Kill())
		rest, _ := io.ReadAll(lines)
		said.Write(rest)
		_ = cmd.Wait()
		kept.readOutput(t, strings.NewReader(said.String()))
	}
	// The server executes the received statements before it notices that the client is
	// gone.
	for queryNumber(t, u, `select count(*)::int from pg_stat_activity where application_name = '`+name+`'`) > 0 {
		continue
	}
	there := kept.checkJournal(t, s, u)
	t.Logf("%d processes were killed; %d commits were acknowledged, %d are stored", rounds, len(kept), there)
	if there > len(kept)+rounds*4 {
		t.Errorf("%d stored commits were not acknowledged, which is too many", there-len(kept))
	}
}

// TestManyProcesses checks that several processes with several clients on the same runs
// neither lose nor duplicate commits, and that conflicts are the only errors.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	const processes, clients, runs, steps = 4, 8, 8, 12
	for i := range runs {
		createTestRun(t, s, fmt.Sprintf("r_%d", i))
	}
	all, times := acks{}, make([][]time.Duration, processes)
	outs, cmds := make([]io.Reader, processes), make([]*exec.Cmd, processes)
	for i := range processes {
		cmds[i], outs[i] = startChild(t, childWork{URL: u, Name: fmt.Sprint("p", i), Clients: clients, Runs: runs, Steps: steps})
	}
	for i := range processes {
		times[i] = all.readOutput(t, outs[i])
		if err := cmds[i].Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	if there := all.checkJournal(t, s, u); there != processes*clients*steps || len(all) != there {
		t.Errorf("%d commits are stored, %d were acknowledged, %d were made", there, len(all), processes*clients*steps)
	}
	took := slices.Sorted(slices.Values(slices.Concat(times...)))
	t.Logf("read and append, %d x %d clients on %d runs: p50 %v, p99 %v, max %v", processes, clients, runs,
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}
