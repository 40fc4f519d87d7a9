package app

import (
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
