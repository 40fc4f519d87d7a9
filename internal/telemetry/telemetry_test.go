package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/telemetry"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A valid trace context is passed on unchanged. An invalid one is ignored.
func TestParse(t *testing.T) {
	t.Parallel()
	c, ok := telemetry.Parse(parent, "a=b")
	if !ok || c.String() != parent || c.State != "a=b" || !c.Sampled || c.TraceID() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("%+v, %v", c, ok)
	}
	if c, ok := telemetry.Parse(strings.Replace(parent, "00-", "01-", 1)+"-more", ""); !ok || c.String() != parent {
		t.Errorf("a later version: %+v, %v", c, ok)
	}
	for _, text := range []string{
		"", "00", parent + "-more", strings.ToUpper(parent), strings.Replace(parent, "00-", "ff-", 1), strings.Replace(parent, "b7ad6b7169203331", "0000000000000000", 1),
		strings.Replace(parent, "0af7651916cd43dd8448eb211c80319c", strings.Repeat("0", 32), 1), strings.Replace(parent, "b7", "zz", 1), parent[:54], strings.Replace(parent, "-01", "-0g", 1),
	} {
		if c, ok := telemetry.Parse(text, ""); ok || c != (telemetry.Context{}) {
			t.Errorf("%q was parsed as %+v", text, c)
		}
	}
	a, b := telemetry.New(), telemetry.New()
	if again, ok := telemetry.Parse(a.String(), ""); !ok || again != a || a == b || a.Sampled {
		t.Errorf("%+v, %+v", a, again)
	}
}

// collector records the spans that it receives.
type collector struct {
	*httptest.Server
	// failures are the statuses of the first answers.
	failures []int

	mu      sync.Mutex
	bodies  []string
	headers http.Header
	paths   []string
}

func newCollector(t *testing.T, failures ...int) *collector {
	t.Helper()
	c := &collector{failures: failures}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paths = append(c.paths, r.URL.Path)
		c.headers = r.Header
		if len(c.failures) > 0 {
			w.WriteHeader(c.failures[0])
			c.failures = c.failures[1:]
			return
		}
		c.bodies = append(c.bodies, string(body))
	}))
	t.Cleanup(c.Close)
	return c
}

type received struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []attribute }
		ScopeSpans []struct{ Spans []span }
	}
}

type attribute struct {
	Key   string
	Value map[string]any
}

type span struct {
	TraceID, SpanID, ParentSpanID, TraceState, Name, StartTimeUnixNano, EndTimeUnixNano string
	Kind                                                                                int
	Attributes                                                                          []attribute
	Status                                                                              struct {
		Code    int
		Message string
	}
}

func getenvFor(c *collector, more ...string) func(string) string {
	values := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL + "/"}
	for i := 0; i < len(more); i += 2 {
		values[more[i]] = more[i+1]
	}
	return func(name string) string { return values[name] }
}

// Spans arrive as OTLP, as children of the client's span, with the headers and the resource
// that the environment variables set.
func TestSpansArrive(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	tracer := telemetry.Open(telemetry.Options{Service: "guideway", Version: "1", Getenv: getenvFor(c,
		"OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, other=c", "OTEL_RESOURCE_ATTRIBUTES", "service.name=theirs,deployment=prod", "OTEL_SERVICE_NAME", "mine")})
	above, _ := telemetry.Parse(parent, "a=b")
	at := time.Unix(1_700_000_000, 5)
	ctx, s := tracer.Start(t.Context(), above, "tools/call", telemetry.KindServer, at)
	s.Set(telemetry.Attribute{Key: "n", Value: int64(7)}, telemetry.Attribute{Key: "b", Value: true}, telemetry.Attribute{Key: "f", Value: 0.5}, telemetry.Attribute{Key: "s", Value: "x"},
		telemetry.Attribute{Key: "l", Value: []string{"y", "z"}})
	_, inner := tracer.Start(ctx, telemetry.Context{}, "inner", telemetry.KindClient, at)
	inner.Error = "broken"
	inner.Finish(at.Add(time.Second))
	s.Finish(at.Add(2 * time.Second))
	tracer.Close(t.Context())
	if len(c.bodies) != 1 || c.paths[0] != "/v1/traces" || c.headers.Get("X-Key") != "a b" || c.headers.Get("Content-Type") != "application/json" {
		t.Fatalf("%v %v %v", c.paths, c.headers, c.bodies)
	}
	var got received
	if err := json.Unmarshal([]byte(c.bodies[0]), &got); err != nil {
		t.Fatal(err)
	}
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	in, out := spans[0], spans[1]
	if out.TraceID != above.TraceID() || out.ParentSpanID != "b7ad6b7169203331" || out.TraceState != "a=b" || out.Kind != 2 || out.StartTimeUnixNano != "1700000000000000005" || out.Status.Code != 0 {
		t.Errorf("%+v", out)
	}
	if in.TraceID != out.TraceID || in.ParentSpanID != out.SpanID || in.Status.Code != 2 || in.Status.Message != "broken" || in.EndTimeUnixNano != "1700000001000000005" {
		t.Errorf("%+v", in)
	}
	if out.Attributes[0].Value["intValue"] != "7" || out.Attributes[1].Value["boolValue"] != true || out.Attributes[2].Value["doubleValue"] != 0.5 ||
		fmt.Sprint(out.Attributes[4].Value["arrayValue"]) != "map[values:[map[stringValue:y] map[stringValue:z]]]" {
		t.Errorf("%+v", out.Attributes)
	}
	resource := map[string]any{}
	for _, a := range got.ResourceSpans[0].Resource.Attributes {
		resource[a.Key] = a.Value["stringValue"]
	}
	if resource["service.name"] != "mine" || resource["deployment"] != "prod" || resource["service.version"] != "1" {
		t.Errorf("%v", resource)
	}
}

// TestTracerIsOff checks that Open returns nil unless the environment variables configure a
// supported export. The methods of the nil tracer do nothing.
func TestTracerIsOff(t *testing.T) {
	t.Parallel()
	for _, env := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "file:///etc/passwd"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "zipkin"},
	} {
		tracer := telemetry.Open(telemetry.Options{Getenv: func(name string) string { return env[name] }})
		if tracer != nil {
			t.Errorf("%v has a tracer", env)
			tracer.Close(t.Context())
		}
		ctx, s := tracer.Start(t.Context(), telemetry.Context{}, "x", telemetry.KindServer, time.Now())
		s.Set(telemetry.Attribute{})
		s.Child("y", telemetry.KindInternal, time.Now()).Finish(time.Now())
		s.Finish(time.Now())
		tracer.Close(ctx)
		if s != nil || tracer.Dropped() != 0 {
			t.Error("a tracer that is off returned a span")
		}
	}
}

func TestSamplers(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	sampled, _ := telemetry.Parse(parent, "")
	not := sampled
	not.Sampled = false
	tests := []struct {
		sampler, arg     string
		root, yes, never bool
	}{
		{"", "", true, true, false},
		{"always_on", "", true, true, true},
		{"always_off", "", false, false, false},
		{"parentbased_always_off", "", false, true, false},
		{"traceidratio", "0", false, false, false},
		{"parentbased_traceidratio", "1", true, true, false},
		{"odd", "", true, true, false},
	}
	for _, tt := range tests {
		tracer := telemetry.Open(telemetry.Options{Getenv: getenvFor(c, "OTEL_TRACES_SAMPLER", tt.sampler, "OTEL_TRACES_SAMPLER_ARG", tt.arg)})
		for _, each := range []struct {
			parent telemetry.Context
			want   bool
		}{{telemetry.Context{}, tt.root}, {sampled, tt.yes}, {not, tt.never}} {
			if _, s := tracer.Start(t.Context(), each.parent, "x", telemetry.KindServer, time.Now()); s.Sampled != each.want {
				t.Errorf("%s below %+v: %v", tt.sampler, each.parent, s.Sampled)
			}
		}
		tracer.Close(t.Context())
	}
}

// A request is retried if the collector is overloaded, but not if the collector refuses it.
// Lost spans are counted.
func TestFailingCollectors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failures []int
		arrived  int
		dropped  int64
	}{{[]int{503}, 1, 0}, {[]int{400}, 0, 1}, {[]int{503, 503, 503, 503}, 0, 1}} {
		c := newCollector(t, tt.failures...)
		tracer := telemetry.Open(telemetry.Options{Getenv: getenvFor(c)})
		_, s := tracer.Start(t.Context(), telemetry.Context{}, "x", telemetry.KindServer, time.Now())
		s.Finish(time.Now())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		tracer.Close(ctx)
		cancel()
		c.mu.Lock()
		if len(c.bodies) != tt.arrived || tracer.Dropped() != tt.dropped {
			t.Errorf("%v: %d arrived, %d dropped", tt.failures, len(c.bodies), tracer.Dropped())
		}
		c.mu.Unlock()
	}
}
