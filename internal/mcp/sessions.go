package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// sessionTools is the toolset "sessions", which keeps session documents.
type sessionTools struct {
	sessions *session.Service
	places   projects
	// open and live are Options.Dashboard and Options.LiveDashboard.
	open func(ctx context.Context, sessionID string) (string, error)
	live func(ctx context.Context, sessionID string) string
}

func (s *sessionTools) newTools() map[string]*tool {
	serve := handlers{"workrail_create_session": s.createDocument, "workrail_update_session": s.updateDocument, "workrail_read_session": s.readDocument}
	if s.open != nil {
		serve["workrail_open_dashboard"] = s.openDashboard
	}
	tools := newTools(ToolsetSessions, serve)
	for name, t := range tools {
		t.failed = seedFailure(name)
	}
	return tools
}

// sessionFailure is the error of a session tool: the members that clients of WorkRail
// expect, and those of callError.
type sessionFailure struct {
	Success bool `json:"success"`
	*callError
	Tool       string `json:"tool"`
	Suggestion string `json:"suggestion"`
}

func seedFailure(tool string) func(*callError) any {
	return func(e *callError) any {
		f := sessionFailure{callError: e, Tool: tool, Suggestion: "Check the error message for details."}
		if e.Code == guideway.CodeNotFound {
			f.Suggestion = "Make sure the session exists. Use workrail_create_session() first."
		}
		return f
	}
}

// documentName returns the name of the document that a call is about.
func (s *sessionTools) documentName(ctx context.Context, c call) (session.Name, error) {
	n := session.Name{Workflow: c.textArg("workflowId"), ID: c.textArg("sessionId"), Here: s.places.currentProject(ctx).ID}
	if c.textArg("project") == "" {
		return n, nil
	}
	p, err := s.places.findProject(ctx, c)
	n.Project = p.ID
	return n, err
}

func (s *sessionTools) createDocument(ctx context.Context, c call) (any, error) {
	where, err := s.places.findProject(ctx, c)
	if err != nil {
		return nil, err
	}
	if where.ID == "" {
		bad := c.badCall("project", "project is required: your working directory is unknown")
		bad.Next.Arguments["project"] = "/absolute/path/of/your/directory"
		return nil, bad
	}
	d, err := s.sessions.Create(ctx, c.caller.Principal, session.CreateRequest{
		Project: where.ID, ProjectPath: where.Path,
		Workflow: c.textArg("workflowId"), ID: c.textArg("sessionId"), Data: c.objectArg("initialData"),
	})
	if err != nil {
		return nil, s.explainError(ctx, c, err)
	}
	out := struct {
		Success      bool      `json:"success"`
		SessionID    string    `json:"sessionId"`
		WorkflowID   string    `json:"workflowId"`
		ProjectID    string    `json:"projectId"`
		Path         string    `json:"path"`
		DashboardURL string    `json:"dashboardUrl,omitempty"`
		Message      string    `json:"message"`
		CreatedAt    time.Time `json:"createdAt"`
	}{
		Success: true, SessionID: d.ID, WorkflowID: d.Workflow, ProjectID: d.Project, Path: d.URI(),
		Message: "Session created: " + d.Workflow + "/" + d.ID, CreatedAt: d.Created,
	}
	if s.live != nil {
		out.DashboardURL = s.live(ctx, d.ID)
	}
	return out, nil
}

func (s *sessionTools) updateDocument(ctx context.Context, c call) (any, error) {
	name, err := s.documentName(ctx, c)
	if err != nil {
		return nil, err
	}
	d, err := s.sessions.Update(ctx, c.caller.Principal, name, c.objectArg("updates"))
	if err != nil {
		return nil, s.explainError(ctx, c, err)
	}
	return struct {
		Success   bool      `json:"success"`
		Message   string    `json:"message"`
		UpdatedAt time.Time `json:"updatedAt"`
		Revision  int64     `json:"revision"`
	}{true, "Session updated: " + d.Workflow + "/" + d.ID, d.Updated, d.Revision}, nil
}

func (s *sessionTools) readDocument(ctx context.Context, c call) (any, error) {
	name, err := s.documentName(ctx, c)
	if err != nil {
		return nil, err
	}
	found, err := s.sessions.Read(ctx, c.caller.Principal, name, c.textArg("path"))
	if err != nil {
		return nil, s.explainError(ctx, c, err)
	}
	out := map[string]any{"success": true, "query": found.Query, "found": found.Found}
	if found.Found {
		out["data"] = found.Data
	} else {
		out["message"] = fmt.Sprintf("Nothing was found at %s in the session document %s/%s. Omit the path to get the whole document.",
			found.Query, found.Ref.Workflow, found.Ref.ID)
	}
	return out, nil
}

func (s *sessionTools) openDashboard(ctx context.Context, c call) (any, error) {
	url, err := s.open(ctx, c.textArg("sessionId"))
	if err != nil {
		return nil, err
	}
	return struct {
		Success bool   `json:"success"`
		URL     string `json:"url"`
		Message string `json:"message"`
		Note    string `json:"note"`
	}{
		true, url, "The dashboard is at " + url,
		"Give the user the URL. The user must log in first, with guideway open.",
	}, nil
}

// explainError adds the known documents and a suggested call to the error about a document
// that exists already or is missing: the existing one can be read, and the missing one
// created. Only a read suggests a document with a similar name: a write to BUG-18 must not
// suggest BUG-17.
func (s *sessionTools) explainError(ctx context.Context, c call, err error) error {
	const most = 20
	code, creates := guideway.ErrorCode(err), c.tool.Name == "workrail_create_session"
	if code != guideway.CodeNotFound && (code != guideway.CodeConflict || !creates) {
		return err
	}
	bad := &callError{
		Code: code, Message: err.Error(), Field: "sessionId", Given: shortenValue(c.textArg("sessionId")), Fix: guideway.ErrorFix(err),
	}
	call := func(tool, id string) *run.Call {
		args := map[string]any{"workflowId": c.textArg("workflowId"), "sessionId": id}
		if project := c.textArg("project"); project != "" {
			args["project"] = project
		}
		return &run.Call{Tool: tool, Arguments: args}
	}
	if creates {
		bad.Next = call("workrail_read_session", c.textArg("sessionId"))
		return bad
	}
	bad.Next = call("workrail_create_session", c.textArg("sessionId"))
	there, err := s.sessions.Summaries(ctx, c.caller.Principal, session.Filter{Ref: session.Ref{Workflow: c.textArg("workflowId")}, Limit: most})
	if err != nil || len(there) == 0 {
		return bad
	}
	ids := lists.Map(there, func(d session.Summary) string { return d.ID })
	bad.Allowed = ids
	if meant := spelling.Closest(c.textArg("sessionId"), ids); meant != "" && c.tool.Effect == effectNone {
		bad.Fix = fmt.Sprintf("did you mean %s?", meant)
		bad.Next = call(c.tool.Name, meant)
		if path := c.textArg("path"); path != "" {
			bad.Next.Arguments["path"] = path
		}
	}
	return bad
}
