package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// walker simulates an agent: it completes each step that it gets, reports it, and starts
// again at the end of a walk.
type walker struct {
	workflow string
	// echoes makes the walker send the returned context back.
	echoes bool
	// length is the number of steps of a walk.
	length int

	completed []string
	variables map[string]any
}

func (w *walker) nextParams() map[string]any {
	completed, variables := w.completed, w.variables
	if completed == nil {
		completed = []string{}
	}
	if variables == nil || !w.echoes {
		variables = map[string]any{}
	}
	return toolCall("workflow_next", map[string]any{
		"workflowId": w.workflow, "completedSteps": completed, "context": variables,
	})
}

// advance updates the walk from an answer of workflow_next.
func (w *walker) advance(result json.RawMessage) error {
	var next struct {
		Step *struct {
			ID string `json:"id"`
		} `json:"step"`
		IsComplete bool           `json:"isComplete"`
		Context    map[string]any `json:"context"`
	}
	if err := toolAnswer(result, &next); err != nil {
		return fmt.Errorf("step %d of %s: %w", len(w.completed), w.workflow, err)
	}
	switch {
	case next.Step != nil && len(w.completed) < w.length:
		w.completed = append(w.completed, next.Step.ID)
		w.variables = next.Context
	case w.echoes && !next.IsComplete:
		return fmt.Errorf("%s does not end after its %d steps", w.workflow, w.length)
	default:
		w.completed, w.variables = nil, nil
	}
	return nil
}

// caller sends a request and returns the result and the duration.
type caller interface {
	callTool(ctx context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error)
}

// measureWalk makes n calls of workflow_next and returns their durations.
func (w *walker) measureWalk(ctx context.Context, c caller, n int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		result, took, err := c.callTool(ctx, "tools/call", w.nextParams())
		if err != nil {
			return nil, err
		}
		times = append(times, took)
		if err := w.advance(result); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// measureRepeat makes the same call n times and returns the durations.
func (w *walker) measureRepeat(ctx context.Context, c caller, n int) ([]time.Duration, error) {
	params := w.nextParams()
	times := make([]time.Duration, 0, n)
	for range n {
		_, took, err := c.callTool(ctx, "tools/call", params)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, nil
}
