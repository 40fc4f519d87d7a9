package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

const (
	// sessionLimit bounds a list of documents by default, maxSessionLimit in
	// any case.
	sessionLimit    = 200
	maxSessionLimit = 1_000
	// bulkLimit bounds what is deleted at once.
	bulkLimit = 500
)

// sessionSummary is a document in a list: of the data, what a list shows.
type sessionSummary struct {
	ID          string    `json:"id"`
	WorkflowID  string    `json:"workflowId"`
	ProjectID   string    `json:"projectId"`
	ProjectPath string    `json:"projectPath"`
	Created     time.Time `json:"createdAt"`
	Updated     time.Time `json:"updatedAt"`
	Revision    int64     `json:"revision"`
	// URL is the document's page.
	URL  string           `json:"url"`
	Data sessionDashboard `json:"data"`
}

type sessionDashboard struct {
	Dashboard json.RawMessage `json:"dashboard,omitempty"`
}

func summarise(d session.Summary) sessionSummary {
	return sessionSummary{
		ID: d.ID, WorkflowID: d.Workflow, ProjectID: d.Project, ProjectPath: d.ProjectPath,
		Created: d.Created, Updated: d.Updated, Revision: d.Revision,
		URL:  "/dashboard/" + url.PathEscape(d.ID) + "?" + url.Values{"workflow": {d.Workflow}, "project": {d.Project}}.Encode(),
		Data: sessionDashboard{d.Dashboard},
	}
}

// fullSession is a whole document.
type fullSession struct {
	ID          string         `json:"id"`
	WorkflowID  string         `json:"workflowId"`
	ProjectID   string         `json:"projectId"`
	ProjectPath string         `json:"projectPath"`
	Created     time.Time      `json:"createdAt"`
	Updated     time.Time      `json:"updatedAt"`
	Revision    int64          `json:"revision"`
	Data        map[string]any `json:"data"`
}

func full(d session.Document) fullSession {
	if d.Data == nil {
		d.Data = map[string]any{}
	}
	return fullSession{d.ID, d.Workflow, d.Project, d.ProjectPath, d.Created, d.Updated, d.Revision, d.Data}
}

// clock is the time as stores keep it.
func (a *api) clock() time.Time { return a.Now().UTC().Truncate(time.Microsecond) }

func user(r *http.Request) string { return authn.GrantFrom(r.Context()).Principal.User }

func (a *api) listSessions(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	filter := session.Filter{
		Ref:   session.Ref{User: user(r), Project: q.text("project"), Workflow: q.text("workflow")},
		Limit: int(q.number("limit", sessionLimit, 1, maxSessionLimit)),
	}
	if q.err != nil {
		return q.err
	}
	docs, err := a.Sessions.Summaries(r.Context(), filter)
	if err != nil {
		return err
	}
	type list struct {
		Success bool `json:"success"`
		Count   int  `json:"count"`
		// Unified says that the documents of all projects are there.
		Unified  bool             `json:"unified"`
		Sessions []sessionSummary `json:"sessions"`
	}
	all := list{Success: true, Count: len(docs), Unified: filter.Ref.Project == "", Sessions: make([]sessionSummary, len(docs))}
	for i, d := range docs {
		all.Sessions[i] = summarise(d)
	}
	answer(w, http.StatusOK, all)
	return nil
}

// find gives the name of the one document that a request names by its id, by the
// workflow where the path has it, and by the project where the parameter project
// has it.
func (a *api) find(r *http.Request) (session.Ref, error) {
	return a.findNamed(r.Context(), session.Ref{
		User: user(r), Project: r.URL.Query().Get("project"), Workflow: r.PathValue("workflow"), ID: r.PathValue("id"),
	})
}

func (a *api) findNamed(ctx context.Context, ref session.Ref) (session.Ref, error) {
	const most = 20
	var docs []session.Summary
	if named(ref) {
		var err error
		if docs, err = a.Sessions.Summaries(ctx, session.Filter{Ref: ref, Limit: most}); err != nil {
			return session.Ref{}, err
		}
	}
	switch len(docs) {
	case 0:
		return session.Ref{}, noSession(ref)
	case 1:
		return docs[0].Ref, nil
	}
	workflows := map[string]bool{}
	for _, d := range docs {
		workflows[d.Workflow] = true
	}
	several := &ambiguous{}
	for _, d := range docs {
		path := sessionPath(d.Ref)
		if len(workflows) < len(docs) {
			path += "?project=" + url.QueryEscape(d.Project)
		}
		several.candidates = append(several.candidates, path)
	}
	several.err = guideway.Errorf(guideway.CodeConflict, "%d sessions have the id %q", len(docs), clip(ref.ID)).
		WithFix("ask for /api/sessions/:workflow/:id, such as %s", several.candidates[0])
	return session.Ref{}, several
}

// wholeSession reads the document that a request names.
func (a *api) wholeSession(r *http.Request) (session.Document, error) {
	ref, err := a.find(r)
	if err != nil {
		return session.Document{}, err
	}
	return a.read(r.Context(), ref)
}

// read reads the document of a whole name.
func (a *api) read(ctx context.Context, ref session.Ref) (session.Document, error) {
	docs, err := a.Sessions.Documents(ctx, session.Filter{Ref: ref, Limit: 1})
	if err != nil {
		return session.Document{}, err
	}
	if len(docs) == 0 {
		return session.Document{}, noSession(ref)
	}
	return docs[0], nil
}

func noSession(ref session.Ref) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no session %q", clip(ref.ID)).
		WithFix("GET /api/sessions lists those that there are")
}

// named tells whether a reference can be one to a document: the parts come from
// a URL, where anything can stand.
func named(ref session.Ref) bool {
	text := ref.Project + ref.Workflow + ref.ID
	return ref.ID != "" && len(text) < 1<<10 && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func sessionPath(ref session.Ref) string {
	return "/api/sessions/" + url.PathEscape(ref.Workflow) + "/" + url.PathEscape(ref.ID)
}

func (a *api) getSession(w http.ResponseWriter, r *http.Request) error {
	doc, err := a.wholeSession(r)
	if err != nil {
		return err
	}
	type one struct {
		Success bool        `json:"success"`
		Session fullSession `json:"session"`
	}
	answer(w, http.StatusOK, one{true, full(doc)})
	return nil
}

// deletion says what was deleted, and how to have it back.
type deletion struct {
	Success bool        `json:"success"`
	Deleted session.Ref `json:"deleted"`
	// Restore is the path to POST to.
	Restore string `json:"restore"`
}

func (a *api) deleteSession(w http.ResponseWriter, r *http.Request) error {
	ref, err := a.find(r)
	if err != nil {
		return err
	}
	if err := a.Sessions.DeleteDocument(r.Context(), ref, a.clock()); err != nil {
		return err
	}
	answer(w, http.StatusOK, deletion{true, ref, restorePath(ref)})
	return nil
}

func restorePath(ref session.Ref) string {
	return sessionPath(ref) + "/restore?project=" + url.QueryEscape(ref.Project)
}

func (a *api) restoreSession(w http.ResponseWriter, r *http.Request) error {
	ref := session.Ref{
		User: user(r), Project: r.URL.Query().Get("project"), Workflow: r.PathValue("workflow"), ID: r.PathValue("id"),
	}
	if ref.Project == "" {
		return guideway.Errorf(guideway.CodeInvalid, "a deleted session is in no list, so its project must be named").
			WithFix("POST to the path that the deletion answered: it has ?project=ID")
	}
	if !named(ref) {
		return noSession(ref)
	}
	if err := a.Sessions.RestoreDocument(r.Context(), ref, a.clock()); err != nil {
		return err
	}
	type restored struct {
		Success  bool        `json:"success"`
		Restored session.Ref `json:"restored"`
	}
	answer(w, http.StatusOK, restored{true, ref})
	return nil
}

// bulkBody names documents as the seed's dashboard does.
type bulkBody struct {
	Sessions []bulkRef `json:"sessions"`
}

type bulkRef struct {
	WorkflowID string `json:"workflowId"`
	SessionID  string `json:"sessionId"`
	// ProjectID is needed where the other two are not unique.
	ProjectID string `json:"projectId,omitempty"`
}

// bulkResult says what became of each.
type bulkResult struct {
	Success bool        `json:"success"`
	Deleted []deletion  `json:"deleted"`
	Failed  []bulkError `json:"failed"`
}

type bulkError struct {
	bulkRef
	Error string        `json:"error"`
	Code  guideway.Code `json:"code"`
}

func (a *api) bulkDelete(w http.ResponseWriter, r *http.Request) error {
	var body bulkBody
	if err := decode(w, r, &body); err != nil {
		return err
	}
	if n := len(body.Sessions); n == 0 || n > bulkLimit {
		return guideway.Errorf(guideway.CodeInvalid, "the body names %d sessions", n).
			WithFix(`give 1 to %d of them: {"sessions": [{"workflowId": …, "sessionId": …}]}`, bulkLimit)
	}
	result := bulkResult{Deleted: []deletion{}, Failed: []bulkError{}}
	for _, item := range body.Sessions {
		ref, err := a.deleteNamed(r, item)
		if err != nil {
			code, p := problemOf(err)
			if code >= http.StatusInternalServerError {
				a.Logger.Error("delete a session", "error", err)
			}
			result.Failed = append(result.Failed, bulkError{item, p.Error, p.Code})
			continue
		}
		result.Deleted = append(result.Deleted, deletion{true, ref, restorePath(ref)})
	}
	result.Success = len(result.Failed) == 0
	answer(w, http.StatusOK, result)
	return nil
}

func (a *api) deleteNamed(r *http.Request, item bulkRef) (session.Ref, error) {
	if item.WorkflowID == "" || item.SessionID == "" {
		return session.Ref{}, guideway.Errorf(guideway.CodeInvalid, "workflowId or sessionId is missing")
	}
	ref, err := a.findNamed(r.Context(), session.Ref{
		User: user(r), Project: item.ProjectID, Workflow: item.WorkflowID, ID: item.SessionID,
	})
	if err != nil {
		return session.Ref{}, err
	}
	return ref, a.Sessions.DeleteDocument(r.Context(), ref, a.clock())
}

func (a *api) sessionValidation(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	limit := int(q.number("limit", listLimit, 1, maxListLimit))
	if q.err != nil {
		return q.err
	}
	ref, err := a.find(r)
	if err != nil {
		return err
	}
	entries, err := a.Sessions.ValidationLog(r.Context(), ref, limit)
	if err != nil {
		return err
	}
	if entries == nil {
		entries = []session.LogEntry{}
	}
	type log struct {
		Success bool               `json:"success"`
		Count   int                `json:"count"`
		Entries []session.LogEntry `json:"entries"`
	}
	answer(w, http.StatusOK, log{true, len(entries), entries})
	return nil
}

func (a *api) projects(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Sessions.Projects(r.Context(), user(r))
	if err != nil {
		return err
	}
	type projects struct {
		Success  bool                     `json:"success"`
		Count    int                      `json:"count"`
		Projects []session.ProjectSummary `json:"projects"`
	}
	all := projects{true, len(list), make([]session.ProjectSummary, len(list))}
	for i, p := range list {
		if p.Workflows == nil {
			p.Workflows = []string{}
		}
		all.Projects[i] = p
	}
	answer(w, http.StatusOK, all)
	return nil
}

func (a *api) currentProject(w http.ResponseWriter, r *http.Request) error {
	p := a.CurrentProject(r.Context())
	if p.ID == "" {
		return guideway.Errorf(guideway.CodeNotFound, "this server was not started in a project").
			WithFix("GET /api/projects lists those that there are")
	}
	type project struct {
		Success bool        `json:"success"`
		Project run.Project `json:"project"`
	}
	answer(w, http.StatusOK, project{true, p})
	return nil
}
