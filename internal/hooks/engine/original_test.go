package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// These tests cover the eleven differences between this engine and the original
// implementation of the dialect, which violated its own specification. The original
// implementation fails each of them.

// Difference 1: only nodes on a path from the start run, in the order of the path; a graph
// with an unconnected node does not load.
func TestOriginal1OrderFollowsPath(t *testing.T) {
	t.Parallel()
	r := newFixture(t, "call > after > end; b > call; a > b; start > a", nil)
	r.checkOutcome(r.runRequest(), hookengine.StatusPassed, 1)
	if got := r.scripts.ranScripts(); got != "a b after" {
		t.Errorf("ran %s", got)
	}
	lonely := strings.Replace(newDocument("start > call > end", ""), `"nodes": [`, `"nodes": [{"id": "lonely", "type": "hook", "data": {"hook": {"script": "x"}}},`, 1)
	root, _ := doc.Parse("g.json", []byte(lonely), doc.Limits{})
	if g, found := hookdef.Parse("g.json", root); g != nil || len(found) == 0 {
		t.Error("a graph with an unreachable hook loads")
	}
}

// Difference 2: a fire-and-forget hook delays nothing and cannot change anything.
func TestOriginal2BackgroundHookIsNotAwaited(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newFixture(t, "start > call > end; start > slow*; call > late*", map[string]script{
		"slow": func(_ context.Context, c map[string]any) (any, error) {
			<-release
			valueAt(c, "request", "params").(map[string]any)["name"] = "other"
			return map[string]any{"continue": false}, nil
		},
		"late": func(_ context.Context, c map[string]any) (any, error) {
			<-release
			if valueAt(c, "response", "content") == nil {
				return nil, errors.New("there was no response")
			}
			return nil, nil
		},
	})
	out := r.runRequest() // runRequest never returns if the engine waits for the hook
	r.checkOutcome(out, hookengine.StatusPassed, 1)
	for _, n := range out.Nodes() {
		if (n.ID == "slow" || n.ID == "late") != n.Pending {
			t.Errorf("%s: pending is %v", n.ID, n.Pending)
		}
	}
	close(release)
	for _, id := range []string{"slow", "late"} {
		if n := r.settledNode(out, id); n.Pending || n.Error != nil || !n.FireAndForget {
			t.Errorf("the trace of %s after Settle is %+v", id, n)
		}
	}
	if string(out.Request.Params) != params {
		t.Errorf("the request changed to %s", out.Request.Params)
	}
}

// Difference 3: the error of a blocking hook stops the request, before the call and after
// it.
func TestOriginal3ErrorStops(t *testing.T) {
	t.Parallel()
	for graph, sent := range map[string]int{"start > a > b > call > end": 0, "start > call > a > b > end": 1} {
		r := newFixture(t, graph, map[string]script{"a": throwScript})
		out := r.runRequest()
		r.checkOutcome(out, hookengine.StatusError, sent)
		if r.scripts.ranScripts() != "a" || out.Node != "a" {
			t.Errorf("the hooks %s ran and the request stopped at %s, want a and a", r.scripts.ranScripts(), out.Node)
		}
		want := "the hook 'a' of the hook graph graph failed; the call was not sent: boom (graph/a.js:3:7)"
		if sent > 0 {
			want = "the hook 'a' of the hook graph graph failed; the call was sent, and its response is withheld: boom (graph/a.js:3:7)"
		}
		if diff := cmp.Diff(want, out.Err.Error()); diff != "" || guideway.ErrorFix(out.Err) == "" {
			t.Error(diff)
		}
		if n := r.settledNode(out, "a"); n.Error == nil || n.Error.Line != 3 || n.Error.Code != hookengine.CodeScript {
			t.Errorf("the trace is %+v", n)
		}
	}
}

// Difference 4: the return value of a hook has an effect: it can refuse, replace the
// context, and answer.
func TestOriginal4ReturnValueCounts(t *testing.T) {
	t.Parallel()
	answer := map[string]any{"content": []any{map[string]any{"type": "text", "text": "mine"}}}
	returns := func(change func(c map[string]any) any) map[string]script {
		return map[string]script{"a": func(_ context.Context, c map[string]any) (any, error) { return change(c), nil }}
	}
	type table struct {
		name   string
		change func(c map[string]any) any
		status hookengine.Status
		calls  int
		err    string
	}
	with := func(c map[string]any, key string, v any) map[string]any { c[key] = v; return c }
	for _, tt := range []table{
		{"refuses with an error", func(map[string]any) any {
			return map[string]any{"continue": false, "error": map[string]any{"code": "NO", "message": "not this one"}}
		}, hookengine.StatusRefused, 0, "refused by the hook 'a': not this one; the call was not sent"},
		{
			"refuses without an error", func(map[string]any) any { return map[string]any{"continue": false} },
			hookengine.StatusRefused, 0, "refused by the hook 'a': no reason given; the call was not sent",
		},
		{
			"an error without continue: false refuses", func(map[string]any) any { return map[string]any{"continue": true, "error": "no"} },
			hookengine.StatusRefused, 0, "refused by the hook 'a': no; the call was not sent",
		},
		{"goes on", func(map[string]any) any { return map[string]any{"continue": true} }, hookengine.StatusPassed, 1, ""},
		{"a returned context replaces the changed one", func(c map[string]any) any {
			other := map[string]any{}
			for k, v := range c {
				other[k] = v
			}
			other["request"] = map[string]any{"method": "tools/call", "params": map[string]any{"name": "other"}}
			return map[string]any{"continue": true, "context": other}
		}, hookengine.StatusChanged, 1, ""},
		{"returns the context", func(c map[string]any) any { return c }, hookengine.StatusPassed, 1, ""},
		{"answers with continue: false", func(c map[string]any) any {
			return map[string]any{"continue": false, "context": with(c, "response", answer)}
		}, hookengine.StatusAnswered, 0, ""},
		{"answers and continues", func(c map[string]any) any { c["response"] = answer; return nil }, hookengine.StatusAnswered, 0, ""},
		{
			"returns an unknown value", func(map[string]any) any { return "ok" },
			hookengine.StatusError, 0, `the hook returned "ok"; it may return nothing, the context, or {continue, context, error, hold}`,
		},
		{"false", func(map[string]any) any { return false }, hookengine.StatusError, 0, "the hook returned false"},
		{
			"continue is not a boolean", func(map[string]any) any { return map[string]any{"continue": "no"} },
			hookengine.StatusError, 0, "neither true nor false",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t, "start > a > call > b > end", returns(tt.change))
			out := r.runRequest()
			r.checkOutcome(out, tt.status, tt.calls)
			if out.Err != nil && !strings.Contains(out.Err.Error(), tt.err) || out.Err == nil && tt.err != "" {
				t.Errorf("the error is %v", out.Err)
			}
			if tt.name == "refuses with an error" {
				var refusal *hookengine.Refusal
				if !errors.As(out.Err, &refusal) || refusal.Code != "NO" || guideway.ErrorCode(out.Err) != guideway.CodeRefused {
					t.Errorf("the error is %#v, want a Refusal with the code NO", out.Err)
				}
			}
			if goesOn := tt.status != hookengine.StatusRefused && tt.status != hookengine.StatusError && tt.name != "answers with continue: false"; strings.Contains(r.scripts.ranScripts(), "b") != goesOn {
				t.Errorf("ran %s", r.scripts.ranScripts())
			}
		})
	}
}

// Difference 5: the context has the documented form: request, response, metadata.
func TestOriginal5Context(t *testing.T) {
	t.Parallel()
	var before, after map[string]any
	r := newFixture(t, "start > a > call > b > end", map[string]script{
		"a": func(_ context.Context, c map[string]any) (any, error) { before = c; return nil, nil },
		"b": func(_ context.Context, c map[string]any) (any, error) { after = c; return nil, nil },
	}, func(o *hookengine.Options) { o.Now = func() time.Time { return time.UnixMilli(1_700_000_000_123) } })
	r.checkOutcome(r.runRequest(), hookengine.StatusPassed, 1)
	want := map[string]any{
		"request": map[string]any{"method": "tools/call", "params": map[string]any{
			"name": "read", "arguments": map[string]any{"path": "/tmp/a", "big": 12345678901234567890.0},
		}},
		"metadata": map[string]any{
			"clientId": "client", "serverName": "files", "workflowId": "graph", "nodeId": "a", "startTime": 1_700_000_000_123.0,
			"run":    map[string]any{"id": "r_1", "step": "plan"}, // not in the original
			"shared": map[string]any{},
		},
		"variables": map[string]any{},
	}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Error(diff)
	}
	want["response"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "done"}}}
	want["metadata"].(map[string]any)["nodeId"] = "b"
	want["metadata"].(map[string]any)["duration"] = 0.0
	if diff := cmp.Diff(want, after); diff != "" {
		t.Error(diff)
	}
}

// Difference 6: a script gets only values, JSON and a name, and no function that could send
// the call.
func TestOriginal6ScriptCannotSendCall(t *testing.T) {
	t.Parallel()
	var got hookengine.ScriptCall
	r := newFixture(t, "start > a > call > end", nil)
	engine := hookengine.New(hookengine.Options{Scripts: scriptsFunc(func(_ context.Context, c hookengine.ScriptCall) (*hookengine.ScriptResult, error) {
		got = c
		return &hookengine.ScriptResult{Context: c.Context}, nil
	})})
	defer engine.Close(t.Context())
	out := engine.Run(t.Context(), r.program, hookengine.Request{}, r.server)
	r.checkOutcome(out, hookengine.StatusPassed, 1)
	if !json.Valid(got.Context) || got.Script.Name != "graph/a.js" || got.Script.Text != "a" || got.Timeout != 5*time.Second {
		t.Errorf("the script got the call %+v", got)
	}
}

type scriptsFunc func(context.Context, hookengine.ScriptCall) (*hookengine.ScriptResult, error)

func (f scriptsFunc) RunHook(ctx context.Context, c hookengine.ScriptCall) (*hookengine.ScriptResult, error) {
	return f(ctx, c)
}

// Difference 7: a failed call is not sent again, and its error is returned unchanged. Of
// the later hooks, only fire-and-forget hooks directly after the call run.
func TestOriginal7FailureIsNotSentAgain(t *testing.T) {
	t.Parallel()
	broken := errors.New("the pipe broke")
	seen := make(chan any, 1)
	r := newFixture(t, "start > call > b > end; call > audit*; b > later*", map[string]script{
		"audit": func(_ context.Context, c map[string]any) (any, error) {
			seen <- valueAt(c, "metadata", "error", "message")
			return nil, nil
		},
	})
	r.server.err = broken
	out := r.runRequest()
	r.checkOutcome(out, hookengine.StatusError, 1)
	if !errors.Is(out.Err, broken) || out.Err.Error() != broken.Error() {
		t.Errorf("the error is %v", out.Err)
	}
	r.settledNode(out, "audit")
	if r.scripts.ranScripts() != "audit" || <-seen != "the pipe broke" {
		t.Errorf("ran %s", r.scripts.ranScripts())
	}
	r = newFixture(t, "start > call > end", nil)
	r.server.response = " "[1:]
	out = r.engine.Run(t.Context(), r.program, hookengine.Request{}, hookengine.CallerFunc(func(ctx context.Context, c hookengine.Call) (json.RawMessage, error) {
		_, err := r.server.Call(ctx, c)
		return nil, err
	}))
	r.checkOutcome(out, hookengine.StatusError, 1)
}

// Difference 8: graphs of the type tools/call run for calls, graphs of the type tools/list
// for lists, and each for its bound tools only.
func TestOriginal8BothTypesRun(t *testing.T) {
	t.Parallel()
	call := compileGraph(t, newDocument("start > a > call > end", `"workflowType": "tools/call", "bindings": [{"upstream": "git*", "tool": "delete_*"}]`))
	list := compileGraph(t, newDocument("start > a > call > end", `"workflowType": "tools/list"`))
	set := hookengine.NewSet([]*hookengine.Program{call, list}, nil)
	for _, tt := range []struct {
		t              hookdef.Type
		upstream, tool string
		want           *hookengine.Program
	}{
		{hookdef.ToolsCall, "github", "delete_repo", call},
		{hookdef.ToolsCall, "github", "read", nil},
		{hookdef.ToolsCall, "files", "delete_repo", nil},
		{hookdef.ToolsList, "files", "", list},
	} {
		if got, err := onlyProgram(set.Chain(tt.t, tt.upstream, tt.tool)); got != tt.want || err != nil {
			t.Errorf("%s of %s: %v, %v", tt.tool, tt.upstream, got, err)
		}
	}
	if got, err := (*hookengine.Set)(nil).Chain(hookdef.ToolsCall, "a", "b"); got != nil || err != nil {
		t.Error("For returned a program for an empty set")
	}
	r := newFixture(t, "start > call > end", nil)
	r.server.response = `{"tools":[{"name":"read"}]}`
	out := r.engine.Run(t.Context(), list, hookengine.Request{}, r.server)
	r.checkOutcome(out, hookengine.StatusPassed, 1)
	if r.server.calls[0].Method != hookdef.ToolsList || len(r.server.calls[0].Params) != 0 {
		t.Errorf("sent %+v", r.server.calls[0])
	}
}

// Difference 9: the timeout of a hook includes asynchronous work.
func TestOriginal9Timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, "start > a > call > end", map[string]script{
			"a": func(ctx context.Context, _ map[string]any) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
		})
		begun := time.Now()
		out := r.runRequest()
		r.checkOutcome(out, hookengine.StatusError, 0)
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		if n := r.settledNode(out, "a"); n.Error == nil || n.Error.Code != hookengine.CodeTimeout || n.MS != 5000 {
			t.Errorf("the trace is %+v", n)
		}
	})
}

// Difference 10: all graphs that apply to one request run, the one with the lowest order
// first; the original ran only the first one that it found.
func TestOriginal10Chain(t *testing.T) {
	t.Parallel()
	graph := func(id, more string) *hookengine.Program {
		return compileGraph(t, strings.Replace(newDocument("start > call > end", `"workflowType": "tools/call"`+more), `"graph"`, `"`+id+`"`, 1))
	}
	set := hookengine.NewSet([]*hookengine.Program{
		graph("b", ""), graph("last", `, "order": 90`), graph("a", `, "bindings": [{"tool": "read*"}]`), graph("first", `, "order": 0, "bindings": [{"upstream": "files"}]`),
		graph("all", `, "order": 60, "also": ["resources/read", "prompts/get"]`),
	}, nil)
	for _, tt := range []struct {
		method         hookdef.Type
		upstream, tool string
		want           string
	}{
		{hookdef.ToolsCall, "files", "read_a", "first a b all last"},
		{hookdef.ToolsCall, "other", "write", "b all last"},
		{hookdef.ResourceRead, "files", "", "all"},
		{hookdef.PromptGet, "files", "", "all"},
		{hookdef.ToolsList, "files", "", ""},
	} {
		chain, err := set.Chain(tt.method, tt.upstream, tt.tool)
		var ids []string
		for _, p := range chain {
			ids = append(ids, p.Graph().ID)
		}
		if got := strings.Join(ids, " "); got != tt.want || err != nil || set.Applies(tt.method, tt.upstream, tt.tool) != (tt.want != "") {
			t.Errorf("the chain of %s %s/%s is %q, %v, want %q", tt.method, tt.upstream, tt.tool, got, err, tt.want)
		}
	}
}

// Difference 11: every node has a trace with its console, error and changes.
func TestOriginal11Trace(t *testing.T) {
	t.Parallel()
	r := newFixture(t, "start > a > call > end; a > x*", map[string]script{
		"a": func(_ context.Context, c map[string]any) (any, error) {
			valueAt(c, "request", "params", "arguments").(map[string]any)["path"] = "/tmp/b"
			valueAt(c, "variables").(map[string]any)["n"] = 1
			return nil, nil
		},
		"x": throwScript,
	})
	out := r.runRequest()
	r.checkOutcome(out, hookengine.StatusChanged, 1)
	if got := string(out.Request.Params); got != strings.Replace(params, "/tmp/a", "/tmp/b", 1) {
		t.Errorf("the request is %s", got)
	}
	nodes, err := out.Settle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	if got := strings.Join(ids, " "); got != "start a x call end" {
		t.Errorf("traced %s", got)
	}
	want := []hookengine.Change{
		{Op: "replace", Pointer: "/request/params/arguments/path", Before: json.RawMessage(`"/tmp/a"`), After: json.RawMessage(`"/tmp/b"`)},
		{Op: "add", Pointer: "/variables/n", After: json.RawMessage(`1`)},
	}
	if diff := cmp.Diff(want, nodes[1].Changes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]hookengine.Line{{Level: "log", Text: "a"}}, nodes[1].Console); diff != "" {
		t.Error(diff)
	}
	if nodes[2].Error == nil || nodes[2].Error.Message != "boom" {
		t.Errorf("the trace of x is %+v", nodes[2])
	}
}
