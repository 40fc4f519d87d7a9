package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// workflowPrompt offers a workflow as a prompt, so that a person can start it from the
// client's menu.
func workflowPrompt(e *catalog.Entry) *mcp.Prompt {
	return &mcp.Prompt{
		Name: e.ID, Title: e.Name, Description: e.Description,
		Arguments: []*mcp.PromptArgument{{Name: "goal", Description: "What you want to achieve"}},
	}
}

func (s *Server) getPrompt(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	e, err := s.catalog.Snapshot().Get(req.Params.Name)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	d := e.Definition
	var b strings.Builder
	goal := strings.TrimSpace(req.Params.Arguments["goal"])
	if isFirstWord(goal) {
		fmt.Fprintf(&b, "My goal: all that I typed after the command, which begins with %s\n\n", goal)
	} else if goal != "" {
		fmt.Fprintf(&b, "My goal: %s\n\n", goal)
	}
	fmt.Fprintf(&b, "Follow the workflow %q (%s): %s\n\n", d.ID, d.Name, d.Description)
	if d.Phases != nil {
		writeSection(&b, "Follow these rules:", d.Phases.Rules)
	} else {
		writeSection(&b, "Check this first:", d.Steps.Preconditions)
		writeSection(&b, "Ask me what you cannot answer yourself:", d.Steps.ClarificationPrompts)
	}
	b.WriteString(s.howToFollow(d, goal))
	return &mcp.GetPromptResult{
		Description: d.Description,
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: b.String()}}},
	}, nil
}

// isFirstWord reports whether a goal may be the first of several words: Claude Code passes
// each word that the user types as a separate argument, and drops the ones after the last
// argument. Its model sees the whole input.
func isFirstWord(goal string) bool {
	return goal != "" && len(strings.Fields(goal)) == 1
}

// howToFollow returns instructions with the calls to follow a workflow.
func (s *Server) howToFollow(d *workflow.Definition, goal string) string {
	if s.runs == nil && d.Phases != nil {
		return fmt.Sprintf("Read it with get_workflow {\"workflow_id\": %q}. Do each step of a phase fully, ask me at each of its checkpoints, "+
			"and continue with the phase that its decisions and transitions lead to. Do not skip, merge or reorder phases.", d.ID)
	}
	if s.runs == nil {
		return fmt.Sprintf("Start with workflow_next {\"workflowId\": %q, \"completedSteps\": [], \"context\": {}}. "+
			"Do each step fully, check its output with workflow_validate where it has validationCriteria, "+
			"then call workflow_next again with the step's id appended to completedSteps (in a loop: in every round), and the context that you received. "+
			"Continue until isComplete is true. Do not skip, merge or reorder steps.", d.ID)
	}
	args := map[string]any{"workflowId": d.ID}
	more := ""
	switch {
	case isFirstWord(goal):
		more = " and my whole goal as goal"
	case goal == "":
		more = " and what I want, in a sentence, as goal"
	default:
		args["goal"] = goal
	}
	text, _ := jsontext.Marshal(args) // Strings always marshal.
	return "Start with workflow_start " + string(text) + more + ". " +
		"Do everything the position asks, and submit the result with workflow_continue and the handle of the last answer. " +
		"Fix what a refusal names and submit it again. Only I answer gates: show me the result and ask. " +
		"Continue until status is completed."
}

// writeSection writes a list and a blank line.
func writeSection(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	writeList(b, title, items)
	b.WriteString("\n")
}
