package cli

import "fmt"

// listing is the answer of a command that lists items: JSON for programs, a table for
// people.
type listing[T any] struct {
	items []T
	// answer is what --json prints.
	answer any
	table  *table
	// row returns the cells of an item.
	row func(T) []string
	// empty is printed on the error output where there are no items, more after the
	// table.
	empty, more string
}

// writeList prints a list.
func writeList[T any](h *Host, asJSON bool, l listing[T]) error {
	return h.writeJSONOr(asJSON, l.answer, func() {
		if len(l.items) == 0 && l.empty != "" {
			fmt.Fprintln(h.Err, l.empty)
			return
		}
		writeRows(h, l.table, l.items, l.row)
		if l.more != "" {
			fmt.Fprintln(h.Err, l.more)
		}
	})
}

// writeRows prints a table with a row for each of the items.
func writeRows[T any](h *Host, t *table, items []T, row func(T) []string) {
	for _, item := range items {
		t.rows = append(t.rows, row(item))
	}
	t.write(h.Out, h.terminalWidth(), h.outStyles())
}

// moreText returns the line that follows a list which is as long as its limit.
func moreText(listed, limit int, command string) string {
	if listed < limit {
		return ""
	}
	return fmt.Sprintf("There may be more: %s --limit %d", command, 10*limit)
}
