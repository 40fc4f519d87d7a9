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

// The workflow of the durable runs: a loop with more than 5,000 steps. It is separate from
// the others, because the linter warns about such a loop.
const (
	durableID     = "bench-durable"
	durableInLoop = 6
	durableRounds = 1000
)

// The steps at which workflow_continue is measured in turns: some around step 10 of several
// runs, one after the other, and as many around step 5,000 of one run.
const (
	earlyStep = 10
	lateStep  = 5000
	// together is the number of steps of each kind in each turn.
	together = 10
)

func durableDocument() document {
	g := newGenerator(durableRounds)
	d := g.newDocument(durableID, "Walk for long")
	d.Steps = append(d.Steps, g.newStep("before", ""))
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

// durableTarget returns the target with the durable workflow and a new home directory, so
// that it starts with an empty journal.
func (w *workplace) durableTarget(t *target, home string) (*target, error) {
	dir := filepath.Join(w.dir, "durable")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create a working directory: %w", err)
	}
	text, err := json.Marshal(durableDocument())
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", durableID, err)
	}
	if err := os.WriteFile(filepath.Join(dir, durableID+".json"), text, 0o600); err != nil {
		return nil, fmt.Errorf("write a workflow: %w", err)
	}
	return t.withEnv(w.environmentOf(home, "WORKFLOW_STORAGE_PATH="+w.json+string(os.PathListSeparator)+dir)...), nil
}

// durableWalk is a client's durable run of a workflow.
type durableWalk struct {
	run, handle string
	steps       int
}

// runAnswer is the answer of the runs tools.
type runAnswer struct {
	RunID  string `json:"runId"`
	Handle string `json:"handle"`
	Status string `json:"status"`
}

// startRun starts a run.
func (d *durableWalk) startRun(ctx context.Context, c caller) error {
	_, err := d.callTool(ctx, c, toolCall("workflow_start", map[string]any{"workflowId": durableID, "goal": "measure"}))
	d.steps = 0
	return err
}

// continueStep sends the output of a step and returns the duration of the call.
func (d *durableWalk) continueStep(ctx context.Context, c caller) (time.Duration, error) {
	took, err := d.callTool(ctx, c, toolCall("workflow_continue", map[string]any{"handle": d.handle, "output": goodOutput()}))
	d.steps++
	return took, err
}

func (d *durableWalk) callTool(ctx context.Context, c caller, params map[string]any) (time.Duration, error) {
	result, took, err := c.callTool(ctx, "tools/call", params)
	if err != nil {
		return 0, err
	}
	var a runAnswer
	if err := toolAnswer(result, &a); err != nil {
		return 0, fmt.Errorf("step %d of a durable run: %w", d.steps, err)
	}
	if a.Status != "running" || a.Handle == "" {
		return 0, fmt.Errorf("step %d of a durable run: the status is %q", d.steps, a.Status)
	}
	d.run, d.handle = a.RunID, a.Handle
	return took, nil
}

// continueUntil continues the run to a step.
func (d *durableWalk) continueUntil(ctx context.Context, c caller, step int) error {
	for d.steps < step {
		if _, err := d.continueStep(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// measured is the latency of calls in several turns, with the CPU time of the server.
type measured struct {
	pid   int
	times []time.Duration
	cpu   time.Duration
	blind bool
}

// measureSteps measures a number of steps of a run.
func (m *measured) measureSteps(ctx context.Context, c caller, d *durableWalk, n int) error {
	began, err := measure.CPUTime(m.pid)
	m.blind = m.blind || err != nil
	for range n {
		took, err := d.continueStep(ctx, c)
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

func (m *measured) toFigure() figure {
	f := latencyFigure(m.times)
	if !m.blind && len(m.times) > 0 {
		f.CPU = new(measure.Milliseconds(m.cpu) / float64(len(m.times)))
	}
	return f
}

// measureRuns measures workflow_continue of durable runs over stdio in one process, at step
// 10 and at step 5,000 in turns, then the memory of the process, and the start of the next
// process until it reports the run.
func (p plan) measureRuns(ctx context.Context, w *workplace, ours *target, rec record) error {
	t, err := w.durableTarget(ours, "durable")
	if err != nil {
		return err
	}
	long, err := p.measureContinues(ctx, t, rec)
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
	f := latencyFigure(walls)
	f.CPU = new(latencyFigure(cpus).Value)
	rec(rowStartRun, f)
	return p.measureHooks(ctx, t, long, rec)
}

// measureContinues is the part of measureRuns without the start of a process. It returns
// the long run.
func (p plan) measureContinues(ctx context.Context, t *target, rec record) (*durableWalk, error) {
	s, err := t.startServer(ctx, legacy)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.initializeSession(ctx); err != nil {
		return nil, err
	}
	long := &durableWalk{}
	if err := long.startRun(ctx, s); err != nil {
		return nil, err
	}
	n := p.calls / 4
	if err := long.continueUntil(ctx, s, lateStep-n/2); err != nil {
		return nil, err
	}
	early, late := measured{pid: s.processID()}, measured{pid: s.processID()}
	for len(late.times) < n {
		short := &durableWalk{}
		if err := short.startRun(ctx, s); err != nil {
			return nil, err
		}
		if err := short.continueUntil(ctx, s, earlyStep-together/2); err != nil {
			return nil, err
		}
		if err := early.measureSteps(ctx, s, short, together); err != nil {
			return nil, err
		}
		if err := late.measureSteps(ctx, s, long, together); err != nil {
			return nil, err
		}
	}
	rec(rowContinue, early.toFigure())
	rec(rowContinueLate, late.toFigure())
	// Read the memory without a pause, as after the calls of workflow_next.
	return long, (plan{}).measureMemory(ctx, s, rowContinued, rec)
}

// askOnce starts a process, requests the status of a run and returns the times until the
// answer.
func askOnce(ctx context.Context, t *target, run string) (wall, cpu time.Duration, err error) {
	s, err := t.startServer(ctx, legacy)
	if err != nil {
		return 0, 0, err
	}
	defer func() { cpu = s.stop() }()
	if err := s.initializeSession(ctx); err != nil {
		return 0, 0, err
	}
	result, _, err := s.callTool(ctx, "tools/call", toolCall("workflow_status", map[string]any{"runId": run}))
	wall = time.Since(s.started)
	if err != nil {
		return 0, 0, err
	}
	var a runAnswer
	if err := toolAnswer(result, &a); err != nil {
		return 0, 0, err
	}
	if a.RunID != run {
		return 0, 0, fmt.Errorf("the status of the run %s from %s names the run %q", run, t.name, a.RunID)
	}
	return wall, 0, nil
}
