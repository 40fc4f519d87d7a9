package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// proseWidth is how wide texts are set: 80 columns, or what a narrow terminal
// has.
func proseWidth(host *Host) int {
	const comfortable, least = 80, 40
	columns := host.terminalWidth()
	if columns == 0 {
		return comfortable
	}
	return max(least, min(comfortable, columns))
}

// textPrinter prints wrapped text in the styles of an output.
type textPrinter struct {
	out    io.Writer
	styles styles
	width  int
}

func newTextPrinter(host *Host, out io.Writer) textPrinter {
	return textPrinter{out: out, styles: host.outStyles(), width: proseWidth(host)}
}

// prose prints a text of a definition, wrapped and indented.
func (v *textPrinter) prose(indent, text string) {
	for _, line := range wrap(text, v.width-len(indent)) {
		fmt.Fprintln(v.out, strings.TrimRight(indent+line, " "))
	}
}

// bullets prints a heading and a list, if there is anything in it.
func (v *textPrinter) bullets(heading string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(v.out, "\n%s\n", v.styles.bold(heading))
	for _, text := range texts {
		v.prose("  ", "- "+strings.TrimSpace(text))
	}
}

// prompter asks a person for lines of text.
type prompter struct {
	textPrinter
	in   *bufio.Reader
	host *Host
}

func newPrompter(host *Host) *prompter {
	return &prompter{textPrinter: newTextPrinter(host, host.Out), in: bufio.NewReader(host.In), host: host}
}

// askLine prints a question and reads one line, without its end. The last one may come together with
// io.EOF only if it is empty.
func (t *prompter) askLine(ctx context.Context, ask string) (string, error) {
	fmt.Fprint(t.out, ask)
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := t.in.ReadString('\n')
		read <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		// The read ends with the process: a terminal cannot be interrupted.
		return "", interrupted(ctx.Err())
	case a := <-read:
		if a.text != "" && errors.Is(a.err, io.EOF) {
			a.err = nil
		}
		if a.err != nil {
			fmt.Fprintln(t.out) // Ctrl-D leaves the cursor where it was
		}
		return strings.TrimRight(a.text, "\r\n"), a.err
	}
}
