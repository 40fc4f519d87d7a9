package mcpserver

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/spelling"
)

// explained adds to an error about a document those that there are and a call that
// works: one that is there can be read, one that is not can be created. Only a read
// is led to a document of a like name: a BUG-18 is not a BUG-17 to write to.
func (s *sessionTools) explained(ctx context.Context, p guideway.Principal, t *tool, in arguments, err error) error {
	const most = 20
	code, creates := guideway.ErrorCode(err), t.name == "workrail_create_session"
	if code != guideway.CodeNotFound && (code != guideway.CodeConflict || !creates) {
		return err
	}
	bad := &callError{
		Code: code, Message: err.Error(), Field: "sessionId", Given: shorten(in.text("sessionId")), Fix: guideway.ErrorFix(err),
	}
	call := func(tool, id string) *nextCall {
		args := map[string]any{"workflowId": in.text("workflowId"), "sessionId": id}
		if project := in.text("project"); project != "" {
			args["project"] = project
		}
		return &nextCall{Tool: tool, Arguments: args}
	}
	if creates {
		bad.Next = call("workrail_read_session", in.text("sessionId"))
		return bad
	}
	bad.Next = call("workrail_create_session", in.text("sessionId"))
	there, err := s.sessions.Summaries(ctx, p, session.ListOptions{Workflow: in.text("workflowId"), Limit: most})
	if err != nil || len(there) == 0 {
		return bad
	}
	ids := make([]string, len(there))
	for i, d := range there {
		ids[i] = d.ID
	}
	bad.Allowed = ids
	if meant := spelling.Closest(in.text("sessionId"), ids); meant != "" && t.effect == effectNone {
		bad.Fix = fmt.Sprintf("did you mean %s?", meant)
		bad.Next = call(t.name, meant)
		if path := in.text("path"); path != "" {
			bad.Next.Arguments["path"] = path
		}
	}
	return bad
}
