// Package workflow measures the budgets of guided workflows and prints one table. It
// creates a catalog of 50 workflows and speaks MCP to the program as a client does.
package workflow

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// options are the command-line flags.
type options struct {
	measure.Options
	json             bool
	reference        string
	installReference bool
}

// maxDuration limits a measurement, in case a server never answers.
const maxDuration = 10 * time.Minute

// Run measures and prints the table.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	flags := flag.NewFlagSet("workflow", flag.ContinueOnError)
	flags.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	flags.StringVar(&o.reference, "reference", "", "measure the reference too, installed by npm below this `directory`")
	flags.BoolVar(&o.installReference, "install-reference", false, "install the reference by npm into the user's cache and measure it")
	remove, err := o.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	ctx, cancel := context.WithTimeout(ctx, maxDuration)
	defer cancel()
	w, err := newWorkplace(o.Dir)
	if err != nil {
		return err
	}
	program, err := o.Program(ctx)
	if err != nil {
		return err
	}
	ours := w.guidewayTarget(program)
	reference, err := w.referenceTarget(ctx, &o)
	if err != nil {
		return err
	}
	report := newReport(measure.DescribeMachine(ctx), reference != nil)
	plan := fullPlan()
	if o.Short {
		plan = shortPlan()
	}
	if err := plan.measureAll(ctx, w, ours, reference, report); err != nil {
		return err
	}
	report.Machine.Finish()
	if o.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	return report.writeTable(stdout)
}
