package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// textWidthFor returns the width for wrapped text: the terminal's, but 40 to 80 columns.
func textWidthFor(host *Host) int {
	const comfortable, least = 80, 40
	columns := host.TerminalWidth()
	if columns == 0 {
		return comfortable
	}
	return max(least, min(comfortable, columns))
}

// TextPrinter prints wrapped text in the styles of an output.
type TextPrinter struct {
	Out    io.Writer
	Styles Styles
	Width  int
}

// NewTextPrinter returns a printer for the width and the styles of the host.
func NewTextPrinter(host *Host, out io.Writer) TextPrinter {
	return TextPrinter{Out: out, Styles: host.OutStyles(), Width: textWidthFor(host)}
}

// PrintText prints a text, wrapped and indented.
func (v *TextPrinter) PrintText(indent, text string) {
	for _, line := range Wrap(text, v.Width-len(indent)) {
		fmt.Fprintln(v.Out, strings.TrimRight(indent+line, " "))
	}
}

// PrintList prints a heading and a list. It prints nothing if the list is empty.
func (v *TextPrinter) PrintList(heading string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(v.Out, "\n%s\n", v.Styles.Bold(heading))
	for _, text := range texts {
		v.PrintText("  ", "- "+strings.TrimSpace(text))
	}
}

// Prompter reads lines from the user.
type Prompter struct {
	TextPrinter
	in   *bufio.Reader
	Host *Host
}

// NewPrompter returns a prompter for the input of the host.
func NewPrompter(host *Host) *Prompter {
	return &Prompter{TextPrinter: NewTextPrinter(host, host.Out), in: bufio.NewReader(host.In), Host: host}
}

// AskLine prints a question and reads one line, without its line break. It returns io.EOF
// only with an empty line.
func (t *Prompter) AskLine(ctx context.Context, ask string) (string, error) {
	fmt.Fprint(t.Out, ask)
	text, err := readUntilDone(ctx, func() (string, error) { return t.in.ReadString('\n') })
	if text != "" && errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(t.Out) // Ctrl-D leaves the cursor on the line of the prompt
	}
	return strings.TrimRight(text, "\r\n"), err
}
