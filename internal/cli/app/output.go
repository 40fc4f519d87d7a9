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
	"golang.org/x/term"
	"golang.org/x/text/width"
)

// WriteJSON writes an answer for machines.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write the answer: %w", err)
	}
	return nil
}

// WriteJSONOr writes the answer of a command as JSON, or as words.
func (h *Host) WriteJSONOr(asJSON bool, answer any, writeWords func()) error {
	if asJSON {
		return WriteJSON(h.Out, answer)
	}
	writeWords()
	return nil
}

// WriteCheckResult is writeJSONOr for a command that checks something: it exits with 1 if
// the check failed.
func (h *Host) WriteCheckResult(asJSON bool, answer any, failed bool, writeWords func()) error {
	if err := h.WriteJSONOr(asJSON, answer, writeWords); err != nil || !failed {
		return err
	}
	return SilentError{Code: ExitFailed}
}

// WriteFields returns a function that prints a name and a text on a line, if there is
// a text.
func (h *Host) WriteFields(width int) func(name, text string) {
	return func(name, text string) {
		if text != "" {
			fmt.Fprintf(h.Out, "%-*s  %s\n", width, name, text)
		}
	}
}

// OrEmpty makes sure that an empty list is [] in JSON.
func OrEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Styles writes words so that a person sees what they are; without a terminal,
// or with NO_COLOR, as they are.
type Styles struct{ enabled bool }

// OutStyles are those of the standard output.
func (h *Host) OutStyles() Styles { return h.newStyles(h.OutTerminal) }

func (h *Host) newStyles(terminal bool) Styles {
	return Styles{enabled: terminal && h.Getenv("NO_COLOR") == "" && h.Getenv("TERM") != "dumb"}
}

// ErrStyles are those of the error output.
func (h *Host) ErrStyles() Styles { return h.newStyles(h.ErrTerminal) }

func (s Styles) colorize(code, text string) string {
	if !s.enabled || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Styles) Bold(text string) string   { return s.colorize("1", text) }
func (s Styles) Faint(text string) string  { return s.colorize("2", text) }
func (s Styles) Red(text string) string    { return s.colorize("31", text) }
func (s Styles) Green(text string) string  { return s.colorize("32", text) }
func (s Styles) Yellow(text string) string { return s.colorize("33", text) }
func (s Styles) Cyan(text string) string   { return s.colorize("36", text) }

// TerminalWidth is the width of the terminal; 0 where nobody looks at one.
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

// TextWidth is how many columns of a terminal a text takes.
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

// Truncate shortens a text to n columns, the last one an ellipsis.
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

// OneLine makes a text of a document safe to print on one line: control
// characters could move the cursor.
func OneLine(text string) string {
	return strings.Join(strings.Fields(StripControls(text)), " ")
}

// StripControls takes out what would steer a terminal; line breaks and tabs stay.
func StripControls(text string) string {
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

// Plural counts things.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// WriteNewFile writes a file. One that is there is replaced only with force.
func WriteNewFile(path string, data []byte, mode fs.FileMode, force bool) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, how, mode)
	if errors.Is(err, fs.ErrExist) {
		return guideway.Errorf(guideway.CodeConflict, "%s is there already", path).WithFix("take another name, or --force to replace it")
	}
	if err == nil {
		_, err = file.Write(data)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "write %s: %w", path, err)
	}
	return nil
}

// WriteBundle writes a bundle to a file, or to the output. It may hold whatever
// the agent was told, so the file is the user's alone. taker is the command that
// takes it in.
func (h *Host) WriteBundle(name string, bundle []byte, force bool, taker string) error {
	if name == "" || name == "-" {
		if _, err := h.Out.Write(bundle); err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "write the bundle: %w", err)
		}
		return nil
	}
	if err := WriteNewFile(h.Abs(name), bundle, 0o600, force); err != nil {
		return err
	}
	fmt.Fprintf(h.Out, "Written: %s\nTake it in elsewhere: %s %s\n", name, taker, name)
	return nil
}
