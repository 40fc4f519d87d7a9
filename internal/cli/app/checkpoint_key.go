package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// keychainService and keychainAccount identify the entry in the system keychain.
const (
	keychainService = "guideway"
	keychainAccount = "checkpoints"
)

// MasterKey locates the key that encrypts stored data, as the settings configure it.
type MasterKey struct {
	Host *Host
	// mayAsk allows a prompt for the passphrase at the terminal. Servers do not prompt.
	mayAsk bool
	// isNew reports that the key replaces another one, so a passphrase is new.
	isNew bool
}

// keySource returns the source of the key, or nil if encryption is off. The result also has
// the sources of the other kinds, so that a running program still finds the key after a
// rotation to another kind.
func (k MasterKey) keySource(cfg *config.Config) (seal.Source, error) {
	source, err := k.sourceOfMode(cfg.Encryption)
	if err != nil || source == nil {
		return nil, err
	}
	others := []seal.Source{seal.File{Path: cfg.Encryption.KeyFile}, seal.Keychain{Service: keychainService, Account: keychainAccount}}
	if words, err := (MasterKey{}).passphraseSource(cfg.Encryption); err == nil {
		others = append(others, words)
	}
	return seal.WithOthers{Source: source, Others: others}, nil
}

func (k MasterKey) sourceOfMode(e config.Encryption) (seal.Source, error) {
	keychain := seal.Keychain{Service: keychainService, Account: keychainAccount}
	switch e.Mode {
	case config.EncryptionEnabled:
		return seal.FirstOf{keychain, seal.File{Path: e.KeyFile}}, nil
	case config.EncryptionKeychain:
		return keychain, nil
	case config.EncryptionKeyFile:
		return seal.File{Path: e.KeyFile}, nil
	case config.EncryptionPassphrase:
		return k.passphraseSource(e)
	default:
		return nil, nil //nolint:nilnil // a nil source means no encryption
	}
}

// RotateSources returns the source of the current master key, and the source of a new key:
// of the given mode, or of the configured mode if mode is empty. A new passphrase comes
// from a file, or else from a prompt.
func (a *App) RotateSources(cfg *config.Config, mode, passphraseFile string) (from, to seal.Source, err error) {
	key := MasterKey{Host: a.Host, mayAsk: true}
	if from, err = key.keySource(cfg); err != nil {
		return nil, nil, err
	}
	if from == nil {
		return nil, nil, guideway.Errorf(guideway.CodeInvalid, "encryption is off, so there is no key to replace").WithFix("set encryption.mode")
	}
	e := cfg.Encryption
	key.isNew = true
	e.Mode, e.Passphrase, e.PassphraseFile = cmp.Or(mode, e.Mode), "", passphraseFile
	to, err = key.sourceOfMode(e)
	return from, to, err
}

// passphraseSource returns the passphrase from the environment, or else from the configured
// file, or else from a prompt.
func (k MasterKey) passphraseSource(e config.Encryption) (seal.Source, error) {
	if e.Passphrase != "" || e.PassphraseFile == "" {
		return &promptedPassphrase{MasterKey: k, words: e.Passphrase}, nil
	}
	text, err := atomicfile.File{
		Path: e.PassphraseFile, What: "passphrase file", MaxBytes: 4 << 10,
		IfSeen: "note that anyone who has read the passphrase can decrypt your stored data",
	}.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the passphrase file %s does not exist", e.PassphraseFile).
			WithFix("create or restore the file, or %s", k.passphraseFix())
	}
	if err != nil {
		return nil, err
	}
	return seal.Passphrase{Words: strings.TrimRight(text, "\r\n")}, nil
}

// passphraseFix returns the fix for a missing passphrase.
func (k MasterKey) passphraseFix() string {
	if k.isNew {
		return "name a file with the new passphrase: guideway encryption rotate --new-passphrase-file FILE"
	}
	return "set the environment variable " + config.EnvPassphrase + " to the passphrase, or the setting encryption.passphraseFile to a file with it"
}

// promptedPassphrase is a passphrase from the environment or from a prompt. It prompts
// once, because a store without a key loads the passphrase twice.
type promptedPassphrase struct {
	MasterKey
	words string
}

var _ seal.Source = (*promptedPassphrase)(nil)

// Kind implements seal.Source. So do Fix and Load.
func (*promptedPassphrase) Kind() string { return seal.KindPassphrase }

// Fix returns the hint for a wrong passphrase.
func (*promptedPassphrase) Fix() string { return seal.Passphrase{}.Fix() }

// Load derives the secret. It prompts for the passphrase if none exists, and prompts
// twice for a new one.
func (g *promptedPassphrase) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	if g.words != "" {
		return seal.Passphrase{Words: g.words}.Load(ctx, salt, create)
	}
	if !g.mayAsk || g.Host.ReadSecret == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the encryption passphrase was not given").
			WithFix("%s", g.passphraseFix())
	}
	question := "Encryption passphrase: "
	if create {
		question = "New encryption passphrase: "
	}
	words, err := g.askPassphrase(ctx, question)
	if err != nil {
		return nil, err
	}
	if create {
		again, err := g.askPassphrase(ctx, "Repeat the passphrase: ")
		if err != nil {
			return nil, err
		}
		if again != words {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the two passphrases do not match; nothing was encrypted").WithFix("run the command again, and enter the same passphrase twice")
		}
	}
	secret, err := seal.Passphrase{Words: words}.Load(ctx, salt, create)
	if err == nil {
		g.words = words
	}
	return secret, err
}

func (g *promptedPassphrase) askPassphrase(ctx context.Context, question string) (string, error) {
	fmt.Fprint(g.Host.Err, question)
	words, err := g.Host.ReadSecret(ctx)
	fmt.Fprintln(g.Host.Err)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "cannot read the encryption passphrase: %w", err).
			WithFix("%s", g.passphraseFix())
	}
	return strings.TrimRight(words, "\r\n"), nil
}
