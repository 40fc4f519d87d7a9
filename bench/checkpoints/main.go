// Command checkpoints measures the storage of contexts, and prints tables in
// Markdown:
//
//	go run ./bench/checkpoints [-short] [-langgraph=false] [-install]
//
// It measures what seed 003 gives service levels for and the design a budget,
// storage ratios over sessions of various kinds, and, beside it in the same run,
// LangGraph's SQLite checkpointer on the same contexts. It never fails for a
// budget that is missed: the numbers of a busy machine are no verdict.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
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
	short     bool
	langgraph bool
	install   bool
}

// bench is one run of the command.
type bench struct {
	options
	dir    string
	stdout io.Writer
	stderr io.Writer
	// dirs counts the directories that were made.
	dirs int
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{stdout: stdout, stderr: stderr}
	flags := flag.NewFlagSet("checkpoints", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&b.short, "short", false, "fewer calls, and 5,000 checkpoints in place of 100,000")
	flags.BoolVar(&b.langgraph, "langgraph", true, "measure LangGraph's SQLite checkpointer, too")
	flags.BoolVar(&b.install, "install", false, "install it by npm first; it compiles SQLite, which takes some minutes")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	dir, err := os.MkdirTemp("", "guideway-bench-")
	if err != nil {
		return fmt.Errorf("make a directory to work in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b.dir = dir
	fmt.Fprintf(stdout, "%s, %s/%s, %d cores, %s\nload average: %s before, ", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), runtime.Version(), load())
	levels, err := b.levels(ctx)
	if err != nil {
		return err
	}
	stored, err := b.storage(ctx)
	if err != nil {
		return err
	}
	beside, err := b.beside(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s after\n\n%s\n%s\n%s", load(), levels, stored, beside)
	return nil
}

// load is the load average of the machine, where it says one.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}

// less gives fewer of something in a short run.
func (b *bench) less(all, few int) int {
	if b.short {
		return few
	}
	return all
}
