package app

import (
	"fmt"
	"io"
	"strings"
)

// minColumnWidth is the minimum width of a shortened column.
const minColumnWidth = 12

// Table aligns rows in columns; the first row is the heading.
type Table struct {
	rows [][]string
	// RightAligned marks the columns of numbers.
	RightAligned map[int]bool
	// Shrinkable is the column that is shortened if the terminal is too narrow.
	Shrinkable int
}

// NewTable returns a table with a heading.
func NewTable(flexible int, heading ...string) *Table {
	return &Table{Shrinkable: flexible, rows: [][]string{heading}}
}

// AlignRight aligns columns to the right.
func (t *Table) AlignRight(columns ...int) *Table {
	t.RightAligned = map[int]bool{}
	for _, column := range columns {
		t.RightAligned[column] = true
	}
	return t
}

// Add adds a row. The cells may contain untrusted text: Add escapes it.
func (t *Table) Add(row ...string) {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = OneLine(cell)
	}
	t.rows = append(t.rows, cells)
}

// Write prints the table. If terminal is 0, nothing is shortened.
func (t *Table) Write(w io.Writer, terminal int, s Styles) {
	widths := make([]int, len(t.rows[0]))
	total := 2 * (len(widths) - 1)
	for i := range widths {
		for _, row := range t.rows {
			widths[i] = max(widths[i], TextWidth(row[i]))
		}
		total += widths[i]
	}
	if terminal > 0 && total > terminal {
		widths[t.Shrinkable] = max(minColumnWidth, widths[t.Shrinkable]-(total-terminal))
	}
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i == t.Shrinkable {
				cell = Truncate(cell, widths[i])
			}
			pad := strings.Repeat(" ", max(0, widths[i]-TextWidth(cell)))
			switch {
			case t.RightAligned[i]:
				cell = pad + cell
			case i < len(row)-1:
				cell += pad
			}
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(cell)
		}
		text := strings.TrimRight(line.String(), " ")
		if terminal > 0 {
			text = Truncate(text, terminal)
		}
		if n == 0 {
			text = s.Faint(text)
		}
		fmt.Fprintln(w, text)
	}
}
