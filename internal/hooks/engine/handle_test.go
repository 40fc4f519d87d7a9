package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
)

// newHandlerFixture returns a fixture whose hook b handles the given events.
func newHandlerFixture(t *testing.T, events string, known map[string]script) *fixture {
	t.Helper()
	r := newFixture(t, "start > a > call > b > end; call > x*", known)
	text := strings.Replace(newDocument("start > a > call > b > end; call > x*", ""), `"script": "b"`, `"script": "b", "handles": `+events, 1)
	r.program = compileGraph(t, text)
	return r
}

// setMember returns a script that sets a member of a part of the context.
func setMember(part, key string, value any) script {
	return func(_ context.Context, c map[string]any) (any, error) {
		object, ok := c[part].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("context.%s is missing", part)
		}
		object[key] = value
		return nil, nil
	}
}

// A hook that handles errors can change or withhold an error of the upstream, but not turn
// it into a response. Other hooks after the call do not run for an error.
func TestHandleErrors(t *testing.T) {
	t.Parallel()
	upstream := &jsonrpc.Error{Code: -32000, Message: "the key is AKIA", Data: json.RawMessage(`{"key":"AKIA"}`)}
	for name, tt := range map[string]struct {
		events string
		b      script
		status hookengine.Status
		want   string
		same   bool
	}{
		"unhandled":                 {`["result"]`, throwScript, hookengine.StatusError, "the key is AKIA (-32000)", true},
		"unchanged":                 {`["error"]`, nil, hookengine.StatusError, "the key is AKIA (-32000)", true},
		"changed":                   {`["error", "result"]`, setMember("error", "message", "redacted"), hookengine.StatusError, "redacted (-32000)", false},
		"data removed":              {`["error"]`, setMember("error", "data", nil), hookengine.StatusError, "the key is AKIA (-32000)", false},
		"another code":              {`["error"]`, setMember("error", "code", -7), hookengine.StatusError, "the key is AKIA (-7)", false},
		"a code of another type":    {`["error"]`, setMember("error", "code", "x"), hookengine.StatusError, "changed the type of context.error.code", false},
		"a code with a fraction":    {`["error"]`, setMember("error", "code", 1.5), hookengine.StatusError, "changed the type of context.error.code", false},
		"a message of another type": {`["error"]`, setMember("error", "message", 1), hookengine.StatusError, "is not a string", false},
		"a failing hook":            {`["error"]`, throwScript, hookengine.StatusError, "the call was sent, and its response is withheld", false},
		"withheld": {`["error"]`, func(context.Context, map[string]any) (any, error) {
			return map[string]any{"continue": false, "error": map[string]any{"code": "X", "message": "no"}}, nil
		}, hookengine.StatusRefused, "refused by the hook 'b': no", false},
		"removed": {`["error"]`, func(_ context.Context, c map[string]any) (any, error) {
			delete(c, "error")
			return nil, nil
		}, hookengine.StatusError, "removed context.error", false},
		"answered": {`["error"]`, func(_ context.Context, c map[string]any) (any, error) {
			c["response"] = map[string]any{"content": []any{}}
			return nil, nil
		}, hookengine.StatusError, "set context.response", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHandlerFixture(t, tt.events, map[string]script{"b": tt.b})
			if tt.b == nil {
				delete(r.scripts.known, "b")
			}
			r.server.err = upstream
			out := r.runRequest()
			r.checkOutcome(out, tt.status, 1)
			if !strings.Contains(out.Err.Error(), tt.want) || (out.Err == error(upstream)) != tt.same { //nolint:errorlint // the error itself
				t.Errorf("the error is %v, want %q", out.Err, tt.want)
			}
			if n := r.settledNode(out, "x"); n.Error != nil {
				t.Errorf("the hook x failed: %+v", n.Error)
			}
		})
	}
}

// An error that is not one of the protocol keeps its class if a hook changes its message,
// and a refusal by an inner graph stays a refusal.
func TestHandledErrorsKeepClass(t *testing.T) {
	t.Parallel()
	lost := guideway.Errorf(guideway.CodeUnavailable, "lost AKIA")
	r := newHandlerFixture(t, `["error"]`, map[string]script{"b": setMember("error", "message", "lost it")})
	r.server.err = lost
	if out := r.runRequest(); !errors.Is(out.Err, lost) || out.Err.Error() != "lost it" || out.Status != hookengine.StatusError {
		t.Errorf("%s: %v", out.Status, out.Err)
	}
	inner := newFixture(t, "start > a > call > end", map[string]script{"a": func(context.Context, map[string]any) (any, error) {
		return map[string]any{"continue": false, "error": map[string]any{"code": "NO", "message": "not this"}}, nil
	}})
	var seen any
	outer := newHandlerFixture(t, `["error"]`, map[string]script{"b": func(_ context.Context, c map[string]any) (any, error) {
		seen = c["error"]
		return nil, nil
	}})
	out := outer.engine.Run(t.Context(), outer.program, hookengine.Request{Params: json.RawMessage(params)}, hookengine.CallerFunc(
		func(ctx context.Context, c hookengine.Call) (json.RawMessage, error) {
			out := inner.engine.Run(ctx, inner.program, hookengine.Request{Params: c.Params}, inner.server)
			return out.Response, out.Err
		}))
	var refusal *hookengine.Refusal
	if out.Status != hookengine.StatusRefused || !errors.As(out.Err, &refusal) || refusal.Code != "NO" || inner.server.countCalls() != 0 {
		t.Errorf("%s: %v", out.Status, out.Err)
	}
	if diff := cmp.Diff(any(map[string]any{"code": "NO", "message": refusal.Error()}), seen); diff != "" {
		t.Errorf("the outer graph saw (-want +got):\n%s", diff)
	}
}

// A hook that handles progress can change or drop each message. A failing hook drops the
// message, and its trace has only the first error.
func TestHandleProgress(t *testing.T) {
	t.Parallel()
	r := newHandlerFixture(t, `["progress"]`, map[string]script{"b": func(_ context.Context, c map[string]any) (any, error) {
		progress := c["progress"].(map[string]any)
		switch progress["message"] {
		case "secret":
			progress["message"] = "redacted"
		case "drop":
			return map[string]any{"continue": false}, nil
		case "throw":
			return throwScript(t.Context(), c)
		}
		return nil, nil
	}})
	var got []string
	out := r.engine.Run(t.Context(), r.program, hookengine.Request{Params: json.RawMessage(params)}, hookengine.CallerFunc(
		func(ctx context.Context, c hookengine.Call) (json.RawMessage, error) {
			for _, message := range []string{"plain", "secret", "drop", "throw", "throw"} {
				got = append(got, string(c.Progress(ctx, json.RawMessage(`{"progress":12345678901234567890,"message":"`+message+`"}`))))
			}
			return json.RawMessage(`{"content":[]}`), nil
		}))
	want := []string{`{"progress":12345678901234567890,"message":"plain"}`, `{"progress":12345678901234567890,"message":"redacted"}`, "", "", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the messages (-want +got):\n%s", diff)
	}
	failed := 0
	for _, n := range out.Nodes() {
		if n.ID == "b" {
			failed++
		}
	}
	if out.Status != hookengine.StatusPassed || failed != 1 {
		t.Errorf("%s with %d traces of b: %v", out.Status, failed, out.Err)
	}
	if plain := newFixture(t, "start > call > b > end", nil); plain.runRequest().Err != nil || plain.server.calls[0].Progress != nil {
		t.Error("a graph without a hook for progress looks at progress")
	}
}

// A condition that compares different types does not hold and records it, or refuses the
// request where its node says so. A comparison that is not evaluated is no mismatch.
func TestMismatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		condition, params, onMismatch string
		status                        hookengine.Status
		branch                        hookdef.Branch
		warns                         bool
	}{
		"a number":            {`"operator": ">", "value": 100`, `{"n":500}`, "refuse", hookengine.StatusPassed, hookdef.True, false},
		"a text":              {`"operator": ">", "value": 100`, `{"n":"500"}`, "refuse", hookengine.StatusRefused, "", true},
		"a text, recorded":    {`"operator": ">", "value": 100`, `{"n":"500"}`, "record", hookengine.StatusPassed, hookdef.False, true},
		"a text, by default":  {`"operator": ">", "value": 100`, `{"n":"500"}`, "", hookengine.StatusPassed, hookdef.False, true},
		"null":                {`"operator": ">", "value": 100`, `{"n":null}`, "refuse", hookengine.StatusRefused, "", true},
		"missing":             {`"operator": "<=", "value": 100`, `{}`, "refuse", hookengine.StatusRefused, "", true},
		"equal texts":         {`"operator": "==", "value": "a"`, `{"n":"a"}`, "refuse", hookengine.StatusPassed, hookdef.True, false},
		"a number and a text": {`"operator": "!=", "value": 5`, `{"n":"5"}`, "refuse", hookengine.StatusRefused, "", true},
		"missing is unequal":  {`"operator": "!=", "value": 5`, `{}`, "refuse", hookengine.StatusPassed, hookdef.True, false},
		"a list":              {`"operator": "==", "value": "a"`, `{"n":["a"]}`, "refuse", hookengine.StatusRefused, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			condition := `{"type": "and", "conditions": [{"type": "simple", "variable": "request.params.name", "operator": "==", "value": "t"},
				{"type": "simple", "variable": "request.params.arguments.n", ` + tt.condition + `}]}`
			if tt.onMismatch != "" {
				condition += `, "onMismatch": "` + tt.onMismatch + `"`
			}
			r := newFixture(t, "start > call > end", nil)
			r.program = compileGraph(t, `{"id": "g", "name": "G", "workflowType": "tools/call", "nodes": [{"id": "start", "type": "start"},
				{"id": "if", "type": "condition", "data": {"condition": `+condition+`}}, {"id": "call", "type": "mcp-call"}, {"id": "end", "type": "end"},
				{"id": "call2", "type": "mcp-call"}, {"id": "end2", "type": "end"}],
				"edges": [{"source": "start", "target": "if"}, {"source": "if", "target": "call", "sourceHandle": "true"}, {"source": "if", "target": "call2", "sourceHandle": "false"},
				{"source": "call", "target": "end"}, {"source": "call2", "target": "end2"}]}`)
			run := func(tool string) (*hookengine.Outcome, hookengine.NodeTrace) {
				out := r.engine.Run(t.Context(), r.program, hookengine.Request{Params: json.RawMessage(`{"name":"` + tool + `","arguments":` + tt.params + `}`)}, r.server)
				return out, r.settledNode(out, "if")
			}
			out, n := run("t")
			if out.Status != tt.status || n.Branch != tt.branch || (len(n.Console) > 0) != tt.warns || out.Sent == (tt.status == hookengine.StatusRefused) {
				t.Errorf("%s, %+v: %v", out.Status, n, out.Err)
			}
			if out.Status == hookengine.StatusRefused && (n.Error == nil || n.Error.Code != hookengine.CodeMismatch || !strings.Contains(out.Err.Error(), "request.params.arguments.n")) {
				t.Errorf("%+v: %v", n.Error, out.Err)
			}
			if out, n := run("other"); out.Status != hookengine.StatusPassed || len(n.Console) > 0 {
				t.Errorf("not evaluated: %s, %+v", out.Status, n)
			}
		})
	}
}
