// Package cheats runs scripted agents that cheat, and an honest twin of each, against no
// server, workflow_next, runs without checks and runs with checks. A judge that is independent
// of Guideway examines what each agent delivered. A cheat succeeds if its work is recorded as
// complete and was not done.
package cheats

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
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
	flags.StringVar(&o.model, "model", "", "let this `model` do the tasks in place of the scripts: a name of the configuration, PROVIDER:MODEL, or \"configured\"")
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
	p := plan{dir: o.Dir, program: program, scenarios: selected, arms: agentArms(), jobs: o.jobs}
	if o.model != "" {
		model, err := OpenModel(ctx, o.model)
		if err != nil {
			return err
		}
		p.model = &model
	}
	results, err := runAgents(ctx, p)
	if err != nil {
		return err
	}
	if err := o.print(results, p.columns()); err != nil {
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

func (o *options) print(results []*result, arms []arm) error {
	if o.json {
		e := json.NewEncoder(o.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(results)
	}
	_, err := io.WriteString(o.Stdout, formatTable(results, arms))
	return err
}
