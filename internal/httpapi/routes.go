package httpapi

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// open is the right that every caller has.
const open auth.Right = ""

// route is a row of the route table.
type route struct {
	method, path string
	// right is the right that the caller must have.
	right  auth.Right
	handle handler
}

// routeTable returns the routes of the JSON API. It omits the routes of parts that are nil.
func (a *api) routeTable() []route {
	parts := []struct {
		there bool
		rows  []route
	}{
		{true, []route{
			{"GET", "/api/health", open, a.getHealth},
			{"GET", "/api/ready", open, a.getReady},
			{"GET", "/api/openapi.json", auth.RightRead, a.openAPI},
			{"GET", "/api/me", auth.RightRead, a.getMe},
		}},
		{a.Browsers != nil, []route{{"POST", "/api/logout", auth.RightRead, a.postLogout}}},
		{a.Catalog != nil, a.workflowRoutes()},
		{a.Runs != nil, a.runRoutes()},
		{a.Machines != nil, a.machineRoutes()},
		{a.Sessions != nil, a.sessionRoutes()},
		{a.Hooks != nil, a.hookRoutes()},
		{a.Memory != nil, a.memoryRoutes()},
		{a.Requests != nil, a.requestRoutes()},
		{a.Calls != nil, a.callRoutes()},
		{a.Upstreams != nil, a.upstreamRoutes()},
		{a.Tokens != nil, a.tokenRoutes()},
		{a.Audit != nil, a.auditRoutes()},
		{a.Feed != nil, []route{{"GET", "/api/events", auth.RightRead, a.streamEvents}}},
		{a.Feed != nil && a.Sessions != nil, []route{{"GET", "/api/sessions/{workflow}/{id}/stream", auth.RightRead, a.sessionStream}}},
		{a.CurrentProject != nil, []route{{"GET", "/api/current-project", auth.RightRead, a.currentProject}}},
	}
	var table []route
	for _, part := range parts {
		if part.there {
			table = append(table, part.rows...)
		}
	}
	return table
}

func (a *api) workflowRoutes() []route {
	return []route{
		{"GET", "/api/catalog", auth.RightRead, a.catalogState},
		{"GET", "/api/workflows", auth.RightRead, a.listWorkflows},
		{"GET", "/api/workflows/{id}", auth.RightRead, a.getWorkflow},
		{"GET", "/api/workflows/{id}/source", auth.RightRead, a.workflowSource},
		{"PUT", "/api/workflows/{id}/source", auth.RightDefine, a.saveWorkflow},
		{"GET", "/api/schemas/{dialect}", auth.RightRead, a.getSchema},
		{"POST", "/api/validate", auth.RightWork, withBody(a.validateText)},
		{"POST", "/api/try", auth.RightWork, withBody(a.tryMoves)},
	}
}

func (a *api) runRoutes() []route {
	return []route{
		{"GET", "/api/runs", auth.RightRead, a.listRuns},
		{"POST", "/api/runs", auth.RightWork, withBody(a.startRun)},
		{"GET", "/api/runs/search", auth.RightRead, a.searchRuns},
		{"GET", "/api/runs/{id}", auth.RightRead, a.getRun},
		{"GET", "/api/runs/{id}/definition", auth.RightRead, a.runDefinition},
		{"GET", "/api/runs/{id}/state", auth.RightRead, a.runState},
		{"GET", "/api/runs/{id}/export", auth.RightRead, a.exportRun},
		{"POST", "/api/runs/{id}/answer", auth.RightAnswer, withBody(a.answerGate)},
		{"POST", "/api/runs/{id}/abort", auth.RightWork, withBody(a.abortRun)},
		{"POST", "/api/runs/{id}/fork", auth.RightWork, withBody(a.forkRun)},
	}
}

func (a *api) sessionRoutes() []route {
	return []route{
		{"GET", "/api/sessions", auth.RightRead, a.listSessions},
		{"POST", "/api/sessions/bulk-delete", auth.RightWork, withBody(a.bulkDelete)},
		{"GET", "/api/sessions/{id}", auth.RightRead, a.getSession},
		{"GET", "/api/sessions/{workflow}/{id}", auth.RightRead, a.getSession},
		{"DELETE", "/api/sessions/{workflow}/{id}", auth.RightWork, a.deleteSession},
		{"POST", "/api/sessions/{workflow}/{id}/restore", auth.RightWork, a.restoreSession},
		{"GET", "/api/sessions/{workflow}/{id}/validation", auth.RightRead, a.sessionValidation},
		{"GET", "/api/projects", auth.RightRead, a.listProjects},
	}
}

// methods are the routes of one path by method.
type methods map[string]route

// mountRoutes adds the routes and the pages to mux.
func (a *api) mountRoutes(mux *http.ServeMux) {
	byPath := map[string]methods{}
	for _, row := range a.routeTable() {
		if byPath[row.path] == nil {
			byPath[row.path] = methods{}
		}
		byPath[row.path][row.method] = row
	}
	guarded := http.NewServeMux()
	for path, rows := range byPath {
		if rows["GET"].right == open && rows["GET"].handle != nil {
			mux.Handle(path, a.dispatchMethod(rows))
			continue
		}
		guarded.Handle(path, a.dispatchMethod(rows))
	}
	guarded.HandleFunc("/", a.notFound)
	mux.Handle("/api/", a.requireCredential(guarded))
	mux.Handle("/api", a.requireCredential(guarded))
	if a.Browsers != nil {
		a.mountPages(mux)
	}
	mux.HandleFunc("/", a.notFound)
}

// rejectUncleanPaths answers paths with dot segments or double slashes with an error in
// JSON. http.ServeMux would redirect them in HTML.
func (a *api) rejectUncleanPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.EscapedPath()
		if plain := path.Clean(given); given != plain && given != plain+"/" {
			a.notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// requireCredential lets requests with any credential of the API pass, and adds the
// credential's grant to the request's context.
func (a *api) requireCredential(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		grant, err := a.access.Check(r)
		if err != nil {
			a.recordRefusal(r, err)
			if guideway.ErrorCode(err) == guideway.CodeUnauthorized {
				w.Header().Set("WWW-Authenticate", auth.Challenge(r))
			}
			a.writeError(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(auth.WithGrant(r.Context(), grant)))
	})
}

// dispatchMethod serves one path: it calls the route of the method if the caller has the
// right that the route requires.
func (a *api) dispatchMethod(rows methods) http.Handler {
	allowed := make([]string, 0, len(rows)+1)
	for method := range rows {
		allowed = append(allowed, method)
	}
	if _, ok := rows[http.MethodGet]; ok {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		row, ok := rows[method]
		if !ok {
			w.Header().Set("Allow", list)
			writeProblem(w, http.StatusMethodNotAllowed, Problem{
				Error: "the method " + clipText(r.Method) + " is not allowed at this path",
				Code:  guideway.CodeInvalid, Fix: "use " + list,
			})
			return
		}
		c := &call{Request: r, w: w, status: http.StatusOK}
		err := checkRight(c.authGrant(), row.right)
		if err != nil {
			a.recordRefusal(r, err)
		} else {
			var v any
			if v, err = row.handle(c); err == nil {
				a.recordRoute(c, row)
				err = c.writeAnswer(v)
			}
		}
		if err != nil {
			a.writeError(w, r, err)
		}
	})
}

// checkRight returns the reason why a grant does not include a right, or nil.
func checkRight(g auth.Grant, right auth.Right) error {
	switch {
	case right == open || g.May(right):
		return nil
	case g.Proof == auth.ProofBrowser && g.Principal.Roles != nil && g.May(auth.RightTokens):
		return guideway.Errorf(guideway.CodeForbidden, "the roles of the user %q (%s) do not allow this", g.Principal.User, joinRoles(g.Principal.Roles)).
			WithFix("ask the administrator of this server")
	case g.Proof == auth.ProofBrowser:
		return guideway.Errorf(guideway.CodeForbidden, "the request does not come from a page of this server").
			WithFix("use the pages of this server: guideway open")
	case right == auth.RightRead:
		return guideway.Errorf(guideway.CodeForbidden, "this token cannot read from the API").
			WithFix("use a token that was created with guideway token create NAME --scope read")
	case right == auth.RightContents:
		return guideway.Errorf(guideway.CodeForbidden, "this token cannot read contexts, checkpoints, the bodies of requests or the arguments of held calls").
			WithFix("use a token that was created with guideway token create NAME --scope contents")
	case right == auth.RightAnswer:
		return guideway.Errorf(guideway.CodeForbidden, "this token cannot answer for a person").
			WithFix("use a browser that is logged in (guideway open), or a token that was created with guideway token create NAME --scope approve")
	case right == auth.RightManage, right == auth.RightTokens, right == auth.RightLogin:
		return guideway.Errorf(guideway.CodeForbidden, "this token cannot manage upstreams and tokens").
			WithFix("use a browser that is logged in (guideway open), or a token that was created with guideway token create NAME --scope manage")
	default:
		return guideway.Errorf(guideway.CodeForbidden, "this token cannot change runs, session documents or definitions, or try definitions: no scope of a named token allows it").
			WithFix("use a browser that is logged in (guideway open), or the bearer token of this server; guideway doctor shows the path of its file")
	}
}

// joinRoles returns roles as a text.
func joinRoles(roles []guideway.Role) string {
	return strings.Join(lists.Map(roles, func(r guideway.Role) string { return string(r) }), ", ")
}

// getHealth reports that the process lives. If the request has a challenge, it also returns the
// proof that this server has the token.
func (a *api) getHealth(c *call) (any, error) {
	challenge := c.URL.Query().Get("challenge")
	if challenge == "" {
		return json.RawMessage(`{"status":"ok"}` + "\n"), nil
	}
	local, _ := c.Context().Value(http.LocalAddrContextKey).(net.Addr)
	proof, err := a.Bearer.Prove(challenge, local)
	if err != nil {
		return nil, err
	}
	return object{"status": "ok", "proof": proof}, nil
}

// getMe returns the rights of the caller. The member person reports whether the caller's
// answer to a gate counts as a person's.
func (a *api) getMe(c *call) (any, error) {
	g, roles := c.authGrant(), []guideway.Role{}
	for _, role := range guideway.Roles() {
		if g.Principal.Has(role) {
			roles = append(roles, role)
		}
	}
	return object{"user": g.Principal.User, "proof": g.Proof, "rights": g.Rights, "roles": roles, "person": g.Person()}, nil
}

func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, http.StatusNotFound, Problem{
		Error: "Not found", Code: guideway.CodeNotFound, Path: clipText(r.URL.Path),
		Fix: "the MCP endpoint is /mcp; /api/docs describes the API",
	})
}

const (
	// readyInterval is the minimum time between two checks, because anyone may ask.
	readyInterval = time.Second
	// readyTime is the time limit of a check.
	readyTime = 2 * time.Second
)

// readiness is the result of the last check whether the server can serve requests.
type readiness struct {
	mu      sync.Mutex
	checked time.Time
	err     error
}

// getReady reports whether the server can serve requests. The reason is in the log alone.
func (a *api) getReady(c *call) (any, error) {
	if a.checkReady(c.Context()) != nil {
		c.status = http.StatusServiceUnavailable
		return json.RawMessage(`{"status":"unavailable"}` + "\n"), nil
	}
	return json.RawMessage(`{"status":"ready"}` + "\n"), nil
}

// checkReady checks the server, unless it was checked recently.
func (a *api) checkReady(ctx context.Context) error {
	r := &a.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.CheckReady == nil || !r.checked.IsZero() && time.Since(r.checked) < readyInterval {
		return r.err
	}
	// The result is for all callers, so a caller that disconnects does not end the check.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer cancel()
	before := r.err
	r.err, r.checked = a.CheckReady(ctx), time.Now()
	if r.err != nil && before == nil {
		a.Logger.Warn("the server cannot serve requests", "error", r.err)
	}
	return r.err
}
