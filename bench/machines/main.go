// Package machines measures how many agent machines one process executes, and the time that
// the engine adds to a step. As in the program, the runs are stored in SQLite with every
// commit synced, and their handlers run in script workers. The scripted model answers
// immediately. The table ends with earlier figures of other engines.
package machines

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/guideway-dev/guideway/bench/measure"
)

// options are the command line.
type options struct {
	measure.Options
	machines int
	profile  string
}

// Run measures and prints the table.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	flags := flag.NewFlagSet("machines", flag.ContinueOnError)
	flags.IntVar(&o.machines, "machines", 200, "the number of concurrent machines")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the machines without handlers to this `file`")
	remove, err := o.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	machine := measure.DescribeMachine(ctx)
	var rows []row
	for _, k := range []kind{plain, withHandlers} {
		r, err := measureKind(ctx, k, &o)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	machine.Finish()
	fmt.Fprintf(stdout, "%s\n%s", machine.String(), formatTable(rows, o.machines))
	return nil
}
