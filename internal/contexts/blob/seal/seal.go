// Package seal encrypts blobs. Every line of checkpoints has a data key, which is
// wrapped by a master key and kept in a slot of the blob store: destroying the
// slot destroys what was sealed with it, wherever copies of it lie. The master
// key lies elsewhere: in a file, in the system's keychain, or in a person's head.
//
// A key is never made because reading one failed. Where there are wrapped keys,
// the master key that wrapped them is needed, and no other will do.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

const (
	// masterSlot says which master key belongs to the store, without telling it.
	masterSlot = "master"
	// keyPrefix begins the slots of wrapped keys.
	keyPrefix = "key-"
	keyBytes  = 32
	saltBytes = 16
)

// Source has a master secret.
type Source interface {
	// Kind names the source in the store and in messages.
	Kind() string
	// Load gives the secret. It makes one only where create says so and there is
	// none; that it cannot be read is an error, never a reason to make one.
	Load(ctx context.Context, salt []byte, create bool) ([]byte, error)
	// Fix says what to do where the secret is missing or another one.
	Fix() string
}

// Keys makes and finds data keys.
type Keys struct {
	slots  blob.Slots
	master cipher.AEAD
	kind   string
}

// master is the content of the slot: what is needed to know the key again.
type master struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	Salt    []byte `json:"salt"`
	// Check is a MAC of a constant: only the right key gives it.
	Check []byte `json:"check"`
}

// Open finds the master key of a store. Where the store has none yet it takes the
// source's, and makes that where there is none. A wrong or missing key is
// CodeUnavailable, with the way out, and changes nothing.
func Open(ctx context.Context, slots blob.Slots, source Source) (*Keys, error) {
	for range 3 {
		known, err := readMaster(ctx, slots)
		switch {
		case err == nil:
			return known.open(ctx, slots, source)
		case guideway.ErrorCode(err) != guideway.CodeNotFound:
			return nil, err
		}
		err = begin(ctx, slots, source)
		if err != nil && guideway.ErrorCode(err) != guideway.CodeConflict { // another process was faster
			return nil, err
		}
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "the master key's slot comes and goes").WithFix("try again")
}

// Begun says whether a store has a master key already: then nothing of it that is
// encrypted can be read with another one, or with none.
func Begun(ctx context.Context, slots blob.Slots) (bool, error) {
	_, err := slots.Slot(ctx, masterSlot)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		wrapped, err := slots.Slots(ctx, keyPrefix)
		return len(wrapped) > 0, err
	}
	return err == nil, err
}

func readMaster(ctx context.Context, slots blob.Slots) (*master, error) {
	text, err := slots.Slot(ctx, masterSlot)
	if err != nil {
		return nil, err
	}
	var m master
	if err := json.Unmarshal(text, &m); err != nil || m.Version != 1 || len(m.Salt) != saltBytes || len(m.Check) != sha256.Size {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the note about the master key is damaged, or of a newer version").
			WithFix("restore slots/%s in the directory of blobs from a backup; without it encrypted checkpoints cannot be read", masterSlot)
	}
	return &m, nil
}

// begin notes which master key belongs to a store that has none yet.
func begin(ctx context.Context, slots blob.Slots, source Source) error {
	wrapped, err := slots.Slots(ctx, keyPrefix)
	if err != nil {
		return err
	}
	if len(wrapped) > 0 {
		return guideway.Errorf(guideway.CodeUnavailable, "there are %d encrypted lines, but the note about their master key is gone", len(wrapped)).
			WithFix("restore slots/%s in the directory of blobs from a backup; no new key was made", masterSlot)
	}
	m := master{Version: 1, Salt: make([]byte, saltBytes)}
	_, _ = rand.Read(m.Salt) // never fails
	var secret []byte
	if m.Kind, secret, err = beginning(ctx, source, m.Salt); err != nil {
		return err
	}
	m.Check = derive(secret, m.Salt, "check")
	text, err := json.Marshal(m)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "note the master key: %w", err)
	}
	return slots.CreateSlot(ctx, masterSlot, text)
}

// open finds the key that a note tells of.
func (m *master) open(ctx context.Context, slots blob.Slots, source Source) (*Keys, error) {
	source = ofKind(source, m.Kind)
	if m.Kind != source.Kind() {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the master key of these checkpoints is in a %s, not in a %s", m.Kind, source.Kind()).
			WithFix("set the encryption to %q", strings.ReplaceAll(m.Kind, " ", "-"))
	}
	secret, err := source.Load(ctx, m.Salt, false)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(derive(secret, m.Salt, "check"), m.Check) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the %s has another key than the one that these checkpoints are encrypted with", m.Kind).
			WithFix("%s", source.Fix())
	}
	aead, err := newAEAD(derive(secret, m.Salt, "wrap"))
	if err != nil {
		return nil, err
	}
	return &Keys{slots: slots, master: aead, kind: m.Kind}, nil
}

// derive gives a key for a purpose.
func derive(secret, salt []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("guideway checkpoints " + purpose))
	mac.Write(salt)
	return mac.Sum(nil)
}

// newAEAD is AES-256-GCM with random nonces, which stand before what is sealed.
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

// Kind says where the master key comes from.
func (k *Keys) Kind() string { return k.kind }

// Key is a data key.
type Key struct {
	// Name is that of its slot.
	Name string
	aead cipher.AEAD
}

// Seal encrypts a text; context must be the same when it is opened.
func (k *Key) Seal(text, context []byte) []byte {
	return k.aead.Seal(nil, nil, text, context) //nolint:gosec // this AEAD takes no nonce: it makes a random one itself
}

// ErrTampered says that a sealed text, its context or its key is not the one that
// it was sealed with.
var ErrTampered = errors.New("it cannot be decrypted with its key")

// Open decrypts a sealed text, or gives ErrTampered.
func (k *Key) Open(sealed, context []byte) ([]byte, error) {
	text, err := k.aead.Open(nil, nil, sealed, context)
	if err != nil {
		return nil, ErrTampered
	}
	return text, nil
}

// New makes a data key and keeps it, wrapped.
func (k *Keys) New(ctx context.Context) (*Key, error) {
	key, id := make([]byte, keyBytes), make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	_, _ = rand.Read(id)
	name := keyPrefix + hex.EncodeToString(id)
	wrapped := k.master.Seal(nil, nil, key, []byte(name)) //nolint:gosec // as in Key.Seal
	if err := k.slots.CreateSlot(ctx, name, wrapped); err != nil {
		return nil, err
	}
	aead, err := newAEAD(key)
	return &Key{Name: name, aead: aead}, err
}

// Key gives a data key. CodeNotFound where it was erased; ErrTampered where it
// was not wrapped by this master key.
func (k *Keys) Key(ctx context.Context, name string) (*Key, error) {
	if !strings.HasPrefix(name, keyPrefix) {
		return nil, guideway.Errorf(guideway.CodeNotFound, "%.40q is not the name of a data key", name)
	}
	wrapped, err := k.slots.Slot(ctx, name)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, guideway.Errorf(guideway.CodeNotFound, "the data key was erased: what it had encrypted is gone for good")
	}
	if err != nil {
		return nil, err
	}
	key, err := k.master.Open(nil, nil, wrapped, []byte(name))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the data key %s: %w", name, ErrTampered).
			WithFix("restore slots/%s in the directory of blobs from a backup", name)
	}
	aead, err := newAEAD(key)
	return &Key{Name: name, aead: aead}, err
}

// Erase destroys a data key, and with it what it has encrypted.
func Erase(ctx context.Context, slots blob.Slots, name string) error {
	if !strings.HasPrefix(name, keyPrefix) {
		return nil
	}
	return slots.EraseSlot(ctx, name)
}

// Names lists the data keys of a store.
func Names(ctx context.Context, slots blob.Slots) ([]blob.SlotInfo, error) {
	return slots.Slots(ctx, keyPrefix)
}
