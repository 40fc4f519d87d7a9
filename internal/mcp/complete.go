package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCompletions is the protocol's limit on the number of completions.
const maxCompletions = 100

// completeArgument suggests values for the parameters of the resource templates. It
// suggests nothing if a list cannot be read.
func (s *Server) completeArgument(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	var values []string
	if ref := req.Params.Ref; ref != nil && ref.Type == "ref/resource" {
		switch ref.URI {
		case workflowTemplate:
			values = s.workflowIDs(req.Params)
		case guideTemplate:
			values = s.textParts(req.Params, library.KindGuide)
		case templateTemplate:
			values = s.textParts(req.Params, library.KindTemplate)
		case runTemplate:
			values = s.runIDs(ctx, req.Params)
		case sessionTemplate:
			values = s.sessionParts(ctx, req.Params)
		}
	}
	res := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	slices.Sort(values)
	for _, v := range slices.Compact(values) {
		if !strings.HasPrefix(v, req.Params.Argument.Value) {
			continue
		}
		res.Completion.Total++
		if len(res.Completion.Values) < maxCompletions {
			res.Completion.Values = append(res.Completion.Values, v)
		}
	}
	res.Completion.HasMore = res.Completion.Total > maxCompletions
	return res, nil
}

func (s *Server) workflowIDs(p *mcp.CompleteParams) []string {
	if p.Argument.Name != "id" {
		return nil
	}
	return lists.Map(s.catalog.Snapshot().List(catalog.Filter{}), func(e *catalog.Entry) string { return e.ID })
}

func (s *Server) runIDs(ctx context.Context, p *mcp.CompleteParams) []string {
	caller, err := callerFrom(ctx)
	if err != nil || s.runs == nil || p.Argument.Name != "runId" {
		return nil
	}
	list, err := s.runs.List(ctx, caller, run.Filter{Limit: 10 * maxCompletions})
	if err != nil {
		s.logger.WarnContext(ctx, "runs could not be suggested", "error", err)
		return nil
	}
	return lists.Map(list, func(r run.Record) string { return r.ID })
}

// sessionParts suggests a part of a session document's URI that matches the other parts.
func (s *Server) sessionParts(ctx context.Context, p *mcp.CompleteParams) []string {
	caller, err := callerFrom(ctx)
	if err != nil || s.sessions == nil {
		return nil
	}
	var given map[string]string
	if p.Context != nil {
		given = p.Context.Arguments
	}
	list, err := s.sessions.Summaries(ctx, caller.Principal, session.Filter{Ref: session.Ref{
		Project: given["projectId"], Workflow: given["workflowId"], ID: given["id"],
	}})
	if err != nil {
		s.logger.WarnContext(ctx, "session documents could not be suggested", "error", err)
		return nil
	}
	var values []string
	for _, d := range list {
		switch p.Argument.Name {
		case "projectId":
			values = append(values, d.Project)
		case "workflowId":
			values = append(values, d.Workflow)
		case "id":
			values = append(values, d.ID)
		}
	}
	return values
}
