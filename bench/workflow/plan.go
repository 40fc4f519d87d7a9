package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// plan says how much is measured.
type plan struct {
	// starts is the number of processes that are started for each row.
	starts int
	// calls is the number of calls of a latency, memoryCalls that before the
	// memory is read again.
	calls, memoryCalls int
	// quiet is how long a process is left alone before its memory is read.
	quiet time.Duration
}

func fullPlan() plan {
	return plan{starts: 15, calls: 2000, memoryCalls: 1000, quiet: 2 * time.Second}
}

func shortPlan() plan {
	return plan{starts: 5, calls: 300, memoryCalls: 1000, quiet: 500 * time.Millisecond}
}

// measure fills the report. The reference may be nil.
func (p plan) measure(ctx context.Context, w *workplace, ours, reference *target, r *report) error {
	size, err := ours.size()
	if err != nil {
		return err
	}
	r.ours(rowBinary, figure{Value: megabytes(size)})
	inYAML := ours.with("WORKFLOW_STORAGE_PATH=" + w.yaml)
	for _, m := range []func() error{
		func() error { return p.start(ctx, ours, legacy, rowStart, r.ours) },
		func() error { return p.start(ctx, reference, legacy, rowStart, r.reference) },
		func() error { return p.start(ctx, inYAML, legacy, rowStartYAML, r.ours) },
		func() error { return p.start(ctx, ours, modern, rowStartModern, r.ours) },
		func() error { return p.sizes(ctx, ours, r.ours) },
		func() error { return p.sizes(ctx, reference, r.reference) },
		func() error { return p.next(ctx, ours, legacy, rowNext, r.ours) },
		func() error { return p.next(ctx, reference, legacy, rowNext, r.reference) },
		func() error { return p.next(ctx, ours, modern, rowNextModern, r.ours) },
		func() error { return p.late(ctx, ours, r.ours) },
		func() error { return p.http(ctx, w, ours, r.ours) },
		func() error { return p.runs(ctx, w, ours, r.ours) },
		func() error { return p.appends(ctx, w, r.ours) },
		func() error { return p.crowd(ctx, w, ours, r.ours) },
	} {
		if err := m(); err != nil {
			return err
		}
	}
	return nil
}

// record takes a figure for a row.
type record func(row, figure)

// start measures the time from making the process to its first answer of
// workflow_list.
func (p plan) start(ctx context.Context, t *target, e era, to row, rec record) error {
	if t == nil {
		return nil
	}
	var walls, cpus []time.Duration
	for range p.starts {
		wall, cpu, err := startOnce(ctx, t, e)
		if err != nil {
			return err
		}
		walls, cpus = append(walls, wall), append(cpus, cpu)
	}
	f := latency(walls)
	f.CPU = new(latency(cpus).Value)
	rec(to, f)
	return nil
}

func startOnce(ctx context.Context, t *target, e era) (wall, cpu time.Duration, err error) {
	s, err := t.start(ctx, e)
	if err != nil {
		return 0, 0, err
	}
	defer func() { cpu = s.stop() }()
	if err := s.greet(ctx); err != nil {
		return 0, 0, err
	}
	result, _, err := s.call(ctx, "tools/call", toolCall("workflow_list", map[string]any{}))
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
		return 0, 0, fmt.Errorf("%s lists %d workflows; at least %d are there", t.name, len(list.Workflows), workflowCount)
	}
	return wall, 0, nil
}

// sizes measures one process: the list of its tools, and its memory before and
// after many calls.
func (p plan) sizes(ctx context.Context, t *target, rec record) error {
	if t == nil {
		return nil
	}
	s, err := t.start(ctx, legacy)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.greet(ctx); err != nil {
		return err
	}
	if _, _, err := s.call(ctx, "tools/call", toolCall("workflow_list", map[string]any{})); err != nil {
		return err
	}
	if err := p.memory(ctx, s, rowIdle, rec); err != nil {
		return err
	}
	if _, err := loopWalk(t.echoes).walk(ctx, s, p.memoryCalls); err != nil {
		return err
	}
	// No time to settle: what counts is what is held while work goes on.
	if err := (plan{}).memory(ctx, s, rowWorked, rec); err != nil {
		return err
	}
	tools, _, err := s.call(ctx, "tools/list", nil)
	if err != nil {
		return err
	}
	rec(rowTools, figure{Value: float64(len(tools)) / 1e3})
	return nil
}

// memory reads the memory of a process after it was left alone.
func (p plan) memory(ctx context.Context, s *server, to row, rec record) error {
	select {
	case <-time.After(p.quiet):
	case <-ctx.Done():
		return fmt.Errorf("wait for a quiet process: %w", ctx.Err())
	}
	m, err := measure.MemoryOf(s.pid())
	if errors.Is(err, measure.ErrNotMeasured) {
		return nil
	}
	if err != nil {
		return err
	}
	rec(to, figure{
		Value: megabytes(m.Resident), Peak: new(megabytes(m.Peak)), Own: new(megabytes(m.Own)),
	})
	return nil
}

// next measures workflow_next in one session over stdio, walk after walk.
func (p plan) next(ctx context.Context, t *target, e era, to row, rec record) error {
	if t == nil {
		return nil
	}
	s, err := t.start(ctx, e)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.greet(ctx); err != nil {
		return err
	}
	f, err := measureCalls(ctx, s, s.pid(), p.calls, loopWalk(t.echoes).walk)
	if err != nil {
		return err
	}
	rec(to, f)
	return nil
}

// late measures workflow_next far into a walk.
func (p plan) late(ctx context.Context, t *target, rec record) error {
	s, err := t.start(ctx, legacy)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.greet(ctx); err != nil {
		return err
	}
	w := longWalk()
	if _, err := w.walk(ctx, s, w.length-lateSteps); err != nil {
		return err
	}
	f, err := measureCalls(ctx, s, s.pid(), p.calls/2, w.repeat)
	if err != nil {
		return err
	}
	rec(rowNextLate, f)
	return nil
}

// http measures workflow_next over HTTP with the token.
func (p plan) http(ctx context.Context, w *workplace, t *target, rec record) error {
	h, err := w.serveHTTP(ctx, t)
	if err != nil {
		return err
	}
	defer h.stop()
	for _, m := range []struct {
		era era
		to  row
	}{{modern, rowHTTPModern}, {legacy, rowHTTPLegacy}} {
		if err := h.greet(ctx, m.era); err != nil {
			return err
		}
		f, err := measureCalls(ctx, h, h.cmd.Process.Pid, p.calls/2, loopWalk(true).walk)
		if err != nil {
			return err
		}
		rec(m.to, f)
	}
	return nil
}

// measureCalls makes n calls after some that warm up.
func measureCalls(ctx context.Context, c caller, pid, n int, calls func(context.Context, caller, int) ([]time.Duration, error)) (figure, error) {
	if _, err := calls(ctx, c, min(n/10, loopLength)); err != nil {
		return figure{}, err
	}
	clock := measure.StartCPU(pid)
	times, err := calls(ctx, c, n)
	if err != nil {
		return figure{}, err
	}
	f := latency(times)
	f.CPU = clock.PerCall(n)
	return f, nil
}
