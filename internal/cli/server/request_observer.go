package server

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/secret"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/telemetry"
	"github.com/guideway-dev/guideway/internal/telemetry/metrics"
)

// RequestLogPath returns the path of the request log. It is local to this machine even if
// the store is remote (see docs/adr/0016).
func RequestLogPath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "requests.db") }

const (
	// recordCloseTimeout limits the time for writing pending entries, and that for sending
	// pending spans, when the process ends.
	recordCloseTimeout = 300 * time.Millisecond
	// backgroundHookTimeout limits how long an entry waits for fire-and-forget hooks.
	backgroundHookTimeout = 2 * time.Minute
)

// RequestObserver observes the requests of the gateway: it logs, counts and traces them.
type RequestObserver struct {
	// recorder is nil if requests are not logged.
	recorder *requestlog.Recorder
	log      *RequestLog
	tracer   *telemetry.Tracer
	Counts   *requestMetrics
	// pendingHooks counts the entries whose fire-and-forget hooks still run.
	pendingHooks sync.WaitGroup
	lifetime     context.Context //nolint:containedctx // ends the goroutines that wait for fire-and-forget hooks
	stop         context.CancelFunc
}

var (
	_ gateway.Observer = (*RequestObserver)(nil)
	_ httpapi.Requests = (*RequestObserver)(nil)
)

// NewRequestObserver returns an observer that opens the request log at the first request.
func NewRequestObserver(a *app.App, cfg *config.Config) *RequestObserver {
	r := &RequestObserver{log: NewRequestLog(cfg)}
	r.tracer = NewTracer(a, cfg)
	r.Counts = newRequestMetrics(a.Host.CurrentTime(), r)
	r.lifetime, r.stop = context.WithCancel(context.Background())
	if !cfg.Requests.Record {
		return r
	}
	keep := 0
	if cfg.Requests.Bodies {
		keep = int(cfg.Requests.MaxBody)
	}
	r.recorder = requestlog.NewRecorder(requestlog.RecorderOptions{
		Open: r.log.openLog, Redact: requestlog.NewRedactor(keep, secret.Detector{Personal: cfg.Context.PersonalData}),
		Retention: cfg.Requests.Retention, MaxBytes: cfg.Requests.MaxSize, Logger: a.Logger(cfg), Now: a.Host.CurrentTime,
	})
	return r
}

// NewTracer returns a tracer, or nil if tracing is off.
func NewTracer(a *app.App, cfg *config.Config) *telemetry.Tracer {
	return telemetry.Open(telemetry.Options{Getenv: a.Host.Getenv, Service: "guideway", Version: app.Version(), Logger: a.Logger(cfg)})
}

// CloseTracer sends pending spans within recordCloseTimeout.
func CloseTracer(t *telemetry.Tracer) {
	ctx, cancel := context.WithTimeout(context.Background(), recordCloseTimeout)
	defer cancel()
	t.Close(ctx)
}

// Close writes pending entries and closes the log.
func (r *RequestObserver) Close() {
	r.stop()
	r.pendingHooks.Wait()
	defer CloseTracer(r.tracer)
	if r.recorder != nil {
		ctx, cancel := context.WithTimeout(context.Background(), recordCloseTimeout)
		defer cancel()
		r.recorder.Close(ctx)
	}
	r.log.Close()
}

// observedRequest collects data about one request.
type observedRequest struct {
	// token is the name of the token that the client used.
	token string
	// trace is the id of the trace, and span the span of the request, which is nil if
	// tracing is off.
	trace string
	span  *telemetry.Span

	mu   sync.Mutex
	runs []graphRun
}

// graphRun is the execution of a hook graph for the request.
type graphRun struct {
	program *hookengine.Program
	outcome *hookengine.Outcome
	began   time.Time
}

type observedRequestKey struct{}

// Begin implements gateway.Observer.
func (r *RequestObserver) Begin(ctx context.Context, x *gateway.Exchange) context.Context {
	o := &observedRequest{}
	ctx = r.startSpan(ctx, o, x)
	r.Counts.inFlight.Add(1, x.Upstream)
	if holder := auth.TokenLeaseFrom(ctx); holder != nil {
		o.token = holder.Name
	}
	return context.WithValue(ctx, observedRequestKey{}, o)
}

// startSpan joins the trace of the client, or starts one. If tracing is off, the trace
// context of the client passes through unchanged; without one the request is recorded under
// a new trace id, which is not sent to the upstream.
func (r *RequestObserver) startSpan(ctx context.Context, o *observedRequest, x *gateway.Exchange) context.Context {
	parent, ok := telemetry.Parse(x.Trace.Parent, x.Trace.State)
	if !ok {
		parent, x.Trace = telemetry.Context{}, gateway.Trace{} // a malformed trace context is dropped
	}
	ctx, o.span = r.tracer.Start(ctx, parent, x.Method, telemetry.KindServer, x.Began)
	switch {
	case o.span != nil:
		parent = o.span.Context
		x.Trace = gateway.Trace{Parent: parent.String(), State: parent.State}
	case !ok:
		parent = telemetry.New()
	}
	o.trace = parent.TraceID()
	return ctx
}

// noteGraph adds the execution of a hook graph to the request of ctx.
func noteGraph(ctx context.Context, p *hookengine.Program, out *hookengine.Outcome, began time.Time) {
	if o, ok := ctx.Value(observedRequestKey{}).(*observedRequest); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.runs = append(o.runs, graphRun{p, out, began})
	}
}

// End implements gateway.Observer.
func (r *RequestObserver) End(ctx context.Context, x *gateway.Exchange) {
	o, ok := ctx.Value(observedRequestKey{}).(*observedRequest)
	if !ok {
		return
	}
	o.mu.Lock()
	runs := o.runs
	o.mu.Unlock()
	// The graph closest to the upstream ended first.
	slices.Reverse(runs)
	r.Counts.countRequest(x, runs)
	o.finishSpan(x, runs)
	if r.recorder != nil {
		r.recordEntry(o, x, runs)
	}
}

// recordEntry logs a request, and updates the entry after its fire-and-forget hooks have
// ended.
func (r *RequestObserver) recordEntry(o *observedRequest, x *gateway.Exchange, runs []graphRun) {
	e := &requestlog.Entry{
		ID: shortid.Timed("q_", x.Began), At: x.Began, User: x.Client.User, Client: x.Client.Client, Token: o.token,
		Method: x.Method, Upstream: x.Upstream, Project: x.Project, Tool: x.Name, Status: requestlog.Status(x.Outcome), Error: x.Error, HeldCall: x.Held,
		MS:      float64(x.Ended.Sub(x.Began).Microseconds()) / 1000,
		BytesIn: int64(len(x.Arguments)), BytesOut: int64(len(x.Result)), TraceID: o.trace,
	}
	if r.recorder.Bodies() {
		e.Arguments, e.Result = x.Arguments, x.Result
	}
	for _, run := range runs {
		g := run.logEntry(run.outcome.Nodes())
		e.Graphs, e.Hooks = append(e.Graphs, g), append(e.Hooks, g.ID)
	}
	id := e.ID // Add takes ownership of the entry, so read its id first
	pending := slices.ContainsFunc(e.Graphs, func(g requestlog.Graph) bool {
		return slices.ContainsFunc(g.Nodes, func(n requestlog.Node) bool { return n.Pending })
	})
	r.recorder.Add(e)
	if pending {
		r.pendingHooks.Go(func() { r.recordBackgroundHooks(id, runs) })
	}
}

// finishSpan ends the spans of a request. Blocking nodes of hook graphs become child spans
// in sequence. Fire-and-forget nodes may end later and are omitted.
func (o *observedRequest) finishSpan(x *gateway.Exchange, runs []graphRun) {
	if o.span == nil {
		return
	}
	switch {
	case x.Upstream == "" || x.Name == "":
	case x.Method == "resources/read": // the number of URIs is unlimited, and they may carry secrets
		o.span.Name = x.Method + " " + x.Upstream
	default:
		o.span.Name = x.Method + " " + x.Upstream + "/" + x.Name
	}
	o.span.Set(
		telemetry.Attribute{Key: "mcp.method.name", Value: x.Method}, telemetry.Attribute{Key: "guideway.upstream", Value: x.Upstream},
		telemetry.Attribute{Key: "guideway.client", Value: x.Client.Client}, telemetry.Attribute{Key: "guideway.status", Value: string(x.Outcome)},
		telemetry.Attribute{Key: "guideway.request.bytes", Value: int64(len(x.Arguments))},
		telemetry.Attribute{Key: "guideway.response.bytes", Value: int64(len(x.Result))})
	if x.Held != "" {
		o.span.Set(telemetry.Attribute{Key: "guideway.held_call", Value: x.Held})
	}
	if x.Method == "tools/call" {
		o.span.Set(telemetry.Attribute{Key: "gen_ai.tool.name", Value: x.Name}, telemetry.Attribute{Key: "gen_ai.operation.name", Value: "execute_tool"})
	}
	if requestlog.Status(x.Outcome).Failed() {
		o.span.Error = string(x.Outcome)
		o.span.Set(telemetry.Attribute{Key: "error.type", Value: string(x.Outcome)})
	}
	for _, run := range runs {
		at := run.began
		for _, n := range run.outcome.Nodes() {
			took := time.Duration(n.MS * float64(time.Millisecond))
			if n.Kind == hookdef.HookNode && !n.FireAndForget {
				child := o.span.Child("hook "+run.program.Graph().ID+"/"+n.ID, telemetry.KindInternal, at)
				child.Set(telemetry.Attribute{Key: "guideway.hook.graph", Value: run.program.Graph().ID}, telemetry.Attribute{Key: "guideway.hook.node", Value: n.ID})
				if n.Error != nil {
					child.Error = n.Error.Code
				}
				child.Finish(at.Add(took))
			}
			if !n.FireAndForget {
				at = at.Add(took)
			}
		}
	}
	o.span.Finish(x.Ended)
}

// recordBackgroundHooks waits for fire-and-forget hooks and updates the entry.
func (r *RequestObserver) recordBackgroundHooks(id string, runs []graphRun) {
	ctx, cancel := context.WithTimeout(r.lifetime, backgroundHookTimeout)
	defer cancel()
	graphs := make([]requestlog.Graph, len(runs))
	for i, run := range runs {
		nodes, err := run.outcome.Settle(ctx)
		if err != nil {
			nodes = run.outcome.Nodes()
		}
		graphs[i] = run.logEntry(nodes)
	}
	r.recorder.Settle(id, graphs)
}

// logEntry converts the execution of a graph to its form in the request log.
func (g graphRun) logEntry(nodes []hookengine.NodeTrace) requestlog.Graph {
	of := g.program.Graph()
	out := requestlog.Graph{ID: of.ID, Outcome: g.outcome.Status, Node: g.outcome.Node, Nodes: make([]requestlog.Node, len(nodes))}
	for i, n := range nodes {
		out.Nodes[i] = requestlog.Node{NodeTrace: n}
		at := slices.IndexFunc(of.Nodes, func(each hookdef.Node) bool { return each.ID == n.ID })
		if at >= 0 && of.Nodes[at].Title() != n.ID {
			out.Nodes[i].Label = of.Nodes[at].Title()
		}
	}
	return out
}

// RequestLog opens the request log at the first call.
type RequestLog struct {
	Path  string
	texts *seal.Texts

	mu     sync.Mutex
	opened *requestlog.Log
}

// NewRequestLog returns the request log of a data directory.
func NewRequestLog(cfg *config.Config) *RequestLog {
	return &RequestLog{Path: RequestLogPath(cfg), texts: app.SealFiles(cfg)}
}

// openLog opens the file, and creates it if it does not exist.
func (l *RequestLog) openLog(ctx context.Context) (*requestlog.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		return l.opened, nil
	}
	opened, err := requestlog.Open(ctx, l.Path)
	if err != nil {
		return nil, err
	}
	l.opened, opened.Texts = opened, l.texts
	return opened, nil
}

// Close closes the log.
func (l *RequestLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		_ = l.opened.Close() // all entries were written, so an error loses nothing
	}
	l.opened = nil
}

// Reader implements httpapi.Requests.
func (r *RequestObserver) Reader(ctx context.Context) (*requestlog.Log, error) {
	return r.log.Read(ctx)
}

// Recording implements httpapi.Requests.
func (r *RequestObserver) Recording() httpapi.Recording {
	if r.recorder == nil {
		return httpapi.Recording{}
	}
	return httpapi.Recording{On: true, Bodies: r.recorder.Bodies(), Error: r.recorder.Health().Error}
}

// Read returns the log, or nil if it does not exist yet.
func (l *RequestLog) Read(ctx context.Context) (*requestlog.Log, error) {
	if !requestlog.Exists(l.Path) {
		return nil, nil
	}
	return l.openLog(ctx)
}

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
