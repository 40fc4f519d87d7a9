// Package telemetry makes spans of distributed traces and sends them where the
// standard variables of OpenTelemetry say, as OTLP in JSON over HTTP. Nothing of
// it runs where they say nothing.
package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// Context is a place in a trace, as W3C Trace Context carries it. The zero
// Context is no place.
type Context struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool
	// State is the text of tracestate.
	State string
}

// maxState bounds the tracestate that is carried on.
const maxState = 512

// Parse reads the texts of traceparent and tracestate. What is not well formed is
// no place.
func Parse(parent, state string) (Context, bool) {
	var c Context
	parts := strings.Split(parent, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 ||
		len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 || strings.ToLower(parent) != parent {
		return c, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		into []byte
		text string
	}{{version[:], parts[0]}, {c.Trace[:], parts[1]}, {c.Span[:], parts[2]}, {flags[:], parts[3]}} {
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return Context{}, false
		}
	}
	if c.Trace == [16]byte{} || c.Span == [8]byte{} {
		return Context{}, false
	}
	c.Sampled = flags[0]&1 == 1
	if len(state) <= maxState {
		c.State = state
	}
	return c, true
}

// New begins a trace that is not sampled.
func New() Context {
	var c Context
	_, _ = rand.Read(c.Trace[:]) // it never fails
	_, _ = rand.Read(c.Span[:])
	return c
}

// String writes the traceparent.
func (c Context) String() string {
	text := make([]byte, 55)
	copy(text, "00-")
	hex.Encode(text[3:], c.Trace[:])
	text[35] = '-'
	hex.Encode(text[36:], c.Span[:])
	copy(text[52:], "-00")
	if c.Sampled {
		text[54] = '1'
	}
	return string(text)
}

// TraceID is the trace's id in hexadecimal.
func (c Context) TraceID() string { return hex.EncodeToString(c.Trace[:]) }

// Kind says which side of a call a span is.
type Kind int

// The kinds, by their numbers in OTLP.
const (
	KindInternal Kind = 1
	KindServer   Kind = 2
	KindClient   Kind = 3
)

// Attribute is something that a span says: a string, int64, float64, bool or list of
// strings.
type Attribute struct {
	Key   string
	Value any
}

// Span is a part of a trace. The nil Span, of a tracer that is off, takes
// everything and does nothing.
type Span struct {
	Context
	Parent     [8]byte
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	// Error says that it failed, and why.
	Error string

	tracer *Tracer
}

// Set adds attributes.
func (s *Span) Set(attributes ...Attribute) {
	if s != nil {
		s.Attributes = append(s.Attributes, attributes...)
	}
}

// Finish ends the span at a time, and has it sent if it is sampled.
func (s *Span) Finish(at time.Time) {
	if s == nil {
		return
	}
	s.End = at
	if s.Sampled {
		s.tracer.put(s)
	}
}

// Child begins a part of the span.
func (s *Span) Child(name string, kind Kind, at time.Time) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.begin(s.Context, true, name, kind, at)
}

type spanKey struct{}

// WithSpan gives a context that a span stands in.
func WithSpan(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// SpanFrom gives the span that a context stands in; nil is none.
func SpanFrom(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Start begins a span below that of ctx, or else below parent, or else a trace.
// Of a nil Tracer the span is nil.
func (t *Tracer) Start(ctx context.Context, parent Context, name string, kind Kind, at time.Time) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	if above := SpanFrom(ctx); above != nil {
		parent = above.Context
	}
	s := t.begin(parent, parent.Trace != [16]byte{}, name, kind, at)
	return WithSpan(ctx, s), s
}

func (t *Tracer) begin(parent Context, below bool, name string, kind Kind, at time.Time) *Span {
	s := &Span{Context: New(), Name: name, Kind: kind, Start: at, tracer: t}
	if below {
		s.Trace, s.State, s.Parent = parent.Trace, parent.State, parent.Span
	}
	s.Sampled = t.samples(s.Trace, below, parent.Sampled)
	return s
}
