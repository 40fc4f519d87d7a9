package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// Tracer sends spans in batches in the background. The nil Tracer is off.
type Tracer struct {
	set    *settings
	client *http.Client
	logger *slog.Logger
	scope  otlpScope

	queue      chan *Span
	stop, done chan struct{}
	once       sync.Once
	dropped    atomic.Int64
	failing    bool
}

func newTracer(set *settings, opts Options) *Tracer {
	t := &Tracer{
		set: set, client: &http.Client{Transport: opts.HTTP, Timeout: set.timeout}, logger: opts.Logger, scope: otlpScope{Name: opts.Service, Version: opts.Version},
		queue: make(chan *Span, set.queue), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go t.sendLoop()
	return t
}

// queueSpan queues a span. If the queue is full, the span is dropped.
func (t *Tracer) queueSpan(s *Span) {
	select {
	case t.queue <- s:
	default:
		t.dropped.Add(1)
	}
}

// Dropped returns the number of spans that were not sent.
func (t *Tracer) Dropped() int64 {
	if t == nil {
		return 0
	}
	return t.dropped.Load()
}

// Close sends the queued spans until ctx is done.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	t.once.Do(func() { close(t.stop) })
	select {
	case <-t.done:
	case <-ctx.Done():
	}
	t.client.CloseIdleConnections()
}

func (t *Tracer) sendLoop() {
	defer close(t.done)
	tick := time.NewTicker(t.set.delay)
	defer tick.Stop()
	var batch []*Span
	send := func() {
		if len(batch) > 0 {
			t.sendBatch(batch)
		}
		batch = nil
	}
	for {
		select {
		case s := <-t.queue:
			if batch = append(batch, s); len(batch) >= t.set.batch {
				send()
			}
		case <-tick.C:
			send()
		case <-t.stop:
			for len(t.queue) > 0 {
				batch = append(batch, <-t.queue)
			}
			send()
			return
		}
	}
}

// tries is the maximum number of attempts to send a batch.
const tries = 3

// sendBatch sends a batch. Lost spans are counted, and the first of several consecutive
// errors is logged.
func (t *Tracer) sendBatch(batch []*Span) {
	body, err := json.Marshal(t.newDocument(batch))
	if err == nil {
		err = t.deliverBody(body)
	}
	if err == nil {
		t.failing = false
		return
	}
	t.dropped.Add(int64(len(batch)))
	if !t.failing {
		t.logger.Warn("cannot send traces, so they are dropped", "endpoint", t.set.endpoint, "error", err)
	}
	t.failing = true
}

func (t *Tracer) deliverBody(body []byte) error {
	wait := time.Second
	for attempt := 1; ; attempt++ {
		again, err := t.postOnce(body)
		if err == nil || !again || attempt == tries {
			return err
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-t.stop: // make one last attempt
			_, err := t.postOnce(body)
			return err
		}
	}
}

// postOnce sends a request once. again reports whether a retry may succeed.
func (t *Tracer) postOnce(body []byte) (again bool, err error) {
	// The client's timeout limits the request: a batch outlives the contexts of its spans.
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, t.set.endpoint, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("create the request: %w", err)
	}
	req.Header = t.set.headers.Clone()
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(req)
	if err != nil {
		return true, fmt.Errorf("send to the collector: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // lets the connection be reused
	switch {
	case resp.StatusCode < 300:
		return false, nil
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("the collector answered with status %d", resp.StatusCode)
}

// otlpScope and the other types are the forms of OTLP in JSON (opentelemetry-proto,
// trace/v1).
type otlpScope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type otlpAttribute struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	ParentID   string          `json:"parentSpanId,omitempty"`
	State      string          `json:"traceState,omitempty"`
	Name       string          `json:"name"`
	Kind       Kind            `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
	Status     map[string]any  `json:"status"`
}

func (t *Tracer) newDocument(batch []*Span) map[string]any {
	spans := make([]otlpSpan, len(batch))
	for i, s := range batch {
		spans[i] = otlpSpan{
			TraceID: s.TraceID(), SpanID: hex.EncodeToString(s.Span[:]), State: s.State, Name: s.Name, Kind: s.Kind,
			Start: strconv.FormatInt(s.Start.UnixNano(), 10), End: strconv.FormatInt(s.End.UnixNano(), 10), Attributes: otlpAttributes(s.Attributes),
			Status: map[string]any{},
		}
		if s.Parent != [8]byte{} {
			spans[i].ParentID = hex.EncodeToString(s.Parent[:])
		}
		if s.Error != "" {
			const failed = 2
			spans[i].Status = map[string]any{"code": failed, "message": s.Error}
		}
	}
	return map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": otlpAttributes(t.set.resource)},
		"scopeSpans": []any{map[string]any{"scope": t.scope, "spans": spans}},
	}}}
}

func otlpAttributes(list []Attribute) []otlpAttribute {
	out := make([]otlpAttribute, 0, len(list))
	for _, a := range list {
		value := map[string]any{}
		switch v := a.Value.(type) {
		case bool:
			value["boolValue"] = v
		case int64:
			value["intValue"] = strconv.FormatInt(v, 10)
		case float64:
			value["doubleValue"] = v
		case []string:
			values := lists.Map(v, func(text string) map[string]any { return map[string]any{"stringValue": text} })
			value["arrayValue"] = map[string]any{"values": values}
		default:
			value["stringValue"] = fmt.Sprint(v)
		}
		out = append(out, otlpAttribute{a.Key, value})
	}
	return out
}
