// Package httpapi is the HTTP surface: the MCP endpoint, the JSON API with its
// streams of changes, the person's login, the dashboard, and the server that
// carries them. openapi.yaml describes the API; a test holds every route and
// every answer against it.
package httpapi

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/memory"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// Options are the parts of the surface. Where a part is nil its routes are not
// there.
type Options struct {
	// MCP serves /mcp.
	MCP http.Handler
	// Guard checks Host and Origin of every request; required.
	Guard *authn.Guard
	// Bearer checks the token on /mcp and /api; required.
	Bearer *authn.Bearer
	// Browsers lets a person's browser in; without it there are no pages.
	Browsers *authn.Browsers
	// Tokens lets named tokens in.
	Tokens *authn.Tokens

	// Catalog has the workflows.
	Catalog Catalog
	// Registry serves the catalog to others who follow it; nil does not.
	Registry http.Handler
	// Runs are the durable runs.
	Runs Runs
	// Sessions are the session documents.
	Sessions Sessions
	// Hooks has the hook graphs.
	Hooks Hooks
	// Memory has the checkpoints, and what is known of the contexts of runs.
	Memory Memory
	// Requests is the record of requests to upstreams.
	Requests Requests
	// Upstreams are the MCP servers behind the gateway, whether it is on or not.
	Upstreams Upstreams
	// Metrics are counted for /metrics.
	Metrics Metrics
	// Machines are agent machines and their runs.
	Machines Machines
	// Feed tells of changes of runs and sessions.
	Feed Feed
	// UI is the build of the dashboard: index.html, icon.svg and the folder assets.
	// Without it the pages say so.
	UI fs.FS
	// CurrentProject says which project this server was started in.
	CurrentProject func(context.Context) run.Project

	// Logger gets what goes wrong inside; nil logs nothing.
	Logger *slog.Logger
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Catalog is what the API needs of the catalog.
type Catalog interface {
	List(catalog.Filter) []*catalog.Entry
	Get(id string) (*catalog.Opened, error)
	Sources() []catalog.SourceStatus
	Diagnostics() []guideway.Diagnostic
	// Load reads the sources again.
	Load(context.Context) error
	// OnChange calls f after every change until cancel is called.
	OnChange(f func(catalog.Change)) (cancel func())
}

// Runs is what the API needs of the run service.
type Runs interface {
	Start(context.Context, run.Caller, run.StartRequest) (*run.Answer, error)
	Answer(context.Context, run.Caller, run.AnswerRequest) (*run.Answer, error)
	Fork(context.Context, run.Caller, run.ForkRequest) (*run.Answer, error)
	Abort(context.Context, run.Caller, run.AbortRequest) (*run.Answer, error)
	Resume(context.Context, run.Caller, run.ResumeRequest) ([]run.Candidate, error)
	List(context.Context, run.Caller, run.Filter) ([]run.Record, error)
	State(context.Context, run.Caller, run.Ref) (*guide.StateDocument, error)
	Look(context.Context, run.Caller, run.Ref) (*run.Details, error)
	Events(ctx context.Context, c run.Caller, r run.Ref, after int64, limit int) ([]run.Event, error)
	Export(context.Context, run.Caller, run.Ref) ([]byte, error)
}

// Sessions is what the API needs of session documents. It reads, deletes and
// restores; to write one is an agent's, over MCP.
type Sessions interface {
	Documents(context.Context, session.Filter) ([]session.Document, error)
	Summaries(context.Context, session.Filter) ([]session.Summary, error)
	DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error
	RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error
	ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error)
	Projects(ctx context.Context, user string) ([]session.ProjectSummary, error)
}

// Memory is what the API needs of checkpoints and contexts. It reads alone: to save
// and to load is an agent's, over MCP, or a person's at the command line.
type Memory interface {
	List(context.Context, run.Caller, checkpoint.ListRequest) (*memory.Page, error)
	Get(ctx context.Context, c run.Caller, id string) (checkpoint.Record, error)
	Show(ctx context.Context, c run.Caller, id string) (*memory.Loaded, error)
	Diff(ctx context.Context, c run.Caller, from, to string) (*checkpoint.Difference, error)
	Layers(context.Context, run.Caller, run.Ref) (*memory.Layers, error)
	Health() memory.Health
}

// Feed is what the API needs of the journal's feed. See run.Feed.
type Feed interface {
	Changes(ctx context.Context, after int64, limit int) (list []run.Change, reset bool, err error)
	Latest(ctx context.Context) (int64, error)
	Watch(ctx context.Context) <-chan struct{}
}

var (
	_ Catalog  = (*catalog.Catalog)(nil)
	_ Runs     = (*run.Service)(nil)
	_ Sessions = session.Store(nil)
	_ Memory   = (*memory.Service)(nil)
	_ Feed     = run.Feed(nil)
)

// api is the surface at work.
type api struct {
	Options
	access  *authn.Access
	streams *streams
	// document is the OpenAPI document. It is made when somebody asks for it,
	// so that nothing waits for it at the start.
	document func() (json.RawMessage, error)
	// writing lets one document be written at a time.
	writing sync.Mutex
}

// NewHandler makes the whole surface:
//
//	/mcp         the MCP endpoint, guarded, by its token or a client's own
//	/metrics     figures for Prometheus, guarded, by whoever may read the API
//	/api/health  {"status":"ok"}, guarded, open: a status alone
//	/registry/...
//	             the catalog for others who follow it, by token, guarded
//	/api/...     the JSON API, guarded, by token or a logged in browser
//	/api/docs    the OpenAPI document as a page, for whoever may read the API, guarded
//	/login/...   where a link logs a browser in, guarded
//	/, /runs, ..., /assets/...
//	             the dashboard, without data of its own, guarded
//
// A guard or a bearer check that is missing is an error: nothing is served
// without them. It does no I/O.
func NewHandler(opts Options) (http.Handler, error) {
	if opts.Guard == nil || opts.Bearer == nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "the HTTP surface needs a guard and a bearer check")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	a := &api{
		Options: opts,
		access:  &authn.Access{Bearer: opts.Bearer, Browsers: opts.Browsers, Tokens: opts.Tokens},
		streams: newStreams(), document: sync.OnceValues(openAPIJSON),
	}
	mux := http.NewServeMux()
	a.mount(mux)
	if opts.Metrics != nil {
		mux.Handle("/metrics", a.authenticate(a.dispatch(methods{"GET": {"GET", "/metrics", authn.RightRead, a.metrics}})))
	}
	if opts.Registry != nil {
		a.mountRegistry(mux)
	}
	if opts.MCP != nil {
		door := &authn.Door{Bearer: opts.Bearer, Tokens: opts.Tokens}
		mux.Handle("/mcp", door.Handler(opts.MCP))
	}
	return secure(opts.Guard.Handler(bodyDeadline(a.plainPaths(mux), bodyTime))), nil
}

// secure sets the headers that keep a browser from making more of an answer
// than it is. They come before the guard, so that its refusals have them too.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}
