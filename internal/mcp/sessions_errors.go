package mcp

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

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
