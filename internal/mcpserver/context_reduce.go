package mcpserver

import (
	"context"

	"github.com/guideway-dev/guideway/internal/memory"
	"github.com/guideway-dev/guideway/internal/run"
)

// reduceParams name a context and how small it is to become.
func reduceParams(more ...param) []param {
	list := []param{
		contextParam("Your context"), runHandleParam(), lineParam("Keeps what is left out"), workflowParam(),
		{name: "budgetTokens", kind: kindInteger, example: 2000},
		{name: "question", kind: kindString, description: "What you need next"},
	}
	return append(list, more...)
}

// reduceRequest reads the arguments of both reducing tools.
func reduceRequest(t *tool, in arguments) (memory.ReduceRequest, error) {
	r := memory.ReduceRequest{
		Handle: in.text("handle"), Session: in.text("sessionId"), Workflow: in.text("workflowId"), Context: in.object("context"),
		Fit: memory.Fit{Budget: int(in.integer("budgetTokens")), Ratio: in.number("ratio"), Question: in.text("question")},
	}
	switch {
	case r.Handle == "" && r.Session == "" && r.Context == nil:
		return r, t.badCall(in, "context", "context or handle is required")
	case r.Handle != "" && r.Context != nil:
		bad := t.badCall(in, "handle", "context and handle exclude each other")
		delete(bad.Next.Arguments, "handle")
		return r, bad
	case in.below("budgetTokens", 1):
		bad := t.badCall(in, "budgetTokens", "budgetTokens must be 1 or more")
		bad.Next.Arguments["budgetTokens"] = 2000
		return r, bad
	case in.below("ratio", 1):
		bad := t.badCall(in, "ratio", "ratio says how many times smaller the context becomes: it is 1 or more")
		bad.Next.Arguments["ratio"] = 4
		return r, bad
	case r.Budget > 0 && r.Ratio > 0:
		bad := t.badCall(in, "ratio", "budgetTokens and ratio exclude each other")
		delete(bad.Next.Arguments, "ratio")
		return r, bad
	}
	return r, nil
}

func (c *contextTools) compress() *tool {
	t := &tool{
		name: "workflow_context_compress", title: "Shrink a context", effect: effectAddsOnce,
		description: "Make a context (or that of a run) smaller by leaving out what the question needs least. Critical items stay whole; workflow_checkpoint_load {ref} reads back what stands in omitted.",
		params:      reduceParams(param{name: "ratio", kind: kindNumber, description: "Instead of budgetTokens, such as 4", example: 4}),
		output: object(map[string]any{
			"context": typed("object"), "tokensBefore": typed("integer"), "tokensAfter": typed("integer"), "omitted": typed("array"),
		}),
	}
	return c.answering(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		r, err := reduceRequest(t, in)
		if err != nil {
			return nil, err
		}
		return c.memory.Compress(ctx, caller, r)
	})
}

func (c *contextTools) prioritize() *tool {
	t := &tool{
		name: "workflow_context_prioritize", title: "Sort a context", effect: effectAddsOnce,
		description: "Keep the items of a context that matter most, whole, within a token budget; ephemeral ones go. Tells each item's layer and why.",
		params:      reduceParams(),
		output: object(map[string]any{
			"context": typed("object"), "items": typed("array"),
		}),
	}
	return c.answering(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		r, err := reduceRequest(t, in)
		if err != nil {
			return nil, err
		}
		return c.memory.Prioritize(ctx, caller, r)
	})
}

func (c *contextTools) mark() *tool {
	t := &tool{
		name: "workflow_mark_critical", title: "Mark as critical", effect: effectAddsOnce,
		description: "Mark variables of a run or session that must never be changed or left out.",
		params: []param{
			runHandleParam(), lineParam(""),
			{name: "keys", kind: kindStrings, required: true, example: []any{"goal"}},
			{name: "tags", kind: kindStrings},
		},
		output: object(map[string]any{"marked": typed("array")}),
	}
	return c.answering(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		if in.text("handle") == "" && in.text("sessionId") == "" {
			bad := t.badCall(in, "handle", "handle or sessionId is required")
			delete(bad.Next.Arguments, "handle")
			bad.Next.Arguments["sessionId"] = exampleSession
			return nil, bad
		}
		return c.memory.Mark(ctx, caller, memory.MarkRequest{
			Handle: in.text("handle"), Session: in.text("sessionId"), Keys: in.texts("keys"), Tags: in.texts("tags"),
		})
	})
}
