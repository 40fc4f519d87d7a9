package engine_test

import (
	"context"
	"strings"
	"testing"

	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
)

// TestHold checks that hooks before the call hold it, with all their reasons, and that a hold
// without effect is an error.
func TestHold(t *testing.T) {
	t.Parallel()
	hold := func(reason any) script {
		return func(context.Context, map[string]any) (any, error) { return map[string]any{"hold": reason}, nil }
	}
	answers := func(_ context.Context, c map[string]any) (any, error) {
		c["response"] = map[string]any{"content": []any{}}
		return map[string]any{"hold": "late"}, nil
	}
	for name, tt := range map[string]struct {
		a, b script
		held string
		err  string
	}{
		"one hook":           {a: hold("it deletes"), held: "it deletes"},
		"no hook":            {},
		"null":               {a: hold(nil)},
		"an empty reason":    {a: hold(""), err: "a 'hold' that is not a string with a reason"},
		"true":               {a: hold(true), err: "a 'hold' that is not a string with a reason"},
		"after the call":     {b: hold("too late"), err: "a call that was already sent or answered"},
		"besides the answer": {a: answers, err: "a call that was already sent or answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t, "start > a > call > b > end", map[string]script{"a": tt.a, "b": tt.b})
			out := r.runRequest()
			if tt.err != "" {
				if out.Status != hookengine.StatusError || !strings.Contains(out.Err.Error(), tt.err) {
					t.Errorf("the outcome is %s %v, want %q", out.Status, out.Err, tt.err)
				}
				return
			}
			if out.Err != nil || len(r.server.calls) != 1 || r.server.calls[0].Hold != tt.held || out.Request.Hold != tt.held {
				t.Errorf("the calls are %+v %v, want the reason %q", r.server.calls, out.Err, tt.held)
			}
		})
	}
	r := newFixture(t, "start > a > b > call > end", map[string]script{"a": hold("one"), "b": hold("two")})
	if r.runRequest(); len(r.server.calls) != 1 || r.server.calls[0].Hold != "one; two" {
		t.Errorf("the calls are %+v", r.server.calls)
	}
}
