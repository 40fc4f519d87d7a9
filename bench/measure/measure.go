// Package measure contains the shared parts of all measurements: the flags, the program
// under measurement, percentiles, and the load, CPU time and memory that /proc reports.
package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Root is the root of the repository. The bench runs in its own directory.
const Root = ".."

// Options are the flags that every measurement has, and its output.
type Options struct {
	// Short requests fewer runs and calls.
	Short bool
	// Binary is the program under measurement; Program builds it if it is empty.
	Binary string
	// Dir is a temporary directory that exists while the measurement runs.
	Dir            string
	Stdout, Stderr io.Writer

	parent string
}

// Parse adds the shared flags to those of a measurement, parses args, and creates
// the temporary directory. The caller must call remove.
func (o *Options) Parse(flags *flag.FlagSet, args []string) (remove func(), err error) {
	flags.SetOutput(o.Stderr)
	flags.BoolVar(&o.Short, "short", false, "make fewer runs and calls")
	flags.StringVar(&o.Binary, "binary", "", "measure this `program` instead of building one")
	flags.StringVar(&o.parent, "dir", "", "write below this `directory` instead of the system's directory for temporary files")
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("read the command line: %w", err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("read the command line: unexpected argument %q", flags.Arg(0))
	}
	if o.Dir, err = os.MkdirTemp(o.parent, "guideway-bench-"); err != nil {
		return nil, fmt.Errorf("create a temporary directory: %w", err)
	}
	return func() { _ = os.RemoveAll(o.Dir) }, nil
}

// Pick returns few if the run is short, and all otherwise.
func (o *Options) Pick(all, few int) int {
	if o.Short {
		return few
	}
	return all
}

// Program returns the absolute path of the program under measurement. It builds the
// program as it is released unless -binary names one.
func (o *Options) Program(ctx context.Context) (string, error) {
	if o.Binary == "" {
		o.Binary = filepath.Join(o.Dir, "guideway")
		if runtime.GOOS == "windows" {
			o.Binary += ".exe"
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", o.Binary, "./cmd/guideway")
		cmd.Dir, cmd.Env = Root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build guideway: %w\n%s", err, out)
		}
	}
	path, err := filepath.Abs(o.Binary)
	if err != nil {
		return "", fmt.Errorf("find the program: %w", err)
	}
	return path, nil
}

// Times collects the durations of single calls. It is safe for concurrent use.
type Times struct {
	mu   sync.Mutex
	list []time.Duration
}

// Call runs do and records its duration.
func (t *Times) Call(do func() error) error {
	start := time.Now()
	err := do()
	t.Add(time.Since(start))
	return err
}

// Add records a duration.
func (t *Times) Add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, took)
}

// Sorted returns the durations in ascending order.
func (t *Times) Sorted() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.list))
}

// Percentile returns a percentile of sorted durations, given in percent.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// RunClients runs n clients concurrently and returns their errors joined.
func RunClients(n int, run func(client int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = run(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// InstallPackages runs "npm ci" in a directory.
func InstallPackages(ctx context.Context, dir string, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "npm", append([]string{"ci", "--no-audit", "--no-fund"}, args...)...) //nolint:gosec // G204: constant arguments
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run npm ci in %s: %w", dir, err)
	}
	return nil
}
