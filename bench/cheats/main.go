// Package cheats runs scripted agents that cheat, and an honest twin of each, against no
// server, workflow_next, runs without checks and runs with checks. A judge that is independent
// of Guideway examines what each agent delivered. A cheat succeeds if its work is recorded as
// complete and was not done.
package cheats

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/guideway-dev/guideway/bench/measure"
)

// options are the command line.
type options struct {
	measure.Options
	json  bool
	only  string
	model string
	jobs  int
}

// Run runs the agents and prints the table. It returns an error if a cell differs from its
// expectation.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	flags := flag.NewFlagSet("cheats", flag.ContinueOnError)
	flags.BoolVar(&o.json, "json", false, "print the results as JSON")
	flags.StringVar(&o.only, "only", "", "run the cheats of these `names`, separated by commas")
	flags.StringVar(&o.model, "model", "", "let the configured `model` do the tasks in place of the scripts")
	flags.IntVar(&o.jobs, "jobs", 2, "the number of agents at once")
	remove, err := o.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	program, err := o.Program(ctx)
	if err != nil {
		return err
	}
	selected, err := selectScenarios(o.only, o.Short)
	if err != nil {
		return err
	}
	results, err := runAgents(ctx, o.Dir, program, selected, o.jobs)
	if err != nil {
		return err
	}
	if err := o.print(results); err != nil {
		return err
	}
	return checkResults(results)
}

// selectScenarios returns the scenarios of the names, or all. If short is set, it returns
// only the quick ones.
func selectScenarios(names string, short bool) ([]*scenario, error) {
	var selected []*scenario
	known := map[string]*scenario{}
	for _, s := range scenarios() {
		known[s.name] = s
		if names == "" && (s.quick || !short) {
			selected = append(selected, s)
		}
	}
	if names == "" {
		return selected, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		if known[name] == nil {
			return nil, fmt.Errorf("there is no cheat %q", name)
		}
		selected = append(selected, known[name])
	}
	return selected, nil
}

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
}

// runAgents runs all agents of the scenarios.
func runAgents(ctx context.Context, dir, program string, list []*scenario, jobs int) ([]*result, error) {
	suite, err := newSuite(ctx, dir, program)
	if err != nil {
		return nil, err
	}
	results := make([]*result, len(list))
	var waiting []func() error
	for i, s := range list {
		r := &result{Name: s.name, Title: s.title, Source: s.source, Why: s.why}
		results[i] = r
		if r.Skipped = s.missing(); r.Skipped != "" {
			continue
		}
		if _, err := suite.prepareProject(ctx, s.project); err != nil {
			return nil, err
		}
		for _, role := range []role{cheating, honest} {
			cells := make([]cell, len(agentArms()))
			if role == cheating {
				r.Cheat = cells
			} else {
				r.Honest = cells
			}
			for j, a := range agentArms() {
				waiting = append(waiting, func() (err error) {
					cells[j], err = suite.runAgent(ctx, s, role, a)
					return err
				})
			}
		}
	}
	tasks := make(chan func() error, len(waiting))
	for _, w := range waiting {
		tasks <- w
	}
	close(tasks)
	return results, measure.RunClients(jobs, func(int) error {
		var errs []error
		for task := range tasks {
			errs = append(errs, task())
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

// runAgent runs one agent in one arm.
func (s *suite) runAgent(ctx context.Context, sc *scenario, r role, in arm) (cell, error) {
	c := cell{Arm: in, Expected: accepted}
	if r == cheating {
		c.Expected = sc.expect[in]
	}
	place, err := s.newStage(ctx, sc.project, strings.ReplaceAll(fmt.Sprintf("%s-%s-%s", sc.name, r, in), " ", "-"), in)
	if err != nil {
		return c, err
	}
	a := &agent{stage: place, ctx: ctx, project: sc.project, task: sc.task}
	defer a.close()
	if sc.setup != nil {
		sc.setup(a)
	}
	a.approveChecks()
	if r == cheating {
		sc.cheat(a)
	} else {
		sc.honest(a)
	}
	if a.err == nil {
		c.Outcome, c.Reason, a.err = a.readOutcome(ctx)
	}
	if a.err != nil {
		c.Unexpected = "the script failed: " + a.err.Error()
		return c, ctx.Err()
	}
	if missing := place.judge(ctx, sc, r); missing == nil {
		c.Done = true
	} else if c.Reason == "" {
		c.Reason = missing.Error()
	}
	c.compare(r)
	return c, nil
}

// checkResults returns an error that names each cell that differs from its expectation.
func checkResults(results []*result) error {
	var errs []error
	for _, r := range results {
		for _, c := range r.Cheat {
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

func (o *options) print(results []*result) error {
	if o.json {
		e := json.NewEncoder(o.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(results)
	}
	_, err := io.WriteString(o.Stdout, formatTable(results))
	return err
}
