package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
)

// TestCallTraces checks that, if OTEL_EXPORTER_OTLP_ENDPOINT is set, a call is a child span
// of its client's span, and its hook has a span in the same trace. The upstream gets the
// span of the call as its parent, and the request log gets the trace id.
func TestCallTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent += string(body)
	}))
	t.Cleanup(collector.Close)
	d, _ := newGatewayProject(t)
	getenv := d.host.Getenv
	d.host.Getenv = func(name string) string {
		if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			return collector.URL
		}
		return getenv(name)
	}
	for _, command := range []string{
		"hooks import --template redact-secrets --id redact --upstream one --tool params", "hooks enable redact",
	} {
		d.wantCommand(app.ExitOK, "", command)
	}
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	a := d.connectClient("--toolsets", "gateway")
	answer := a.sendRequest("tools/call", map[string]any{
		"name": "one__params", "arguments": map[string]any{"text": "hi"}, "_meta": map[string]any{"traceparent": theirs},
	})
	var list []requestlog.Entry
	waitFor(t, func() bool { list = d.listRequests(""); return len(list) == 1 })
	a.end()
	if list[0].TraceID != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("%+v", list[0])
	}
	mu.Lock()
	defer mu.Unlock()
	var got struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct{ TraceID, SpanID, ParentSpanID, Name string }
			}
		}
	}
	if err := json.Unmarshal([]byte(sent), &got); err != nil {
		t.Fatalf("%v: %s", err, sent)
	}
	names := map[string]string{}
	for _, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
		names[s.Name] = s.SpanID
		if s.Name == "tools/call one/params" && s.ParentSpanID != "b7ad6b7169203331" || s.TraceID != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%+v", s)
		}
	}
	call := names["tools/call one/params"]
	if call == "" || len(names) != 2 {
		t.Errorf("the spans are %v", names)
	}
	if text := string(answer.Result); !strings.Contains(text, "0af7651916cd43dd8448eb211c80319c-"+call) {
		t.Errorf("the upstream got %s", text)
	}
}

// TestMetrics checks that metrics have a bounded set of labels: all unknown tools share one
// value, and resource URIs do not appear.
func TestMetrics(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	a := &app.App{Host: &d.host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	r := server.NewRequestObserver(a, cfg)
	defer r.Close()
	for _, x := range []gateway.Exchange{
		{Method: "tools/call", Upstream: "one", Name: "echo", Outcome: gateway.OutcomeOK},
		{Method: "tools/call", Name: "made-up-1", Outcome: gateway.OutcomeRefused},
		{Method: "tools/call", Name: "made-up-2", Outcome: gateway.OutcomeRefused},
		{Method: "resources/read", Upstream: "one", Name: "file:///secret", Outcome: gateway.OutcomeOK},
	} {
		x.Began = time.Now()
		x.Ended = x.Began.Add(30 * time.Millisecond)
		r.End(r.Begin(t.Context(), &x), &x)
	}
	var text strings.Builder
	if err := r.Counts.Metrics(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`guideway_gateway_requests_total{method="tools/call",upstream="one",tool="echo",status="ok"} 1`,
		`guideway_gateway_requests_total{method="tools/call",upstream="",tool="(other)",status="refused"} 2`,
		`guideway_gateway_request_duration_seconds_bucket{method="tools/call",upstream="one",le="0.05"} 1`,
		`guideway_gateway_request_duration_seconds_bucket{method="tools/call",upstream="one",le="0.025"} 0`,
		`guideway_gateway_requests_in_flight{upstream="one"} 0`, "go_goroutines ", `guideway_records_total{outcome="dropped"} 0`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	if strings.Contains(text.String(), "secret") || strings.Contains(text.String(), "made-up") {
		t.Errorf("%s", text.String())
	}
}
