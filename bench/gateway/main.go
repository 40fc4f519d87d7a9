// Package gateway measures the ways from a client to an MCP server in one run: no gateway,
// a byte-level reverse proxy, Guideway's gateway without a hook graph, with a hook that
// does nothing and with a hook that redacts, two proxies from npm, and the gateways of
// -peer. It prints tables in Markdown.
package gateway

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// bench is one run of the measurement.
type bench struct {
	measure.Options
	calls int
	// rounds is the number of measurements of each row; the row shows the medians.
	rounds int
	// program is the path of Guideway, and self the path of this program.
	program, self string
	peers         []peer
	// only selects the subjects besides "direct"; empty selects all.
	only *regexp.Regexp
	// at selects the levels, such as "64 KB, 8 clients"; empty selects all.
	at *regexp.Regexp
}

// Run measures and prints the tables, or serves one role of the measurement.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	role, to, only, at := "", "", "", ""
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.IntVar(&b.calls, "calls", 0, "make this many calls of 1 KB for each row, and a quarter as many of 64 KB (default 400, with -short 100)")
	flags.StringVar(&only, "only", "", "measure only the direct calls and subjects with a name that matches this `pattern`")
	flags.StringVar(&at, "at", "", "measure only at levels that match this `pattern`, such as \"64 KB, 1 client\"")
	flags.IntVar(&b.rounds, "rounds", 0, "measure every row this many times in turns, and print the medians (default 5, with -short 1)")
	flags.Func("peer", "measure this gateway too: `NAME=COMMAND`, where {port}, {config} and {server} are replaced; repeat for more", func(text string) error {
		p, err := parsePeer(text)
		b.peers = append(b.peers, p)
		return err
	})
	flags.StringVar(&role, "role", "", "serve as a part of the measurement: stdio, http or bytes")
	flags.StringVar(&to, "to", "", "the target of the byte-level reverse proxy")
	remove, err := b.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	if role != "" {
		return serveRole(ctx, role, to, stdout)
	}
	if b.calls == 0 {
		b.calls = b.Pick(400, 100)
	}
	if b.rounds == 0 {
		b.rounds = b.Pick(5, 1)
	}
	if b.only, err = regexp.Compile(only); err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	if b.at, err = regexp.Compile(at); err != nil {
		return fmt.Errorf("read -at: %w", err)
	}
	if b.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if b.program, err = b.Program(ctx); err != nil {
		return err
	}
	return b.measureAll(ctx)
}

// level is a call size and a number of clients.
type level struct {
	size    int
	clients int
}

// String returns the heading of a level.
func (l level) String() string {
	if l.clients == 1 {
		return fmt.Sprintf("%d KB, 1 client", l.size>>10)
	}
	return fmt.Sprintf("%d KB, %d clients", l.size>>10, l.clients)
}

func allLevels() []level {
	return []level{{1 << 10, 1}, {1 << 10, 8}, {1 << 10, 32}, {64 << 10, 1}, {64 << 10, 8}, {64 << 10, 32}}
}

// measureAll measures all subjects in turns at each level.
func (b *bench) measureAll(ctx context.Context) error {
	machine := measure.DescribeMachine(ctx)
	var running []*subject
	defer func() {
		for _, s := range running {
			s.stopProcess()
		}
	}()
	var missing []string
	for _, each := range b.allSubjects() {
		if each.name != direct && !b.only.MatchString(each.name) {
			continue
		}
		if err := each.startProcess(ctx); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", each.name, err))
			continue
		}
		running = append(running, each)
	}
	tables := map[level][]row{}
	for _, at := range allLevels() {
		if !b.at.MatchString(at.String()) {
			continue
		}
		rounds := map[*subject][]row{}
		for range b.rounds {
			for _, s := range running {
				r, err := b.measureSubject(ctx, s, at)
				if err != nil {
					missing = append(missing, fmt.Sprintf("%s, %s: %v", s.name, at, err))
					continue
				}
				rounds[s] = append(rounds[s], r)
			}
		}
		for _, s := range running {
			if len(rounds[s]) > 0 {
				tables[at] = append(tables[at], medianOf(rounds[s]))
			}
		}
	}
	machine.Finish()
	fmt.Fprint(b.Stdout, machine.String())
	for _, at := range allLevels() {
		if tables[at] != nil {
			b.printTable(at, tables[at])
		}
	}
	for _, line := range missing {
		fmt.Fprintf(b.Stdout, "\nNot measured: %s", line)
	}
	return nil
}

// medianOf returns the median of each figure.
func medianOf(rows []row) row {
	pick := func(figure func(row) float64) float64 {
		all := make([]float64, len(rows))
		for i, r := range rows {
			all[i] = figure(r)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return row{
		name: rows[0].name, peer: rows[0].peer,
		p50: time.Duration(pick(func(r row) float64 { return float64(r.p50) })), p99: time.Duration(pick(func(r row) float64 { return float64(r.p99) })),
		rate: pick(func(r row) float64 { return r.rate }), cpu: time.Duration(pick(func(r row) float64 { return float64(r.cpu) })),
		memory: int64(pick(func(r row) float64 { return float64(r.memory) })),
	}
}

// printTable prints the rows of a level. The added time is relative to the direct calls.
func (b *bench) printTable(at level, rows []row) {
	fmt.Fprintf(b.Stdout, "\n%s at once:\n\n| | p50 ms | p99 ms | added p50 ms | calls/s | CPU us/call | anonymous MB | budget |\n|---|---|---|---|---|---|---|---|\n", at)
	for _, r := range rows {
		added := "-"
		if r.name != direct && rows[0].name == direct {
			added = fmt.Sprintf("%.2f", measure.Milliseconds(r.p50-rows[0].p50))
		}
		fmt.Fprintf(b.Stdout, "| %s | %.2f | %.2f | %s | %.0f | %.0f | %.1f | %s |\n", r.name, measure.Milliseconds(r.p50), measure.Milliseconds(r.p99), added, r.rate,
			float64(r.cpu.Nanoseconds())/1000, float64(r.memory)/(1<<20), checkBudget(r, at, rows[0]))
	}
	fmt.Fprint(b.Stdout, comparePeers(rows))
}

// checkBudget returns the budgets of a row, and whether they are met.
func checkBudget(r row, at level, first row) string {
	verdict := func(ok bool) string {
		if ok {
			return "kept"
		}
		return "MISSED"
	}
	switch {
	case r.name == plain && at.size == 1<<10 && at.clients == 1:
		return fmt.Sprintf("added <= 0.25 ms: %s; CPU <= 250 us: %s", verdict(r.p50-first.p50 <= 250*time.Microsecond), verdict(r.cpu <= 250*time.Microsecond))
	case r.name == plain && at.clients == 32:
		return "anonymous memory <= 30 MB: " + verdict(r.memory <= 30<<20)
	case r.name == plain && at.size == 64<<10 && at.clients == 1:
		return "CPU <= 1,200 us: " + verdict(r.cpu <= 1200*time.Microsecond)
	}
	return ""
}

// comparePeers returns a line for each row of Guideway without a graph: its calls per second
// and its CPU time in relation to the best of the peers, which are all rows of other gateways.
func comparePeers(rows []row) string {
	var rate float64
	var cpu time.Duration
	for _, r := range rows {
		if !r.peer {
			continue
		}
		rate = max(rate, r.rate)
		if cpu == 0 || r.cpu < cpu {
			cpu = r.cpu
		}
	}
	var lines strings.Builder
	for _, r := range rows {
		if rate > 0 && cpu > 0 && (r.name == plain || r.name == sameVersion) {
			fmt.Fprintf(&lines, "\n%s: %.2f times the calls per second of the best peer, and %.2f times its CPU time.\n", r.name, r.rate/rate, float64(r.cpu)/float64(cpu))
		}
	}
	return lines.String()
}
