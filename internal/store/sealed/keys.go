package sealed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
)

// sealedMark is the first byte of an encrypted value. JSON never begins with it. textMark
// is the beginning of an encrypted value in a column of text.
const (
	sealedMark = 0x01
	textMark   = "gdwsealed1:"
)

// maxKeys bounds the data keys in memory.
const maxKeys = 1024

// keyring caches the master key and data keys.
type keyring struct {
	open func(context.Context) (*seal.Keys, error)

	mu     sync.Mutex
	master *seal.Keys
	keys   map[string]*seal.Key
}

// keyOf returns the data key with the name that consists of a kind and an id, and creates
// it if create is set and none exists.
func (r *keyring) keyOf(ctx context.Context, create bool, kind string, id ...string) (*seal.Key, error) {
	name := keyName(kind, id...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if key := r.keys[name]; key != nil {
		return key, nil
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	key, err := r.master.Named(ctx, name, create)
	if err != nil {
		return nil, err
	}
	for other := range r.keys {
		if len(r.keys) < maxKeys {
			break
		}
		delete(r.keys, other)
	}
	r.keys[name] = key
	return key, nil
}

// load loads the master key. The caller holds mu.
func (r *keyring) load(ctx context.Context) error {
	if r.master != nil {
		return nil
	}
	master, err := r.open(ctx)
	if err == nil {
		r.master, r.keys = master, map[string]*seal.Key{}
	}
	return err
}

// forget removes a data key from the memory of this process.
func (r *keyring) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, name)
}

// erase destroys a data key.
func (r *keyring) erase(ctx context.Context, name string) error {
	r.forget(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	return r.master.Erase(ctx, name)
}

// keyName returns the name of a data key. The id is hashed, because the name of a slot has
// few characters.
func keyName(kind string, id ...string) string {
	sum := sha256.Sum256(addData(id...))
	return seal.NamePrefix + kind + "-" + hex.EncodeToString(sum[:16])
}

// addData returns the additional data of a ciphertext: what it belongs to. Each field has
// its length, so that different fields have different bytes.
func addData(fields ...string) []byte {
	var b bytes.Buffer
	for _, field := range fields {
		fmt.Fprintf(&b, "%d:%s", len(field), field)
	}
	return b.Bytes()
}

func number(n int64) string { return fmt.Sprint(n) }

// sealBytes encrypts a value.
func sealBytes(key *seal.Key, text []byte, fields ...string) []byte {
	return append([]byte{sealedMark}, key.Seal(text, addData(fields...))...)
}

func isSealed(data []byte) bool { return len(data) > 0 && data[0] == sealedMark }

// openBytes decrypts a value for which isSealed is true.
func openBytes(key *seal.Key, sealed []byte, fields ...string) ([]byte, error) {
	text, err := key.Open(sealed[1:], addData(fields...))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "an encrypted value of %s was changed or moved: %w", strings.Join(fields, " "), err).
			WithFix("restore the database from a backup")
	}
	return text, nil
}

func sealText(key *seal.Key, text string, fields ...string) string {
	return textMark + base64.RawStdEncoding.EncodeToString(sealBytes(key, []byte(text), fields...))
}

// openText decrypts a value of sealText in place, and reports whether the text was
// encrypted. If the key is missing, a note replaces the text; a ciphertext that was changed
// stays as it is.
func openText(key *seal.Key, missing error, text *string, fields ...string) bool {
	digits, ok := strings.CutPrefix(*text, textMark)
	if !ok {
		return false
	}
	if missing != nil {
		*text = "(encrypted)"
		return true
	}
	data, err := base64.RawStdEncoding.DecodeString(digits)
	if err != nil || !isSealed(data) {
		return true
	}
	if plain, err := openBytes(key, data, fields...); err == nil {
		*text = string(plain)
	}
	return true
}
