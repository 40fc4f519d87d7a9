package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// allowed keeps a client that came in by a token of its own to the toolsets that
// the token names. What upstreams offer is not its business.
type allowed struct {
	// toolset has the toolset of each of our tools.
	toolset map[string]string
}

// middleware is the innermost one, so that it sees our own tools, prompts and
// resources alone.
func (a *allowed) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		holder := authn.HolderFrom(ctx)
		if holder == nil || holder.Allow.All {
			return next(ctx, method, req)
		}
		may := may(holder.Allow.Toolsets)
		if err := a.refuse(may, req); err != nil {
			return nil, err
		}
		result, err := next(ctx, method, req)
		if err == nil {
			a.narrow(may, result)
		}
		return result, err
	}
}

// may are toolsets that a client may use.
type may []string

// any tells whether one of some toolsets may be used.
func (m may) any(toolsets ...string) bool {
	return slices.ContainsFunc(toolsets, func(t string) bool { return slices.Contains(m, t) })
}

// workflows tells whether the client may know of workflows.
func (m may) workflows() bool { return m.any(ToolsetSteps, ToolsetRuns, ToolsetPhases) }

// resource tells whether an address, or a template of addresses, may be read.
func (m may) resource(uri string) bool {
	switch {
	case strings.HasPrefix(uri, workflowPrefix), strings.HasPrefix(uri, guidePrefix), strings.HasPrefix(uri, templatePrefix), uri == stepsSchemaURI:
		return m.workflows()
	case strings.HasPrefix(uri, runPrefix):
		return m.any(ToolsetRuns)
	case strings.HasPrefix(uri, sessionPrefix):
		return m.any(ToolsetSessions)
	}
	return false
}

// refuse answers what the client may not use as if it were not there.
func (a *allowed) refuse(m may, req mcp.Request) error {
	missing := func(what, name string) error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown %s %q", what, name)}
	}
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		if !m.any(a.toolset[r.Params.Name]) {
			return missing("tool", r.Params.Name)
		}
	case *mcp.GetPromptRequest:
		if !m.workflows() {
			return missing("prompt", r.Params.Name)
		}
	case *mcp.ReadResourceRequest:
		if !m.resource(r.Params.URI) {
			return mcp.ResourceNotFoundError(r.Params.URI)
		}
	case *mcp.CompleteRequest:
		if ref := r.Params.Ref; ref == nil || ref.Type == "ref/prompt" && !m.workflows() || ref.Type != "ref/prompt" && !m.resource(ref.URI) {
			return missing("reference", "")
		}
	}
	return nil
}

// narrow leaves in a list what the client may use. The lists are the SDK's own for
// this request.
func (a *allowed) narrow(m may, result mcp.Result) {
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t *mcp.Tool) bool { return !m.any(a.toolset[t.Name]) })
	case *mcp.ListPromptsResult:
		if !m.workflows() {
			r.Prompts = nil
		}
	case *mcp.ListResourcesResult:
		r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(e *mcp.Resource) bool { return !m.resource(e.URI) })
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates = slices.DeleteFunc(slices.Clone(r.ResourceTemplates), func(e *mcp.ResourceTemplate) bool { return !m.resource(e.URITemplate) })
	}
}
