// Command bench measures what the design gives a budget to, and prints one
// table:
//
//	go run ./bench [-short] [-json] [-reference DIR | -install-reference]
//
// It builds the program, makes a catalog of 50 workflows, and speaks MCP to the
// program as a client would. It never fails for a budget that is missed: the
// numbers of a busy machine are no verdict.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	short, json      bool
	binary           string
	reference        string
	installReference bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.short, "short", false, "fewer runs and calls")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	flags.StringVar(&o.binary, "binary", "", "measure this program instead of building one")
	flags.StringVar(&o.reference, "reference", "", "measure the reference too, installed by npm below this `directory`")
	flags.BoolVar(&o.installReference, "install-reference", false, "install the reference by npm into the user's cache and measure it")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("read the command line: %w", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("there are no arguments but flags (got %q)", flags.Arg(0))
	}
	return o, nil
}

// longest bounds a whole run, so that a server that never answers ends it.
const longest = 10 * time.Minute

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opts, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	dir, err := os.MkdirTemp("", "guideway-bench-")
	if err != nil {
		return fmt.Errorf("make a directory to work in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	w, err := newWorkplace(dir)
	if err != nil {
		return err
	}
	ours, err := w.guideway(ctx, opts.binary)
	if err != nil {
		return err
	}
	reference, err := w.reference(ctx, opts, stderr)
	if err != nil {
		return err
	}
	report := newReport(describeMachine(ctx), reference != nil)
	plan := fullPlan()
	if opts.short {
		plan = shortPlan()
	}
	if err := plan.measure(ctx, w, ours, reference, report); err != nil {
		return err
	}
	report.Machine.LoadAfter = loadAverage()
	if opts.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	return report.write(stdout)
}
