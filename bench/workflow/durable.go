package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// The workflow of the durable runs: a loop that is long enough for a step 5,000.
// It stands apart from the others, because the linter warns of such a loop.
const (
	durableID     = "bench-durable"
	durableInLoop = 6
	durableRounds = 1000
)

// The steps at which workflow_continue is measured, side by side: some around
// step 10 of one run after the other, and as many around step 5,000 of one.
const (
	earlyStep = 10
	lateStep  = 5000
	// together is how many steps of either kind are measured in turn.
	together = 10
)

func durableDocument() document {
	g := newGenerator(durableRounds)
	d := g.head(durableID, "Walk for long")
	d.Steps = append(d.Steps, g.step("before", ""))
	each := step{
		ID: "each-round", Type: "loop", Title: "Go through the rounds",
		Loop: &loop{Type: "for", Count: durableRounds, MaxIterations: durableRounds, IterationVar: "round"},
	}
	for i := range durableInLoop {
		each.Body = append(each.Body, g.bodyStep(fmt.Sprintf("round-%d", i+1), "This is round {{round}}."))
	}
	d.Steps = append(d.Steps, each)
	return d
}

// durable gives the target with that workflow, and with a home of its own, so
// that it begins with an empty journal.
func (w *workplace) durable(t *target, home string) (*target, error) {
	dir := filepath.Join(w.dir, "durable")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory to work in: %w", err)
	}
	text, err := json.Marshal(durableDocument())
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", durableID, err)
	}
	if err := os.WriteFile(filepath.Join(dir, durableID+".json"), text, 0o600); err != nil {
		return nil, fmt.Errorf("write a workflow: %w", err)
	}
	return t.with(w.environment(home, "WORKFLOW_STORAGE_PATH="+w.json+string(os.PathListSeparator)+dir)...), nil
}

// walk is a client's durable run.
type durableWalk struct {
	run, handle string
	steps       int
}

// runAnswer is what the tools of runs answer.
type runAnswer struct {
	RunID  string `json:"runId"`
	Handle string `json:"handle"`
	Status string `json:"status"`
}

// begin begins a new run.
func (d *durableWalk) begin(ctx context.Context, c caller) error {
	_, err := d.do(ctx, c, toolCall("workflow_start", map[string]any{"workflowId": durableID, "goal": "measure"}))
	d.steps = 0
	return err
}

// goOn hands in a step's output and gives the time that it took.
func (d *durableWalk) goOn(ctx context.Context, c caller) (time.Duration, error) {
	took, err := d.do(ctx, c, toolCall("workflow_continue", map[string]any{"handle": d.handle, "output": goodOutput()}))
	d.steps++
	return took, err
}

func (d *durableWalk) do(ctx context.Context, c caller, params map[string]any) (time.Duration, error) {
	result, took, err := c.call(ctx, "tools/call", params)
	if err != nil {
		return 0, err
	}
	var a runAnswer
	if err := toolAnswer(result, &a); err != nil {
		return 0, fmt.Errorf("step %d of a durable run: %w", d.steps, err)
	}
	if a.Status != "running" || a.Handle == "" {
		return 0, fmt.Errorf("step %d of a durable run: it is %q", d.steps, a.Status)
	}
	d.run, d.handle = a.RunID, a.Handle
	return took, nil
}

// until goes on to a step.
func (d *durableWalk) until(ctx context.Context, c caller, step int) error {
	for d.steps < step {
		if _, err := d.goOn(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// measured is the latency of calls that were made in several turns, with the
// CPU time of the server.
type measured struct {
	pid   int
	times []time.Duration
	cpu   time.Duration
	blind bool
}

// take measures some steps of a run.
func (m *measured) take(ctx context.Context, c caller, d *durableWalk, n int) error {
	began, err := measure.CPUTime(m.pid)
	m.blind = m.blind || err != nil
	for range n {
		took, err := d.goOn(ctx, c)
		if err != nil {
			return err
		}
		m.times = append(m.times, took)
	}
	ended, err := measure.CPUTime(m.pid)
	m.blind = m.blind || err != nil
	m.cpu += ended - began
	return nil
}

func (m *measured) figure() figure {
	f := latency(m.times)
	if !m.blind && len(m.times) > 0 {
		f.CPU = new(measure.Milliseconds(m.cpu) / float64(len(m.times)))
	}
	return f
}

// runs measures workflow_continue of durable runs over stdio in one process: at
// step 10 and at step 5,000 in turns, then the process's memory, and the start
// of the next process that is asked about the run.
func (p plan) runs(ctx context.Context, w *workplace, ours *target, rec record) error {
	t, err := w.durable(ours, "durable")
	if err != nil {
		return err
	}
	long, err := p.continues(ctx, t, rec)
	if err != nil {
		return err
	}
	var walls, cpus []time.Duration
	for range p.starts {
		wall, cpu, err := askOnce(ctx, t, long.run)
		if err != nil {
			return err
		}
		walls, cpus = append(walls, wall), append(cpus, cpu)
	}
	f := latency(walls)
	f.CPU = new(latency(cpus).Value)
	rec(rowStartRun, f)
	return nil
}

// continues is runs without the start, and gives the long run.
func (p plan) continues(ctx context.Context, t *target, rec record) (*durableWalk, error) {
	s, err := t.start(ctx, legacy)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.greet(ctx); err != nil {
		return nil, err
	}
	long := &durableWalk{}
	if err := long.begin(ctx, s); err != nil {
		return nil, err
	}
	n := p.calls / 4
	if err := long.until(ctx, s, lateStep-n/2); err != nil {
		return nil, err
	}
	early, late := measured{pid: s.pid()}, measured{pid: s.pid()}
	for len(late.times) < n {
		short := &durableWalk{}
		if err := short.begin(ctx, s); err != nil {
			return nil, err
		}
		if err := short.until(ctx, s, earlyStep-together/2); err != nil {
			return nil, err
		}
		if err := early.take(ctx, s, short, together); err != nil {
			return nil, err
		}
		if err := late.take(ctx, s, long, together); err != nil {
			return nil, err
		}
	}
	rec(rowContinue, early.figure())
	rec(rowContinueLate, late.figure())
	// No time to settle, as after the calls of workflow_next.
	return long, (plan{}).memory(ctx, s, rowContinued, rec)
}

// askOnce starts a process and asks it where a run stands.
func askOnce(ctx context.Context, t *target, run string) (wall, cpu time.Duration, err error) {
	s, err := t.start(ctx, legacy)
	if err != nil {
		return 0, 0, err
	}
	defer func() { cpu = s.stop() }()
	if err := s.greet(ctx); err != nil {
		return 0, 0, err
	}
	result, _, err := s.call(ctx, "tools/call", toolCall("workflow_status", map[string]any{"runId": run}))
	wall = time.Since(s.started)
	if err != nil {
		return 0, 0, err
	}
	var a runAnswer
	if err := toolAnswer(result, &a); err != nil {
		return 0, 0, err
	}
	if a.RunID != run {
		return 0, 0, fmt.Errorf("asked about run %s, %s answers about %q", run, t.name, a.RunID)
	}
	return wall, 0, nil
}
