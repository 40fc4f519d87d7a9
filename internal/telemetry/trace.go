// Package telemetry creates spans of distributed traces and sends them as OTLP in JSON over
// HTTP. The standard OpenTelemetry environment variables configure it. Without them it does
// nothing.
package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
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

// settings holds the values of the OpenTelemetry environment variables.
type settings struct {
	endpoint string
	headers  http.Header
	timeout  time.Duration
	resource []Attribute
	// parentBased reports that a span with a parent is sampled if its parent is; ratio is
	// the fraction of all other traces that are sampled.
	parentBased bool
	ratio       float64
	delay       time.Duration
	queue       int
	batch       int
}

// readSettings reads the environment variables. It returns nil if they do not enable
// traces. notes describe the unsupported values.
func readSettings(getenv func(string) string, service, version string) (*settings, []string) {
	var notes []string
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	name := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	endpoint := getenv(name)
	if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint == "" && base != "" {
		name, endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT", strings.TrimSuffix(base, "/")+"/v1/traces"
	}
	if endpoint == "" {
		return nil, nil
	}
	if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, []string{name + " is not an http or https URL with a host; no traces are sent"}
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	default:
		return nil, []string{fmt.Sprintf("OTEL_TRACES_EXPORTER is %q; only otlp and none are supported, and no traces are sent", exporter)}
	}
	name = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	if getenv(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	if getenv(name) == "grpc" {
		return nil, []string{name + " is grpc, which is not supported, and no traces are sent; use http/json, with the port of HTTP (4318)"}
	}
	s := &settings{
		endpoint: endpoint, headers: http.Header{}, timeout: parseMilliseconds(cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"), getenv("OTEL_EXPORTER_OTLP_TIMEOUT")), 10*time.Second),
		delay: parseMilliseconds(getenv("OTEL_BSP_SCHEDULE_DELAY"), 5*time.Second), queue: parseCount(getenv("OTEL_BSP_MAX_QUEUE_SIZE"), 2048),
		batch: parseCount(getenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), 512), parentBased: true, ratio: 1,
	}
	for name, value := range parsePairs(cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), getenv("OTEL_EXPORTER_OTLP_HEADERS"))) {
		s.headers.Set(name, value)
	}
	if !s.setSampler(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG")) {
		notes = append(notes, fmt.Sprintf("OTEL_TRACES_SAMPLER %q is not supported; parentbased_always_on is used. The supported samplers are always_on, always_off and traceidratio, each also with the prefix parentbased_", getenv("OTEL_TRACES_SAMPLER")))
	}
	s.resource = resourceAttributes(getenv, service, version)
	return s, notes
}

func resourceAttributes(getenv func(string) string, service, version string) []Attribute {
	given := parsePairs(getenv("OTEL_RESOURCE_ATTRIBUTES"))
	given["service.name"] = cmp.Or(getenv("OTEL_SERVICE_NAME"), given["service.name"], service)
	given["service.version"] = cmp.Or(given["service.version"], version)
	var list []Attribute
	for key, value := range given {
		list = append(list, Attribute{key, value})
	}
	return list
}

func (s *settings) setSampler(name, arg string) bool {
	ratio := 1.0
	if value, err := strconv.ParseFloat(arg, 64); err == nil && value >= 0 && value <= 1 {
		ratio = value
	}
	rest, based := strings.CutPrefix(name, "parentbased_")
	s.parentBased = based || name == ""
	switch rest {
	case "", "always_on":
		s.ratio = 1
	case "always_off":
		s.ratio = 0
	case "traceidratio":
		s.ratio = ratio
	default:
		s.parentBased, s.ratio = true, 1
		return false
	}
	return true
}

// isSampled reports whether a span is sampled. below reports whether the span has a parent,
// and parent whether that parent is sampled.
func (t *Tracer) isSampled(trace [16]byte, below, parent bool) bool {
	switch {
	case t.set.parentBased && below:
		return parent
	case t.set.ratio >= 1:
		return true
	}
	return float64(binary.BigEndian.Uint64(trace[8:])>>1) < t.set.ratio*math.MaxInt64
}

// parsePairs parses a=b,c=d with percent-encoded values.
func parsePairs(text string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			continue
		}
		value = strings.TrimSpace(value)
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		out[key] = value
	}
	return out
}

func parseMilliseconds(text string, fallback time.Duration) time.Duration {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Millisecond
	}
	return fallback
}

func parseCount(text string, fallback int) int {
	if n, err := strconv.ParseInt(text, 10, 24); err == nil && n > 0 {
		return int(n)
	}
	return fallback
}

// Options configure a Tracer. Only Getenv is required.
type Options struct {
	// Getenv reads the environment.
	Getenv func(string) string
	// Service and Version are the defaults of the program's name and version.
	Service, Version string
	// HTTP sends the requests; http.DefaultTransport if nil.
	HTTP http.RoundTripper
	// Logger logs errors; may be nil.
	Logger *slog.Logger
}

// Open returns a tracer that the standard environment variables configure. If they do not
// enable one, Open returns nil, which is a tracer that does nothing.
func Open(opts Options) *Tracer {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	set, notes := readSettings(opts.Getenv, opts.Service, opts.Version)
	for _, note := range notes {
		opts.Logger.Warn(note)
	}
	if set == nil {
		return nil
	}
	return newTracer(set, opts)
}
