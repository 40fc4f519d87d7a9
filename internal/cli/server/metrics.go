package server

import (
	"io"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/telemetry/metrics"
)

// requestMetrics collects the metrics of this process for /metrics.
type requestMetrics struct {
	set      metrics.Set
	calls    *metrics.Counter
	duration *metrics.Histogram
	inFlight *metrics.Counter
	graphs   *metrics.Counter

	mu sync.Mutex
	// upstreams reports upstream health. It may be nil.
	upstreams *gateway.Gateway
}

// durationBuckets returns the upper bounds of the duration histogram, in seconds.
func durationBuckets() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}

func newRequestMetrics(began time.Time, r *RequestObserver) *requestMetrics {
	c := &requestMetrics{}
	c.set.Collect("gauge", "guideway_info", "Version of Guideway.", []string{"version"}, func(emit func(float64, ...string)) { emit(1, app.Version()) })
	c.calls = c.set.Counter("guideway_gateway_requests_total", "Completed requests to upstreams, by outcome.", "method", "upstream", "tool", "status")
	c.duration = c.set.Histogram("guideway_gateway_request_duration_seconds", "Duration of requests to upstreams, in seconds.", durationBuckets(), "method", "upstream")
	c.inFlight = c.set.Gauge("guideway_gateway_requests_in_flight", "Requests to upstreams in progress.", "upstream")
	c.graphs = c.set.Counter("guideway_hook_executions_total", "Executions of hook graphs, by outcome.", "graph", "outcome")
	c.set.Collect("gauge", "guideway_upstream_state", "1 for the current state of an upstream, 0 for the other states.", []string{"upstream", "state"}, c.emitStates)
	c.set.Collect("gauge", "guideway_upstream_sessions", "Open sessions with an upstream.", []string{"upstream"}, func(emit func(float64, ...string)) {
		for _, h := range c.upstreamHealth() {
			emit(float64(h.Sessions), h.Name)
		}
	})
	c.set.Collect("counter", "guideway_upstream_restarts_total", "Unexpected exits of an upstream.", []string{"upstream"}, func(emit func(float64, ...string)) {
		for _, h := range c.upstreamHealth() {
			emit(float64(h.Restarts), h.Name)
		}
	})
	c.set.Collect("counter", "guideway_records_total", "Entries of the request log, by outcome.", []string{"outcome"}, func(emit func(float64, ...string)) {
		if r.recorder == nil {
			return
		}
		h := r.recorder.Health()
		emit(float64(h.Written), "written")
		emit(float64(h.Dropped), "dropped")
	})
	c.set.Collect("gauge", "guideway_records_waiting", "Entries of the request log that wait to be written.", nil, func(emit func(float64, ...string)) {
		if r.recorder != nil {
			emit(float64(r.recorder.Health().Waiting))
		}
	})
	c.set.Collect("counter", "guideway_spans_dropped_total", "Trace spans that were dropped, because the queue was full or they could not be sent.", nil, func(emit func(float64, ...string)) {
		emit(float64(r.tracer.Dropped()))
	})
	c.set.AddRuntime(began)
	return c
}

func (c *requestMetrics) setGateway(g *gateway.Gateway) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.upstreams = g
}

func (c *requestMetrics) upstreamHealth() []gateway.MemberHealth {
	c.mu.Lock()
	g := c.upstreams
	c.mu.Unlock()
	if g == nil {
		return nil
	}
	return g.MembersHealth()
}

func (c *requestMetrics) emitStates(emit func(float64, ...string)) {
	for _, h := range c.upstreamHealth() {
		for _, state := range []string{"idle", "running", "failed"} {
			value := 0.0
			if string(h.Condition) == state {
				value = 1
			}
			emit(value, h.Name, state)
		}
	}
}

// countRequest counts a request. Names of tools that no upstream has are counted together,
// because clients can invent them.
func (c *requestMetrics) countRequest(x *gateway.Exchange, runs []graphRun) {
	tool := x.Name
	switch {
	case x.Upstream == "":
		tool = metrics.Other
	case x.Method == "resources/read":
		tool = "" // the number of URIs is unlimited
	}
	c.calls.Add(1, x.Method, x.Upstream, tool, string(x.Outcome))
	c.duration.Observe(x.Ended.Sub(x.Began).Seconds(), x.Method, x.Upstream)
	c.inFlight.Add(-1, x.Upstream)
	for _, run := range runs {
		c.graphs.Add(1, run.program.Graph().ID, string(run.outcome.Status))
	}
}

// Metrics implements httpapi.Metrics.
func (c *requestMetrics) Metrics(w io.Writer) error { return c.set.Write(w) }
