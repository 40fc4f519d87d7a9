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

func (s *sessionTools) listTools() []*tool {
	list := []*tool{s.createTool(), s.updateTool(), s.readTool()}
	if s.open != nil {
		list = append(list, s.dashboardTool())
	}
	for _, t := range list {
		t.failed = seedFailure(t.name)
	}
	return list
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

const exampleSession = "auth-refactoring"

func sessionParams(more ...param) []param {
	workflow := idParam("workflowId")
	workflow.description = "Workflow of the session document"
	return append([]param{
		workflow,
		{name: "sessionId", kind: kindString, required: true, maxLength: maxID, example: exampleSession, description: "Any id, such as a ticket's"},
	}, append(more, projectParam())...)
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

func (s *sessionTools) createTool() *tool {
	return &tool{
		name: "workrail_create_session", title: "Create a session document", effect: effectAdds,
		description: "Create a JSON document in which you keep notes on a task, for the user to watch on the dashboard. Fails if the document exists.",
		params:      sessionParams(param{name: "initialData", kind: kindObject}),
		output:      members{kindString: "sessionId workflowId projectId path dashboardUrl message createdAt", kindBool: "success"}.schema(),
		serve: func(ctx context.Context, c call) (any, error) {
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
		},
	}
}

func (s *sessionTools) updateTool() *tool {
	return &tool{
		name: "workrail_update_session", title: "Update a session document", effect: effectReplaces,
		description: "Merge updates into a session document. Objects are merged, other values replaced; a key may be a path, such as dashboard.progress or hypotheses[0].status.",
		params:      sessionParams(param{name: "updates", kind: kindObject, required: true, example: map[string]any{"dashboard": map[string]any{"progress": 25}}}),
		output:      members{kindString: "message updatedAt", kindBool: "success", kindInteger: "revision"}.schema(),
		serve: func(ctx context.Context, c call) (any, error) {
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
		},
	}
}

func (s *sessionTools) readTool() *tool {
	return &tool{
		name: "workrail_read_session", title: "Read a session document",
		description: "Read a session document, or a part of it. found is false if the path does not exist.",
		params: sessionParams(param{
			name: "path", kind: kindString, maxLength: maxPath,
			description: "Part to read, such as hypotheses[0].status, hypotheses[?status=='active'], $schema or a JSONPath",
		}),
		output: members{kindString: "query message", kindBool: "success found"}.schemaWith(map[string]any{"data": map[string]any{}}),
		serve: func(ctx context.Context, c call) (any, error) {
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
		},
	}
}

func (s *sessionTools) dashboardTool() *tool {
	return &tool{
		name: "workrail_open_dashboard", title: "Open the dashboard", effect: effectAddsOnce,
		description: "Get the URL of the dashboard, for the user to open.",
		params:      []param{{name: "sessionId", kind: kindString, maxLength: maxID, description: "Session document to show"}},
		output:      members{kindString: "url message note", kindBool: "success"}.schema(),
		serve: func(ctx context.Context, c call) (any, error) {
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
		},
	}
}

// explainError adds the known documents and a suggested call to the error about a document
// that exists already or is missing: the existing one can be read, and the missing one
// created. Only a read suggests a document with a similar name: a write to BUG-18 must not
// suggest BUG-17.
func (s *sessionTools) explainError(ctx context.Context, c call, err error) error {
	const most = 20
	code, creates := guideway.ErrorCode(err), c.tool.name == "workrail_create_session"
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
	if meant := spelling.Closest(c.textArg("sessionId"), ids); meant != "" && c.tool.effect == effectNone {
		bad.Fix = fmt.Sprintf("did you mean %s?", meant)
		bad.Next = call(c.tool.name, meant)
		if path := c.textArg("path"); path != "" {
			bad.Next.Arguments["path"] = path
		}
	}
	return bad
}
