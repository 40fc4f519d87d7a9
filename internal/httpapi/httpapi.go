// Package httpapi is the HTTP interface: the MCP endpoint, the JSON API with its event
// streams, the login of a person, the dashboard, and the server itself. openapi.yaml
// describes the API; a test checks every route and every answer against it.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// Options are the parts of the HTTP interface. The routes of a part that is nil do not
// exist.
type Options struct {
	// MCP serves /mcp.
	MCP http.Handler
	// Guard checks Host and Origin of every request; required.
	Guard *auth.Guard
	// Bearer checks the token on /mcp and /api; required.
	Bearer *auth.Bearer
	// Browsers keeps the logins of browsers. If it is nil, there are no pages.
	Browsers *auth.BrowserSessions
	// Tokens checks named tokens.
	Tokens *auth.Tokens
	// Identities logs browsers in through an identity provider. It requires Browsers, and may
	// be nil.
	Identities auth.Identities
	// AccessTokens checks the access tokens of the identity provider at /mcp. It may be nil.
	AccessTokens auth.AccessTokens

	// Audit is the audit log. It may be nil.
	Audit AuditLog

	// Catalog holds the workflows.
	Catalog Catalog
	// Registry serves the catalog to other servers that follow it. It may be nil.
	Registry http.Handler
	// Runs holds the durable runs.
	Runs *run.Service
	// Sessions holds the session documents. The API reads, deletes and restores them; only
	// agents write them, over MCP.
	Sessions session.Store
	// Hooks holds the hook graphs.
	Hooks *hookadmin.Service
	// Memory holds the checkpoints and the contexts of runs. The API only reads them:
	// agents save and load them over MCP, and a person on the command line.
	Memory *contexts.Service
	// Requests holds the log of requests to upstreams.
	Requests Requests
	// Calls holds the held calls.
	Calls *holds.Store
	// Upstreams are the configured MCP servers, whether the gateway is on or off.
	Upstreams *gatewayadmin.Service
	// Metrics are served at /metrics.
	Metrics Metrics
	// Machines are agent machines and their runs.
	Machines Machines
	// ForwardTo sends a request to another instance of the deployment, or calls missing. It is
	// nil for a single instance. Instance is the id of this one.
	ForwardTo func(w http.ResponseWriter, r *http.Request, instance string, missing func(http.ResponseWriter))
	Instance  string
	// Feed reports changes of runs and session documents.
	Feed run.Feed
	// UI is the built dashboard: index.html, icon.svg and the folder assets. Without it the
	// pages explain that it is missing.
	UI fs.FS
	// PublicURL is the URL of this server for people, or "": the address of each request.
	PublicURL string
	// CheckReady returns nil if the server can serve requests: its store answers and its keys
	// fit.
	CheckReady func(context.Context) error
	// CurrentProject returns the project in which this server was started.
	CurrentProject func(context.Context) run.Project

	// Logger logs internal errors. Nil logs nothing.
	Logger *slog.Logger
	// Now is the clock. Nil is the system clock.
	Now func() time.Time
}

// Catalog is the part of the catalog that the API uses.
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

// api serves the routes.
type api struct {
	Options
	access  *auth.Access
	streams *streams
	// refusals bounds the audited refusals.
	refusals refusalLimit
	ready    readiness
	// document returns the OpenAPI document. It is built at the first request, so that it
	// does not delay the start.
	document func() (json.RawMessage, error)
	// writing serializes writes of definitions.
	writing sync.Mutex
}

// NewHandler returns a handler for all routes. Each of them is guarded:
//
//	/mcp         the MCP endpoint, with its token or a client's own
//	/metrics     metrics for Prometheus, with the right to read the API
//	/api/health, /api/ready
//	             whether the process lives, and whether it can serve; open to all
//	/registry/...
//	             the catalog for servers that follow it, with a token
//	/api/...     the JSON API, with a token or a logged in browser
//	/api/docs    the OpenAPI document as a page, with the right to read the API
//	/login/...   a link that logs a browser in, and the login through an identity provider
//	/.well-known/oauth-protected-resource
//	             the identity provider of /mcp, for OAuth clients
//	/, /runs, ..., /assets/...
//	             the dashboard, which contains no data
//
// It returns an error if the guard or the bearer check is missing. It does no I/O.
func NewHandler(opts Options) (http.Handler, error) {
	if opts.Guard == nil || opts.Bearer == nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "the HTTP handler requires a guard and a bearer check")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	a := &api{
		Options: opts,
		access:  &auth.Access{Bearer: opts.Bearer, Browsers: opts.Browsers, Tokens: opts.Tokens},
		streams: newStreams(), document: sync.OnceValues(openAPIJSON),
	}
	mux := http.NewServeMux()
	a.mountRoutes(mux)
	if opts.Metrics != nil {
		mux.Handle("/metrics", a.requireCredential(a.dispatchMethod(methods{"GET": {"GET", "/metrics", auth.RightRead, a.getMetrics}})))
	}
	if opts.Registry != nil {
		a.mountRegistry(mux)
	}
	if opts.MCP != nil {
		door := &auth.Authenticator{Bearer: opts.Bearer, Tokens: opts.Tokens, AccessTokens: opts.AccessTokens, Now: opts.Now, Refused: a.recordRefusal}
		mux.Handle("/mcp", door.Handler(opts.MCP))
		if opts.AccessTokens != nil {
			describe := a.dispatchMethod(methods{"GET": {handle: a.describeResource}})
			mux.Handle(auth.MetadataPath, describe)
			mux.Handle(auth.MetadataPath+"/", describe)
		}
	}
	return setSecurityHeaders(opts.Guard.Handler(bodyDeadline(a.rejectUncleanPaths(setPublicURL(mux, opts.PublicURL)), bodyTime))), nil
}

// setPublicURL makes a URL the address of the server in links, if it is not empty.
func setPublicURL(next http.Handler, url string) http.Handler {
	if url == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(auth.WithPublicURL(r.Context(), url)))
	})
}

// setSecurityHeaders sets headers that stop a browser from reinterpreting an answer. It
// runs before the guard, so that refusals have the headers too.
func setSecurityHeaders(next http.Handler) http.Handler {
	headers := http.Header{}
	headers.Set("X-Content-Type-Options", "nosniff")
	headers.Set("X-Frame-Options", "DENY")
	headers.Set("Referrer-Policy", "no-referrer")
	headers.Set("Cross-Origin-Resource-Policy", "same-origin")
	headers.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), headers)
		next.ServeHTTP(w, r)
	})
}

const (
	// headerTime is the time limit for reading the headers of a request, and bodyTime for
	// reading its body. Answers have no limit, because they may be streams.
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	// idleTime is the maximum idle time of a connection.
	idleTime = 2 * time.Minute
	// maxHeaderBytes is the maximum size of a request's headers.
	maxHeaderBytes = 64 << 10
	// shutdownTime is the time limit for answers in progress after ctx is done.
	shutdownTime = 500 * time.Millisecond
)

// Serve serves handler on listener until ctx is done, and then returns nil within a second.
// GET requests, which include streams, end immediately; other answers get half a second;
// then the remaining connections are closed. Serve closes the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	srv := &http.Server{
		Handler:           endStreams(ctx, handler),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return guideway.Errorf(guideway.CodeUnavailable, "serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // Close closes the remaining connections.
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return guideway.Errorf(guideway.CodeUnavailable, "serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

// endStreams cancels GET requests when ctx is done. Streams are GET requests, and no GET
// request changes anything.
func endStreams(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		streamCtx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
		next.ServeHTTP(w, r.WithContext(streamCtx))
	})
}

// bodyDeadline ends a request whose body is too slow. The server's ReadTimeout would also
// end slow answers.
func bodyDeadline(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			rc := http.NewResponseController(w)
			// Only response writers in tests do not support deadlines.
			if rc.SetReadDeadline(time.Now().Add(limit)) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, rc: rc}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody removes the deadline after the body has been read.
type timedBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// registryPath is the path of the registry.
const registryPath = "/registry"

// mountRegistry adds the registry to mux for callers with the right to it.
func (a *api) mountRegistry(mux *http.ServeMux) {
	below := http.StripPrefix(registryPath, a.Registry)
	guarded := a.requireCredential(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !auth.GrantFrom(r.Context()).May(auth.RightRegistry):
			a.writeError(w, r, guideway.Errorf(guideway.CodeForbidden, "this token cannot read the registry").
				WithFix("use a token that was created with guideway token create NAME --scope registry"))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			a.writeError(w, r, guideway.Errorf(guideway.CodeInvalid, "the registry is read-only").WithFix("use the method GET or HEAD"))
		default:
			below.ServeHTTP(w, r)
		}
	}))
	mux.Handle(registryPath+"/", guarded)
	mux.Handle(registryPath, guarded)
}

// Metrics writes the metrics.
type Metrics interface {
	// Metrics writes all metrics in the text format of Prometheus.
	Metrics(w io.Writer) error
}

// getMetrics answers /metrics. The metrics name upstreams and tools, so the route requires
// RightRead.
func (a *api) getMetrics(c *call) (any, error) {
	var text bytes.Buffer
	if err := a.Metrics.Metrics(&text); err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(text.Bytes()) // The reader may have disconnected.
	return responseWritten{}, nil
}
