package telemetry

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

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
