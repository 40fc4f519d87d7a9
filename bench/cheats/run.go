package cheats

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/machine/driver"
)

// result is the result of one scenario.
type result struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Source string `json:"source"`
	Why    string `json:"why,omitempty"`
	// Skipped is the reason why the scenario did not run.
	Skipped string `json:"skipped,omitempty"`
	Cheat   []cell `json:"cheat,omitempty"`
	Honest  []cell `json:"honest,omitempty"`
	// Model has the results of a model in place of the scripts.
	Model []cell `json:"model,omitempty"`
}

// plan is what to run.
type plan struct {
	dir, program string
	scenarios    []*scenario
	// arms are the arms of the agents. With checksArm there are results of ciArm.
	arms []arm
	jobs int
	// model, if set, replaces the scripts.
	model *driver.SelectedModel
}

// columns returns the arms that have results.
func (p *plan) columns() []arm {
	if slices.Contains(p.arms, checksArm) {
		return append(slices.Clone(p.arms), ciArm)
	}
	return p.arms
}

// runAgents runs all agents, a few at once.
func runAgents(ctx context.Context, p plan) ([]*result, error) {
	suite, err := newSuite(ctx, p.dir, p.program)
	if err != nil {
		return nil, err
	}
	suite.model = p.model
	results := make([]*result, len(p.scenarios))
	var agents []func() error
	for i, s := range p.scenarios {
		r := &result{Name: s.name, Title: s.title, Source: s.source, Why: s.why}
		results[i] = r
		if r.Skipped = s.missing(); r.Skipped != "" {
			continue
		}
		if _, err := suite.prepareProject(ctx, s.project); err != nil {
			return nil, err
		}
		rows := map[role]*[]cell{cheating: &r.Cheat, honest: &r.Honest}
		if p.model != nil {
			rows = map[role]*[]cell{modeled: &r.Model}
		}
		for role, cells := range rows {
			*cells = make([]cell, len(p.columns()))
			for j, a := range p.arms {
				agents = append(agents, func() error { return suite.runAgent(ctx, s, role, a, (*cells)[j:]) })
			}
		}
	}
	waiting := make(chan func() error, len(agents))
	for _, run := range agents {
		waiting <- run
	}
	close(waiting)
	return results, measure.RunClients(p.jobs, func(int) error {
		var errs []error
		for run := range waiting {
			errs = append(errs, run())
		}
		return errors.Join(errs...)
	})
}

// missing returns the reason why the scenario cannot run on this machine, or "".
func (s *scenario) missing() string {
	if s.linux && !isLinux {
		return "it needs Linux"
	}
	for _, name := range s.programs() {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is not installed"
		}
	}
	return ""
}

// runAgent runs one agent in one arm. It sets the first cell, and in checksArm the second one
// to the result of ciArm. An error means that the run was interrupted.
func (s *suite) runAgent(ctx context.Context, sc *scenario, r role, in arm, cells []cell) error {
	if in == checksArm {
		cells = cells[:2]
		cells[1].Arm = ciArm
	} else {
		cells = cells[:1]
	}
	cells[0].Arm = in
	for i := range cells {
		switch r {
		case cheating:
			cells[i].Expected = sc.expect[cells[i].Arm]
		case honest:
			cells[i].Expected = accepted
		}
	}
	if err := s.fillCells(ctx, sc, r, cells); err != nil {
		for i := range cells {
			cells[i].Unexpected = "the script failed: " + err.Error()
		}
	}
	return ctx.Err()
}

func (s *suite) fillCells(ctx context.Context, sc *scenario, r role, cells []cell) error {
	in := cells[0].Arm
	place, err := s.newStage(ctx, sc.project, strings.ReplaceAll(fmt.Sprintf("%s-%s-%s", sc.name, r, in), " ", "-"), in)
	if err != nil {
		return err
	}
	a := &agent{stage: place, ctx: ctx, project: sc.project, task: sc.task}
	defer a.close()
	if sc.setup != nil {
		sc.setup(a)
	}
	a.addPolicy()
	a.approveChecks()
	switch r {
	case cheating:
		sc.cheat(a)
	case honest:
		sc.honest(a)
	default:
		m := &modelAgent{agent: a, model: *s.model}
		m.doScenario(sc)
	}
	if a.err != nil {
		return a.err
	}
	missing := place.judge(ctx, sc, r)
	for i := range cells {
		c := &cells[i]
		if c.Arm == ciArm {
			c.Outcome, c.Reason, err = a.verifyInCI(ctx)
		} else {
			c.Outcome, c.Reason, err = a.readOutcome(ctx)
		}
		if err != nil {
			return err
		}
		if c.Done = missing == nil; !c.Done && c.Reason == "" {
			c.Reason = missing.Error()
		}
		c.compare(r)
	}
	return nil
}

// checkResults returns an error that names each cell that differs from its expectation.
func checkResults(results []*result) error {
	var errs []error
	for _, r := range results {
		for _, c := range slices.Concat(r.Cheat, r.Model) {
			if c.Unexpected != "" {
				errs = append(errs, fmt.Errorf("%s, %s: %s (%s)", r.Name, c.Arm, c.Unexpected, c.Reason))
			}
		}
		for _, c := range r.Honest {
			if c.Unexpected != "" {
				errs = append(errs, fmt.Errorf("honest twin of %s, %s: %s (%s)", r.Name, c.Arm, c.Unexpected, c.Reason))
			}
		}
	}
	return errors.Join(errs...)
}
