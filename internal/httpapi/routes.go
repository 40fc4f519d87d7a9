package httpapi

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
)

// open is the right that every caller has.
const open authn.Right = ""

// route is a row of the route table.
type route struct {
	method, path string
	// right is the right that the caller must have.
	right  authn.Right
	handle handler
}

// routeTable returns the routes of the JSON API. It omits the routes of parts that are nil.
func (a *api) routeTable() []route {
	parts := []struct {
		there bool
		rows  []route
	}{
		{true, []route{
			{"GET", "/api/health", open, func(*call) (any, error) { return json.RawMessage(`{"status":"ok"}` + "\n"), nil }},
			{"GET", "/api/openapi.json", authn.RightRead, a.openAPI},
			{"GET", "/api/me", authn.RightRead, a.getMe},
		}},
		{a.Browsers != nil, []route{{"POST", "/api/logout", authn.RightRead, a.postLogout}}},
		{a.Catalog != nil, a.workflowRoutes()},
		{a.Runs != nil, a.runRoutes()},
		{a.Machines != nil, a.machineRoutes()},
		{a.Sessions != nil, a.sessionRoutes()},
		{a.Hooks != nil, a.hookRoutes()},
		{a.Memory != nil, a.memoryRoutes()},
		{a.Requests != nil, a.requestRoutes()},
		{a.Upstreams != nil, a.upstreamRoutes()},
		{a.Tokens != nil, a.tokenRoutes()},
		{a.Feed != nil, []route{{"GET", "/api/events", authn.RightRead, a.streamEvents}}},
		{a.Feed != nil && a.Sessions != nil, []route{{"GET", "/api/sessions/{workflow}/{id}/stream", authn.RightRead, a.sessionStream}}},
		{a.CurrentProject != nil, []route{{"GET", "/api/current-project", authn.RightRead, a.currentProject}}},
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
		{"GET", "/api/catalog", authn.RightRead, a.catalogState},
		{"GET", "/api/workflows", authn.RightRead, a.listWorkflows},
		{"GET", "/api/workflows/{id}", authn.RightRead, a.getWorkflow},
		{"GET", "/api/workflows/{id}/source", authn.RightRead, a.workflowSource},
		{"PUT", "/api/workflows/{id}/source", authn.RightWork, a.saveWorkflow},
		{"GET", "/api/schemas/{dialect}", authn.RightRead, a.getSchema},
		{"POST", "/api/validate", authn.RightWork, withBody(a.validateText)},
		{"POST", "/api/try", authn.RightWork, withBody(a.tryMoves)},
	}
}

func (a *api) runRoutes() []route {
	return []route{
		{"GET", "/api/runs", authn.RightRead, a.listRuns},
		{"POST", "/api/runs", authn.RightWork, withBody(a.startRun)},
		{"GET", "/api/runs/search", authn.RightRead, a.searchRuns},
		{"GET", "/api/runs/{id}", authn.RightRead, a.getRun},
		{"GET", "/api/runs/{id}/definition", authn.RightRead, a.runDefinition},
		{"GET", "/api/runs/{id}/state", authn.RightRead, a.runState},
		{"GET", "/api/runs/{id}/export", authn.RightRead, a.exportRun},
		{"POST", "/api/runs/{id}/answer", authn.RightAnswer, withBody(a.answerGate)},
		{"POST", "/api/runs/{id}/abort", authn.RightWork, withBody(a.abortRun)},
		{"POST", "/api/runs/{id}/fork", authn.RightWork, withBody(a.forkRun)},
	}
}

func (a *api) sessionRoutes() []route {
	return []route{
		{"GET", "/api/sessions", authn.RightRead, a.listSessions},
		{"POST", "/api/sessions/bulk-delete", authn.RightWork, withBody(a.bulkDelete)},
		{"GET", "/api/sessions/{id}", authn.RightRead, a.getSession},
		{"GET", "/api/sessions/{workflow}/{id}", authn.RightRead, a.getSession},
		{"DELETE", "/api/sessions/{workflow}/{id}", authn.RightWork, a.deleteSession},
		{"POST", "/api/sessions/{workflow}/{id}/restore", authn.RightWork, a.restoreSession},
		{"GET", "/api/sessions/{workflow}/{id}/validation", authn.RightRead, a.sessionValidation},
		{"GET", "/api/projects", authn.RightRead, a.listProjects},
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

// rejectUncleanPaths answers paths with dots or double slashes with an error in JSON.
// http.ServeMux would redirect them in HTML.
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
			if guideway.ErrorCode(err) == guideway.CodeUnauthorized {
				w.Header().Set("WWW-Authenticate", authn.Challenge(r))
			}
			a.writeError(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(authn.WithGrant(r.Context(), grant)))
	})
}

// dispatchMethod serves one path: it calls the route of the method if the caller has its
// right.
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
		if err == nil {
			var v any
			if v, err = row.handle(c); err == nil {
				err = c.writeAnswer(v)
			}
		}
		if err != nil {
			a.writeError(w, r, err)
		}
	})
}

// checkRight returns the reason why a grant is not sufficient.
func checkRight(g authn.Grant, right authn.Right) error {
	switch {
	case right == open || g.May(right):
		return nil
	case g.Proof == authn.ProofBrowser:
		return guideway.Errorf(guideway.CodeForbidden, "the request lacks this page's key in the header %s", authn.KeyHeader).
			WithFix("log this browser in at this address: guideway open")
	case right == authn.RightManage:
		return guideway.Errorf(guideway.CodeForbidden, "only a person can change what agents may use").
			WithFix("use a browser that is logged in, or a token that was created with guideway token create NAME --scope manage")
	default:
		return guideway.Errorf(guideway.CodeForbidden, "this token's scopes do not allow it").
			WithFix("use the token of /mcp, or a browser that is logged in")
	}
}

// getMe returns the rights of the caller. The member person reports whether the caller's
// answer to a gate counts as a person's.
func (a *api) getMe(c *call) (any, error) {
	g := c.authGrant()
	return object{"user": g.Principal.User, "proof": g.Proof, "rights": g.Rights, "person": g.Person()}, nil
}

func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, http.StatusNotFound, Problem{
		Error: "Not found", Code: guideway.CodeNotFound, Path: clipText(r.URL.Path),
		Fix: "the MCP endpoint is /mcp; /api/docs describes the API",
	})
}
