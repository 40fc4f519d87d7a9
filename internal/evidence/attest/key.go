package attest

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"

	"github.com/guideway-dev/guideway"
)

// The types of the PEM blocks of keys.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// PublicKey is an Ed25519 key that verifies statements.
type PublicKey struct {
	key ed25519.PublicKey
	id  string
}

// PrivateKey is an Ed25519 key that signs statements.
type PrivateKey struct{ key ed25519.PrivateKey }

// NewPrivateKey creates a key.
func NewPrivateKey() PrivateKey {
	_, key, _ := ed25519.GenerateKey(rand.Reader) // never returns an error: the process crashes instead
	return PrivateKey{key}
}

// Public returns the public key.
func (k PrivateKey) Public() PublicKey {
	public, _ := k.key.Public().(ed25519.PublicKey)
	return newPublicKey(public)
}

// newPublicKey returns a key with its id: the SHA-256 of its SubjectPublicKeyInfo.
func newPublicKey(key ed25519.PublicKey) PublicKey {
	der, _ := x509.MarshalPKIXPublicKey(key) // never returns an error for Ed25519
	sum := sha256.Sum256(der)
	return PublicKey{key: key, id: hex.EncodeToString(sum[:])}
}

// ID returns the id of the key: the SHA-256 of its SubjectPublicKeyInfo, in hexadecimal.
func (k PublicKey) ID() string { return k.id }

// PEM returns the key as a PEM text.
func (k PublicKey) PEM() string {
	der, _ := x509.MarshalPKIXPublicKey(k.key) // never returns an error for Ed25519
	return string(pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der}))
}

// PEM returns the key as a PEM text in PKCS #8.
func (k PrivateKey) PEM() string {
	der, _ := x509.MarshalPKCS8PrivateKey(k.key) // never returns an error for Ed25519
	return string(pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}))
}

// ParsePrivateKey parses the PEM text of an Ed25519 key in PKCS #8. ok is false if the text
// is not such a key.
func ParsePrivateKey(text string) (key PrivateKey, ok bool) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != privateBlock {
		return key, false
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return key, false
	}
	key.key, ok = parsed.(ed25519.PrivateKey)
	return key, ok
}

// ParsePublicKeys parses a PEM text with one or more public keys. name is the name of the
// file in errors.
func ParsePublicKeys(name string, text []byte) ([]PublicKey, error) {
	const fix = "pass the output of: guideway attest keys show NAME"
	var keys []PublicKey
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type == privateBlock {
			return nil, guideway.Errorf(guideway.CodeInvalid, "%s contains a private key", name).WithFix(fix)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, ok := parsed.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, guideway.Errorf(guideway.CodeInvalid, "%s contains a key that is not an Ed25519 public key", name).WithFix(fix)
		}
		keys = append(keys, newPublicKey(key))
	}
	if len(keys) == 0 {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%s contains no public key in PEM", name).WithFix(fix)
	}
	return keys, nil
}

// signer signs as package dsse requires.
type signer struct{ PrivateKey }

// Sign implements dsse.Signer.
func (s signer) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(s.key, data), nil
}

// KeyID implements dsse.Signer.
func (s signer) KeyID() (string, error) { return s.Public().ID(), nil }

// verifier verifies as package dsse requires.
type verifier struct{ key PublicKey }

// Verify implements dsse.Verifier.
func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.key.key, data, sig) {
		return errSignature
	}
	return nil
}

// KeyID implements dsse.Verifier.
func (v verifier) KeyID() (string, error) { return v.key.id, nil }

// Public implements dsse.Verifier.
func (v verifier) Public() crypto.PublicKey { return v.key.key }
