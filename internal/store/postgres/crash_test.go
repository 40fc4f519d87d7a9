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
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// envChild has the test binary work for a test: its value is a childWork.
const envChild = "GUIDEWAY_TEST_POSTGRES_CHILD"

// childWork is what a child process does: clients append to runs in turn, each
// so many times, and say what was acknowledged.
type childWork struct {
	URL     string
	Name    string
	Clients int
	Runs    int
	Steps   int
}

// child carries out its work. It prints a line "run seq text µs" for each commit
// that was acknowledged.
func child() int {
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
		wg.Go(func() { errs[i] = w.client(ctx, s, i, acknowledged) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// client appends, and tries again where somebody else was faster.
func (w childWork) client(ctx context.Context, s *postgres.Store, i int, acknowledged func(string, int64, string, time.Duration)) error {
	for n := 0; n < w.Steps; {
		id, text := fmt.Sprintf("r_%d", (i+n)%w.Runs), fmt.Sprintf("%s-%d-%d", w.Name, i, n)
		begun := time.Now()
		r, err := s.Run(ctx, id)
		if err != nil {
			return err
		}
		c := named(r, text)
		switch err := s.Append(ctx, c); guideway.ErrorCode(err) {
		case "":
			acknowledged(id, c.Record.Seq, text, time.Since(begun))
			n++
		case guideway.CodeConflict:
		default:
			return err
		}
	}
	return nil
}

// named is a commit of two events that nobody else makes, with all that a commit
// can have.
func named(r run.Record, text string) run.Commit {
	c := follow(r, 2, fmt.Appendf(nil, "%q", text))
	c.Handle, c.Key, c.Words = "h_"+text, "k_"+text, "note "+text
	c.Record.Handle = c.Handle
	c.Snapshot = &run.Snapshot{Seq: c.Record.Seq, Head: c.Record.Head, State: []byte(text), MAC: []byte(text)}
	return c
}

// start begins a child's work and gives its output.
func start(tb testing.TB, w childWork) (*exec.Cmd, io.Reader) {
	tb.Helper()
	setting, err := json.Marshal(w)
	must(tb, err)
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+string(setting))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	return cmd, out
}

// acks are the commits that were acknowledged: the run and the last number of
// each, by their texts.
type acks map[string]struct {
	run string
	seq int64
}

// read takes what a child says, and how long each commit took it.
func (a acks) read(tb testing.TB, out io.Reader) (times []time.Duration) {
	tb.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var run, text string
		var seq, took int64
		if n, err := fmt.Sscan(lines.Text(), &run, &seq, &text, &took); n != 4 {
			tb.Logf("a line that was cut off: %q (%v)", lines.Text(), err)
			continue
		}
		a.add(run, seq, text)
		times = append(times, time.Duration(took)*time.Microsecond)
	}
	return times
}

func (a acks) add(run string, seq int64, text string) {
	a[text] = struct {
		run string
		seq int64
	}{run, seq}
}

// wantKept ends the test where not every acknowledged commit is in the journal
// once, whole and in its place, where a run has a gap, or where a commit is there
// by half. It gives the number of commits that are there.
func (a acks) wantKept(tb testing.TB, s *postgres.Store, u string) int {
	tb.Helper()
	ctx := context.Background()
	runs, err := s.Runs(ctx, run.Filter{})
	must(tb, err)
	there := acks{}
	for _, r := range runs {
		events, err := s.Events(ctx, r.ID, 0, int(r.Seq)+10)
		must(tb, err)
		if int64(len(events)) != r.Seq {
			tb.Fatalf("run %s has %d events, and its record says %d", r.ID, len(events), r.Seq)
		}
		for i, e := range events[1:] { // the first one creates the run
			text := strings.Trim(string(e.Data), `"`)
			if e.Seq != int64(i)+2 {
				tb.Fatalf("event %d of %s has the number %d", i+2, r.ID, e.Seq)
			}
			if i%2 == 0 {
				continue
			}
			if _, twice := there[text]; twice || text != strings.Trim(string(events[i].Data), `"`) {
				tb.Fatalf("the commit %s is there twice, or by half", text)
			}
			there.add(r.ID, e.Seq, text)
			h, err := s.Outcome(ctx, r.ID, "", "k_"+text)
			must(tb, err)
			if h.Token != "h_"+text || h.Seq != e.Seq {
				tb.Fatalf("the outcome of %s is %+v", text, h)
			}
		}
	}
	for text, ack := range a {
		if there[text] != ack {
			tb.Errorf("%s was acknowledged at %v, and is at %v", text, ack, there[text])
		}
	}
	whole := fmt.Sprintf(`select ((select count(*) from handles) = %[1]d + %[2]d and (select count(*) from commands) = %[1]d
		and (select count(*) from run_words where seq > 0) = %[1]d)::int`, len(there), len(runs))
	if number(tb, u, whole) != 1 {
		tb.Errorf("not every one of %d commits has its handle, its key and its words", len(there))
	}
	a.wantFeed(tb, s, len(there)+len(runs))
	return len(there)
}

// wantFeed ends the test where the feed does not tell of so many changes, each
// once and those of a run in order.
func (a acks) wantFeed(tb testing.TB, s *postgres.Store, n int) {
	tb.Helper()
	list, _, err := s.Changes(context.Background(), 0, n+10)
	must(tb, err)
	last := map[string]int64{}
	for _, c := range list {
		if c.Seq <= last[c.ID] {
			tb.Errorf("the feed tells of %s %d behind %d", c.ID, c.Seq, last[c.ID])
		}
		last[c.ID] = c.Seq
	}
	if len(list) != n {
		tb.Errorf("the feed has %d changes, and there were %d", len(list), n)
	}
}

// A process that is killed loses nothing that it was told, and leaves nothing
// half done.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	s := open(t, postgres.Options{URL: u})
	const runs, rounds = 4, 12
	for i := range runs {
		create(t, s, fmt.Sprintf("r_%d", i))
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	name := schemaOf(t, u)
	kept := acks{}
	for round := range rounds {
		cmd, out := start(t, childWork{URL: with(t, u, "application_name", name), Name: fmt.Sprint("round", round), Clients: 4, Runs: runs, Steps: 1 << 20})
		lines := bufio.NewReader(out)
		var said strings.Builder
		for range 1 + random.IntN(80) {
			line, err := lines.ReadString('\n')
			must(t, err)
			said.WriteString(line)
		}
		must(t, cmd.Process.Kill())
		rest, _ := io.ReadAll(lines)
		said.Write(rest)
		_ = cmd.Wait()
		kept.read(t, strings.NewReader(said.String()))
	}
	// The server carries out what it was sent before it sees that nobody is there.
	for number(t, u, `select count(*)::int from pg_stat_activity where application_name = '`+name+`'`) > 0 {
		continue
	}
	there := kept.wantKept(t, s, u)
	t.Logf("%d processes were killed; %d commits were acknowledged, %d are there", rounds, len(kept), there)
	if there > len(kept)+rounds*4 {
		t.Errorf("there are %d commits more than were acknowledged", there-len(kept))
	}
}

// Several processes with several clients on the same runs lose and double
// nothing, and are refused nothing but for somebody who was faster.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	s := open(t, postgres.Options{URL: u})
	const processes, clients, runs, steps = 4, 8, 8, 12
	for i := range runs {
		create(t, s, fmt.Sprintf("r_%d", i))
	}
	all, times := acks{}, make([][]time.Duration, processes)
	outs, cmds := make([]io.Reader, processes), make([]*exec.Cmd, processes)
	for i := range processes {
		cmds[i], outs[i] = start(t, childWork{URL: u, Name: fmt.Sprint("p", i), Clients: clients, Runs: runs, Steps: steps})
	}
	for i := range processes {
		times[i] = all.read(t, outs[i])
		if err := cmds[i].Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	if there := all.wantKept(t, s, u); there != processes*clients*steps || len(all) != there {
		t.Errorf("%d commits are there, %d were acknowledged, %d were made", there, len(all), processes*clients*steps)
	}
	took := slices.Sorted(slices.Values(slices.Concat(times...)))
	t.Logf("read and append, %d x %d clients on %d runs: p50 %v, p99 %v, max %v", processes, clients, runs,
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}
