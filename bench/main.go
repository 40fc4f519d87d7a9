// Command bench measures Guideway against its budgets and other programs. Run it in its own
// directory:
//
//	go run . [workflow | gateway | checkpoints | machines | evidence | cheats | answers | readback | recall | summary | secrets] [flags]
//
// Without a name it runs all measurements, with the flags that they share. It never fails
// for a missed budget: elapsed times on a busy machine are not reliable.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/guideway-dev/guideway/bench/answers"
	"github.com/guideway-dev/guideway/bench/cheats"
	"github.com/guideway-dev/guideway/bench/checkpoints"
	"github.com/guideway-dev/guideway/bench/evidence"
	"github.com/guideway-dev/guideway/bench/gateway"
	"github.com/guideway-dev/guideway/bench/machines"
	"github.com/guideway-dev/guideway/bench/readback"
	"github.com/guideway-dev/guideway/bench/recall"
	"github.com/guideway-dev/guideway/bench/secrets"
	"github.com/guideway-dev/guideway/bench/summary"
	"github.com/guideway-dev/guideway/bench/workflow"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
)

// measurement is one part of the bench.
type measurement struct {
	name string
	run  func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func measurements() []measurement {
	return []measurement{
		{"workflow", workflow.Run},
		{"gateway", gateway.Run},
		{"machines", machines.Run},
		{"checkpoints", checkpoints.Run},
		{"evidence", evidence.Run},
		{"cheats", cheats.Run},
		{"answers", answers.Run},
		{"readback", readback.Run},
		{"recall", recall.Run},
		{"summary", summary.Run},
		{"secrets", secrets.Run},
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" { // the measurement of machines starts this program as its script worker
		exitOn(worker.Main(os.Stdin, os.Stdout))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := runMeasurements(ctx, os.Args[1:])
	stop()
	exitOn(err)
}

// runMeasurements runs the named measurement, or all of them.
func runMeasurements(ctx context.Context, args []string) error {
	list := measurements()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		for _, m := range list {
			if m.name == args[0] {
				return m.run(ctx, args[1:], os.Stdout, os.Stderr)
			}
		}
		return fmt.Errorf("unknown measurement %q", args[0])
	}
	var errs []error
	for _, m := range list {
		fmt.Printf("## %s\n\n", m.name)
		if err := m.run(ctx, args, os.Stdout, os.Stderr); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
		}
		fmt.Println()
	}
	return errors.Join(errs...)
}

func exitOn(err error) {
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
