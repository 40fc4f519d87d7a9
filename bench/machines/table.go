package machines

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// runInputs returns the inputs of every run.
func runInputs() map[string]json.RawMessage {
	return map[string]json.RawMessage{"task": json.RawMessage(`"a task"`)}
}

// readMemory returns the resident memory of this process and of its workers, in bytes, or
// zeros if the platform does not report it.
func readMemory() (own, workers int64) {
	pid := os.Getpid()
	if m, err := measure.MemoryOf(pid); err == nil {
		own = m.Resident
	}
	for _, worker := range measure.Children(pid) {
		if m, err := measure.MemoryOf(worker); err == nil {
			workers += m.Resident
		}
	}
	return own, workers
}

// reference is an engine that was measured earlier, with three steps that make no calls.
// Its figures are not from this run.
type reference struct{ name, alone, together, rate, memory string }

func earlierResults() []reference {
	return []reference{
		{"Temporal 1.29.1, dev server, in memory", "351 / 442 ms", "9.0 s", "22", "304 MB"},
		{"Temporal 1.29.1, dev server, SQLite", "353 / 435 ms", "59.7 s", "3.4", "240 MB"},
		{"Restate 1.7.12", "7.8 / 11.9 ms", "0.49 s", "411", "291 MB"},
		{"DBOS Go, SQLite", "1.3 / 2.6 ms", "0.36 s", "561", "31 MB"},
		{"go-workflows, SQLite", "1367 / 2032 ms", "5.3 s", "37.6", "34 MB"},
	}
}

// formatTable returns the table, with the references below it.
func formatTable(rows []row, machines int) string {
	var b strings.Builder
	line := func(cells ...string) {
		fmt.Fprintf(&b, "%-40s  %-15s  %-15s  %-9s  %-8s  %-17s  %s\n", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6])
	}
	line("what", "run p50/p95", "step p50/p99", strconv.Itoa(machines)+" at once", "runs/s", "step p50/p99 then", "memory")
	for _, r := range rows {
		line(string(r.kind),
			percentilePair(r.alone, 95), percentilePair(r.aloneSteps, 99), fmt.Sprintf("%.2f s", r.together.Seconds()),
			fmt.Sprintf("%.0f", float64(r.machines)/r.together.Seconds()), percentilePair(r.steps, 99),
			fmt.Sprintf("%.0f -> %.0f MB, workers %.0f MB", toMegabytes(r.before), toMegabytes(r.after), toMegabytes(r.workers)))
	}
	for _, r := range earlierResults() {
		line(r.name+" *", r.alone, "-", r.together, r.rate, "-", r.memory)
	}
	b.WriteString(`
* Measured earlier and elsewhere, on a busy machine of 2 cores: three steps that call
  nothing, without a model's intents and results. See bench/README.md.
`)
	return b.String()
}

func toMegabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// percentilePair returns the median and another percentile of sorted durations.
func percentilePair(sorted []time.Duration, percent int) string {
	at := func(p int) float64 { return measure.Milliseconds(measure.Percentile(sorted, p)) }
	return fmt.Sprintf("%.1f / %.1f ms", at(50), at(percent))
}
