package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/run"
)

// RequireTerminal returns an error if the input or the output is not a terminal, because
// only a person may approve.
func (h *Host) RequireTerminal() error {
	if h.InTerminal && h.OutTerminal && h.ReadSecret != nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeForbidden, "this command requires a terminal, but the input or the output is not a terminal").
		WithFix("run the command yourself in a terminal")
}

// DetectChannel returns the channel of a command that ends a run: ViaTerminal if a person
// runs it at a terminal, otherwise ViaAgent. A command that approves asks for the passphrase
// instead.
func (h *Host) DetectChannel() run.Via {
	if h.RequireTerminal() == nil {
		return run.ViaTerminal
	}
	return run.ViaAgent
}

// Approver asks the user for the passphrase, which an agent does not know.
type Approver struct {
	*Prompter
	Passphrase passphrase.File
}

// NewApprover returns an Approver for the passphrase of the configuration.
func NewApprover(host *Host, cfg *config.Config) *Approver {
	return &Approver{Prompter: NewPrompter(host), Passphrase: host.PassphraseFile(cfg)}
}

// CheckPassphrase asks for the passphrase and checks it.
func (p *Approver) CheckPassphrase(ctx context.Context) error {
	typed, err := p.askSecret(ctx, "Passphrase: ")
	if err != nil {
		return err
	}
	return p.Passphrase.Check(ctx, typed)
}

// CheckPassphraseIfSet asks for the passphrase if one is set: a command that grants the
// same access as an approval must not be easier to run.
func (p *Approver) CheckPassphraseIfSet(ctx context.Context) error {
	isSet, err := p.Passphrase.IsSet()
	if err != nil || !isSet {
		return err
	}
	return p.CheckPassphrase(ctx)
}

// ConfirmName asks for the passphrase, if one is set, and then asks the user to type a name
// as the confirmation of an approval.
func (p *Approver) ConfirmName(ctx context.Context, kind, what, name string) error {
	if err := p.CheckPassphraseIfSet(ctx); err != nil {
		return err
	}
	line, err := p.AskLine(ctx, fmt.Sprintf("Type the %s of the %s to approve this version (%s): ", what, kind, OneLine(name)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != name {
		return guideway.Errorf(guideway.CodeForbidden, "not approved: %q is not the %s of the %s; nothing was changed", strings.TrimSpace(line), what, kind).
			WithFix("run the command again, and type %s", OneLine(name))
	}
	return nil
}

// askSecret prints a prompt and reads a secret.
func (p *Approver) askSecret(ctx context.Context, what string) (string, error) {
	fmt.Fprint(p.Out, what)
	typed, err := p.Host.ReadSecret(ctx)
	fmt.Fprintln(p.Out)
	if errors.Is(err, io.EOF) {
		return "", StoppedError()
	}
	return typed, err
}

// StoppedError returns the error of a command that the user stopped.
func StoppedError() error { return SilentError{Code: ExitFailed} }

// SetPassphrase asks for a passphrase and stores it. If one is set, it asks for that one
// first.
func (p *Approver) SetPassphrase(ctx context.Context) error {
	isSet, err := p.Passphrase.IsSet()
	if err != nil {
		return err
	}
	old := ""
	if isSet {
		if old, err = p.askSecret(ctx, "Current passphrase: "); err != nil {
			return err
		}
		// Check the current passphrase before asking for the new one.
		if err := p.Passphrase.Check(ctx, old); err != nil {
			return err
		}
	}
	first, err := p.askSecret(ctx, fmt.Sprintf("New passphrase, at least %d characters: ", passphrase.MinLength))
	if err != nil {
		return err
	}
	again, err := p.askSecret(ctx, "Repeat the new passphrase: ")
	if err != nil {
		return err
	}
	if first != again {
		return guideway.Errorf(guideway.CodeInvalid, "the two new passphrases do not match; nothing was changed").
			WithFix("guideway runs approve --set-passphrase")
	}
	if err := p.Passphrase.Set(ctx, old, first); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "The passphrase is set. Do not store it where an agent can read it.\n")
	return nil
}

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
