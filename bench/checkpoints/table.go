package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// times are how long single calls took. It may be used by many goroutines.
type times struct {
	mu   sync.Mutex
	list []time.Duration
}

// call measures a call.
func (t *times) call(do func() error) error {
	start := time.Now()
	err := do()
	took := time.Since(start)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, took)
	return err
}

// at gives a percentile, in thousandths.
func (t *times) at(of int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t.list))
	return sorted[min(len(sorted)*of/1000, len(sorted)-1)]
}

func (t *times) cells() []string {
	cells := []string{fmt.Sprint(len(t.list))}
	for _, of := range []int{500, 950, 990, 1000} {
		cells = append(cells, ms(t.at(of)))
	}
	return cells
}

func ms(d time.Duration) string {
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

// table is one in Markdown.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

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

// size writes a number of bytes.
func size(n int64) string {
	switch {
	case n >= 10e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.2f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f kB", float64(n)/1e3)
}
