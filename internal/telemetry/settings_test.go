package telemetry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The OpenTelemetry variables have the meaning that the specification defines: those for
// traces take precedence over the general ones.
func TestVariables(t *testing.T) {
	t.Parallel()
	base := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
	of := func(more map[string]string) func(string) string {
		return func(name string) string {
			if text, ok := more[name]; ok {
				return text
			}
			return base[name]
		}
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want func(*settings)
	}{
		"traces endpoint": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://other:1/x"}, func(s *settings) { s.endpoint = "http://other:1/x" }},
		"headers":         {map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=1"}, func(s *settings) { s.headers.Set("a", "1") }},
		"traces headers": {
			map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "b=2"},
			func(s *settings) { s.headers.Set("b", "2") },
		},
		"timeout":        {map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "500"}, func(s *settings) { s.timeout = 500 * time.Millisecond }},
		"traces timeout": {map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "500", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "700"}, func(s *settings) { s.timeout = 700 * time.Millisecond }},
		"batches": {
			map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5"},
			func(s *settings) { s.delay, s.queue, s.batch = 50*time.Millisecond, 10, 5 },
		},
	} {
		want, _ := readSettings(of(nil), "guideway", "1")
		got, notes := readSettings(of(c.env), "guideway", "1")
		if want == nil || got == nil || len(notes) > 0 {
			t.Fatalf("%s: %v %v %v", name, want, got, notes)
		}
		c.want(want)
		want.resource, got.resource = nil, nil
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, env := range map[string]map[string]string{
		"grpc":            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		"grpc for traces": {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"},
		"off":             {"OTEL_SDK_DISABLED": "true"},
		"none":            {"OTEL_TRACES_EXPORTER": "none"},
	} {
		if got, _ := readSettings(of(env), "guideway", "1"); got != nil {
			t.Errorf("%s: traces are sent to %s", name, got.endpoint)
		}
	}
}
