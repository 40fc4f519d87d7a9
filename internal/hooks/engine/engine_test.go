package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
)

// The number of concurrent fire-and-forget hooks is limited. Additional hooks are dropped,
// which the trace reports, without delaying or failing the call.
func TestBackgroundHooksAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		told := make(chan string, 9)
		waits := func(context.Context, map[string]any) (any, error) { <-release; return nil, nil }
		r := newFixture(t, "start > call > end; start > a*; start > b*; start > c*", map[string]script{"a": waits, "b": waits, "c": waits},
			func(o *hookengine.Options) {
				o.Background = 2
				o.OnBackground = func(graph string, n hookengine.NodeTrace) { told <- graph + " " + n.ID }
			})
		out := r.runRequest()
		r.checkOutcome(out, hookengine.StatusPassed, 1)
		if got := <-told; got != "graph c" {
			t.Errorf("OnBackground got the trace of %q, want \"graph c\"", got)
		}
		close(release)
		n := r.settledNode(out, "c")
		if n.Error == nil || n.Error.Code != hookengine.CodeDropped || n.Pending {
			t.Errorf("the trace is %+v", n)
		}
		again := r.runRequest() // now the slot is free again
		for _, id := range []string{"a", "b"} {
			if n := r.settledNode(again, id); n.Error != nil {
				t.Errorf("%s: %+v", id, n.Error)
			}
		}
	})
}

// A fire-and-forget hook outlives its request, but not the engine: Close waits until its
// deadline, and no more hooks start.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, "start > call > end; start > a*", map[string]script{
			"a": func(ctx context.Context, _ map[string]any) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
		}, func(o *hookengine.Options) { o.Timeout = time.Hour })
		ctx, cancel := context.WithCancel(t.Context())
		out := r.engine.Run(ctx, r.program, hookengine.Request{}, r.server)
		cancel()
		synctest.Wait()
		if n := out.Nodes()[1]; !n.Pending {
			t.Errorf("the hook ended together with its request: %+v", n)
		}
		patience, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		r.engine.Close(patience)
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("Close returned after %s, want 1m", took)
		}
		if n := r.settledNode(out, "a"); n.Error == nil {
			t.Errorf("the trace is %+v", n)
		}
		late := r.engine.Run(t.Context(), r.program, hookengine.Request{}, r.server)
		if n := r.settledNode(late, "a"); late.Err != nil || n.Error == nil || n.Error.Code != hookengine.CodeDropped {
			t.Errorf("%v, %+v", late.Err, n)
		}
	})
}

// A response that no hook changed is returned byte for byte, even if a hook has read it. A
// changed response must be valid.
func TestResponses(t *testing.T) {
	t.Parallel()
	raw := "{ \"content\" : [ {\"type\":\"text\",\"text\":\"\\u0041\"} ],\n \"n\": 12345678901234567890 }"
	sets := func(response any) script {
		return func(_ context.Context, c map[string]any) (any, error) { c["response"] = response; return nil, nil }
	}
	for name, tt := range map[string]struct {
		hook   script
		status hookengine.Status
		want   string
	}{
		"looked at": {nil, hookengine.StatusPassed, raw},
		"changed": {func(_ context.Context, c map[string]any) (any, error) {
			valueAt(c, "response").(map[string]any)["isError"] = true
			return nil, nil
		}, hookengine.StatusChanged, `{"content":[ {"type":"text","text":"\u0041"} ],"n":12345678901234567890,"isError":true}`},
		"no object":  {sets("text"), hookengine.StatusError, "context.response to a value that is not an object"},
		"no content": {sets(map[string]any{"text": "x"}), hookengine.StatusError, `without the list "content"`},
		"no type":    {sets(map[string]any{"content": []any{"x"}}), hookengine.StatusError, `content[0] has no "type"`},
		"taken away": {sets(nil), hookengine.StatusError, "removed context.response"},
		"other form": {func(_ context.Context, c map[string]any) (any, error) { delete(c, "request"); return nil, nil }, hookengine.StatusError, "removed context.request"},
		"method": {func(_ context.Context, c map[string]any) (any, error) {
			valueAt(c, "request").(map[string]any)["method"] = "x"
			return nil, nil
		}, hookengine.StatusError, "must stay \"tools/call\""},
		"variables": {func(_ context.Context, c map[string]any) (any, error) { c["variables"] = []any{}; return nil, nil }, hookengine.StatusError, "context.variables to a value that is not an object"},
		"withheld":  {func(context.Context, map[string]any) (any, error) { return map[string]any{"continue": false}, nil }, hookengine.StatusRefused, "its response is withheld"},
		"cut off": {func(_ context.Context, c map[string]any) (any, error) {
			c["response"] = map[string]any{"content": []any{}}
			return map[string]any{"continue": false}, nil
		}, hookengine.StatusChanged, `{"content":[]}`},
		"audit alone": {func(_ context.Context, c map[string]any) (any, error) { c["audit"] = []any{1}; return nil, nil }, hookengine.StatusError, "writes no audit file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t, "start > call > a > end", map[string]script{"a": tt.hook})
			r.server.response = raw
			out := r.runRequest()
			r.checkOutcome(out, tt.status, 1)
			if out.Err == nil && string(out.Response) != tt.want || out.Err != nil && !strings.Contains(out.Err.Error(), tt.want) {
				t.Errorf("the response is %s, the error %v", out.Response, out.Err)
			}
		})
	}
}

// Duplicate keys are refused, because a hook and a server could read them differently.
func TestDuplicateKeys(t *testing.T) {
	t.Parallel()
	r := newFixture(t, "start > a > call > end", nil)
	out := r.engine.Run(t.Context(), r.program, hookengine.Request{Params: json.RawMessage(`{"arguments": {"path": "/etc", "path": "/ok"}}`)}, r.server)
	r.checkOutcome(out, hookengine.StatusError, 0)
	if !strings.Contains(out.Err.Error(), `duplicate key "path"`) {
		t.Error(out.Err)
	}
}

// Variables start with the graph's values, are shared within one request, and are reset for
// the next; metadata.shared behaves in the same way. The engine sets the other metadata.
func TestVariables(t *testing.T) {
	t.Parallel()
	r := newFixture(t, "start > call > end", nil)
	var seen []string
	r.scripts.known = map[string]script{
		"a": func(_ context.Context, c map[string]any) (any, error) {
			vars := valueAt(c, "variables").(map[string]any)
			vars["n"] = vars["n"].(float64) + 1
			valueAt(c, "metadata", "shared").(map[string]any)["x"] = "kept"
			valueAt(c, "metadata").(map[string]any)["clientId"] = "forged"
			return nil, nil
		},
		"b": func(_ context.Context, c map[string]any) (any, error) {
			seen = append(seen, fmt.Sprint(valueAt(c, "variables", "n"), valueAt(c, "metadata", "shared", "x"), valueAt(c, "metadata", "clientId")))
			return nil, nil
		},
	}
	r.program = compileGraph(t, newDocument("start > a > call > b > end", `"workflowType": "tools/call", "variables": {"n": 1}`))
	for range 2 {
		if out := r.runRequest(); out.Status != hookengine.StatusPassed {
			t.Errorf("the outcome is %s: %v, want StatusPassed", out.Status, out.Err)
		}
	}
	if diff := cmp.Diff([]string{"2keptclient", "2keptclient"}, seen); diff != "" {
		t.Error(diff)
	}
}

// A condition can read the request, response, metadata and variables.
func TestConditions(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]hookdef.Branch{
		`{"type": "simple", "variable": "request.params.arguments.path", "operator": "==", "value": "/tmp/a"}`: hookdef.True,
		`{"type": "simple", "variable": "request.params.arguments.PATH", "operator": "exists"}`:                hookdef.False,
		`{"type": "simple", "variable": "request.method", "operator": "==", "value": "tools/call"}`:            hookdef.True,
		`{"type": "simple", "variable": "metadata.serverName", "operator": "==", "value": "files"}`:            hookdef.True,
		`{"type": "simple", "variable": "metadata.run.step", "operator": "==", "value": "plan"}`:               hookdef.True,
		`{"type": "simple", "variable": "variables.flag", "operator": "==", "value": true}`:                    hookdef.True,
		`{"type": "simple", "variable": "response.content.length", "operator": "==", "value": 1}`:              hookdef.True,
		`{"type": "simple", "variable": "response.content.0.text", "operator": "==", "value": "other"}`:        hookdef.False,
		`{"type": "simple", "variable": "secrets", "operator": "exists"}`:                                      hookdef.False,
	} {
		graph := fmt.Sprintf(`{"id": "graph", "name": "Graph", "workflowType": "tools/call", "variables": {"flag": true}, "nodes": [
			{"id": "start", "type": "start"}, {"id": "call", "type": "mcp-call"}, {"id": "which", "type": "condition", "data": {"condition": %s}},
			{"id": "yes", "type": "end"}, {"id": "no", "type": "end"}, {"id": "aside", "type": "hook", "data": {"hook": {"script": "aside", "blocking": false}}}],
			"edges": [{"source": "start", "target": "call"}, {"source": "call", "target": "which"},
			{"source": "which", "target": "yes", "sourceHandle": "true"}, {"source": "which", "target": "no", "sourceHandle": "false"},
			{"source": "which", "target": "aside", "sourceHandle": "true"}]}`, condition)
		r := newFixture(t, "start > call > end", nil)
		r.program = compileGraph(t, graph)
		out := r.runRequest()
		r.checkOutcome(out, hookengine.StatusPassed, 1)
		nodes, err := out.Settle(t.Context())
		if err != nil || nodes[2].Branch != want || (r.scripts.ranScripts() == "aside") != (want == hookdef.True) {
			t.Errorf("%s: %+v, ran %q", condition, nodes[2], r.scripts.ranScripts())
		}
	}
}

// A hook that must answer but does not is an error, and the call is not sent.
func TestAnswers(t *testing.T) {
	t.Parallel()
	r := newFixture(t, "start > answer > end", nil)
	out := r.runRequest()
	r.checkOutcome(out, hookengine.StatusError, 0)
	if !strings.Contains(out.Err.Error(), "did not set context.response") {
		t.Error(out.Err)
	}
	r = newFixture(t, "start > answer > a > end", map[string]script{"answer": func(_ context.Context, c map[string]any) (any, error) {
		c["response"] = map[string]any{"content": []any{}}
		return nil, nil
	}})
	out = r.runRequest()
	r.checkOutcome(out, hookengine.StatusAnswered, 0)
	if r.scripts.ranScripts() != "answer a" {
		t.Errorf("ran %s", r.scripts.ranScripts())
	}
}

// auditor stores entries, or returns an error if err is set.
type auditor struct {
	entries []hookengine.AuditEntry
	err     error
}

func (a *auditor) Audit(_ context.Context, e hookengine.AuditEntry) error {
	a.entries = append(a.entries, e)
	return a.err
}

// Audit records have fields that no script can forge. If a record cannot be stored, a
// blocking hook fails, and a fire-and-forget hook reports it.
func TestAudit(t *testing.T) {
	t.Parallel()
	audits := func(_ context.Context, c map[string]any) (any, error) {
		c["audit"] = []any{map[string]any{"node": "forged"}, "line\nbreak"}
		return nil, nil
	}
	now := time.UnixMilli(1_700_000_000_000).UTC()
	run := func(graph string, keeps *auditor) (*fixture, *hookengine.Outcome) {
		r := newFixture(t, graph, map[string]script{"a": audits}, func(o *hookengine.Options) {
			o.Audit, o.Now = keeps, func() time.Time { return now }
		})
		return r, r.runRequest()
	}
	keeps := &auditor{}
	r, out := run("start > call > end; call > a*", keeps)
	r.checkOutcome(out, hookengine.StatusPassed, 1)
	r.settledNode(out, "a")
	one := hookengine.AuditEntry{Time: now, Graph: "graph", Node: "a", ClientID: "client", Server: "files", Method: hookdef.ToolsCall}
	want := []hookengine.AuditEntry{one, one}
	want[0].Record, want[1].Record = json.RawMessage(`{"node":"forged"}`), json.RawMessage(`"line\nbreak"`)
	if diff := cmp.Diff(want, keeps.entries); diff != "" {
		t.Error(diff)
	}
	full := &auditor{err: errors.New("the disk is full")}
	r, out = run("start > call > end; call > a*", full)
	r.checkOutcome(out, hookengine.StatusPassed, 1)
	if n := r.settledNode(out, "a"); n.Error == nil || n.Error.Code != hookengine.CodeAudit {
		t.Errorf("the trace is %+v", n)
	}
	r, out = run("start > a > call > end", full)
	r.checkOutcome(out, hookengine.StatusError, 0)
	if !strings.Contains(out.Err.Error(), "the audit records were not written: the disk is full") {
		t.Error(out.Err)
	}
}

// A response that asks for input is returned unchanged, and no hook runs. If it also
// contains a result, it is an error.
func TestInputRequest(t *testing.T) {
	t.Parallel()
	r := newFixture(t, "start > call > a > end", map[string]script{"a": throwScript})
	r.server.response = `{"resultType":"input_required","inputRequests":{},"requestState":"s"}`
	out := r.runRequest()
	r.checkOutcome(out, hookengine.StatusPassed, 1)
	if string(out.Response) != r.server.response || r.scripts.ranScripts() != "" {
		t.Errorf("the response is %s after the hooks %q, want an unchanged response and no hooks", out.Response, r.scripts.ranScripts())
	}
	for _, smuggled := range []string{
		`{"resultType":"input_required","content":[{"type":"text","text":"secret"}]}`,
		`{"resultType":"\u0069nput_required","content":[]}`,
		`{"resultType":"complete","content":[{"type":"text","text":"input_required"}]}`,
	} {
		r := newFixture(t, "start > call > a > end", map[string]script{"a": throwScript})
		r.server.response = smuggled
		r.checkOutcome(r.runRequest(), hookengine.StatusError, 1)
	}
}

// A request is not sent after its context is cancelled.
func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := newFixture(t, "start > a > call > end", map[string]script{"a": func(context.Context, map[string]any) (any, error) { cancel(); return nil, nil }})
	out := r.engine.Run(ctx, r.program, hookengine.Request{}, r.server)
	r.checkOutcome(out, hookengine.StatusError, 0)
	if !errors.Is(out.Err, context.Canceled) {
		t.Error(out.Err)
	}
}

// Compile returns an error for an invalid graph.
func TestCompileErrors(t *testing.T) {
	t.Parallel()
	l := linkGraph(t, newDocument("start > a > call > end", ""))
	bare := *l
	bare.Scripts = nil
	if _, err := hookengine.Compile(&bare); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition {
		t.Errorf("without a script: %v", err)
	}
	g := *l.Graph
	g.Edges = append(g.Edges[:2:2], hookdef.Edge{Source: "call", Target: "start"})
	if _, err := hookengine.Compile(&hookdef.Linked{Graph: &g, Scripts: l.Scripts}); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition {
		t.Errorf("with a circle: %v", err)
	}
}

// An enabled graph that cannot run blocks the calls that it applies to.
func TestBlocked(t *testing.T) {
	t.Parallel()
	set := hookengine.NewSet(nil, []hookengine.Blocked{{ID: "guard", Types: []hookdef.Type{hookdef.ToolsCall}, Bindings: []hookdef.Binding{{Tool: "rm*"}}, Why: "it changed", Fix: "look at it"}})
	if _, err := set.Chain(hookdef.ToolsCall, "shell", "rm_all"); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) != "look at it" {
		t.Errorf("For returned %v", err)
	}
	for _, tt := range []struct {
		t    hookdef.Type
		tool string
	}{{hookdef.ToolsCall, "ls"}, {hookdef.ToolsList, ""}} {
		if p, err := set.Chain(tt.t, "shell", tt.tool); p != nil || err != nil {
			t.Error(tt, p, err)
		}
	}
}

// BenchmarkNoGraph measures a request without an active graph.
func BenchmarkNoGraph(b *testing.B) {
	set := hookengine.NewSet(nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		if p, err := set.Chain(hookdef.ToolsCall, "a", "b"); p != nil || err != nil {
			b.Fatal(p, err)
		}
	}
}
