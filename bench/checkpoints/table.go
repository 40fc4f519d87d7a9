package checkpoints

import (
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// timeCells returns the number of calls and their percentiles.
func timeCells(t *measure.Times) []string {
	sorted := t.Sorted()
	cells := []string{fmt.Sprint(len(sorted))}
	for _, percent := range []int{50, 95, 99, 100} {
		cells = append(cells, formatMillis(measure.Percentile(sorted, percent)))
	}
	return cells
}

func formatMillis(d time.Duration) string {
	value := float64(d.Microseconds()) / 1000
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	case value >= 1:
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.3f", value)
}

// table is a Markdown table.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) addRow(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", t.title)
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---"
		if i > 0 {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

// formatSize formats a number of bytes.
func formatSize(n int64) string {
	switch {
	case n >= 10e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.2f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f kB", float64(n)/1e3)
}
