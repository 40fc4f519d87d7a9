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
	"sync"

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

// Keys creates and loads data keys. It is safe for concurrent use.
type Keys struct {
	slots  blob.Slots
	source Source
	// others are sources of other kinds, which are used if the master key is replaced while
	// the program runs.
	others []Source

	mu sync.Mutex
	// masters are the master keys, the newest first. There are several while the data keys
	// are wrapped again; see Rotate.
	masters []masterKey
}

// masterKey is a loaded master key.
type masterKey struct {
	note *masterNote
	aead cipher.AEAD
}

// masterNote is the content of the master slot. It identifies the master key.
type masterNote struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	Salt    []byte `json:"salt"`
	// Check is a MAC of a constant with a key that is derived from the master key.
	Check []byte `json:"check"`

	// slot is the name of the slot.
	slot string
}

// Open loads the master key of a store. For a new store it uses the key of the source, and
// creates it if needed. If the key is wrong or missing, Open returns an error with a fix,
// and changes nothing.
func Open(ctx context.Context, slots blob.Slots, source Source) (*Keys, error) {
	k := &Keys{slots: slots, source: source}
	if w, ok := source.(WithOthers); ok {
		k.source, k.others = w.Source, w.Others
	}
	for range 3 {
		notes, err := readMasters(ctx, slots)
		if err != nil {
			return nil, err
		}
		if len(notes) > 0 {
			newest, err := notes[0].openMaster(ctx, ofKind(k.source, notes[0].Kind))
			if err != nil {
				return nil, err
			}
			k.masters = []masterKey{newest}
			if len(notes) > 1 {
				_ = k.reload(ctx) // the earlier keys are needed for the data keys that they wrap
			}
			return k, nil
		}
		err = initialize(ctx, slots, k.source)
		if err != nil && guideway.ErrorCode(err) != guideway.CodeConflict { // another process may have created the slot first
			return nil, err
		}
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "other processes keep replacing the master key of the encryption").WithFix("try again")
}

// Initialized reports whether a store has the slot of a master key, or wrapped data keys:
// then its encrypted blobs can be read only with that master key.
func Initialized(ctx context.Context, slots blob.Slots) (bool, error) {
	for _, prefix := range []string{masterSlot, NamePrefix} {
		if list, err := slots.Slots(ctx, prefix); err != nil || len(list) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

func readMaster(ctx context.Context, slots blob.Slots, slot string) (*masterNote, error) {
	text, err := slots.Slot(ctx, slot)
	if err != nil {
		return nil, err
	}
	m := masterNote{slot: slot}
	err = json.Unmarshal(text, &m)
	switch {
	case err == nil && m.Version > 1:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the stored master key has version %d, but this version of Guideway supports version 1", m.Version).
			WithFix("use the version of Guideway that wrote the key, or a later one")
	case err != nil || m.Version != 1 || len(m.Salt) != saltBytes || len(m.Check) != sha256.Size || !m.isWrittenAs(text):
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the stored master key is damaged").
			WithFix("restore the file contexts/slots/%s of the data directory, or the database, from a backup; without this key, the encrypted data cannot be read", slot)
	}
	return &m, nil
}

// isWrittenAs reports whether text is the exact text that initialize stores for m: a member
// name in another case, or bits after the end of base64, are damage too.
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
		return guideway.Errorf(guideway.CodeUnavailable, "the stored master key of the encrypted data is missing").
			WithFix("restore the file contexts/slots/%s of the data directory, or the database, from a backup; no new key was created", masterSlot)
	}
	note, err := newNote(ctx, source, nil)
	if err != nil {
		return err
	}
	return note.create(ctx, slots, masterSlot)
}

// newNote returns the note of a new master key of a source. The new key differs from that
// of before, if before is not nil and the source is a file.
func newNote(ctx context.Context, source Source, before *masterNote) (*masterNote, error) {
	m := &masterNote{Version: 1, Salt: make([]byte, saltBytes)}
	_, _ = rand.Read(m.Salt) // never fails
	var secret []byte
	var err error
	if m.Kind, secret, err = loadInitial(ctx, source, m.Salt); err != nil {
		return nil, err
	}
	if file, ok := ofKind(source, m.Kind).(File); ok && before != nil && before.isOf(secret) {
		if secret, err = file.addSecret(); err != nil {
			return nil, err
		}
	}
	m.Check = deriveKey(secret, m.Salt, "check")
	return m, nil
}

// create stores the note in a new slot.
func (m *masterNote) create(ctx context.Context, slots blob.Slots, slot string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "store the master key: %w", err)
	}
	return slots.CreateSlot(ctx, slot, text)
}

// isOf reports whether m identifies the master key with a secret.
func (m *masterNote) isOf(secret []byte) bool {
	return hmac.Equal(deriveKey(secret, m.Salt, "check"), m.Check)
}

// openMaster loads the key that m identifies.
func (m *masterNote) openMaster(ctx context.Context, source Source) (masterKey, error) {
	if m.Kind != source.Kind() {
		return masterKey{}, guideway.Errorf(guideway.CodeUnavailable, "the master key of the stored checkpoints comes from a %s, not from a %s", m.Kind, source.Kind()).
			WithFix("set encryption.mode to %q", strings.ReplaceAll(m.Kind, " ", "-"))
	}
	secrets, err := loadAll(ctx, source, m.Salt)
	if err != nil {
		return masterKey{}, err
	}
	i := slices.IndexFunc(secrets, m.isOf)
	if i < 0 {
		return masterKey{}, guideway.Errorf(guideway.CodeUnavailable, "the key from the %s is not the key that encrypted the stored checkpoints", m.Kind).
			WithFix("%s", fixOf(source, m.Salt))
	}
	aead, err := newAEAD(deriveKey(secrets[i], m.Salt, "wrap"))
	return masterKey{note: m, aead: aead}, err
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
func (k *Keys) Kind() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.masters[0].note.Kind
}

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

// Hasher returns a keyed hash of texts. It is not safe for concurrent use.
func (k *Key) Hasher() func(text []byte) []byte {
	mac := hmac.New(sha256.New, deriveKey(k.key, nil, "hash"))
	var sum [sha256.Size]byte
	return func(text []byte) []byte {
		mac.Reset()
		mac.Write(text)
		return mac.Sum(sum[:0])
	}
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

// createKey creates a data key. If the master key is replaced meanwhile, the data key is
// wrapped again, because Rotate may have listed the data keys before.
func (k *Keys) createKey(ctx context.Context, name string) (*Key, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	master, err := k.newest(ctx)
	if err != nil {
		return nil, err
	}
	wrapped := master.wrap(name, key)
	if err := k.slots.CreateSlot(ctx, name, wrapped); err != nil {
		return nil, err
	}
	for {
		now, err := k.newest(ctx)
		if err != nil {
			return nil, err // the slot stays, because another process may use the key by now
		}
		if now.note.slot == master.note.slot {
			return newKey(name, key)
		}
		before := wrapped
		master, wrapped = now, now.wrap(name, key)
		if err := k.slots.ReplaceSlot(ctx, name, before, wrapped); err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
			return nil, err // with CodeNotFound, Rotate has wrapped the key already
		}
	}
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
		return nil, guideway.Errorf(guideway.CodeNotFound, "the data key %s does not exist, so its data cannot be decrypted", name).
			WithFix("if the data was not deleted, restore the file contexts/slots/%s of the data directory, or the database, from a backup", name)
	}
	if err != nil {
		return nil, err
	}
	key, err := k.unwrap(name, wrapped)
	if err != nil { // the master key may have been replaced
		if err = k.reload(ctx); err == nil {
			wrapped, err = k.slots.Slot(ctx, name)
		}
		if err != nil {
			return nil, err
		}
		key, err = k.unwrap(name, wrapped)
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the data key %s cannot be decrypted: %w", name, ErrTampered).
			WithFix("restore the file contexts/slots/%s of the data directory, or the database, from a backup", name)
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
