package seal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	keyring "github.com/zalando/go-keyring"
	"golang.org/x/crypto/argon2"
)

// The kinds of sources.
const (
	KindFile       = "key file"
	KindPassphrase = "passphrase"
	KindKeychain   = "keychain"
)

// secretPrefix identifies the secret for secret scanners and readers.
const secretPrefix = "gdwmaster1_"

// newSecret returns a new secret in the format of a file or a keychain.
func newSecret() string {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // never fails
	return secretPrefix + hex.EncodeToString(secret)
}

// parseSecret parses a secret from a file or a keychain.
func parseSecret(text string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !ok {
		return nil, false
	}
	secret, err := hex.DecodeString(digits)
	return secret, err == nil && len(secret) == keyBytes
}

// maxKeyFile bounds a key file, which grows by a line with each rotation.
const maxKeyFile = 1 << 20

// File stores the master key in a file that only the user can read. If the file is next to
// the data, it protects only backups that exclude it.
type File struct {
	Path string
	// Data is the noun for the encrypted data in messages; the default is "stored data".
	Data string
}

// Kind implements Source.
func (File) Kind() string { return KindFile }

// Fix implements Source.
func (f File) Fix() string {
	return "restore the key file " + f.Path + " from a backup, or copy it from another computer that uses the store; no new key was created"
}

// Load implements Source.
func (f File) Load(_ context.Context, _ []byte, create bool) ([]byte, error) {
	file := f.file()
	var text string
	var err error
	if create {
		text, _, err = file.ReadOrCreate(func() string { return newSecret() + "\n" })
	} else {
		text, err = file.Read()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the key file %s, which encrypts %s, does not exist", f.Path, cmp.Or(f.Data, "stored data")).WithFix("%s", f.Fix())
	}
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	secret, ok := parseSecret(first)
	if !ok {
		fix := f.Fix()
		if create { // nothing is encrypted yet
			fix = "move the file away to create a new key"
		}
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the key file %s does not contain a key, which is %q followed by %d hexadecimal digits", f.Path, secretPrefix, 2*keyBytes).
			WithFix("%s", fix)
	}
	return secret, nil
}

// file returns the file.
func (f File) file() atomicfile.File {
	return atomicfile.File{
		Path: f.Path, What: "key file", MaxBytes: maxKeyFile,
		IfSeen: "note that anyone who has read the key can decrypt your " + cmp.Or(f.Data, "stored data"),
	}
}

// readSecrets returns all secrets of the file: the current one first, then the earlier
// ones.
func (f File) readSecrets() ([][]byte, error) {
	text, err := f.file().Read()
	var list [][]byte
	for line := range strings.Lines(text) {
		if secret, ok := parseSecret(line); ok {
			list = append(list, secret)
		}
	}
	return list, err
}

// addSecret puts a new secret in front of those in the file. The earlier ones stay, because
// other data directories, and copies, may need them.
func (f File) addSecret() ([]byte, error) {
	text, err := f.file().Read()
	if err != nil {
		return nil, err
	}
	line := newSecret()
	path, err := filepath.EvalSymlinks(f.Path)
	if err == nil && len(line)+len(text) >= maxKeyFile {
		err = errors.New("it has too many earlier keys")
	}
	if err == nil {
		err = atomicfile.Replace(path, line+"\n"+text)
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "add a key to the key file %s: %w", f.Path, err).WithFix("make the file and its directory writable for this user")
	}
	secret, _ := parseSecret(line)
	return secret, nil
}

// Passphrase derives the master key from a passphrase with argon2id: a guess costs 64 MB
// and about a tenth of a second.
type Passphrase struct{ Words string }

// Kind implements Source.
func (Passphrase) Kind() string { return KindPassphrase }

// Fix implements Source.
func (Passphrase) Fix() string {
	return "use the original passphrase; without it, the encrypted data cannot be read"
}

// minPassphrase is the minimum length of a new passphrase in characters.
const minPassphrase = 8

// Load implements Source.
func (p Passphrase) Load(_ context.Context, salt []byte, create bool) ([]byte, error) {
	switch {
	case create && len([]rune(p.Words)) < minPassphrase:
		return nil, guideway.Errorf(guideway.CodeInvalid, "the passphrase has %d characters; at least %d are necessary", len([]rune(p.Words)), minPassphrase).
			WithFix("choose a longer passphrase")
	case p.Words == "":
		return nil, guideway.Errorf(guideway.CodeInvalid, "the passphrase is empty").WithFix("%s", p.Fix())
	}
	// The second recommended option of RFC 9106, for systems with little memory.
	const rounds, memoryKB, lanes = 3, 64 << 10, 4
	return argon2.IDKey([]byte(p.Words), salt, rounds, memoryKB, lanes, keyBytes), nil
}

// Keychain stores the master key in the system's keychain.
type Keychain struct {
	// Service and Account name the entry. Load appends a part of the salt to Account.
	Service, Account string
	// Timeout bounds the wait, since a locked keychain may ask a person; the default is 20
	// seconds.
	Timeout time.Duration

	// get and set access the keychain; the default is the system's.
	get func(service, account string) (string, error)
	set func(service, account, secret string) error
}

// Kind implements Source.
func (Keychain) Kind() string { return KindKeychain }

// Fix implements Source.
func (k Keychain) Fix() string {
	return "unlock the keychain; if the entry " + k.Service + "/" + k.Account + " is missing or was changed, restore it from a backup; no new key was created; without a keychain, use a key file"
}

// withSalt returns the source with the name of the entry for a salt.
func (k Keychain) withSalt(salt []byte) Keychain {
	k.Account += "-" + hex.EncodeToString(salt[:min(len(salt), 4)])
	return k
}

// fixOf returns the fix of a source. For the keychain it names the entry for the salt.
func fixOf(source Source, salt []byte) string {
	if k, ok := source.(Keychain); ok {
		return k.withSalt(salt).Fix()
	}
	return source.Fix()
}

// Load implements Source. It creates an entry only if the keychain reports a missing entry.
// The salt is part of the entry's name: each of several racing processes creates its own
// entry, and the entry of the winning process is not replaced.
func (k Keychain) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	if k.get == nil {
		k.get, k.set = keyring.Get, keyring.Set
	}
	if k.Timeout <= 0 {
		k.Timeout = 20 * time.Second
	}
	k = k.withSalt(salt)
	text, err := k.askKeychain(ctx, func() (string, error) { return k.get(k.Service, k.Account) })
	if errors.Is(err, keyring.ErrNotFound) && create {
		text, err = k.askKeychain(ctx, func() (string, error) {
			if err := k.set(k.Service, k.Account, newSecret()); err != nil {
				return "", err
			}
			return k.get(k.Service, k.Account) // another process may have stored a different value first
		})
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the master key from the keychain: %w", err).WithFix("%s", k.Fix())
	}
	secret, ok := parseSecret(text)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the entry %s/%s of the keychain does not contain a key", k.Service, k.Account).WithFix("%s", k.Fix())
	}
	return secret, nil
}

// askKeychain bounds the wait for the keychain. A call that waits for a person cannot be canceled;
// it ends when the person answers.
func (k Keychain) askKeychain(ctx context.Context, question func() (string, error)) (string, error) {
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

// FirstOf chooses among sources: for a new store, the first one that can load or create a
// secret. The kind of that source is stored with the identification of the key. Later only
// the source of that kind is used, and its failure is an error.
type FirstOf []Source

var _ Source = FirstOf{}

// Kind implements Source.
func (f FirstOf) Kind() string {
	kinds := lists.Map(f, func(one Source) string { return one.Kind() })
	return strings.Join(kinds, " or ")
}

// Fix implements Source.
func (f FirstOf) Fix() string {
	fixes := lists.Map(f, func(one Source) string { return one.Fix() })
	return strings.Join(fixes, "; or ")
}

// Load implements Source. It returns the first available secret.
func (f FirstOf) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	_, secret, err := f.firstSecret(ctx, salt, create)
	return secret, err
}

// firstSecret returns the first available secret, and the kind of its source.
func (f FirstOf) firstSecret(ctx context.Context, salt []byte, create bool) (kind string, secret []byte, err error) {
	var failed []error
	var fixes []string
	for _, one := range f {
		secret, err := one.Load(ctx, salt, create)
		if err == nil {
			return one.Kind(), secret, nil
		}
		failed = append(failed, err)
		fixes = append(fixes, fixOf(one, salt))
	}
	return "", nil, guideway.Errorf(guideway.CodeUnavailable, "no source of the master key can be used: %w", errors.Join(failed...)).WithFix("%s", strings.Join(fixes, "; or "))
}

// loadInitial loads the secret for a new store, and returns the kind of its source.
func loadInitial(ctx context.Context, source Source, salt []byte) (kind string, secret []byte, err error) {
	if several, ok := source.(FirstOf); ok {
		return several.firstSecret(ctx, salt, true)
	}
	secret, err = source.Load(ctx, salt, true)
	return source.Kind(), secret, err
}

// ofKind returns the source with the kind if source is a FirstOf that contains one,
// otherwise source.
func ofKind(source Source, kind string) Source {
	several, _ := source.(FirstOf)
	for _, one := range several {
		if one.Kind() == kind {
			return one
		}
	}
	return source
}
