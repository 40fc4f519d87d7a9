package mcp

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	workflowPrefix   = "guideway://workflows/"
	workflowTemplate = workflowPrefix + "{id}"
	stepsSchemaURI   = "guideway://schemas/steps"

	mimeJSON       = "application/json"
	mimeJSONSchema = "application/schema+json"
)

func workflowURI(id string) string { return workflowPrefix + id }

func workflowResource(e *catalog.Entry) *mcp.Resource {
	return &mcp.Resource{
		URI: workflowURI(e.ID), Name: e.ID, Title: e.Name, Description: e.Description,
		MIMEType: mimeJSON, Size: int64(e.Size),
	}
}

// addFixedResources adds the schema and the resource templates.
func (s *Server) addFixedResources() {
	s.mcp.AddResource(&mcp.Resource{
		URI: stepsSchemaURI, Name: "steps-schema", Title: "Schema of step workflows",
		Description: "The JSON Schema that a step workflow must match.", MIMEType: mimeJSONSchema,
	}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return newTextResource(stepsSchemaURI, mimeJSONSchema, string(steps.Schema())), nil
	})
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: workflowTemplate, Name: "workflow", Title: "A workflow",
		Description: "The definition of a workflow by its id.", MIMEType: mimeJSON,
	}, s.readWorkflow)
	s.addLibraryResources()
	if s.runs != nil {
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: runTemplate, Name: "run", Title: "A run",
			Description: "One of your runs, with its position, variables and last events.", MIMEType: mimeJSON,
		}, s.userResource(s.readRun))
	}
	if s.sessions != nil {
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: sessionTemplate, Name: "session", Title: "A session document",
			Description: "One of your session documents.", MIMEType: mimeJSON,
		}, s.userResource(s.readSession))
	}
}

func (s *Server) readWorkflow(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	id, ok := strings.CutPrefix(uri, workflowPrefix)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	e, err := s.catalog.Snapshot().Get(id)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return newTextResource(uri, mimeJSON, e.Definition.Canonical), nil
}

func newTextResource(uri, mime, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}
}

// The URIs of resources that belong to one user. For other users they do not exist.
const (
	runPrefix   = "guideway://runs/"
	runTemplate = runPrefix + "{runId}"
	// The plus sign of a template allows ids with a colon, such as times; without it the
	// template would only match URIs with %3A.
	sessionPrefix   = "guideway://sessions/"
	sessionTemplate = sessionPrefix + "{projectId}/{+workflowId}/{+id}"
)

// maxRunEvents bounds the events in the resource of a run.
const maxRunEvents = 100

// runContents is the resource of a run.
type runContents struct {
	*run.Details
	// Omitted counts the earlier events that are not included.
	Omitted int64 `json:"eventsOmitted,omitempty"`
}

// userResource returns a handler for resources that read returns for a caller.
func (s *Server) userResource(read func(ctx context.Context, c run.Caller, uri string) (any, error)) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		v, err := read(ctx, caller, uri)
		if err != nil {
			return nil, s.readError(ctx, uri, err)
		}
		text, err := jsontext.Marshal(v)
		if err != nil {
			return nil, s.readError(ctx, uri, err)
		}
		return newTextResource(uri, mimeJSON, string(text)), nil
	}
}

func (s *Server) readRun(ctx context.Context, c run.Caller, uri string) (any, error) {
	ref := run.Ref{RunID: strings.TrimPrefix(uri, runPrefix)}
	d, err := s.runs.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	out := runContents{Details: d, Omitted: max(d.Seq-maxRunEvents, 0)}
	d.Events, err = s.runs.Events(ctx, c, ref, out.Omitted, int(d.Seq-out.Omitted))
	return out, err
}

func (s *Server) readSession(ctx context.Context, c run.Caller, uri string) (any, error) {
	name, err := session.ParseURI(uri)
	if err != nil {
		return nil, err
	}
	return s.sessions.Get(ctx, c.Principal, name)
}

// readError returns the protocol error for a resource that cannot be read.
func (s *Server) readError(ctx context.Context, uri string, err error) error {
	switch guideway.ErrorCode(err) {
	case guideway.CodeNotFound, guideway.CodeInvalid:
		return mcp.ResourceNotFoundError(uri)
	case guideway.CodeInternal:
		s.logger.ErrorContext(ctx, "a resource could not be read", "uri", uri, "error", err)
		return guideway.Errorf(guideway.CodeInternal, "%s could not be read; see the server's log", uri)
	default:
		return err
	}
}
