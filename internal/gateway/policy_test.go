package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixedPolicies returns the same scopes to every client.
type fixedPolicies struct {
	mu     sync.Mutex
	scopes []toolpolicy.Scope
	err    error
}

func (p *fixedPolicies) Scopes(context.Context, *mcp.ServerSession) ([]toolpolicy.Scope, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scopes, p.err
}

func (p *fixedPolicies) set(err error, scopes ...toolpolicy.Scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scopes, p.err = scopes, err
}

// reviewScope returns the scope of a step with a policy.
func reviewScope(p toolpolicy.Policy) toolpolicy.Scope {
	return toolpolicy.Scope{Run: "r_1", Workflow: "ship", Step: "review", Policy: &p}
}

func rules(tools ...string) []toolpolicy.Rule {
	list := []toolpolicy.Rule{}
	for _, tool := range tools {
		list = append(list, toolpolicy.Rule{Tool: tool})
	}
	return list
}

// TestPolicyOnEveryPath checks that a call that a policy denies never reaches the upstream,
// by name and by tool search, on the fast path and through the SDK, in both protocol
// versions; that it is recorded as refused; and that an allowed call is sent.
func TestPolicyOnEveryPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"fast", slow} {
		for _, version := range []string{legacy, modern} {
			t.Run(path+" "+version, func(t *testing.T) {
				t.Parallel()
				e, policies, seen := newEntry(t, "one", upstreamtest.Modern), &fixedPolicies{}, newWatcher("")
				r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Policies: policies, Observer: seen}, path)
				p := r.connectClient(t, clientSetup{user: "ann", version: version})
				p.toolNames()
				calls := map[string]func() string{
					"by name": func() string { return p.callTool("one__count", nil) },
					"found":   func() string { return p.callTool("tool_call", args{"name": "one__count"}) },
				}
				for name, call := range calls {
					policies.set(nil, reviewScope(toolpolicy.Policy{Allow: rules("one__echo", "Edit")}))
					sent := countCalls(e)
					got := call()
					for _, want := range []string{"isError", `"refused"`, "r_1", `"step":"review"`, "one__count", "only one__echo, Edit", "workflow_abort"} {
						if !strings.Contains(got, want) {
							t.Errorf("%s: the refusal %s lacks %q", name, got, want)
						}
					}
					if x := seen.waitForExchange(t); x.Outcome != gateway.OutcomeRefused || x.Name != "count" || !strings.Contains(x.Error, "review") {
						t.Errorf("%s: recorded %+v", name, x)
					}
					policies.set(errors.New("event 3 is missing"))
					if got := call(); !strings.Contains(got, "isError") || !strings.Contains(got, "event 3 is missing") {
						t.Errorf("%s: with an unknown position: %s", name, got)
					}
					seen.waitForExchange(t)
					if countCalls(e) != sent {
						t.Errorf("%s: a refused call was sent", name)
					}
					policies.set(nil, reviewScope(toolpolicy.Policy{Allow: rules("one__c*")}))
					if got := call(); strings.Contains(got, "isError") || countCalls(e) != sent+1 {
						t.Errorf("%s: an allowed call returned %s", name, got)
					}
					seen.waitForExchange(t)
				}
			})
		}
	}
}

// TestPolicyOfGateway checks that the gateway's own policy applies without a run, and that
// no policy of a run widens it.
func TestPolicyOfGateway(t *testing.T) {
	t.Parallel()
	policies := &fixedPolicies{}
	r := newFixture(t, gateway.Options{
		Upstreams: []gateway.Entry{newEntry(t, "one")}, Policies: policies, Tools: &toolpolicy.Policy{Deny: rules("one__env")},
	})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.toolNames()
	for _, scopes := range [][]toolpolicy.Scope{nil, {reviewScope(toolpolicy.Policy{Allow: rules("one__env", "one__echo")})}} {
		policies.set(nil, scopes...)
		if got := p.callTool("one__env", nil); !strings.Contains(got, "the configuration does not allow one__env") {
			t.Errorf("callTool() = %s", got)
		}
		if got := p.callTool("one__echo", args{"text": "hi"}); got != "hi" {
			t.Errorf("callTool() = %s", got)
		}
	}
}

// TestRefusalIsSentOnce checks that a refusal of the gateway is text alone, because some
// clients show their model both parts of a result.
func TestRefusalIsSentOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Tools: &toolpolicy.Policy{Deny: rules("one__env")}})
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "ann", version: version})
		p.toolNames()
		for _, call := range []*mcp.CallToolParams{{Name: "one__env"}, {Name: "tool_call", Arguments: args{"name": "one__env"}}, {Name: "tool_call", Arguments: args{"name": 1}}} {
			result, err := p.session.CallTool(t.Context(), call)
			if err != nil || !result.IsError || len(result.Content) != 1 || result.StructuredContent != nil {
				t.Errorf("%s: %v: the call of %s returned %+v", version, err, call.Name, result)
			}
		}
	}
}

// TestPolicyAfterHooks checks that a call is checked again after the hooks, which can change
// its arguments and its tool, and that hooks do not run for a denied call.
func TestPolicyAfterHooks(t *testing.T) {
	t.Parallel()
	deny := toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "one__echo", Arguments: map[string]string{"text": "rm*"}}, {Tool: "one__env"}}}
	for name, tt := range map[string]struct {
		pairs []string
		text  string
		hooks int
	}{
		"changed arguments": {[]string{"ls", "rm -r"}, "ls", 1},
		"another tool":      {[]string{`"name":"echo"`, `"name":"env"`}, "ls", 1},
		"denied before":     {[]string{"rm", "ls"}, "rm -r", 0},
	} {
		hooks := &replaceHooks{pairs: map[string][]string{"tools/call echo": tt.pairs}}
		policies := &fixedPolicies{}
		policies.set(nil, reviewScope(deny))
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Policies: policies, Hooks: hooks})
		p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
		p.toolNames()
		if got := p.callTool("one__echo", args{"text": tt.text}); !strings.Contains(got, "isError") || !strings.Contains(got, `does not allow`) {
			t.Errorf("%s: %s", name, got)
		}
		if n := len(hooks.seenCalls()); n != tt.hooks {
			t.Errorf("%s: %d hooks ran", name, n)
		}
	}
}

// scopeHooks records the run and the step of each call.
type scopeHooks struct{ seen chan string }

func (scopeHooks) Versions(string, string) map[string]string { return nil }

func (scopeHooks) Applies(method, _, _ string) bool { return method == "tools/call" }

func (h scopeHooks) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	h.seen <- call.Run + " " + call.Step
	return send(ctx, call.Params)
}

// TestHooksReceiveTheRun checks that hooks receive the run that the client used last, and
// none if it has no open run.
func TestHooksReceiveTheRun(t *testing.T) {
	t.Parallel()
	hooks, policies := scopeHooks{make(chan string, 1)}, &fixedPolicies{}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Policies: policies, Hooks: hooks, Tools: &toolpolicy.Policy{Deny: rules("x")}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.toolNames()
	for _, want := range []string{" ", "r_1 review"} {
		if p.callTool("one__echo", args{"text": "hi"}); <-hooks.seen != want {
			t.Errorf("the hooks did not get %q", want)
		}
		policies.set(nil, reviewScope(toolpolicy.Policy{}), toolpolicy.Scope{Run: "r_2", Step: "other"})
	}
}

// TestPolicyByAnnotation checks that a rule about annotations applies to the annotations that
// clients see, with the defaults of the protocol, and that calls that a policy holds are not
// sent.
func TestPolicyByAnnotation(t *testing.T) {
	t.Parallel()
	e, policies := newEntry(t, "one"), &fixedPolicies{}
	policies.set(nil, reviewScope(toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "*", Annotations: map[string]bool{"destructive": true}}}}))
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Policies: policies})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
	p.toolNames()
	if got := p.callTool("one__count", nil); !strings.Contains(got, "approval of a person") || countCalls(e) != 0 {
		t.Errorf("callTool() = %s", got)
	}
}

// connectionPolicies records the connection of the last call.
type connectionPolicies struct{ seen chan *mcp.ServerSession }

func (p connectionPolicies) Scopes(_ context.Context, connection *mcp.ServerSession) ([]toolpolicy.Scope, error) {
	p.seen <- connection
	return nil, nil
}

// TestConnectionOfCalls checks that a call has the same connection as the client's other
// requests, on the fast path and through the SDK: none for a modern client over HTTP.
func TestConnectionOfCalls(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"fast", slow} {
		policies := connectionPolicies{make(chan *mcp.ServerSession, 1)}
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Policies: policies}, path)
		listed := make(chan *mcp.ServerSession, 2)
		r.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					listed <- gateway.ConnectionOf(req)
				}
				return next(ctx, method, req)
			}
		})
		for _, version := range []string{legacy, modern} {
			p := r.connectClient(t, clientSetup{user: "ann", version: version})
			p.toolNames()
			p.callTool("one__echo", args{"text": "hi"})
			if list, call := <-listed, <-policies.seen; list != call || (call == nil) != (version == modern) {
				t.Errorf("%s over HTTP, %s: the list has the connection %p, the call %p", path, version, list, call)
			}
		}
		if path == slow {
			continue
		}
		s := r.connectStdio(t)
		s.sendLine(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`)
		s.receiveLine()
		s.sendLine(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"hi"},` + meta + `}}`)
		s.receiveLine()
		if list, call := <-listed, <-policies.seen; list != call || call == nil {
			t.Errorf("modern on stdio: the list has the connection %p, the call %p", list, call)
		}
	}
}
