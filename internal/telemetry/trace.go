// Package telemetry creates spans of distributed traces and sends them as OTLP in JSON over
// HTTP. The standard OpenTelemetry environment variables configure it. Without them it does
// nothing.
package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// Context is a position in a trace, in the form of W3C Trace Context. The zero Context
// means no trace.
type Context struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool
	// State is the text of tracestate.
	State string
}

// maxState is the maximum length of a tracestate that is passed on.
const maxState = 512

// Parse parses the texts of traceparent and tracestate. It returns false for an invalid
// traceparent, and drops a tracestate that is longer than maxState.
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

// New returns the Context of a new trace that is not sampled.
func New() Context {
	var c Context
	_, _ = rand.Read(c.Trace[:]) // never returns an error
	_, _ = rand.Read(c.Span[:])
	return c
}

// String returns the traceparent.
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

// TraceID returns the trace's id in hexadecimal.
func (c Context) TraceID() string { return hex.EncodeToString(c.Trace[:]) }

// Kind is the kind of a span.
type Kind int

// The kinds, with their numbers in OTLP.
const (
	KindInternal Kind = 1
	KindServer   Kind = 2
	KindClient   Kind = 3
)

// Attribute is an attribute of a span: a string, int64, float64, bool or list of strings.
type Attribute struct {
	Key   string
	Value any
}

// Span is a part of a trace. A tracer that is off returns nil spans, whose methods do
// nothing.
type Span struct {
	Context
	Parent     [8]byte
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	// Error is the reason why the operation failed; empty if it succeeded.
	Error string

	tracer *Tracer
}

// Set adds attributes.
func (s *Span) Set(attributes ...Attribute) {
	if s != nil {
		s.Attributes = append(s.Attributes, attributes...)
	}
}

// Finish ends the span at a time, and sends it if it is sampled.
func (s *Span) Finish(at time.Time) {
	if s == nil {
		return
	}
	s.End = at
	if s.Sampled {
		s.tracer.queueSpan(s)
	}
}

// Child starts a child of the span.
func (s *Span) Child(name string, kind Kind, at time.Time) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.startSpan(s.Context, true, name, kind, at)
}

type spanKey struct{}

// WithSpan returns a context with a span.
func WithSpan(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// SpanFrom returns the span of a context, or nil.
func SpanFrom(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Start starts a child of the span of ctx, or else of parent, or else a new trace. It
// returns nil for a nil Tracer.
func (t *Tracer) Start(ctx context.Context, parent Context, name string, kind Kind, at time.Time) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	if above := SpanFrom(ctx); above != nil {
		parent = above.Context
	}
	s := t.startSpan(parent, parent.Trace != [16]byte{}, name, kind, at)
	return WithSpan(ctx, s), s
}

func (t *Tracer) startSpan(parent Context, below bool, name string, kind Kind, at time.Time) *Span {
	s := &Span{Context: New(), Name: name, Kind: kind, Start: at, tracer: t}
	if below {
		s.Trace, s.State, s.Parent = parent.Trace, parent.State, parent.Span
	}
	s.Sampled = t.isSampled(s.Trace, below, parent.Sampled)
	return s
}
