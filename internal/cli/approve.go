package cli

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

// asksPeople refuses to work where no person sits: a pipe cannot approve.
func (h *Host) asksPeople() error {
	if h.InTerminal && h.OutTerminal && h.ReadSecret != nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeForbidden, "only a person at a terminal approves: the input or the output is a file or a pipe").
		WithFix("run it yourself in a terminal")
}

// approver asks a person for the passphrase that an agent does not know.
type approver struct {
	*prompter
	secret passphrase.File
}

func newApprover(host *Host, cfg *config.Config) *approver {
	return &approver{prompter: newPrompter(host), secret: host.passphraseFile(cfg)}
}

// prove asks for the passphrase.
func (p *approver) prove(ctx context.Context) error {
	typed, err := p.ask(ctx, "Passphrase: ")
	if err != nil {
		return err
	}
	return p.secret.Check(ctx, typed)
}

// proveIfSet asks for the passphrase where there is one: what opens the same
// gates must not be easier to come by.
func (p *approver) proveIfSet(ctx context.Context) error {
	isSet, err := p.secret.IsSet()
	if err != nil || !isSet {
		return err
	}
	return p.prove(ctx)
}

// confirmName has the person type a name to approve something.
func (p *approver) confirmName(ctx context.Context, kind, what, name string) error {
	if err := p.proveIfSet(ctx); err != nil {
		return err
	}
	line, err := p.askLine(ctx, fmt.Sprintf("Type the %s of the %s to approve exactly this (%s): ", what, kind, oneLine(name)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != name {
		return guideway.Errorf(guideway.CodeForbidden, "not approved: that is not the %s of the %s; nothing was changed", what, kind)
	}
	return nil
}

// ask asks for a secret.
func (p *approver) ask(ctx context.Context, what string) (string, error) {
	fmt.Fprint(p.out, what)
	typed, err := p.host.ReadSecret(ctx)
	fmt.Fprintln(p.out)
	if errors.Is(err, io.EOF) {
		return "", stopped()
	}
	return typed, err
}

// stopped is the end that a person wanted.
func stopped() error { return silentError{exitFailed} }

// setPassphrase has the person set the passphrase, or another one.
func (p *approver) setPassphrase(ctx context.Context) error {
	isSet, err := p.secret.IsSet()
	if err != nil {
		return err
	}
	old := ""
	if isSet {
		if old, err = p.ask(ctx, "The old passphrase: "); err != nil {
			return err
		}
		// Looked at first: who does not know it is not asked for another one.
		if err := p.secret.Check(ctx, old); err != nil {
			return err
		}
	}
	first, err := p.ask(ctx, fmt.Sprintf("A new passphrase, of at least %d characters: ", passphrase.MinLength))
	if err != nil {
		return err
	}
	again, err := p.ask(ctx, "The same again: ")
	if err != nil {
		return err
	}
	if first != again {
		return guideway.Errorf(guideway.CodeInvalid, "the two are not the same; nothing was changed").
			WithFix("guideway runs approve --set-passphrase")
	}
	if err := p.secret.Set(ctx, old, first); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "The passphrase is set. Keep it from agents: what one can read, it can type.\n")
	return nil
}
