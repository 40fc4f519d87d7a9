// Command machines measures how many agent machines one process drives, and what
// the engine adds to a step:
//
//	go run ./bench/machines [-short] [-machines 200] [-dir DIR] [-cpuprofile FILE]
//
// The runs are kept as the program keeps them, in SQLite with every commit synced;
// their handlers run in real workers; the model is the scripted one, which answers
// at once, so that what is measured is ours. Figures of other engines stand beside
// it. It never fails for a figure: those of a busy machine are no verdict.
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

	"github.com/guideway-dev/guideway/internal/script/worker"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" { // the program is its own worker
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
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
	short    bool
	machines int
	dir      string
	profile  string
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("machines", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.short, "short", false, "fewer runs")
	flags.IntVar(&o.machines, "machines", 200, "how many run at once")
	flags.StringVar(&o.dir, "dir", "", "a `directory` on the disk to measure; default: the one for temporary files")
	flags.StringVar(&o.profile, "cpuprofile", "", "a `file` for the profile of the machines without handlers at once")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	dir, err := os.MkdirTemp(o.dir, "guideway-bench-")
	if err != nil {
		return fmt.Errorf("make a directory to work in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	before := load()
	var rows []row
	for _, m := range []kind{plain, withHandlers} {
		r, err := measure(ctx, dir, m, o)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	fmt.Fprintf(stdout, "%s, %s/%s, %d cores, %s\nload average: %s before, %s after\n\n%s",
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), before, load(), table(rows, o.machines))
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
