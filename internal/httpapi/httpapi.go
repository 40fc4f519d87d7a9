// Package httpapi is the HTTP surface: the MCP endpoint and the JSON API
// behind the guard of Host and Origin and the bearer check, and the server
// that carries them.
package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
)

// Options are the parts of the surface.
type Options struct {
	// MCP serves /mcp; nil if there is no MCP endpoint.
	MCP http.Handler
	// Guard checks Host and Origin of every request; required.
	Guard *authn.Guard
	// Bearer checks the token on /mcp and /api; required.
	Bearer *authn.Bearer
}

// NewHandler makes the whole surface:
//
//	/mcp         the MCP endpoint, guarded, by token
//	/api/health  {"status":"ok"}, guarded, open: a status alone
//	/api/...     the JSON API, guarded, by token
//
// A guard or a bearer check that is missing is an error: nothing is served
// without them.
func NewHandler(opts Options) (http.Handler, error) {
	if opts.Guard == nil || opts.Bearer == nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "the HTTP surface needs a guard and a bearer check")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/health", health)
	mux.Handle("/api/", opts.Bearer.Handler(http.HandlerFunc(notFound)))
	mux.Handle("/api", opts.Bearer.Handler(http.HandlerFunc(notFound)))
	if opts.MCP != nil {
		mux.Handle("/mcp", opts.Bearer.Handler(opts.MCP))
	}
	mux.HandleFunc("/", notFound)
	return secure(opts.Guard.Handler(bodyDeadline(mux, bodyTime))), nil
}

func health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeError(w, http.StatusMethodNotAllowed,
			guideway.Errorf(guideway.CodeInvalid, "the method %s is not one of this path", r.Method).WithFix("use GET"))
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeError(w, http.StatusNotFound, guideway.Errorf(guideway.CodeNotFound, "there is nothing at this path").
		WithFix("the MCP endpoint is /mcp, the server's health /api/health"))
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

// errorBody is how every error of the API looks: {"error": {...}}.
type errorBody struct {
	Error struct {
		Code    guideway.Code `json:"code"`
		Message string        `json:"message"`
		Fix     string        `json:"fix,omitempty"`
	} `json:"error"`
}

func writeError(w http.ResponseWriter, status int, err *guideway.Error) {
	var body errorBody
	body.Error.Code, body.Error.Message, body.Error.Fix = err.Code, err.Message, err.Fix
	writeJSON(w, status, body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone; nobody is left to tell
}
