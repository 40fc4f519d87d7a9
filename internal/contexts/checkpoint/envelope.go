package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// A blob is the magic, the length of the header, the header, and the content:
// compressed, and then encrypted where the line is. The header has all that an
// index knows, so that one can be made anew. Without encryption it is guarded
// against accidents by the blob's name, which is its hash; with encryption the
// header is what the content was sealed with, and guarded against people, too.
const (
	magic     = "GWCP\x01"
	maxHeader = 64 << 10
)

// header is a record as it stands in a blob. The keys are short: an older
// checkpoint may have less to say than its header.
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
	Sum      []byte   `json:"h"`
	Base     string   `json:"b,omitempty"`
	Key      string   `json:"e,omitempty"`
	// Nonce makes every blob another one, also where a checkpoint is stored once
	// more as it was stored before: a name that was given up never comes back.
	Nonce []byte `json:"x"`
}

func headerOf(r Record) header {
	h := header{
		ID: r.ID, User: r.User, Session: r.Session, Run: r.Run, RunSeq: r.RunSeq, Parent: r.Parent, Branch: r.Branch,
		Number: r.Number, Link: r.Link, Workflow: r.Workflow, Project: r.Project, Agent: r.Agent, Name: r.Name, Tags: r.Tags,
		Kind: r.Kind, Created: r.Created.UnixMicro(), Bytes: r.Bytes, Tokens: r.Tokens, Sum: r.Sum, Base: r.Base, Key: r.Key,
		Nonce: make([]byte, 6),
	}
	_, _ = rand.Read(h.Nonce) // it never fails
	if h.Run == h.Session {
		h.Run = "=" // nearly always, and no id of a run
	}
	return h
}

// record is the way back.
func (h header) record(name blob.Name, stored int64) Record {
	if h.Run == "=" {
		h.Run = h.Session
	}
	return Record{
		ID: h.ID, LineKey: LineKey{User: h.User, Session: h.Session}, Run: h.Run, RunSeq: h.RunSeq, Parent: h.Parent, Branch: h.Branch,
		Number: h.Number, Link: h.Link, Workflow: h.Workflow, Project: h.Project, Agent: h.Agent, Name: h.Name, Tags: h.Tags,
		Kind: h.Kind, Created: time.UnixMicro(h.Created).UTC(), Bytes: h.Bytes, Tokens: h.Tokens, Sum: h.Sum,
		Form: Form{Blob: name, Stored: stored, Base: h.Base, Key: h.Key},
	}
}

// errDamaged marks a checkpoint that cannot be read any more, as opposed to one
// that cannot be read right now.
var errDamaged = errors.New("the checkpoint is damaged")

func damagedf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errDamaged, fmt.Errorf(format, args...))
}

// open splits a blob into its header and what is behind it. frame is all that
// stands before the content.
func open(data []byte) (h header, frame, payload []byte, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	length, n := binary.Uvarint(rest)
	if !ok || n <= 0 || length > maxHeader || uint64(len(rest)-n) < length {
		return h, nil, nil, damagedf("it does not begin as a checkpoint does")
	}
	end := len(magic) + n + int(length)
	if err := json.Unmarshal(rest[n:n+int(length)], &h); err != nil {
		return h, nil, nil, damagedf("its header is garbled: %w", err)
	}
	if h.ID == "" || h.Session == "" || len(h.Sum) == 0 || h.Bytes < 0 {
		return h, nil, nil, damagedf("its header lacks what it is about")
	}
	return h, data[:end], data[end:], nil
}

// pack makes the blob of a record and its content; base is the content of
// r.Base, key that of r.Key.
func (s *Service) pack(r Record, raw, base []byte, key *seal.Key) ([]byte, error) {
	text, err := jsontext.Marshal(headerOf(r))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the header of the checkpoint %s: %w", r.ID, err)
	}
	if len(text) > maxHeader {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "what is said of the checkpoint takes %d bytes, more than %d", len(text), maxHeader)
	}
	frame := binary.AppendUvarint([]byte(magic), uint64(len(text)))
	frame = append(frame, text...)
	payload, err := s.squeezer.squeeze(raw, base)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "compress the checkpoint %s: %w", r.ID, err)
	}
	if key != nil {
		payload = key.Seal(payload, frame)
	}
	return append(frame, payload...), nil
}

// packed is a blob that is to be unpacked.
type packed struct {
	data []byte
	// base is the content of its base, key the data key that it needs.
	base []byte
	key  *seal.Key
	// most bounds its content.
	most int64
	// into is room for the content; nil where somebody keeps that.
	into []byte
	// trust leaves out to check the sum of a content, where that of another one that
	// is made of it is checked.
	trust bool
}

// unpack gives the content of a blob, checked against its header.
func (s *Service) unpack(p packed) (header, []byte, error) {
	h, frame, payload, err := open(p.data)
	if err != nil {
		return h, nil, err
	}
	if h.Bytes > p.most {
		return h, nil, damagedf("it says that it has %d bytes, more than there may be", h.Bytes)
	}
	if p.key != nil {
		if payload, err = p.key.Open(payload, frame); err != nil {
			return h, nil, damagedf("%w", err)
		}
	}
	raw, err := s.squeezer.expand(p.into, payload, p.base, h.Bytes)
	if err != nil {
		return h, nil, damagedf("it does not unpack: %w", err)
	}
	if !p.trust && !bytes.Equal(sumOf(raw), h.Sum) {
		return h, nil, damagedf("its content is not the one that was saved")
	}
	return h, raw, nil
}

// readable says what keeps a blob that is about to be stored from being read again.
func (s *Service) readable(data, base []byte, key *seal.Key, most int64) error {
	_, raw, err := s.unpack(packed{data: data, base: base, key: key, most: most, into: s.squeezer.buffer()})
	s.squeezer.release(raw)
	return err
}

// keyOf gives the data key of a form: nil where it is not encrypted.
func (s *Service) keyOf(ctx context.Context, name string) (*seal.Key, error) {
	if name == "" {
		return nil, nil
	}
	if s.o.Keys == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the checkpoint is encrypted, and encryption is off").
			WithFix("turn encryption on, with the key that it was encrypted with")
	}
	key, err := s.o.Keys.Key(ctx, name)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound, errors.Is(err, seal.ErrTampered):
		return nil, damagedf("%w", err)
	}
	return key, err
}
