package attest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// MaxFile is the maximum size of the file of a statement.
const MaxFile = 16 << 20

// maxNodes is the maximum number of values in a statement.
const maxNodes = 1 << 20

var errSignature = errors.New("the signature does not match")

// Sign returns the file of a signed statement. A statement that Open would refuse is an
// error.
func Sign(s *Statement, key PrivateKey) ([]byte, error) {
	if contradiction := s.validate(); contradiction != "" {
		return nil, guideway.Errorf(guideway.CodeInternal, "the statement is invalid: %s", contradiction)
	}
	payload, err := s.encode()
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "encode the statement: %w", err)
	}
	envelopeSigner, err := dsse.NewEnvelopeSigner(signer{key})
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "sign the statement: %w", err)
	}
	envelope, err := envelopeSigner.SignPayload(context.Background(), PayloadType, payload)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "sign the statement: %w", err)
	}
	file, err := jsontext.Indent(envelope)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "encode the envelope: %w", err)
	}
	if len(file) >= MaxFile {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the statement has %d bytes; the limit is %d", len(file), MaxFile)
	}
	return append(file, '\n'), nil
}

// Open verifies a file with trusted keys and returns its statement and the ids of the keys
// that signed it. An error is a *Refusal. Unknown members are ignored in the envelope, which
// is not signed as a whole, and refused in the statement.
func Open(file []byte, trusted []PublicKey) (s *Statement, signedBy []string, err error) {
	envelope, refusal := parseEnvelope(file)
	if refusal != nil {
		return nil, nil, refusal
	}
	if signedBy, refusal = verifySignatures(envelope, trusted); refusal != nil {
		return nil, nil, refusal
	}
	payload, _ := base64.StdEncoding.DecodeString(envelope.Payload) // parseEnvelope has decoded it
	if s, refusal = parseStatement(payload); refusal != nil {
		return nil, nil, refusal
	}
	return s, signedBy, nil
}

// parseEnvelope parses a file. The names of its members are case-sensitive.
func parseEnvelope(file []byte) (*dsse.Envelope, *Refusal) {
	if len(file) > MaxFile {
		return nil, refuse(ReasonTooLarge, "the file is larger than %d bytes", MaxFile)
	}
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(file)).Decode(&raw); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, refuse(ReasonTruncated, "the file ends before its JSON object does").withFix("copy the file again")
	}
	root, refusal := parseJSON("the file", file)
	if refusal != nil {
		return nil, refusal
	}
	envelope := &dsse.Envelope{PayloadType: stringOf(root.Get("payloadType")), Payload: stringOf(root.Get("payload"))}
	if envelope.PayloadType != PayloadType {
		return nil, refuse(ReasonPayloadType, "the payload type is %q, not %q", envelope.PayloadType, PayloadType)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil || base64.StdEncoding.EncodeToString(payload) != envelope.Payload {
		return nil, refuse(ReasonFile, "the payload is not base64")
	}
	if list := root.Get("signatures"); list != nil {
		for _, item := range list.Items {
			envelope.Signatures = append(envelope.Signatures, dsse.Signature{KeyID: stringOf(item.Get("keyid")), Sig: stringOf(item.Get("sig"))})
		}
	}
	return envelope, nil
}

func stringOf(n *doc.Node) string {
	if n == nil || n.Kind != doc.String {
		return ""
	}
	return n.Text
}

// parseJSON parses an object without duplicate members.
func parseJSON(name string, text []byte) (*doc.Node, *Refusal) {
	root, found := doc.Parse("statement.json", text, doc.Limits{MaxBytes: MaxFile, MaxNodes: maxNodes})
	for _, d := range found {
		if d.Code == doc.CodeDuplicateKey {
			return nil, refuse(ReasonDuplicate, "%s: %s", name, d.Message)
		}
	}
	switch {
	case len(found) > 0:
		return nil, refuse(ReasonFile, "%s: %s", name, found[0].Message)
	case root.Kind != doc.Object:
		return nil, refuse(ReasonFile, "%s is not a JSON object", name)
	}
	return root, nil
}

// verifySignatures returns the ids of the trusted keys that signed an envelope.
func verifySignatures(envelope *dsse.Envelope, trusted []PublicKey) ([]string, *Refusal) {
	if len(envelope.Signatures) == 0 {
		return nil, refuse(ReasonUnsigned, "the file has no signature").withFix("write the attestation again: guideway runs attest RUN")
	}
	var verifiers []dsse.Verifier
	known := map[string]bool{}
	for _, key := range trusted {
		if !known[key.id] {
			known[key.id] = true
			verifiers = append(verifiers, verifier{key})
		}
	}
	check, err := dsse.NewEnvelopeVerifier(verifiers...)
	if err != nil {
		return nil, refuse(ReasonKey, "no key is trusted").withFix("name the file of a public key with --key")
	}
	accepted, err := check.Verify(context.Background(), envelope)
	if err == nil {
		signedBy := lists.Map(accepted, func(key dsse.AcceptedKey) string { return key.KeyID })
		return signedBy, nil
	}
	var ids []string
	for _, s := range envelope.Signatures {
		if known[s.KeyID] {
			return nil, refuse(ReasonSignature, "the signature of the key %s does not match the content: the file was changed after it was signed", shortID(s.KeyID)).
				withFix("get the file from its author again")
		}
		ids = append(ids, shortID(s.KeyID))
	}
	slices.Sort(ids)
	return nil, refuse(ReasonKey, "no trusted key signed the file; its signatures name the keys %s", strings.Join(ids, ", ")).
		withFix("get the public key from the author over a channel that you trust, and name its file with --key")
}

// shortID returns the beginning of the id of a key, quoted because it may be any text.
func shortID(id string) string {
	const few = 16
	if len(id) > few {
		return fmt.Sprintf("%q…", id[:few])
	}
	return fmt.Sprintf("%q", id)
}

// parseStatement parses a payload. It must be the text that Sign writes.
func parseStatement(payload []byte) (*Statement, *Refusal) {
	root, refusal := parseJSON("the statement", payload)
	if refusal != nil {
		return nil, refusal
	}
	if kind := stringOf(root.Get("_type")); kind != StatementType {
		return nil, refuse(ReasonStatementType, "the type of the statement is %q, not %q", kind, StatementType)
	}
	if kind := stringOf(root.Get("predicateType")); kind != PredicateType {
		return nil, refuse(ReasonPredicateType, "the type of the predicate is %q, not %q", kind, PredicateType).
			withFix("verify the file with the program that made it, or with a newer version of Guideway")
	}
	s := &Statement{}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return nil, refuse(ReasonMember, "the statement has the unknown member %s", name).withFix("verify the file with a newer version of Guideway")
		}
		return nil, refuse(ReasonPayload, "the statement cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if text, err := s.encode(); err != nil || !bytes.Equal(text, payload) {
		return nil, refuse(ReasonPayload, "the statement is not encoded as Guideway encodes statements, so it may have been changed").withFix("get the file from its author again, or verify it with the version of Guideway that wrote it")
	}
	if contradiction := s.validate(); contradiction != "" {
		return nil, refuse(ReasonPayload, "%s", contradiction)
	}
	return s, nil
}

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
