package mcp

import (
	"context"

	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/run"
)

// reduceParams name a context and its target size.
func reduceParams(more ...param) []param {
	list := []param{
		contextParam("Your context"), runHandleParam(), seriesParam("Keeps the omitted items"), workflowParam(),
		{name: "budgetTokens", kind: kindInteger, example: 2000},
		{name: "question", kind: kindString, description: "What you need next"},
	}
	return append(list, more...)
}

// reduceRequest reads the arguments of both reducing tools.
func reduceRequest(t *tool, in arguments) (contexts.ReduceRequest, error) {
	r := contexts.ReduceRequest{
		Handle: in.textArg("handle"), Session: in.textArg("sessionId"), Workflow: in.textArg("workflowId"), Context: in.objectArg("context"),
		Fit: contexts.Fit{Budget: int(in.intArg("budgetTokens")), Ratio: in.floatArg("ratio"), Question: in.textArg("question")},
	}
	switch {
	case r.Handle == "" && r.Session == "" && r.Context == nil:
		return r, t.badCall(in, "context", "context or handle is required")
	case r.Handle != "" && r.Context != nil:
		bad := t.badCall(in, "handle", "context and handle exclude each other")
		delete(bad.Next.Arguments, "handle")
		return r, bad
	case in.isBelow("budgetTokens", 1):
		bad := t.badCall(in, "budgetTokens", "budgetTokens must be 1 or more")
		bad.Next.Arguments["budgetTokens"] = 2000
		return r, bad
	case in.isBelow("ratio", 1):
		bad := t.badCall(in, "ratio", "ratio is the factor of reduction: it must be 1 or more")
		bad.Next.Arguments["ratio"] = 4
		return r, bad
	case r.Budget > 0 && r.Ratio > 0:
		bad := t.badCall(in, "ratio", "budgetTokens and ratio exclude each other")
		delete(bad.Next.Arguments, "ratio")
		return r, bad
	}
	return r, nil
}

func (c *contextTools) compressTool() *tool {
	t := &tool{
		name: "workflow_context_compress", title: "Shrink a context", effect: effectAddsOnce,
		description: "Make a context (or that of a run) smaller by omitting items that the question needs least. Critical items stay whole; workflow_checkpoint_load {ref} returns an omitted item.",
		params:      reduceParams(param{name: "ratio", kind: kindNumber, description: "Instead of budgetTokens, such as 4", example: 4}),
		output: objectSchema(map[string]any{
			"context": typeSchema("object"), "tokensBefore": typeSchema("integer"), "tokensAfter": typeSchema("integer"), "omitted": typeSchema("array"),
		}),
	}
	return c.bindHandler(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		r, err := reduceRequest(t, in)
		if err != nil {
			return nil, err
		}
		return c.memory.Compress(ctx, caller, r)
	})
}

func (c *contextTools) prioritizeTool() *tool {
	t := &tool{
		name: "workflow_context_prioritize", title: "Sort a context", effect: effectAddsOnce,
		description: "Keep the most important items of a context, whole, within a token budget; drop ephemeral ones. Returns each item's layer and the reason.",
		params:      reduceParams(),
		output: objectSchema(map[string]any{
			"context": typeSchema("object"), "items": typeSchema("array"),
		}),
	}
	return c.bindHandler(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		r, err := reduceRequest(t, in)
		if err != nil {
			return nil, err
		}
		return c.memory.Prioritize(ctx, caller, r)
	})
}

func (c *contextTools) markTool() *tool {
	t := &tool{
		name: "workflow_mark_critical", title: "Mark as critical", effect: effectAddsOnce,
		description: "Mark variables of a run or session that must never be changed or omitted.",
		params: []param{
			runHandleParam(), seriesParam(""),
			{name: "keys", kind: kindStrings, required: true, example: []any{"goal"}},
			{name: "tags", kind: kindStrings},
		},
		output: objectSchema(map[string]any{"marked": typeSchema("array")}),
	}
	return c.bindHandler(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		if in.textArg("handle") == "" && in.textArg("sessionId") == "" {
			bad := t.badCall(in, "handle", "handle or sessionId is required")
			delete(bad.Next.Arguments, "handle")
			bad.Next.Arguments["sessionId"] = exampleSession
			return nil, bad
		}
		return c.memory.Mark(ctx, caller, contexts.MarkRequest{
			Handle: in.textArg("handle"), Session: in.textArg("sessionId"), Keys: in.textsArg("keys"), Tags: in.textsArg("tags"),
		})
	})
}
