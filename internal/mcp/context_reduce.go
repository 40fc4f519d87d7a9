package mcp

import (
	"context"

	"github.com/guideway-dev/guideway/internal/contexts"
)

// reduceParams returns the parameters that the tools that reduce a context share, followed
// by more.
func reduceParams(more ...param) []param {
	list := []param{
		contextParam("Your context"), runHandleParam(), seriesParam("Keeps the omitted items"), workflowParam(),
		{name: "budgetTokens", kind: kindInteger, example: 2000},
		{name: "question", kind: kindString, description: "What you need next"},
	}
	return append(list, more...)
}

// reduceRequest reads the arguments of either reducing tool.
func reduceRequest(ctx context.Context, c call) (contexts.ReduceRequest, error) {
	r := contexts.ReduceRequest{
		Handle: c.textArg("handle"), Session: c.textArg("sessionId"), Workflow: c.textArg("workflowId"), Context: c.objectArg("context"),
		Fit:    contexts.Fit{Budget: int(c.intArg("budgetTokens")), Ratio: c.floatArg("ratio"), Question: c.textArg("question")},
		NoRuns: !mayUse(ctx, ToolsetRuns),
	}
	switch {
	case r.Handle == "" && r.Session == "" && r.Context == nil:
		return r, c.badCall("context", "context, handle or sessionId is required")
	case r.Handle != "" && r.Context != nil:
		bad := c.badCall("handle", "context and handle are mutually exclusive")
		delete(bad.Next.Arguments, "handle")
		return r, bad
	case c.isBelow("budgetTokens", 1):
		bad := c.badCall("budgetTokens", "budgetTokens must be 1 or more")
		bad.Next.Arguments["budgetTokens"] = 2000
		return r, bad
	case c.isBelow("ratio", 1):
		bad := c.badCall("ratio", "ratio, the reduction factor, must be 1 or more")
		bad.Next.Arguments["ratio"] = 4
		return r, bad
	case r.Budget > 0 && r.Ratio > 0:
		bad := c.badCall("ratio", "budgetTokens and ratio are mutually exclusive")
		delete(bad.Next.Arguments, "ratio")
		return r, bad
	}
	return r, nil
}

func (t *contextTools) compressTool() *tool {
	return &tool{
		name: "workflow_context_compress", title: "Compress a context", effect: effectAddsOnce, paged: true,
		description: "Reduce a context (or that of a run) by omitting what is least relevant to the question. Critical items stay whole; workflow_checkpoint_load returns omitted ones.",
		params:      reduceParams(param{name: "ratio", kind: kindNumber, description: "Reduction factor, instead of budgetTokens; default: 2", example: 4}),
		output:      members{kindInteger: "tokensBefore tokensAfter", kindObject: "context", kindList: "omitted"}.schema(),
		serve: explained(func(ctx context.Context, c call) (any, error) {
			r, err := reduceRequest(ctx, c)
			if err != nil {
				return nil, err
			}
			return t.memory.Compress(ctx, c.caller, r)
		}),
	}
}

func (t *contextTools) prioritizeTool() *tool {
	return &tool{
		name: "workflow_context_prioritize", title: "Prioritize a context", effect: effectAddsOnce, paged: true,
		description: "Keep the most important items of a context, whole, within a token budget; drop ephemeral ones. Returns layers and reasons.",
		params:      reduceParams(),
		output:      members{kindObject: "context", kindList: "items"}.schema(),
		serve: explained(func(ctx context.Context, c call) (any, error) {
			r, err := reduceRequest(ctx, c)
			if err != nil {
				return nil, err
			}
			return t.memory.Prioritize(ctx, c.caller, r)
		}),
	}
}

func (t *contextTools) markTool() *tool {
	return &tool{
		name: "workflow_mark_critical", title: "Mark variables as critical", effect: effectAddsOnce,
		description: "Mark variables of a run or session that a reduction must never shorten or omit.",
		params: []param{
			runHandleParam(), seriesParam(""),
			{name: "keys", kind: kindStrings, required: true, example: []any{"goal"}},
			{name: "tags", kind: kindStrings},
		},
		output: members{kindList: "marked"}.schema(),
		serve: explained(func(ctx context.Context, c call) (any, error) {
			if c.textArg("handle") == "" && c.textArg("sessionId") == "" {
				bad := c.badCall("handle", "handle or sessionId is required")
				delete(bad.Next.Arguments, "handle")
				bad.Next.Arguments["sessionId"] = exampleSession
				return nil, bad
			}
			return t.memory.Mark(ctx, c.caller, contexts.MarkRequest{
				Handle: c.textArg("handle"), Session: c.textArg("sessionId"), Keys: c.textsArg("keys"), Tags: c.textsArg("tags"),
			})
		}),
	}
}
