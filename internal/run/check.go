package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// Checker executes the checks of steps.
type Checker interface {
	// Workspace returns the workspace of the directory of a project. It returns an error if
	// this process has no access to the directory.
	Workspace(ctx context.Context, dir string) (*evidence.Workspace, error)
	// Check executes a check. It returns an error if the check cannot be executed now: a
	// person has not approved it, or this process has no access to the workspace.
	Check(ctx context.Context, r evidence.Request) (evidence.Result, error)
}

// RuleCheckWaits refuses an output while one of the checks that decide it cannot be executed.
const RuleCheckWaits = "check-waits"

// checkedCall is a call of Continue with the results of the checks that it needed. The
// results stay valid while the call is repeated after conflicts, because they belong to its
// handle.
type checkedCall struct {
	service  *Service
	connect  *Connected
	progress func(message string)
	results  []evidence.Result
	outcomes map[string]criteria.CheckOutcome
	// release unlocks the run for other calls that execute checks; nil if it is not locked.
	release func()
}

// newCheckedCall returns a call without results. The caller must call end.
func (s *Service) newCheckedCall(connect *Connected, progress func(string)) *checkedCall {
	c := &checkedCall{service: s, connect: connect, progress: progress}
	if s.checker != nil {
		c.outcomes = map[string]criteria.CheckOutcome{}
	}
	return c
}

func (c *checkedCall) end() {
	if c.release != nil {
		c.release()
	}
}

// decide decides a command. It executes the checks that decide it, which may take minutes.
// If another call executes checks of the run, decide waits for it and returns CodeConflict,
// so that the caller loads the run again.
func (c *checkedCall) decide(ctx context.Context, rec Record, l *loadedRun, cmd engine.Continue) ([]engine.Event, *engine.Refusal, error) {
	for {
		cmd.Checks = c.outcomes
		facts, refusal := l.program.Decide(l.state, engine.Command{Continue: &cmd})
		if refusal == nil || refusal.Rule != engine.RuleChecksPending {
			return facts, refusal, nil
		}
		if c.release == nil {
			release, err := c.service.checking.lock(ctx, rec.ID)
			if err != nil {
				return nil, nil, err
			}
			c.release = release
			return nil, nil, guideway.Errorf(guideway.CodeConflict, "another call may have continued run %s", rec.ID)
		}
		if err := c.execute(ctx, rec, l, refusal.Pending); err != nil {
			return nil, nil, err
		}
	}
}

// execute executes checks and adds their results to the call.
func (c *checkedCall) execute(ctx context.Context, rec Record, l *loadedRun, pending []criteria.PendingCheck) error {
	created, err := c.service.readCreated(ctx, rec)
	if err != nil {
		return err
	}
	check, needed := c.service.checker.Check, &ConnectNeeded{}
	if created.Workspace != nil && created.Workspace.Connect {
		check = c.connect.findResult
	}
	for _, p := range pending {
		request := evidence.Request{
			Run: rec.ID, Step: rec.Step, Key: p.Key, Template: p.Template, Rule: p.Rule,
			Start: created.Workspace, ProjectPath: rec.Project.Path, Progress: c.progress,
		}
		result, err := check(ctx, request)
		if ctx.Err() != nil {
			return fmt.Errorf("execute the checks of step %s: %w", rec.Step, ctx.Err())
		}
		if errors.As(err, new(*ConnectNeeded)) {
			needed.Checks = append(needed.Checks, request)
			continue
		}
		if err != nil {
			return c.service.newWaitingRefusal(ctx, rec, l, err)
		}
		result.Step, result.Key = rec.Step, p.Key
		c.results = append(c.results, result)
		c.outcomes[p.Key] = result.CheckOutcome
	}
	if len(needed.Checks) > 0 {
		return needed
	}
	return nil
}

// newWaitingRefusal returns the refusal of an output with a check that cannot be executed.
func (s *Service) newWaitingRefusal(ctx context.Context, rec Record, l *loadedRun, cause error) *Refusal {
	r := s.newRefusalAt(ctx, &engine.Refusal{Rule: RuleCheckWaits, Message: "the step waits for a check: " + cause.Error()}, rec, l)
	if fix := guideway.ErrorFix(cause); fix != "" {
		r.Fix = fix + "; then submit the output again with the same handle"
	}
	r.Alternatives = honestAlternatives(rec)[1:]
	return r
}

// readCreated returns the data of the first event of a run.
func (s *Service) readCreated(ctx context.Context, rec Record) (Created, error) {
	events, err := s.readEvents(ctx, rec, 1)
	if err != nil {
		return Created{}, err
	}
	created, err := parseCreated(rec, events[0])
	if err != nil {
		return Created{}, untrustedEventError(rec.ID, 1, err.Error())
	}
	return created, nil
}

// events returns the results of the call as events.
func (c *checkedCall) events() ([]Event, error) {
	var list []Event
	for _, r := range c.results {
		e, err := newEvent(KindCheckRun, r)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// startWorkspace returns the workspace of a new run. It is nil if the definition has no
// checks, or if this process has no access to the directory: each check then reports the
// missing access.
func (s *Service) startWorkspace(ctx context.Context, p *program, dir string) *evidence.Workspace {
	if s.checker == nil || dir == "" || !p.HasChecks() {
		return nil
	}
	w, err := s.checker.Workspace(ctx, dir)
	if err != nil {
		s.log.InfoContext(ctx, "cannot read the workspace of a new run, so checks that compare files with the start of the run will not have a result", "directory", dir, "error", err)
		return nil
	}
	return w
}

// CheckSummary is a check in an answer.
type CheckSummary struct {
	// Check describes the check.
	Check  string `json:"check"`
	Passed bool   `json:"passed"`
	// Undefined is set if the project does not define the check: the step is then labelled
	// a claim.
	Undefined bool `json:"undefined,omitempty"`
	ExitCode  *int `json:"exitCode,omitempty"`
	// ConnectHost is the computer on which guideway connect executed the check, or "" if the
	// server executed it.
	ConnectHost string `json:"connectHost,omitempty"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"durationMs"`
	// Output is the end of the output of a check that did not pass.
	Output string `json:"output,omitempty"`
}

// maxCheckOutput bounds CheckSummary.Output, in bytes.
const maxCheckOutput = 2000

// summaries returns the results of the call for its answer.
func (c *checkedCall) summaries() []CheckSummary {
	var list []CheckSummary
	for _, r := range c.results {
		list = append(list, summarizeCheck(r))
	}
	return list
}

func summarizeCheck(r evidence.Result) CheckSummary {
	one := CheckSummary{Check: r.Describe, Passed: r.Passed, Undefined: r.Undefined, ExitCode: r.ExitCode, ConnectHost: r.ConnectHost(), DurationMS: r.DurationMS}
	if output := r.Head + r.Tail; !r.Passed && !r.Undefined {
		one.Output = toValidUTF8(output[max(0, len(output)-maxCheckOutput):])
	}
	return one
}

// summariesBefore returns the checks of the command of the last event. Their events directly
// precede it.
func summariesBefore(events []Event) []CheckSummary {
	var list []CheckSummary
	for i := len(events) - 2; i >= 0 && events[i].Kind == KindCheckRun; i-- {
		var r evidence.Result
		if json.Unmarshal(events[i].Data, &r) == nil {
			list = append(list, summarizeCheck(r))
		}
	}
	slices.Reverse(list)
	return list
}

// withLabels returns a copy of events with the labels of those that complete steps. The
// results of checks in an imported bundle are claims of the bundle.
func withLabels(events []Event) []Event {
	list := slices.Clone(events)
	for i := range list {
		e := &list[i]
		if e.Kind != string(engine.EventStepCompleted) {
			continue
		}
		e.Label = engine.LabelClaim
		if e.By.Via == ViaImport {
			continue
		}
		var fact struct{ Evidence []engine.Evidence }
		if json.Unmarshal(e.Data, &fact) == nil {
			e.Label = engine.Event{Evidence: fact.Evidence}.Label()
		}
	}
	return list
}

// runLocks lock runs by their id within this process.
type runLocks struct {
	mu    sync.Mutex
	locks map[string]*runLock
}

// runLock is a lock with the number of calls that hold it or wait for it.
type runLock struct {
	held chan struct{}
	uses int
}

// lock locks a run. The caller must call release once.
func (l *runLocks) lock(ctx context.Context, id string) (release func(), err error) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[string]*runLock{}
	}
	one := l.locks[id]
	if one == nil {
		one = &runLock{held: make(chan struct{}, 1)}
		l.locks[id] = one
	}
	one.uses++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.uses--; one.uses == 0 {
			delete(l.locks, id)
		}
	}
	select {
	case one.held <- struct{}{}:
		return func() { <-one.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("the wait for the checks of run %s ended: %w", id, ctx.Err())
	}
}
