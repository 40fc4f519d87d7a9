package app

import (
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

// keychainService and keychainAccount name the entry in the system's keychain.
const (
	keychainService = "guideway"
	keychainAccount = "checkpoints"
)

// MasterKey finds the key that checkpoints are encrypted with, where the settings
// say that it is.
type MasterKey struct {
	Host *Host
	// mayAsk has a person asked for the passphrase at the terminal. Servers do not
	// ask: nobody may be there.
	mayAsk bool
}

// keySource gives the source of the key; nil where encryption is off.
func (k MasterKey) keySource(cfg *config.Config) (seal.Source, error) {
	keychain := seal.Keychain{Service: keychainService, Account: keychainAccount}
	switch e := cfg.Encryption; e.Mode {
	case config.EncryptionEnabled:
		return seal.FirstOf{keychain, seal.File{Path: e.KeyFile}}, nil
	case config.EncryptionKeychain:
		return keychain, nil
	case config.EncryptionKeyFile:
		return seal.File{Path: e.KeyFile}, nil
	case config.EncryptionPassphrase:
		return k.passphraseSource(e)
	default:
		return nil, nil //nolint:nilnil // no source is what no encryption has
	}
}

// passphraseSource takes the passphrase of the environment, else that of the file, else
// asks for it when it is needed.
func (k MasterKey) passphraseSource(e config.Encryption) (seal.Source, error) {
	if e.Passphrase != "" || e.PassphraseFile == "" {
		return &promptedPassphrase{MasterKey: k, words: e.Passphrase}, nil
	}
	text, err := atomicfile.File{
		Path: e.PassphraseFile, What: "passphrase file", MaxBytes: 4 << 10,
		IfSeen: "note that anyone who has read it can decrypt your checkpoints",
	}.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the passphrase file %s is not there", e.PassphraseFile).
			WithFix("put it back, or give the passphrase in " + config.EnvPassphrase)
	}
	if err != nil {
		return nil, err
	}
	return seal.Passphrase{Words: strings.TrimRight(text, "\r\n")}, nil
}

// promptedPassphrase is the passphrase of the environment, or what a person types. That
// is asked for once: a store without a key loads it twice.
type promptedPassphrase struct {
	MasterKey
	words string
}

var _ seal.Source = (*promptedPassphrase)(nil)

// Kind implements seal.Source, as do the methods after it.
func (*promptedPassphrase) Kind() string { return seal.KindPassphrase }

// Fix says what to do where it is another one.
func (*promptedPassphrase) Fix() string { return seal.Passphrase{}.Fix() }

// Load derives the secret, and asks for the words where they were not given: twice
// where they are new.
func (g *promptedPassphrase) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	if g.words != "" {
		return seal.Passphrase{Words: g.words}.Load(ctx, salt, create)
	}
	if !g.mayAsk || g.Host.ReadSecret == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the passphrase that checkpoints are encrypted with was not given").
			WithFix("set %s, or encryption.passphraseFile", config.EnvPassphrase)
	}
	question := "Passphrase of the checkpoints: "
	if create {
		question = "New passphrase of the checkpoints: "
	}
	words, err := g.askPassphrase(ctx, question)
	if err != nil {
		return nil, err
	}
	if create {
		again, err := g.askPassphrase(ctx, "Once more: ")
		if err != nil {
			return nil, err
		}
		if again != words {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the two passphrases differ; nothing was encrypted").WithFix("try again")
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
		return "", guideway.Errorf(guideway.CodeUnavailable, "ask for the passphrase: %w", err).
			WithFix("set %s, or encryption.passphraseFile", config.EnvPassphrase)
	}
	return strings.TrimRight(words, "\r\n"), nil
}
