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

// open is the right that everybody has.
const open authn.Right = ""

// route is a row of the table.
type route struct {
	method, path string
	// right is what the caller must have.
	right  authn.Right
	handle handler
}

// routes is the table of the JSON API. What belongs to a part that is not there
// is left out.
func (a *api) routes() []route {
	parts := []struct {
		there bool
		rows  []route
	}{
		{true, []route{
			{"GET", "/api/health", open, func(*call) (any, error) { return json.RawMessage(`{"status":"ok"}` + "\n"), nil }},
			{"GET", "/api/openapi.json", authn.RightRead, a.openAPI},
			{"GET", "/api/me", authn.RightRead, a.me},
		}},
		{a.Browsers != nil, []route{{"POST", "/api/logout", authn.RightRead, a.logout}}},
		{a.Catalog != nil, a.workflowRoutes()},
		{a.Runs != nil, a.runRoutes()},
		{a.Machines != nil, a.machineRoutes()},
		{a.Sessions != nil, a.sessionRoutes()},
		{a.Hooks != nil, a.hookRoutes()},
		{a.Memory != nil, a.memoryRoutes()},
		{a.Requests != nil, a.requestRoutes()},
		{a.Upstreams != nil, a.upstreamRoutes()},
		{a.Tokens != nil, a.tokenRoutes()},
		{a.Feed != nil, []route{{"GET", "/api/events", authn.RightRead, a.events}}},
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
		{"GET", "/api/workflows", authn.RightRead, a.workflows},
		{"GET", "/api/workflows/{id}", authn.RightRead, a.workflow},
		{"GET", "/api/workflows/{id}/source", authn.RightRead, a.workflowSource},
		{"PUT", "/api/workflows/{id}/source", authn.RightWork, a.saveWorkflow},
		{"GET", "/api/schemas/{dialect}", authn.RightRead, a.schema},
		{"POST", "/api/validate", authn.RightWork, withBody(a.validate)},
		{"POST", "/api/try", authn.RightWork, withBody(a.try)},
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
		{"GET", "/api/projects", authn.RightRead, a.projects},
	}
}

// methods are the rows of one path.
type methods map[string]route

// mount puts the table and the pages into mux.
func (a *api) mount(mux *http.ServeMux) {
	byPath := map[string]methods{}
	for _, row := range a.routes() {
		if byPath[row.path] == nil {
			byPath[row.path] = methods{}
		}
		byPath[row.path][row.method] = row
	}
	guarded := http.NewServeMux()
	for path, rows := range byPath {
		if rows["GET"].right == open && rows["GET"].handle != nil {
			mux.Handle(path, a.dispatch(rows))
			continue
		}
		guarded.Handle(path, a.dispatch(rows))
	}
	guarded.HandleFunc("/", a.notFound)
	mux.Handle("/api/", a.authenticate(guarded))
	mux.Handle("/api", a.authenticate(guarded))
	if a.Browsers != nil {
		a.mountPages(mux)
	}
	mux.HandleFunc("/", a.notFound)
}

// plainPaths answers in JSON where http.ServeMux would redirect in HTML: paths
// with dots or doubled slashes are none of ours.
func (a *api) plainPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.EscapedPath()
		if plain := path.Clean(given); given != plain && given != plain+"/" {
			a.notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authenticate lets through who shows any credential of the API, and says in the
// request's context what it is good for.
func (a *api) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		grant, err := a.access.Check(r)
		if err != nil {
			if guideway.ErrorCode(err) == guideway.CodeUnauthorized {
				w.Header().Set("WWW-Authenticate", authn.Challenge(r))
			}
			a.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(authn.WithGrant(r.Context(), grant)))
	})
}

// dispatch answers one path: by the row of the method, if the caller has its
// right.
func (a *api) dispatch(rows methods) http.Handler {
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
				Error: "the method " + clip(r.Method) + " is not one of this path",
				Code:  guideway.CodeInvalid, Fix: "use " + list,
			})
			return
		}
		c := &call{Request: r, w: w, status: http.StatusOK}
		err := mayDo(c.authGrant(), row.right)
		if err == nil {
			var v any
			if v, err = row.handle(c); err == nil {
				err = c.writeAnswer(v)
			}
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// mayDo says why a grant is not enough.
func mayDo(g authn.Grant, right authn.Right) error {
	switch {
	case right == open || g.May(right):
		return nil
	case g.Proof == authn.ProofBrowser:
		return guideway.Errorf(guideway.CodeForbidden, "the request does not have this page's key in the header %s", authn.KeyHeader).
			WithFix("log this browser in at this address: guideway open")
	case right == authn.RightManage:
		return guideway.Errorf(guideway.CodeForbidden, "only a person changes what agents are let at").
			WithFix("use a browser that is logged in, or a token that guideway token create NAME --scope manage has made")
	default:
		return guideway.Errorf(guideway.CodeForbidden, "this token's scopes do not allow it").
			WithFix("use the token of /mcp, or a browser that is logged in")
	}
}

// me returns what the caller may do. The member person says that the caller's answer
// to a gate counts as a person's.
func (a *api) me(c *call) (any, error) {
	g := c.authGrant()
	return object{"user": g.Principal.User, "proof": g.Proof, "rights": g.Rights, "person": g.Person()}, nil
}

func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, http.StatusNotFound, Problem{
		Error: "Not found", Code: guideway.CodeNotFound, Path: clip(r.URL.Path),
		Fix: "the MCP endpoint is /mcp; /api/docs describes the API",
	})
}
