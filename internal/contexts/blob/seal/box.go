package seal

import (
	"context"

	"github.com/guideway-dev/guideway"
)

// Box is one encrypted text. It names the source of its key.
type Box struct {
	Kind   string `json:"kind"`
	Salt   []byte `json:"salt"`
	Sealed []byte `json:"sealed"`
}

// NewBox encrypts a text with a key that is derived from the secret of source for a purpose,
// and creates the secret if none exists. Open must be called with the same purpose and
// context.
func NewBox(ctx context.Context, source Source, purpose string, text, context []byte) (*Box, error) {
	// The salt is constant, because it is part of the name of the keychain's entry.
	b := &Box{Salt: []byte("guideway " + purpose)}
	var secret []byte
	var err error
	if b.Kind, secret, err = loadInitial(ctx, source, b.Salt); err != nil {
		return nil, err
	}
	aead, err := newAEAD(deriveKey(secret, b.Salt, purpose))
	if err != nil {
		return nil, err
	}
	b.Sealed = aead.Seal(nil, nil, text, context) //nolint:gosec // as in Key.Seal
	return b, nil
}

// Open decrypts the text. The error wraps ErrTampered if the box, its context or the key is
// not the original.
func (b *Box) Open(ctx context.Context, source Source, purpose string, context []byte) ([]byte, error) {
	secret, err := ofKind(source, b.Kind).Load(ctx, b.Salt, false)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(deriveKey(secret, b.Salt, purpose))
	if err != nil {
		return nil, err
	}
	text, err := aead.Open(nil, nil, b.Sealed, context)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "%w", ErrTampered)
	}
	return text, nil
}
