// Package checkpoints measures the storage of contexts and prints tables in Markdown: the
// service levels with their budgets, storage ratios of several kinds of sessions, and
// LangGraph's SQLite checkpointer on the same contexts in the same run.
package checkpoints

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/guideway-dev/guideway/bench/measure"
)

// bench is one run of the measurement.
type bench struct {
	measure.Options
	langgraph bool
	compare   bool
	install   bool
	// dirs counts the created directories.
	dirs int
}

// Run measures and prints the tables.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	flags := flag.NewFlagSet("checkpoints", flag.ContinueOnError)
	flags.BoolVar(&b.langgraph, "langgraph", true, "measure LangGraph's SQLite checkpointer too")
	flags.BoolVar(&b.compare, "compare", false, "print only the table that compares saves and loads with LangGraph")
	flags.BoolVar(&b.install, "install", false, "install LangGraph's packages by npm first; this compiles SQLite, which takes a few minutes")
	remove, err := b.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	machine := measure.DescribeMachine(ctx)
	if b.compare {
		compared, err := b.compareLangGraph(ctx)
		machine.Finish()
		fmt.Fprintf(stdout, "%s\n%s", machine.String(), compared)
		return err
	}
	levels, err := b.measureLevels(ctx)
	if err != nil {
		return err
	}
	stored, err := b.measureStorage(ctx)
	if err != nil {
		return err
	}
	compared, err := b.compareLangGraph(ctx)
	if err != nil {
		return err
	}
	machine.Finish()
	fmt.Fprintf(stdout, "%s\n%s\n%s\n%s", machine.String(), levels, stored, compared)
	return nil
}
