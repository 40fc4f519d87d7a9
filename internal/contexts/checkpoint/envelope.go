package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// A blob consists of the magic, the length of the header, the header, and the content. The
// content is compressed, and encrypted if the series is encrypted. The header has all
// metadata of the index, so that an index can be rebuilt. Without encryption the name of
// the blob, which is its hash, detects accidental damage. With encryption the header is
// authenticated together with the content, which also detects manipulation.
const (
	magic     = "GWCP\x01"
	maxHeader = 64 << 10
)

// header is the record of a checkpoint as stored in its blob. The keys are short, because
// the header of an older checkpoint can be larger than its content.
type header struct {
	ID       string   `json:"i"`
	User     string   `json:"u"`
	Session  string   `json:"s"`
	Run      string   `json:"r,omitempty"`
	RunSeq   int64    `json:"q,omitempty"`
	Parent   string   `json:"p,omitempty"`
	Branch   bool     `json:"br,omitempty"`
	Number   int64    `json:"n,omitempty"`
	Link     int64    `json:"l,omitempty"`
	Workflow string   `json:"w,omitempty"`
	Project  string   `json:"j,omitempty"`
	Agent    string   `json:"a,omitempty"`
	Name     string   `json:"m,omitempty"`
	Tags     []string `json:"g,omitempty"`
	Kind     Kind     `json:"k"`
	Created  int64    `json:"c"`
	Bytes    int64    `json:"z"`
	Tokens   int64    `json:"t,omitempty"`
	// Sum is empty if the encrypted content begins with it.
	Sum  []byte `json:"h,omitempty"`
	Base string `json:"b,omitempty"`
	Key  string `json:"e,omitempty"`
	// Nonce makes every blob unique, even if a checkpoint is stored again in the same form:
	// the name of a removed blob is never reused.
	Nonce []byte `json:"x"`
}

func headerOf(r Record) header {
	h := header{
		ID: r.ID, User: r.User, Session: r.Session, Run: r.Run, RunSeq: r.RunSeq, Parent: r.Parent, Branch: r.Branch,
		Number: r.Number, Link: r.Link, Workflow: r.Workflow, Project: r.Project, Agent: r.Agent, Name: r.Name, Tags: r.Tags,
		Kind: r.Kind, Created: r.Created.UnixMicro(), Bytes: r.Bytes, Tokens: r.Tokens, Sum: r.Sum, Base: r.Base, Key: r.Key,
		Nonce: make([]byte, 6),
	}
	_, _ = rand.Read(h.Nonce) // rand.Read never fails
	if h.Run == h.Session {
		h.Run = "=" // "=", which is not a valid run id, means that the run is the session
	}
	return h
}

// toRecord converts the header to a record.
func (h header) toRecord(name blob.Name, stored int64) Record {
	if h.Run == "=" {
		h.Run = h.Session
	}
	return Record{
		ID: h.ID, SeriesKey: SeriesKey{User: h.User, Session: h.Session}, Run: h.Run, RunSeq: h.RunSeq, Parent: h.Parent, Branch: h.Branch,
		Number: h.Number, Link: h.Link, Workflow: h.Workflow, Project: h.Project, Agent: h.Agent, Name: h.Name, Tags: h.Tags,
		Kind: h.Kind, Created: time.UnixMicro(h.Created).UTC(), Bytes: h.Bytes, Tokens: h.Tokens, Sum: append([]byte{}, h.Sum...), // a database takes nil for NULL
		Form: Form{Blob: name, Stored: stored, Base: h.Base, Key: h.Key},
	}
}

// errDamaged marks a checkpoint that is permanently unreadable.
var errDamaged = errors.New("the checkpoint is damaged")

// damage marks its cause as errDamaged, without changing its text.
type damage struct{ error }

func (d damage) Unwrap() error        { return d.error }
func (d damage) Is(target error) bool { return target == errDamaged }

func damagedf(format string, args ...any) error { return damage{fmt.Errorf(format, args...)} }

// splitBlob splits a blob into its header and its content. frame is everything before the
// content.
func splitBlob(data []byte) (h header, frame, payload []byte, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	length, n := binary.Uvarint(rest)
	if !ok || n <= 0 || length > maxHeader || uint64(len(rest)-n) < length {
		return h, nil, nil, damagedf("the blob does not start with a checkpoint header")
	}
	end := len(magic) + n + int(length)
	if err := json.Unmarshal(rest[n:n+int(length)], &h); err != nil {
		return h, nil, nil, damagedf("the header cannot be read: %w", err)
	}
	if h.ID == "" || h.Session == "" || len(h.Sum) == 0 && h.Key == "" || h.Bytes < 0 {
		return h, nil, nil, damagedf("the header has no id, no session, no hash or a negative size")
	}
	return h, data[:end], data[end:], nil
}

// packBlob returns the blob of a record and its content. base is the content of r.Base, key the
// data key r.Key.
func (s *Service) packBlob(r Record, raw, base []byte, key *seal.Key) ([]byte, error) {
	payload, err := s.squeezer.encodeContent(raw, base)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "compress the checkpoint %s: %w", r.ID, err)
	}
	return frameBlob(r, sumOf(raw), payload, key)
}

// frameBlob returns the blob of a record and its compressed content. sum is the hash of the
// content; if the record has none, it is encrypted with the content, because a hash that can
// be read confirms a guess.
func frameBlob(r Record, sum, payload []byte, key *seal.Key) ([]byte, error) {
	text, err := jsontext.Marshal(headerOf(r))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the header of the checkpoint %s: %w", r.ID, err)
	}
	if len(text) > maxHeader {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the metadata of the checkpoint takes %d bytes, more than the maximum of %d", len(text), maxHeader).
			WithFix("shorten the name, or pass fewer tags")
	}
	frame := binary.AppendUvarint([]byte(magic), uint64(len(text)))
	frame = append(frame, text...)
	if key != nil {
		if len(r.Sum) == 0 {
			payload = slices.Concat(sum, payload)
		}
		payload = key.Seal(payload, frame)
	}
	return append(frame, payload...), nil
}

// packedBlob is the input of unpackBlob.
type packedBlob struct {
	data []byte
	// base is the content of the base checkpoint, key the data key of the blob.
	base []byte
	key  *seal.Key
	// most is the maximum size of the unpacked content.
	most int64
	// into is a buffer for the content; it is nil if the caller keeps the content.
	into []byte
	// trust skips the check of the content's hash. It is set if the content is the base of
	// another one whose hash is checked.
	trust bool
}

// unpackBlob returns the content of a blob, checked against its header.
func (s *Service) unpackBlob(p packedBlob) (header, []byte, error) {
	h, frame, payload, err := splitBlob(p.data)
	if err != nil {
		return h, nil, err
	}
	if h.Bytes > p.most {
		return h, nil, damagedf("the header states a content of %d bytes, more than the maximum of %d", h.Bytes, p.most)
	}
	if p.key != nil {
		if payload, err = p.key.Open(payload, frame); err != nil {
			return h, nil, damagedf("%w", err)
		}
	}
	sum := h.Sum
	if len(sum) == 0 {
		if p.key == nil || len(payload) < sha256.Size {
			return h, nil, damagedf("the blob has no hash of the content")
		}
		sum, payload = payload[:sha256.Size], payload[sha256.Size:]
	}
	raw, err := s.squeezer.decodeContent(p.into, payload, p.base, h.Bytes)
	if err != nil {
		return h, nil, damagedf("the content cannot be unpacked: %w", err)
	}
	if !p.trust && !bytes.Equal(sumOf(raw), sum) {
		return h, nil, damagedf("the content does not match its hash")
	}
	return h, raw, nil
}

// verifyPacked returns an error if a blob that is about to be stored cannot be read back.
func (s *Service) verifyPacked(data, base []byte, key *seal.Key, most int64) error {
	_, raw, err := s.unpackBlob(packedBlob{data: data, base: base, key: key, most: most, into: s.squeezer.takeBuffer()})
	s.squeezer.releaseBuffer(raw)
	return err
}

// keyOf returns the data key with the given name, or nil if name is empty.
func (s *Service) keyOf(ctx context.Context, name string) (*seal.Key, error) {
	if name == "" {
		return nil, nil
	}
	if s.o.Keys == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the checkpoint is encrypted, but encryption is off").
			WithFix("turn encryption on with encryption.mode, and use the key that encrypted the checkpoint")
	}
	key, err := s.o.Keys.Key(ctx, name)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound, errors.Is(err, seal.ErrTampered):
		return nil, damagedf("%w", err)
	}
	return key, err
}
