// Package seal encrypts blobs. Every series of checkpoints has a data key, which is wrapped
// by a master key and stored in a slot of the blob store: destroying the slot destroys all
// data encrypted with it, including copies. The master key is stored separately: in a file,
// in the system's keychain, or it is derived from a passphrase.
//
// A failed read of a key never creates a new one. If wrapped keys exist, only the master
// key that wrapped them is accepted.
package seal

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

const (
	// masterSlot is the slot that identifies the master key of the store, without revealing
	// it.
	masterSlot = "master"
	// NamePrefix begins the names of the slots of wrapped keys.
	NamePrefix = "key-"
	keyBytes   = 32
	saltBytes  = 16
)

// Source holds a master secret.
type Source interface {
	// Kind returns the name of the source in the store and in messages.
	Kind() string
	// Load returns the secret. It creates one only if create is set and none exists; a
	// failed read is an error.
	Load(ctx context.Context, salt []byte, create bool) ([]byte, error)
	// Fix returns the fix for a missing or wrong secret.
	Fix() string
}

// Keys creates and loads data keys.
type Keys struct {
	slots  blob.Slots
	master cipher.AEAD
	kind   string
}

// masterNote is the content of the master slot. It identifies the master key.
type masterNote struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	Salt    []byte `json:"salt"`
	// Check is a MAC of a constant with a key that is derived from the master key.
	Check []byte `json:"check"`
}

// Open loads the master key of a store. For a new store it uses the key of the source, and
// creates it if needed. If the key is wrong or missing, Open returns an error with a fix,
// and changes nothing.
func Open(ctx context.Context, slots blob.Slots, source Source) (*Keys, error) {
	for range 3 {
		known, err := readMaster(ctx, slots)
		switch {
		case err == nil:
			return known.openKeys(ctx, slots, source)
		case guideway.ErrorCode(err) != guideway.CodeNotFound:
			return nil, err
		}
		err = initialize(ctx, slots, source)
		if err != nil && guideway.ErrorCode(err) != guideway.CodeConflict { // another process may have created the slot first
			return nil, err
		}
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "the slot of the master key keeps changing").WithFix("try again")
}

// Initialized reports whether a store has the slot of a master key, or wrapped data keys:
// then its encrypted blobs can be read only with that master key.
func Initialized(ctx context.Context, slots blob.Slots) (bool, error) {
	_, err := slots.Slot(ctx, masterSlot)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		wrapped, err := slots.Slots(ctx, NamePrefix)
		return len(wrapped) > 0, err
	}
	return err == nil, err
}

func readMaster(ctx context.Context, slots blob.Slots) (*masterNote, error) {
	text, err := slots.Slot(ctx, masterSlot)
	if err != nil {
		return nil, err
	}
	var m masterNote
	err = json.Unmarshal(text, &m)
	switch {
	case err == nil && m.Version > 1:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the slot of the master key has version %d, but this version of Guideway supports version 1", m.Version).
			WithFix("use the version of Guideway that wrote the slot, or a later one")
	case err != nil || m.Version != 1 || len(m.Salt) != saltBytes || len(m.Check) != sha256.Size || !m.isWrittenAs(text):
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the slot of the master key is damaged").
			WithFix("restore slots/%s of the blob directory, or the database, from a backup; without the slot, encrypted checkpoints cannot be read", masterSlot)
	}
	return &m, nil
}

// isWrittenAs reports whether text is the exact text that initialize stores for m: a member
// name in another case, or bits behind the end of base64, are damage too.
func (m *masterNote) isWrittenAs(text []byte) bool {
	own, err := json.Marshal(m)
	return err == nil && bytes.Equal(own, text)
}

// initialize stores the identification of the master key in a new store.
func initialize(ctx context.Context, slots blob.Slots, source Source) error {
	wrapped, err := slots.Slots(ctx, NamePrefix)
	if err != nil {
		return err
	}
	if len(wrapped) > 0 {
		return guideway.Errorf(guideway.CodeUnavailable, "the slot of the master key of the encrypted checkpoints is missing").
			WithFix("restore slots/%s of the blob directory, or the database, from a backup; no new key was created", masterSlot)
	}
	m := masterNote{Version: 1, Salt: make([]byte, saltBytes)}
	_, _ = rand.Read(m.Salt) // never fails
	var secret []byte
	if m.Kind, secret, err = loadInitial(ctx, source, m.Salt); err != nil {
		return err
	}
	m.Check = deriveKey(secret, m.Salt, "check")
	text, err := json.Marshal(m)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "store the slot of the master key: %w", err)
	}
	return slots.CreateSlot(ctx, masterSlot, text)
}

// openKeys loads the key that m identifies.
func (m *masterNote) openKeys(ctx context.Context, slots blob.Slots, source Source) (*Keys, error) {
	source = ofKind(source, m.Kind)
	if m.Kind != source.Kind() {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the master key of the stored checkpoints comes from a %s, not from a %s", m.Kind, source.Kind()).
			WithFix("set encryption.mode to %q", strings.ReplaceAll(m.Kind, " ", "-"))
	}
	secret, err := source.Load(ctx, m.Salt, false)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(deriveKey(secret, m.Salt, "check"), m.Check) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the key from the %s is not the key that encrypted the stored checkpoints", m.Kind).
			WithFix("%s", fixOf(source, m.Salt))
	}
	aead, err := newAEAD(deriveKey(secret, m.Salt, "wrap"))
	if err != nil {
		return nil, err
	}
	return &Keys{slots: slots, master: aead, kind: m.Kind}, nil
}

// deriveKey derives a key for a purpose.
func deriveKey(secret, salt []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("guideway checkpoints " + purpose))
	mac.Write(salt)
	return mac.Sum(nil)
}

// newAEAD returns AES-256-GCM with random nonces, which precede the ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "make a cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "make a cipher: %w", err)
	}
	return aead, nil
}

// Kind returns the kind of the source of the master key.
func (k *Keys) Kind() string { return k.kind }

// Key is a data key.
type Key struct {
	// Name is the name of the slot that contains the wrapped key.
	Name string
	key  []byte
	aead cipher.AEAD
}

func newKey(name string, key []byte) (*Key, error) {
	aead, err := newAEAD(key)
	return &Key{Name: name, key: key, aead: aead}, err
}

// Hash returns a keyed hash of a text.
func (k *Key) Hash(text []byte) []byte {
	mac := hmac.New(sha256.New, deriveKey(k.key, nil, "hash"))
	mac.Write(text)
	return mac.Sum(nil)
}

// Seal encrypts a text. Key.Open must be called with the same context.
func (k *Key) Seal(text, context []byte) []byte {
	return k.aead.Seal(nil, nil, text, context) //nolint:gosec // this AEAD takes no nonce: it makes a random one itself
}

// ErrTampered reports that a ciphertext, its context or its key is not the original.
var ErrTampered = errors.New("the ciphertext does not match its key")

// Open decrypts a ciphertext, or returns ErrTampered.
func (k *Key) Open(sealed, context []byte) ([]byte, error) {
	text, err := k.aead.Open(nil, nil, sealed, context)
	if err != nil {
		return nil, ErrTampered
	}
	return text, nil
}

// New creates a data key and stores it wrapped.
func (k *Keys) New(ctx context.Context) (*Key, error) {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return k.createKey(ctx, NamePrefix+hex.EncodeToString(id))
}

func (k *Keys) createKey(ctx context.Context, name string) (*Key, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key)                                 // never fails
	wrapped := k.master.Seal(nil, nil, key, []byte(name)) //nolint:gosec // as in Key.Seal
	if err := k.slots.CreateSlot(ctx, name, wrapped); err != nil {
		return nil, err
	}
	return newKey(name, key)
}

// Named returns the data key with a name of the caller, which begins with NamePrefix. If
// create is set and no such key exists, it creates one.
func (k *Keys) Named(ctx context.Context, name string, create bool) (*Key, error) {
	key, err := k.Key(ctx, name)
	if !create || guideway.ErrorCode(err) != guideway.CodeNotFound {
		return key, err
	}
	if _, err = k.createKey(ctx, name); err != nil && guideway.ErrorCode(err) != guideway.CodeConflict {
		return nil, err
	}
	return k.Key(ctx, name) // another process may have created it
}

// Key returns a data key. The error has CodeNotFound if the key does not exist, usually
// because it was erased, and wraps ErrTampered if the master key cannot decrypt it.
func (k *Keys) Key(ctx context.Context, name string) (*Key, error) {
	if !strings.HasPrefix(name, NamePrefix) {
		return nil, guideway.Errorf(guideway.CodeNotFound, "%.40q is not a valid data key name", name)
	}
	wrapped, err := k.slots.Slot(ctx, name)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, guideway.Errorf(guideway.CodeNotFound, "the data key %s does not exist, so its checkpoints cannot be decrypted", name).
			WithFix("if the session of the key was not deleted, restore slots/%s of the blob directory, or the database, from a backup", name)
	}
	if err != nil {
		return nil, err
	}
	key, err := k.master.Open(nil, nil, wrapped, []byte(name))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the data key %s cannot be decrypted: %w", name, ErrTampered).
			WithFix("restore slots/%s of the blob directory, or the database, from a backup", name)
	}
	return newKey(name, key)
}

// Erase destroys a data key, and with it all data encrypted with it.
func Erase(ctx context.Context, slots blob.Slots, name string) error {
	if !strings.HasPrefix(name, NamePrefix) {
		return nil
	}
	return slots.EraseSlot(ctx, name)
}

// Erase is the function Erase for the slots of k.
func (k *Keys) Erase(ctx context.Context, name string) error { return Erase(ctx, k.slots, name) }

// Names lists the data keys of a store that New created.
func Names(ctx context.Context, slots blob.Slots) ([]blob.SlotInfo, error) {
	list, err := slots.Slots(ctx, NamePrefix)
	return slices.DeleteFunc(list, func(s blob.SlotInfo) bool { return strings.Contains(s.Key[len(NamePrefix):], "-") }), err
}
