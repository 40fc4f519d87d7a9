package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"golang.org/x/text/width"
)

// WriteJSON writes v as indented JSON. Characters that a terminal would execute or hide are
// written as escapes.
func WriteJSON(w io.Writer, v any) error {
	enc := NewJSONEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write the answer: %w", err)
	}
	return nil
}

// NewJSONEncoder returns an encoder that writes hidden characters as escapes.
func NewJSONEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(jsonWriter{w})
	enc.SetEscapeHTML(false)
	return enc
}

// jsonWriter escapes the JSON values that are written to it. Each Write is a whole value, as
// json.Encoder writes it.
type jsonWriter struct{ io.Writer }

func (w jsonWriter) Write(text []byte) (int, error) {
	if _, err := w.Writer.Write(visible.EscapeJSON(text)); err != nil {
		return 0, err //nolint:wrapcheck // the error is the wrapped writer's
	}
	return len(text), nil
}

// WriteJSONOr writes the result of a command as JSON if asJSON is set, and otherwise calls
// writeText.
func (h *Host) WriteJSONOr(asJSON bool, answer any, writeText func()) error {
	if asJSON {
		return WriteJSON(h.Out, answer)
	}
	writeText()
	return nil
}

// WriteResult prints the result of a command as JSON if asJSON is set, and otherwise as
// text.
func (h *Host) WriteResult(asJSON bool, answer any, text string) error {
	return h.WriteJSONOr(asJSON, answer, func() { fmt.Fprintln(h.Out, text) })
}

// WriteCheckResult is WriteJSONOr for a command that checks something: the exit code is 1
// if the check failed.
func (h *Host) WriteCheckResult(asJSON bool, answer any, failed bool, writeText func()) error {
	if err := h.WriteJSONOr(asJSON, answer, writeText); err != nil || !failed {
		return err
	}
	return SilentError{Code: ExitFailed}
}

// WriteFields returns a function that prints a name and a text on a line. It prints nothing
// if the text is empty.
func (h *Host) WriteFields(width int) func(name, text string) {
	return func(name, text string) {
		if text != "" {
			fmt.Fprintf(h.Out, "%-*s  %s\n", width, name, text)
		}
	}
}

// ToStrings converts names to strings.
func ToStrings[T ~string](names ...T) []string {
	return lists.Map(names, func(name T) string { return string(name) })
}

// OrEmpty returns an empty list for nil, which is [] in JSON.
func OrEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Styles colors text on a terminal, unless NO_COLOR is set.
type Styles struct{ enabled bool }

// OutStyles returns the styles of standard output.
func (h *Host) OutStyles() Styles { return h.newStyles(h.OutTerminal) }

func (h *Host) newStyles(terminal bool) Styles {
	return Styles{enabled: terminal && h.Getenv("NO_COLOR") == "" && h.Getenv("TERM") != "dumb"}
}

// ErrStyles returns the styles of standard error.
func (h *Host) ErrStyles() Styles { return h.newStyles(h.ErrTerminal) }

func (s Styles) colorize(code, text string) string {
	if !s.enabled || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold returns the text in bold.
func (s Styles) Bold(text string) string { return s.colorize("1", text) }

// Faint returns the text in a faint color.
func (s Styles) Faint(text string) string { return s.colorize("2", text) }

// Red returns the text in red.
func (s Styles) Red(text string) string { return s.colorize("31", text) }

// Green returns the text in green.
func (s Styles) Green(text string) string { return s.colorize("32", text) }

// Yellow returns the text in yellow.
func (s Styles) Yellow(text string) string { return s.colorize("33", text) }

// Cyan returns the text in cyan.
func (s Styles) Cyan(text string) string { return s.colorize("36", text) }

// TerminalWidth returns the width of the terminal, or 0 if the output is not a terminal.
func (h *Host) TerminalWidth() int {
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

// TextWidth returns the number of terminal columns that a text takes.
func TextWidth(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
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

// Truncate shortens a text to at most n columns, with an ellipsis at the end.
func Truncate(text string, n int) string {
	if TextWidth(text) <= n || n < 1 {
		return text
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		if used += runeWidth(r); used > n-1 {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// OneLine makes untrusted text safe to print on one line: characters that could move the
// cursor or hide text are escaped.
func OneLine(text string) string { return visible.EscapeLine(text) }

// EscapeText makes untrusted text safe to print: it is OneLine, but keeps line breaks and
// tabs.
func EscapeText(text string) string { return visible.EscapeText(text) }

// Plural returns n with the singular or the plural of a noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// WriteNewFile writes a file, with the owner of its directory if root runs the command. It
// replaces an existing file only if force is set. If the mode is private, the replaced file
// must be a regular file: a link could lead to a file that others may read.
func WriteNewFile(path string, data []byte, mode fs.FileMode, force bool) error {
	err := createFile(path, data, mode)
	if errors.Is(err, fs.ErrExist) {
		if !force {
			return guideway.Errorf(guideway.CodeConflict, "%s already exists", path).WithFix("write to another file or directory, or add --force to replace the file")
		}
		if mode&0o077 == 0 {
			return replacePrivateFile(path, data)
		}
		err = overwriteFile(path, data)
	}
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "cannot write %s: %w", path, safeopen.Cause(err)).
			WithFix("check that the directory of the file exists, that this user can write the directory and the file, and that the disk has free space")
	}
	return nil
}

// createFile writes a file that does not exist. The error is fs.ErrExist if it does.
func createFile(path string, data []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	atomicfile.KeepOwner(file)
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// replacePrivateFile replaces a regular file with one that only the user may read.
func replacePrivateFile(path string, data []byte) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return guideway.Errorf(guideway.CodeConflict, "%s is not a regular file, so --force does not replace it", path).WithFix("use another file name")
	}
	if err == nil {
		err = atomicfile.Replace(path, string(data))
	}
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "cannot write %s: %w", path, safeopen.Cause(err)).
			WithFix("check that the directory of the file exists, that this user can write the directory and the file, and that the disk has free space")
	}
	return nil
}

// overwriteFile changes the content of an existing file, which keeps its owner and its mode.
func overwriteFile(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// WriteBundle writes a bundle to a file, or to standard output if name is "" or "-". Only
// the user may read the file, because it may hold everything that the agent saw.
// importCommand is the command that imports it.
func (h *Host) WriteBundle(name string, bundle []byte, force bool, importCommand string) error {
	if name == "" || name == "-" {
		if _, err := h.Out.Write(visible.EscapeJSON(bundle)); err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "write the bundle to the output: %w", err)
		}
		return nil
	}
	if err := WriteNewFile(h.Abs(name), bundle, 0o600, force); err != nil {
		return err
	}
	fmt.Fprintf(h.Out, "Written: %s\nTo import the bundle elsewhere: %s %s\n", name, importCommand, name)
	return nil
}

// ChangeResult is the --json output of a command that changes an object. A command may
// embed it and add members.
type ChangeResult struct {
	// Action is a participle such as "added". If Changed is false, the object was in
	// that state before.
	Action  string `json:"action"`
	Changed bool   `json:"changed"`
	// Kind and Name identify the object.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Project is the project of the upstream after the change.
	Project string `json:"project,omitempty"`
	// File is the path of the file that was written.
	File  string   `json:"file,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// The kinds of objects.
const (
	KindUpstream   = "upstream"
	KindToken      = "token"
	KindHookGraph  = "hook graph"
	KindHookModule = "hook module"
	KindSigningKey = "signing key"
)

// AddChangeFlag adds --json to a command that changes something.
func AddChangeFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print the result as JSON: action, changed, kind and name, and, where they apply, project, file, notes and what the command created")
}

// WriteChange prints the result of a change: as JSON on standard output if asJSON is set,
// otherwise words on standard error.
func (h *Host) WriteChange(asJSON bool, result any, words string) error {
	return h.WriteJSONOr(asJSON, result, func() { fmt.Fprintln(h.Err, words) })
}

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
	cells := lists.Map(row, OneLine)
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
