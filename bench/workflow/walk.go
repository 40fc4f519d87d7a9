package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// walker is an obedient agent: it does each step that it is given, says so, and
// begins again where a walk ends.
type walker struct {
	workflow string
	// echoes has it send back the context that it was given.
	echoes bool
	// length is the number of steps of a walk.
	length int

	completed []string
	variables map[string]any
}

func (w *walker) params() map[string]any {
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

// took moves on by an answer of workflow_next.
func (w *walker) took(result json.RawMessage) error {
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

// caller sends a request and gives the answer's result and the time it took.
type caller interface {
	call(ctx context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error)
}

// walk makes n calls of workflow_next and gives the time of each.
func (w *walker) walk(ctx context.Context, c caller, n int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		result, took, err := c.call(ctx, "tools/call", w.params())
		if err != nil {
			return nil, err
		}
		times = append(times, took)
		if err := w.took(result); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// repeat makes the same call n times and gives the time of each.
func (w *walker) repeat(ctx context.Context, c caller, n int) ([]time.Duration, error) {
	params := w.params()
	times := make([]time.Duration, 0, n)
	for range n {
		_, took, err := c.call(ctx, "tools/call", params)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, nil
}
