package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// plan is the extent of the measurement.
type plan struct {
	// starts is the number of processes started for each row.
	starts int
	// calls is the number of calls for a latency, and memoryCalls the number of calls
	// before the second memory reading.
	calls, memoryCalls int
	// quiet is the idle time before the memory of a process is read.
	quiet time.Duration
}

func fullPlan() plan {
	return plan{starts: 15, calls: 2000, memoryCalls: 1000, quiet: 2 * time.Second}
}

func shortPlan() plan {
	return plan{starts: 5, calls: 300, memoryCalls: 1000, quiet: 500 * time.Millisecond}
}

// measureAll fills the report. reference is nil if the reference is not measured.
func (p plan) measureAll(ctx context.Context, w *workplace, ours, reference *target, r *report) error {
	size, err := ours.fileSize()
	if err != nil {
		return err
	}
	r.setOurs(rowBinary, figure{Value: toMegabytes(size)})
	inYAML := ours.withEnv("WORKFLOW_STORAGE_PATH=" + w.yaml)
	for _, m := range []func() error{
		func() error { return p.measureStart(ctx, ours, legacy, rowStart, r.setOurs) },
		func() error { return p.measureStart(ctx, reference, legacy, rowStart, r.setReference) },
		func() error { return p.measureStart(ctx, inYAML, legacy, rowStartYAML, r.setOurs) },
		func() error { return p.measureStart(ctx, ours, modern, rowStartModern, r.setOurs) },
		func() error { return p.measureSizes(ctx, ours, r.setOurs) },
		func() error { return p.measureSizes(ctx, reference, r.setReference) },
		func() error { return p.measureNext(ctx, ours, legacy, rowNext, r.setOurs) },
		func() error { return p.measureNext(ctx, reference, legacy, rowNext, r.setReference) },
		func() error { return p.measureNext(ctx, ours, modern, rowNextModern, r.setOurs) },
		func() error { return p.measureLate(ctx, ours, r.setOurs) },
		func() error { return p.measureHTTP(ctx, w, ours, r.setOurs) },
		func() error { return p.measureRuns(ctx, w, ours, r.setOurs) },
		func() error { return p.measureEncryption(ctx, w, ours, r.setOurs) },
		func() error { return p.measureAppends(ctx, w, r.setOurs) },
		func() error { return p.measureCrowd(ctx, w, ours, r.setOurs) },
	} {
		if err := m(); err != nil {
			return err
		}
	}
	return nil
}

// record adds a figure to a row.
type record func(row, figure)

// measureStart measures the time from the creation of the process to its first answer of
// workflow_list.
func (p plan) measureStart(ctx context.Context, t *target, v protocolVersion, to row, rec record) error {
	if t == nil {
		return nil
	}
	var walls, cpus []time.Duration
	for range p.starts {
		wall, cpu, err := startOnce(ctx, t, v)
		if err != nil {
			return err
		}
		walls, cpus = append(walls, wall), append(cpus, cpu)
	}
	f := latencyFigure(walls)
	f.CPU = new(latencyFigure(cpus).Value)
	rec(to, f)
	return nil
}

func startOnce(ctx context.Context, t *target, v protocolVersion) (wall, cpu time.Duration, err error) {
	s, err := t.startServer(ctx, v)
	if err != nil {
		return 0, 0, err
	}
	defer func() { cpu = s.stop() }()
	if err := s.initializeSession(ctx); err != nil {
		return 0, 0, err
	}
	result, _, err := s.callTool(ctx, "tools/call", toolCall("workflow_list", map[string]any{}))
	wall = time.Since(s.started)
	if err != nil {
		return 0, 0, err
	}
	var list struct {
		Workflows []struct {
			ID string `json:"id"`
		} `json:"workflows"`
	}
	if err := toolAnswer(result, &list); err != nil {
		return 0, 0, err
	}
	if len(list.Workflows) < workflowCount {
		return 0, 0, fmt.Errorf("%s lists %d workflows, want at least %d", t.name, len(list.Workflows), workflowCount)
	}
	return wall, 0, nil
}

// measureSizes measures one process: the size of tools/list, and its memory before and
// after many calls.
func (p plan) measureSizes(ctx context.Context, t *target, rec record) error {
	if t == nil {
		return nil
	}
	s, err := t.startServer(ctx, legacy)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.initializeSession(ctx); err != nil {
		return err
	}
	if _, _, err := s.callTool(ctx, "tools/call", toolCall("workflow_list", map[string]any{})); err != nil {
		return err
	}
	if err := p.measureMemory(ctx, s, rowIdle, rec); err != nil {
		return err
	}
	if _, err := loopWalk(t.echoes).measureWalk(ctx, s, p.memoryCalls); err != nil {
		return err
	}
	// Read the memory without a pause, because the memory in use during work is measured.
	if err := (plan{}).measureMemory(ctx, s, rowWorked, rec); err != nil {
		return err
	}
	tools, _, err := s.callTool(ctx, "tools/list", nil)
	if err != nil {
		return err
	}
	rec(rowTools, figure{Value: float64(len(tools)) / 1e3})
	return nil
}

// measureMemory reads the memory of a process after an idle time.
func (p plan) measureMemory(ctx context.Context, s *server, to row, rec record) error {
	select {
	case <-time.After(p.quiet):
	case <-ctx.Done():
		return fmt.Errorf("wait for a quiet process: %w", ctx.Err())
	}
	m, err := measure.MemoryOf(s.processID())
	if errors.Is(err, measure.ErrNotMeasured) {
		return nil
	}
	if err != nil {
		return err
	}
	rec(to, figure{
		Value: toMegabytes(m.Resident), Peak: new(toMegabytes(m.Peak)), Own: new(toMegabytes(m.Own)),
	})
	return nil
}

// measureNext measures workflow_next in one session over stdio, one walk after another.
func (p plan) measureNext(ctx context.Context, t *target, v protocolVersion, to row, rec record) error {
	if t == nil {
		return nil
	}
	s, err := t.startServer(ctx, v)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.initializeSession(ctx); err != nil {
		return err
	}
	f, err := measureCalls(ctx, s, s.processID(), p.calls, loopWalk(t.echoes).measureWalk)
	if err != nil {
		return err
	}
	rec(to, f)
	return nil
}

// measureLate measures workflow_next at a late step of a walk.
func (p plan) measureLate(ctx context.Context, t *target, rec record) error {
	s, err := t.startServer(ctx, legacy)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.initializeSession(ctx); err != nil {
		return err
	}
	w := longWalk()
	if _, err := w.measureWalk(ctx, s, w.length-lateSteps); err != nil {
		return err
	}
	f, err := measureCalls(ctx, s, s.processID(), p.calls/2, w.measureRepeat)
	if err != nil {
		return err
	}
	rec(rowNextLate, f)
	return nil
}

// measureHTTP measures workflow_next over HTTP with the token.
func (p plan) measureHTTP(ctx context.Context, w *workplace, t *target, rec record) error {
	h, err := w.serveHTTP(ctx, t)
	if err != nil {
		return err
	}
	defer h.stop()
	for _, m := range []struct {
		version protocolVersion
		to      row
	}{{modern, rowHTTPModern}, {legacy, rowHTTPLegacy}} {
		if err := h.openSession(ctx, m.version); err != nil {
			return err
		}
		f, err := measureCalls(ctx, h, h.cmd.Process.Pid, p.calls/2, loopWalk(true).measureWalk)
		if err != nil {
			return err
		}
		rec(m.to, f)
	}
	return nil
}

// measureCalls measures n calls after some warm-up calls.
func measureCalls(ctx context.Context, c caller, pid, n int, calls func(context.Context, caller, int) ([]time.Duration, error)) (figure, error) {
	if _, err := calls(ctx, c, min(n/10, loopLength)); err != nil {
		return figure{}, err
	}
	clock := measure.StartCPU(pid)
	times, err := calls(ctx, c, n)
	if err != nil {
		return figure{}, err
	}
	f := latencyFigure(times)
	f.CPU = clock.PerCall(n)
	return f, nil
}
