package cli

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/hookgraph"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/journal/requestlog"
	"github.com/guideway-dev/guideway/internal/record"
	"github.com/guideway-dev/guideway/internal/shortid"
)

// requestsPath is the file of the record of requests. It is this machine's, also
// where the store is elsewhere (ADR 16).
func requestsPath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "requests.db") }

const (
	// recordEndTime is how long what waits may take to be written when the
	// process ends.
	recordEndTime = 300 * time.Millisecond
	// asideTime is how long an entry waits for hooks that run aside.
	asideTime = 2 * time.Minute
)

// recording observes what passes through the gateway, and has it written down.
type recording struct {
	recorder *record.Recorder
	log      *requestLog
	// asides are the entries whose hooks still run.
	asides sync.WaitGroup
	life   context.Context //nolint:containedctx // the life of those that wait for hooks
	stop   context.CancelFunc
}

var (
	_ gateway.Observer = (*recording)(nil)
	_ httpapi.Requests = (*recording)(nil)
)

// newRecording opens nothing: the first request does.
func (a *app) newRecording(cfg *config.Config) *recording {
	r := &recording{log: &requestLog{path: requestsPath(cfg)}}
	r.life, r.stop = context.WithCancel(context.Background())
	if !cfg.Requests.Record {
		return r
	}
	keep := 0
	if cfg.Requests.Bodies {
		keep = int(cfg.Requests.MaxBody)
	}
	r.recorder = record.New(record.Options{
		Open: func(ctx context.Context) (record.Store, error) { return r.log.open(ctx) }, Redact: record.NewRedactor(keep),
		Retention: cfg.Requests.Retention, MaxBytes: cfg.Requests.MaxSize, Logger: a.logger(cfg), Now: a.host.now,
	})
	return r
}

// close writes what waits.
func (r *recording) close() {
	r.stop()
	r.asides.Wait()
	if r.recorder != nil {
		ctx, cancel := context.WithTimeout(context.Background(), recordEndTime)
		defer cancel()
		r.recorder.Close(ctx)
	}
	r.log.close()
}

// observed is what is gathered of one request on its way.
type observed struct {
	// token is the name of the one that the client came in by.
	token string

	mu   sync.Mutex
	runs []graphRun
}

// graphRun is a hook graph that stood around the request.
type graphRun struct {
	program *hookgraph.Program
	outcome *hookgraph.Outcome
}

type observedKey struct{}

// Begin implements gateway.Observer.
func (r *recording) Begin(ctx context.Context, _ *gateway.Exchange) context.Context {
	o := &observed{}
	if holder := authn.HolderFrom(ctx); holder != nil {
		o.token = holder.Name
	}
	return context.WithValue(ctx, observedKey{}, o)
}

// noteGraph adds what a hook graph did to the request that ctx is of.
func noteGraph(ctx context.Context, p *hookgraph.Program, out *hookgraph.Outcome) {
	if o, ok := ctx.Value(observedKey{}).(*observed); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.runs = append(o.runs, graphRun{p, out})
	}
}

// End implements gateway.Observer.
func (r *recording) End(ctx context.Context, x *gateway.Exchange) {
	if r.recorder == nil {
		return
	}
	e := &record.Entry{
		ID: shortid.Timed("q_", x.Began), At: x.Began, User: x.Client.User, Client: x.Client.Client,
		Method: x.Method, Upstream: x.Upstream, Project: x.Project, Tool: x.Name, Status: record.Status(x.Outcome), Error: x.Error,
		MS: float64(x.Ended.Sub(x.Began).Microseconds()) / 1000, BytesIn: int64(len(x.Arguments)), BytesOut: int64(len(x.Result)),
	}
	if r.recorder.Bodies() {
		e.Arguments, e.Result = x.Arguments, x.Result
	}
	var runs []graphRun
	if o, ok := ctx.Value(observedKey{}).(*observed); ok {
		e.Token = o.token
		o.mu.Lock()
		runs = o.runs
		o.mu.Unlock()
	}
	// The graph nearest to the server was the first one to end.
	slices.Reverse(runs)
	for _, run := range runs {
		g := run.graph(run.outcome.Nodes())
		e.Graphs, e.Hooks = append(e.Graphs, g), append(e.Hooks, g.ID)
	}
	id := e.ID // the entry is the recorder's from here on
	pending := slices.ContainsFunc(e.Graphs, func(g record.Graph) bool {
		return slices.ContainsFunc(g.Nodes, func(n record.Node) bool { return n.Pending })
	})
	r.recorder.Add(e)
	if pending {
		r.asides.Go(func() { r.settle(id, runs) })
	}
}

// settle waits for the hooks that run aside, and has what they did written too.
func (r *recording) settle(id string, runs []graphRun) {
	ctx, cancel := context.WithTimeout(r.life, asideTime)
	defer cancel()
	graphs := make([]record.Graph, len(runs))
	for i, run := range runs {
		nodes, err := run.outcome.Settle(ctx)
		if err != nil {
			nodes = run.outcome.Nodes()
		}
		graphs[i] = run.graph(nodes)
	}
	r.recorder.Settle(id, graphs)
}

// graph is a run as the record has it.
func (g graphRun) graph(nodes []hookgraph.NodeTrace) record.Graph {
	of := g.program.Graph()
	out := record.Graph{ID: of.ID, Outcome: g.outcome.Status, Node: g.outcome.Node, Nodes: make([]record.Node, len(nodes))}
	for i, n := range nodes {
		out.Nodes[i] = record.Node{NodeTrace: n}
		at := slices.IndexFunc(of.Nodes, func(each hooks.Node) bool { return each.ID == n.ID })
		if at >= 0 && of.Nodes[at].Title() != n.ID {
			out.Nodes[i].Label = of.Nodes[at].Title()
		}
	}
	return out
}

// requestLog opens the record of requests when it is needed.
type requestLog struct {
	path string

	mu     sync.Mutex
	opened *requestlog.Log
}

// open opens the file, which it makes where there is none.
func (l *requestLog) open(ctx context.Context) (*requestlog.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		return l.opened, nil
	}
	opened, err := requestlog.Open(ctx, l.path)
	if err != nil {
		return nil, err
	}
	l.opened = opened
	return opened, nil
}

func (l *requestLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		_ = l.opened.Close() // what was written is there
	}
	l.opened = nil
}

// Reader implements httpapi.Requests.
func (r *recording) Reader(ctx context.Context) (record.Reader, error) { return r.log.read(ctx) }

// Recording implements httpapi.Requests.
func (r *recording) Recording() httpapi.Recording {
	if r.recorder == nil {
		return httpapi.Recording{}
	}
	return httpapi.Recording{On: true, Bodies: r.recorder.Bodies(), Error: r.recorder.Health().Error}
}

// read gives the record to look at; nil where there is none yet.
func (l *requestLog) read(ctx context.Context) (record.Reader, error) {
	if !requestlog.Exists(l.path) {
		return nil, nil
	}
	opened, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	return opened, nil
}
