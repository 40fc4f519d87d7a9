package cli

import (
	"fmt"
	"io"
	"strings"
)

// minColumn is how narrow a column of a table is cut at most.
const minColumn = 12

// table aligns rows in columns; the first row is the heading.
type table struct {
	rows [][]string
	// right marks the columns of numbers.
	right map[int]bool
	// flexible is the column that is cut where the terminal is too narrow.
	flexible int
}

// newTable returns a table with a heading.
func newTable(flexible int, heading ...string) *table {
	return &table{flexible: flexible, rows: [][]string{heading}}
}

// alignRight marks columns of numbers.
func (t *table) alignRight(columns ...int) *table {
	t.right = map[int]bool{}
	for _, column := range columns {
		t.right[column] = true
	}
	return t
}

func (t *table) add(row ...string) { t.rows = append(t.rows, row) }

// write prints the table. A width of 0 is no terminal: nothing is cut.
func (t *table) write(w io.Writer, terminal int, s styles) {
	widths := make([]int, len(t.rows[0]))
	total := 2 * (len(widths) - 1)
	for i := range widths {
		for _, row := range t.rows {
			widths[i] = max(widths[i], cells(row[i]))
		}
		total += widths[i]
	}
	if terminal > 0 && total > terminal {
		widths[t.flexible] = max(minColumn, widths[t.flexible]-(total-terminal))
	}
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i == t.flexible {
				cell = cut(cell, widths[i])
			}
			pad := strings.Repeat(" ", max(0, widths[i]-cells(cell)))
			switch {
			case t.right[i]:
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
			text = cut(text, terminal)
		}
		if n == 0 {
			text = s.faint(text)
		}
		fmt.Fprintln(w, text)
	}
}
