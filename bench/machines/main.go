// Package machines measures how many agent machines one process executes, and the time that
// the engine adds to a step. As in the program, the runs are stored in SQLite with every
// commit synced, and their handlers run in script workers. The scripted model answers
// immediately. The table ends with earlier figures of other engines. With -postgres, several
// workers drive the machines on one database, with a model that answers late.
package machines

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// options are the command line.
type options struct {
	measure.Options
	machines int
	profile  string

	// postgres is the URL of the server on which workers drive the machines; "" measures one
	// process. answers is the delay of the model, and chaos the interval of kills.
	postgres       string
	workers        int
	answers, chaos time.Duration
}

// Run measures and prints the table.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	flags := flag.NewFlagSet("machines", flag.ContinueOnError)
	flags.IntVar(&o.machines, "machines", 200, "the number of concurrent machines")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the machines without handlers to this `file`")
	worker := flags.String("worker", "", "run a worker with this configuration")
	flags.StringVar(&o.postgres, "postgres", "", "drive the machines by several workers on the PostgreSQL server at this `URL`")
	flags.IntVar(&o.workers, "workers", 4, "with -postgres: the number of workers")
	flags.DurationVar(&o.answers, "answers", 30*time.Second, "with -postgres: the time that the model takes for an answer")
	flags.DurationVar(&o.chaos, "chaos", 0, "with -postgres: kill a worker at this interval")
	remove, err := o.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	if *worker != "" {
		return runClusterWorker(ctx, *worker)
	}
	machine := measure.DescribeMachine(ctx)
	if o.postgres != "" {
		r, err := measureCluster(ctx, &o)
		if err != nil {
			return err
		}
		machine.Finish()
		text, err := formatCluster(&o, r)
		fmt.Fprintf(stdout, "%s\n%s", machine.String(), text)
		return err
	}
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
