package seal

import (
	"context"
	"sync"

	"github.com/guideway-dev/guideway"
)

// Texts encrypts texts in the files of one machine, with one data key. If it is off, it
// encrypts nothing, but still decrypts encrypted texts. A nil Texts returns all texts
// unchanged.
type Texts struct {
	on   bool
	open func(context.Context) (*Keys, error)

	mu  sync.Mutex
	key *Key
}

const (
	// textsKey is the name of the data key.
	textsKey = NamePrefix + "files-local"
	// textMark is the first byte of an encrypted text. JSON never begins with it.
	textMark = 0x01
)

// NewTexts returns a Texts. It calls open, until it succeeds, for the first text.
func NewTexts(on bool, open func(context.Context) (*Keys, error)) *Texts {
	return &Texts{on: on, open: open}
}

func (t *Texts) dataKey(ctx context.Context, create bool) (*Key, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.key != nil {
		return t.key, nil
	}
	keys, err := t.open(ctx)
	if err == nil {
		t.key, err = keys.Named(ctx, textsKey, create)
	}
	return t.key, err
}

// Seal encrypts a text for a place: the ciphertext cannot be opened for another place. An
// empty text stays empty.
func (t *Texts) Seal(ctx context.Context, text []byte, place string) ([]byte, error) {
	if t == nil || !t.on || len(text) == 0 {
		return text, nil
	}
	key, err := t.dataKey(ctx, true)
	if err != nil {
		return nil, err
	}
	return append([]byte{textMark}, key.Seal(text, []byte(place))...), nil
}

// Open decrypts a text of Seal. Another text is returned as it is.
func (t *Texts) Open(ctx context.Context, text []byte, place string) ([]byte, error) {
	if t == nil || !IsSealed(text) {
		return text, nil
	}
	key, err := t.dataKey(ctx, false)
	if err == nil {
		text, err = key.Open(text[1:], []byte(place))
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "decrypt the %s: %w", place, err).WithFix("%s", guideway.ErrorFix(err))
	}
	return text, nil
}

// IsSealed reports whether a text is a result of Seal.
func IsSealed(text []byte) bool { return len(text) > 0 && text[0] == textMark }

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
