package seal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"time"

	keyring "github.com/zalando/go-keyring"
	"golang.org/x/crypto/argon2"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// The kinds of sources.
const (
	KindFile       = "key file"
	KindPassphrase = "passphrase"
	KindKeychain   = "keychain"
)

// secretPrefix tells scanners for leaked secrets, and readers, what it is.
const secretPrefix = "gdwmaster1_"

// invent makes a secret as it stands in a file or a keychain.
func invent() string {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // never fails
	return secretPrefix + hex.EncodeToString(secret)
}

// parse reads a secret as it stands in a file or a keychain.
func parse(text string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !ok {
		return nil, false
	}
	secret, err := hex.DecodeString(digits)
	return secret, err == nil && len(secret) == keyBytes
}

// File keeps the master key in a file for this user alone. Beside the data it
// guards backups that leave it out, and nothing else.
type File struct{ Path string }

// Kind implements Source.
func (File) Kind() string { return KindFile }

// Fix implements Source.
func (f File) Fix() string {
	return "restore the key file " + f.Path + " from a backup; no new key was made"
}

// Load implements Source.
func (f File) Load(_ context.Context, _ []byte, create bool) ([]byte, error) {
	file := atomicfile.File{
		Path: f.Path, What: "key file", MaxBytes: 4 << 10,
		IfSeen: "know that whoever has read it can decrypt your checkpoints",
	}
	var text string
	var err error
	if create {
		text, _, err = file.ReadOrCreate(func() string { return invent() + "\n" })
	} else {
		text, err = file.Read()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the key file %s, which checkpoints are encrypted with, is not there", f.Path).WithFix("%s", f.Fix())
	}
	if err != nil {
		return nil, err
	}
	secret, ok := parse(text)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the key file %s does not hold a key: %s and %d hexadecimal digits", f.Path, secretPrefix, 2*keyBytes).
			WithFix("%s", f.Fix())
	}
	return secret, nil
}

// Passphrase derives the master key from words that a person knows, with
// argon2id: a guess costs 64 MB and about a tenth of a second.
type Passphrase struct{ Words string }

// Kind implements Source.
func (Passphrase) Kind() string { return KindPassphrase }

// Fix implements Source.
func (Passphrase) Fix() string {
	return "give the passphrase that was given at first; without it nobody can read these checkpoints"
}

// minPassphrase is what a passphrase has at least, in characters.
const minPassphrase = 8

// Load implements Source.
func (p Passphrase) Load(_ context.Context, salt []byte, create bool) ([]byte, error) {
	if p.Words == "" || (create && len([]rune(p.Words)) < minPassphrase) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a passphrase of %d characters is too short", len([]rune(p.Words))).
			WithFix("give one of %d characters or more", minPassphrase)
	}
	// The second choice of RFC 9106, for where memory is short.
	const rounds, memoryKB, lanes = 3, 64 << 10, 4
	return argon2.IDKey([]byte(p.Words), salt, rounds, memoryKB, lanes, keyBytes), nil
}

// Keychain keeps the master key in the system's keychain.
type Keychain struct {
	// Service and Account name the entry.
	Service, Account string
	// Timeout bounds the wait: a locked keychain may ask a person. 0 is 20 s.
	Timeout time.Duration

	// get and set are the keychain; nil is the system's.
	get func(service, account string) (string, error)
	set func(service, account, secret string) error
}

// Kind implements Source.
func (Keychain) Kind() string { return KindKeychain }

// Fix implements Source.
func (k Keychain) Fix() string {
	return "unlock the keychain, and restore its entry " + k.Service + "/" + k.Account + " if it is gone; no new key was made. Where there is no keychain, use a key file"
}

// Load implements Source. Only that the keychain itself says that there is no
// entry makes one. The salt is part of its name: of processes that begin at the
// same moment each makes its own, and the one that counts is not replaced.
func (k Keychain) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	if k.get == nil {
		k.get, k.set = keyring.Get, keyring.Set
	}
	if k.Timeout <= 0 {
		k.Timeout = 20 * time.Second
	}
	k.Account += "-" + hex.EncodeToString(salt[:min(len(salt), 4)])
	text, err := k.ask(ctx, func() (string, error) { return k.get(k.Service, k.Account) })
	if errors.Is(err, keyring.ErrNotFound) && create {
		text, err = k.ask(ctx, func() (string, error) {
			if err := k.set(k.Service, k.Account, invent()); err != nil {
				return "", err
			}
			return k.get(k.Service, k.Account) // what is kept counts, not what was given
		})
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the master key from the keychain: %w", err).WithFix("%s", k.Fix())
	}
	secret, ok := parse(text)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the entry %s/%s of the keychain does not hold a key", k.Service, k.Account).WithFix("%s", k.Fix())
	}
	return secret, nil
}

// ask waits for the keychain, but not for ever. What waits for a person cannot be
// stopped; it ends when the person answers.
func (k Keychain) ask(ctx context.Context, question func() (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	type reply struct {
		text string
		err  error
	}
	answer := make(chan reply, 1)
	go func() {
		text, err := question()
		answer <- reply{text, err}
	}()
	select {
	case r := <-answer:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
