// Command gateway measures what stands between a client and an MCP server, in one
// run: nothing, a reverse proxy of bytes, Guideway's gateway without a hook graph,
// with one that does nothing and with one that redacts, and two proxies from npm.
// It prints tables in Markdown:
//
//	go run ./bench/gateway [-calls 400] [-binary PATH] [-only NAMES] [-at LEVELS]
//
// The proxies from npm are measured where "npm ci" was done in bench/proxies. It
// never fails for a budget that is missed: the numbers of a busy machine are no
// verdict.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
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

// bench is one run of the command.
type bench struct {
	calls  int
	binary string
	self   string
	// only are the subjects to measure besides "direct"; empty is all.
	only *regexp.Regexp
	// at are the levels, such as "64 KB, 8 clients"; empty is all.
	at     *regexp.Regexp
	dir    string
	stdout io.Writer
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{stdout: stdout}
	role, to, only, at := "", "", "", ""
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&b.calls, "calls", 400, "calls of 1 KB for each row; of 64 KB a quarter")
	flags.StringVar(&b.binary, "binary", "", "the `program` to measure; built anew where it is empty")
	flags.StringVar(&only, "only", "", "measure only what has a name that this `pattern` matches, and the direct way")
	flags.StringVar(&at, "at", "", "measure only at levels that this `pattern` matches, such as \"64 KB, 1 clients\"")
	flags.StringVar(&role, "role", "", "be a part of the measurement: stdio, http or bytes")
	flags.StringVar(&to, "to", "", "where the reverse proxy of bytes leads")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	if role != "" {
		return serveRole(ctx, role, to, stdout)
	}
	var err error
	if b.only, err = regexp.Compile(only); err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	if b.at, err = regexp.Compile(at); err != nil {
		return fmt.Errorf("read -at: %w", err)
	}
	if b.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if b.dir, err = os.MkdirTemp("", "guideway-bench-"); err != nil {
		return fmt.Errorf("make a directory to work in: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "guideway")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.binary, "./cmd/guideway") //nolint:gosec // G204: the go command
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build the program: %w\n%s", err, out)
		}
	}
	return b.run(ctx)
}

// level is what all subjects are measured at in turns.
type level struct {
	size    int
	clients int
}

// String is how a table is headed.
func (l level) String() string { return fmt.Sprintf("%d KB, %d clients", l.size>>10, l.clients) }

func levels() []level {
	return []level{{1 << 10, 1}, {1 << 10, 8}, {1 << 10, 32}, {64 << 10, 1}, {64 << 10, 8}, {64 << 10, 32}}
}

func (b *bench) run(ctx context.Context) error {
	fmt.Fprintf(b.stdout, "%s, %s/%s, %d cores, %s\nload average: %s before, ", time.Now().UTC().Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), load())
	var running []*subject
	defer func() {
		for _, s := range running {
			s.stop()
		}
	}()
	var missing []string
	for _, each := range b.subjects() {
		if each.name != direct && !b.only.MatchString(each.name) {
			continue
		}
		if err := each.begin(ctx); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", each.name, err))
			continue
		}
		running = append(running, each)
	}
	tables := map[level][]row{}
	for _, at := range levels() {
		if !b.at.MatchString(at.String()) {
			continue
		}
		for _, s := range running {
			r, err := b.measure(ctx, s, at)
			if err != nil {
				missing = append(missing, fmt.Sprintf("%s, %d bytes, %d clients: %v", s.name, at.size, at.clients, err))
				continue
			}
			tables[at] = append(tables[at], r)
		}
	}
	fmt.Fprintf(b.stdout, "%s after\n", load())
	for _, at := range levels() {
		if tables[at] != nil {
			b.print(at, tables[at])
		}
	}
	for _, line := range missing {
		fmt.Fprintf(b.stdout, "\nNot measured: %s", line)
	}
	return nil
}

// print writes a table. What is added is against the direct way at that level.
func (b *bench) print(at level, rows []row) {
	fmt.Fprintf(b.stdout, "\n%s at once:\n\n| | p50 ms | p99 ms | added p50 ms | calls/s | CPU us/call | memory MB | budget |\n|---|---|---|---|---|---|---|---|\n", at)
	for _, r := range rows {
		added := "-"
		if r.name != direct && rows[0].name == direct {
			added = fmt.Sprintf("%.2f", ms(r.p50-rows[0].p50))
		}
		fmt.Fprintf(b.stdout, "| %s | %.2f | %.2f | %s | %.0f | %.0f | %.1f | %s |\n", r.name, ms(r.p50), ms(r.p99), added, r.rate,
			float64(r.cpu.Nanoseconds())/1000, float64(r.memory)/(1<<20), budget(r, at, rows[0]))
	}
}

// budget says what the design wants, and whether it is so.
func budget(r row, at level, first row) string {
	verdict := func(ok bool) string {
		if ok {
			return "kept"
		}
		return "MISSED"
	}
	switch {
	case r.name == plain && at.size == 1<<10 && at.clients == 1:
		return fmt.Sprintf("added <= 0.25 ms: %s; CPU <= 250 us: %s", verdict(r.p50-first.p50 <= 250*time.Microsecond), verdict(r.cpu <= 250*time.Microsecond))
	case r.name == plain && at.size == 64<<10 && at.clients == 1:
		return "CPU <= 1,200 us: " + verdict(r.cpu <= 1200*time.Microsecond)
	}
	return ""
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// load is the load average, where the system tells it.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}
