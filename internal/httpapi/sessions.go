package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/session"
)

const (
	// sessionLimit is the default length of a list of documents, maxSessionLimit the
	// maximum.
	sessionLimit    = 200
	maxSessionLimit = 1_000
	// bulkLimit is the maximum number of documents deleted by one request.
	bulkLimit = 500
)

// sessionInfo describes a session document without its data.
type sessionInfo struct {
	ID          string    `json:"id"`
	WorkflowID  string    `json:"workflowId"`
	ProjectID   string    `json:"projectId"`
	ProjectPath string    `json:"projectPath"`
	Created     time.Time `json:"createdAt"`
	Updated     time.Time `json:"updatedAt"`
	Revision    int64     `json:"revision"`
}

// sessionSummary describes a session document in a list. It has only the dashboard of the
// data.
type sessionSummary struct {
	sessionInfo

	// URL is the path of the document's page.
	URL  string           `json:"url"`
	Data sessionDashboard `json:"data"`
}

type sessionDashboard struct {
	Dashboard json.RawMessage `json:"dashboard,omitempty"`
}

func summarizeSession(d session.Summary) sessionSummary {
	return sessionSummary{
		sessionInfo{d.ID, d.Workflow, d.Project, d.ProjectPath, d.Created, d.Updated, d.Revision},
		"/dashboard/" + url.PathEscape(d.ID) + "?" + url.Values{"workflow": {d.Workflow}, "project": {d.Project}}.Encode(),
		sessionDashboard{d.Dashboard},
	}
}

// fullSession is a complete session document.
type fullSession struct {
	sessionInfo

	Data map[string]any `json:"data"`
}

func newFullSession(d session.Document) fullSession {
	if d.Data == nil {
		d.Data = map[string]any{}
	}
	return fullSession{sessionInfo{d.ID, d.Workflow, d.Project, d.ProjectPath, d.Created, d.Updated, d.Revision}, d.Data}
}

// currentTime returns the time in the precision of stores.
func (a *api) currentTime() time.Time { return a.Now().UTC().Truncate(time.Microsecond) }

func (a *api) listSessions(c *call) (any, error) {
	filter := session.Filter{
		Ref:   session.Ref{User: c.userName(), Project: c.textParam("project"), Workflow: c.textParam("workflow")},
		Limit: int(c.intParam("limit", sessionLimit, 1, maxSessionLimit)),
	}
	if c.err != nil {
		return nil, c.err
	}
	docs, err := a.Sessions.Summaries(c.Context(), filter)
	list := lists.Map(docs, summarizeSession)
	// The member unified reports whether the list contains all projects.
	return object{"count": len(list), "unified": filter.Ref.Project == "", "sessions": list}, err
}

// sessionRef returns the reference of the document that a request names: the id, the
// workflow if it is in the path, and the project if there is a parameter project.
func (c *call) sessionRef() session.Ref {
	return session.Ref{User: c.userName(), Project: c.URL.Query().Get("project"), Workflow: c.PathValue("workflow"), ID: c.PathValue("id")}
}

// findSession returns the complete reference of the one document that a request names.
func (a *api) findSession(c *call) (session.Ref, error) {
	return a.findNamed(c.Context(), c.sessionRef())
}

func (a *api) findNamed(ctx context.Context, ref session.Ref) (session.Ref, error) {
	const most = 20
	var docs []session.Summary
	if isValidRef(ref) {
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
	several := &ambiguousError{}
	for _, d := range docs {
		path := sessionPath(d.Ref)
		if len(workflows) < len(docs) {
			path += "?project=" + url.QueryEscape(d.Project)
		}
		several.candidates = append(several.candidates, path)
	}
	several.err = guideway.Errorf(guideway.CodeConflict, "several session documents have the id %q", clipText(ref.ID)).
		WithFix("use /api/sessions/:workflow/:id, such as %s", several.candidates[0])
	return session.Ref{}, several
}

// wholeSession reads the document that a request names.
func (a *api) wholeSession(c *call) (session.Document, error) {
	ref, err := a.findSession(c)
	if err != nil {
		return session.Document{}, err
	}
	return a.readSession(c.Context(), ref)
}

// readSession reads the document of a complete reference.
func (a *api) readSession(ctx context.Context, ref session.Ref) (session.Document, error) {
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
	return guideway.Errorf(guideway.CodeNotFound, "there is no session document %q", clipText(ref.ID)).
		WithFix("list the session documents with GET /api/sessions")
}

// isValidRef reports whether a reference can belong to a document. Its parts come from a
// URL and may be any text.
func isValidRef(ref session.Ref) bool {
	text := ref.Project + ref.Workflow + ref.ID
	return ref.ID != "" && len(text) < 1<<10 && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func sessionPath(ref session.Ref) string {
	return "/api/sessions/" + url.PathEscape(ref.Workflow) + "/" + url.PathEscape(ref.ID)
}

func (a *api) getSession(c *call) (any, error) {
	doc, err := a.wholeSession(c)
	return object{"session": newFullSession(doc)}, err
}

// deletion describes a deleted document and how to restore it.
type deletion struct {
	Success bool        `json:"success"`
	Deleted session.Ref `json:"deleted"`
	// Restore is the path of the POST request that restores the document.
	Restore string `json:"restore"`
}

func (a *api) deleteSession(c *call) (any, error) {
	ref, err := a.findSession(c)
	if err != nil {
		return nil, err
	}
	return object{"deleted": ref, "restore": restorePath(ref)}, a.Sessions.DeleteDocument(c.Context(), ref, a.currentTime())
}

func restorePath(ref session.Ref) string {
	return sessionPath(ref) + "/restore?project=" + url.QueryEscape(ref.Project)
}

func (a *api) restoreSession(c *call) (any, error) {
	ref := c.sessionRef()
	if ref.Project == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the request does not name the project of the deleted session document").
			WithFix("POST to the path that the deletion returned, which ends in ?project=ID")
	}
	if !isValidRef(ref) {
		return nil, noSession(ref)
	}
	return object{"restored": ref}, a.Sessions.RestoreDocument(c.Context(), ref, a.currentTime())
}

// bulkBody lists the documents to delete, in the form that WorkRail's dashboard sends.
type bulkBody struct {
	Sessions []bulkRef `json:"sessions"`
}

type bulkRef struct {
	WorkflowID string `json:"workflowId"`
	SessionID  string `json:"sessionId"`
	// ProjectID is required if workflow and session id are ambiguous.
	ProjectID string `json:"projectId,omitempty"`
}

// bulkResult has the outcome of each deletion. Success is true if no deletion failed.
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

func (a *api) bulkDelete(c *call, body bulkBody) (any, error) {
	if n := len(body.Sessions); n == 0 || n > bulkLimit {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the body must name 1 to %d session documents, but it names %d", bulkLimit, n).
			WithFix(`name 1 to %d session documents: {"sessions": [{"workflowId": …, "sessionId": …}]}`, bulkLimit)
	}
	result := bulkResult{Deleted: []deletion{}, Failed: []bulkError{}}
	for _, item := range body.Sessions {
		ref, err := a.deleteNamed(c, item)
		if err != nil {
			code, p := newProblem(err)
			if code >= http.StatusInternalServerError {
				a.Logger.Error("a session document could not be deleted", "error", err)
			}
			result.Failed = append(result.Failed, bulkError{item, p.Error, p.Code})
			continue
		}
		result.Deleted = append(result.Deleted, deletion{true, ref, restorePath(ref)})
	}
	result.Success = len(result.Failed) == 0
	return encodeWhole(result)
}

func (a *api) deleteNamed(c *call, item bulkRef) (session.Ref, error) {
	switch {
	case item.WorkflowID == "":
		return session.Ref{}, guideway.Errorf(guideway.CodeInvalid, "the session document %q has no workflowId", clipText(item.SessionID)).WithFix("add the workflowId of the session document")
	case item.SessionID == "":
		return session.Ref{}, guideway.Errorf(guideway.CodeInvalid, "a session document of the workflow %q has no sessionId", clipText(item.WorkflowID)).WithFix("add the sessionId of the session document")
	}
	ref, err := a.findNamed(c.Context(), session.Ref{
		User: c.userName(), Project: item.ProjectID, Workflow: item.WorkflowID, ID: item.SessionID,
	})
	if err != nil {
		return session.Ref{}, err
	}
	return ref, a.Sessions.DeleteDocument(c.Context(), ref, a.currentTime())
}

func (a *api) sessionValidation(c *call) (any, error) {
	limit := int(c.intParam("limit", listLimit, 1, maxListLimit))
	if c.err != nil {
		return nil, c.err
	}
	ref, err := a.findSession(c)
	if err != nil {
		return nil, err
	}
	entries, err := a.Sessions.ValidationLog(c.Context(), ref, limit)
	return object{"count": len(entries), "entries": replaceNil(entries)}, err
}

func (a *api) listProjects(c *call) (any, error) {
	list, err := a.Sessions.Projects(c.Context(), c.userName())
	list = slices.Clone(list)
	for i := range list {
		list[i].Workflows = replaceNil(list[i].Workflows)
	}
	return object{"count": len(list), "projects": replaceNil(list)}, err
}

func (a *api) currentProject(c *call) (any, error) {
	p := a.CurrentProject(c.Context())
	if p.ID == "" {
		return nil, guideway.Errorf(guideway.CodeNotFound, "this server was not started in a project").
			WithFix("list the projects with GET /api/projects")
	}
	return object{"project": p}, nil
}
