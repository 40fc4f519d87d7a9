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
)

// RequireTerminal refuses to work where no person sits: a pipe cannot approve.
func (h *Host) RequireTerminal() error {
	if h.InTerminal && h.OutTerminal && h.ReadSecret != nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeForbidden, "only a person at a terminal approves: the input or the output is a file or a pipe").
		WithFix("run it yourself in a terminal")
}

// Approver asks a person for the passphrase that an agent does not know.
type Approver struct {
	*Prompter
	Passphrase passphrase.File
}

func NewApprover(host *Host, cfg *config.Config) *Approver {
	return &Approver{Prompter: NewPrompter(host), Passphrase: host.PassphraseFile(cfg)}
}

// CheckPassphrase asks for the passphrase.
func (p *Approver) CheckPassphrase(ctx context.Context) error {
	typed, err := p.askSecret(ctx, "Passphrase: ")
	if err != nil {
		return err
	}
	return p.Passphrase.Check(ctx, typed)
}

// CheckPassphraseIfSet asks for the passphrase where there is one: what opens the same
// gates must not be easier to come by.
func (p *Approver) CheckPassphraseIfSet(ctx context.Context) error {
	isSet, err := p.Passphrase.IsSet()
	if err != nil || !isSet {
		return err
	}
	return p.CheckPassphrase(ctx)
}

// ConfirmName has the person type a name to approve something.
func (p *Approver) ConfirmName(ctx context.Context, kind, what, name string) error {
	if err := p.CheckPassphraseIfSet(ctx); err != nil {
		return err
	}
	line, err := p.AskLine(ctx, fmt.Sprintf("Type the %s of the %s to approve exactly this (%s): ", what, kind, OneLine(name)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != name {
		return guideway.Errorf(guideway.CodeForbidden, "not approved: that is not the %s of the %s; nothing was changed", what, kind)
	}
	return nil
}

// askSecret asks for a secret.
func (p *Approver) askSecret(ctx context.Context, what string) (string, error) {
	fmt.Fprint(p.Out, what)
	typed, err := p.Host.ReadSecret(ctx)
	fmt.Fprintln(p.Out)
	if errors.Is(err, io.EOF) {
		return "", StoppedError()
	}
	return typed, err
}

// StoppedError is the end that a person wanted.
func StoppedError() error { return SilentError{Code: ExitFailed} }

// SetPassphrase has the person set the passphrase, or another one.
func (p *Approver) SetPassphrase(ctx context.Context) error {
	isSet, err := p.Passphrase.IsSet()
	if err != nil {
		return err
	}
	old := ""
	if isSet {
		if old, err = p.askSecret(ctx, "The old passphrase: "); err != nil {
			return err
		}
		// Looked at first: who does not know it is not asked for another one.
		if err := p.Passphrase.Check(ctx, old); err != nil {
			return err
		}
	}
	first, err := p.askSecret(ctx, fmt.Sprintf("A new passphrase, of at least %d characters: ", passphrase.MinLength))
	if err != nil {
		return err
	}
	again, err := p.askSecret(ctx, "The same again: ")
	if err != nil {
		return err
	}
	if first != again {
		return guideway.Errorf(guideway.CodeInvalid, "the two are not the same; nothing was changed").
			WithFix("guideway runs approve --set-passphrase")
	}
	if err := p.Passphrase.Set(ctx, old, first); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "The passphrase is set. Keep it from agents: what one can read, it can type.\n")
	return nil
}
