package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
	"golang.org/x/term"
	"golang.org/x/text/width"
)

// writeJSON writes an answer for machines.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write the answer: %w", err)
	}
	return nil
}

// orEmpty makes sure that an empty list is [] in JSON.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// styles writes words so that a person sees what they are; without a terminal,
// or with NO_COLOR, as they are.
type styles struct{ on bool }

// outStyles are those of the standard output.
func (h *Host) outStyles() styles { return h.stylesFor(h.OutTerminal) }

func (h *Host) stylesFor(terminal bool) styles {
	return styles{on: terminal && h.Getenv("NO_COLOR") == "" && h.Getenv("TERM") != "dumb"}
}

// errStyles are those of the error output.
func (h *Host) errStyles() styles { return h.stylesFor(h.ErrTerminal) }

func (s styles) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s styles) bold(text string) string   { return s.paint("1", text) }
func (s styles) faint(text string) string  { return s.paint("2", text) }
func (s styles) red(text string) string    { return s.paint("31", text) }
func (s styles) green(text string) string  { return s.paint("32", text) }
func (s styles) yellow(text string) string { return s.paint("33", text) }
func (s styles) cyan(text string) string   { return s.paint("36", text) }

// terminalWidth is the width of the terminal; 0 where nobody looks at one.
func (h *Host) terminalWidth() int {
	file, ok := h.Out.(*os.File)
	if !h.OutTerminal || !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// cells is how many columns of a terminal a text takes.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// cut shortens a text to n columns, the last one an ellipsis.
func cut(text string, n int) string {
	if cells(text) <= n || n < 1 {
		return text
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		if used += runeCells(r); used > n-1 {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// oneLine makes a text of a document safe to print on one line: control
// characters could move the cursor.
func oneLine(text string) string {
	return strings.Join(strings.Fields(printable(text)), " ")
}

// printable takes out what would steer a terminal; line breaks and tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

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

// plural counts things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
