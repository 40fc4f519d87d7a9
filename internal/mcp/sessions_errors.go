package mcp

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/session"
)

// explainError adds the known documents and a call that works to an error about a document:
// an existing one can be read, a missing one created. Only a read suggests a document with
// a similar name: a write to BUG-18 must not suggest BUG-17.
func (s *sessionTools) explainError(ctx context.Context, p guideway.Principal, t *tool, in arguments, err error) error {
	const most = 20
	code, creates := guideway.ErrorCode(err), t.name == "workrail_create_session"
	if code != guideway.CodeNotFound && (code != guideway.CodeConflict || !creates) {
		return err
	}
	bad := &callError{
		Code: code, Message: err.Error(), Field: "sessionId", Given: shortenValue(in.textArg("sessionId")), Fix: guideway.ErrorFix(err),
	}
	call := func(tool, id string) *nextCall {
		args := map[string]any{"workflowId": in.textArg("workflowId"), "sessionId": id}
		if project := in.textArg("project"); project != "" {
			args["project"] = project
		}
		return &nextCall{Tool: tool, Arguments: args}
	}
	if creates {
		bad.Next = call("workrail_read_session", in.textArg("sessionId"))
		return bad
	}
	bad.Next = call("workrail_create_session", in.textArg("sessionId"))
	there, err := s.sessions.Summaries(ctx, p, session.ListOptions{Workflow: in.textArg("workflowId"), Limit: most})
	if err != nil || len(there) == 0 {
		return bad
	}
	ids := make([]string, len(there))
	for i, d := range there {
		ids[i] = d.ID
	}
	bad.Allowed = ids
	if meant := spelling.Closest(in.textArg("sessionId"), ids); meant != "" && t.effect == effectNone {
		bad.Fix = fmt.Sprintf("did you mean %s?", meant)
		bad.Next = call(t.name, meant)
		if path := in.textArg("path"); path != "" {
			bad.Next.Arguments["path"] = path
		}
	}
	return bad
}
