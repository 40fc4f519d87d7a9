package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolFilter limits a client with its own token to the toolsets that the token allows. It
// does not limit the tools of upstreams.
type toolFilter struct {
	// toolset maps the server's own tools to their toolsets.
	toolset map[string]string
}

// wrapHandler is the innermost middleware, so that it sees only the server's own tools,
// prompts and resources.
func (a *toolFilter) wrapHandler(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		holder := auth.TokenLeaseFrom(ctx)
		if holder == nil || holder.Allow.All {
			return next(ctx, method, req)
		}
		may := allowedToolsets(holder.Allow.Toolsets)
		if err := a.rejectForbidden(may, req); err != nil {
			return nil, err
		}
		result, err := next(ctx, method, req)
		if err == nil {
			a.filterList(may, result)
		}
		return result, err
	}
}

// allowedToolsets are the toolsets that a client may use.
type allowedToolsets []string

// mayUse reports whether the client of ctx may use a toolset. A client without its own token
// may use all.
func mayUse(ctx context.Context, toolset string) bool {
	holder := auth.TokenLeaseFrom(ctx)
	return holder == nil || holder.Allow.All || allowedToolsets(holder.Allow.Toolsets).hasAny(toolset)
}

// hasAny reports whether the client may use one of the toolsets.
func (m allowedToolsets) hasAny(toolsets ...string) bool {
	return slices.ContainsFunc(toolsets, func(t string) bool { return slices.Contains(m, t) })
}

// hasWorkflows reports whether the client may see workflows.
func (m allowedToolsets) hasWorkflows() bool {
	return m.hasAny(ToolsetSteps, ToolsetRuns, ToolsetPhases)
}

// canReadURI reports whether the client may read a URI or a URI template.
func (m allowedToolsets) canReadURI(uri string) bool {
	switch {
	case strings.HasPrefix(uri, workflowPrefix), strings.HasPrefix(uri, guidePrefix), strings.HasPrefix(uri, templatePrefix), uri == stepsSchemaURI:
		return m.hasWorkflows()
	case strings.HasPrefix(uri, runPrefix):
		return m.hasAny(ToolsetRuns)
	case strings.HasPrefix(uri, sessionPrefix):
		return m.hasAny(ToolsetSessions)
	}
	return false
}

// rejectForbidden returns a not-found error for anything that the client may not use.
func (a *toolFilter) rejectForbidden(m allowedToolsets, req mcp.Request) error {
	missing := func(what, name string) error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown %s %q", what, name)}
	}
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		if !m.hasAny(a.toolset[r.Params.Name]) {
			return missing("tool", r.Params.Name)
		}
	case *mcp.GetPromptRequest:
		if !m.hasWorkflows() {
			return missing("prompt", r.Params.Name)
		}
	case *mcp.ReadResourceRequest:
		if !m.canReadURI(r.Params.URI) {
			return mcp.ResourceNotFoundError(r.Params.URI)
		}
	case *mcp.CompleteRequest:
		ref := r.Params.Ref
		switch {
		case ref == nil:
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params.ref is missing: name a prompt or a resource template"}
		case ref.Type == "ref/prompt" && !m.hasWorkflows(), ref.Type != "ref/prompt" && !m.canReadURI(ref.URI):
			return missing("reference", cmp.Or(ref.URI, ref.Name))
		}
	}
	return nil
}

// filterList removes the entries that the client may not use from a list. The SDK makes a
// new list for each request.
func (a *toolFilter) filterList(m allowedToolsets, result mcp.Result) {
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t *mcp.Tool) bool { return !m.hasAny(a.toolset[t.Name]) })
	case *mcp.ListPromptsResult:
		if !m.hasWorkflows() {
			r.Prompts = nil
		}
	case *mcp.ListResourcesResult:
		r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(e *mcp.Resource) bool { return !m.canReadURI(e.URI) })
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates = slices.DeleteFunc(slices.Clone(r.ResourceTemplates), func(e *mcp.ResourceTemplate) bool { return !m.canReadURI(e.URITemplate) })
	}
}
