package mcp

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog"
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
