package app

import "fmt"

// Listing is the result of a list command: JSON or a table.
type Listing[T any] struct {
	Items []T
	// Answer is the value that --json prints.
	Answer any
	Table  *Table
	// Row returns the cells of an item.
	Row func(T) []string
	// Empty is printed on standard error if there are no items. More is printed after the
	// table.
	Empty, More string
}

// WriteList prints a list.
func WriteList[T any](h *Host, asJSON bool, l Listing[T]) error {
	return h.WriteJSONOr(asJSON, l.Answer, func() {
		if len(l.Items) == 0 && l.Empty != "" {
			fmt.Fprintln(h.Err, l.Empty)
			return
		}
		WriteRows(h, l.Table, l.Items, l.Row)
		if l.More != "" {
			fmt.Fprintln(h.Err, l.More)
		}
	})
}

// WriteRows prints a table with a row for each item.
func WriteRows[T any](h *Host, t *Table, items []T, row func(T) []string) {
	for _, item := range items {
		t.Add(row(item)...)
	}
	t.Write(h.Out, h.TerminalWidth(), h.OutStyles())
}

// MoreText returns the line after a list that has reached its limit, or "" for a shorter
// list.
func MoreText(listed, limit int, command string) string {
	if listed < limit {
		return ""
	}
	return fmt.Sprintf("There may be more: %s --limit %d", command, 10*limit)
}
