package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Policies knows the policies that restrict the calls of clients.
type Policies interface {
	// Scopes returns the policies of the open runs of the client with a connection, the last
	// used run first. The connection is nil for a modern client over HTTP. It is called for
	// every call; an error refuses the call.
	Scopes(ctx context.Context, connection *mcp.ServerSession) ([]toolpolicy.Scope, error)
}

// ConnectionOf returns the connection that a request shares with the other requests of its
// client, or nil for a modern request over HTTP.
func ConnectionOf(req mcp.Request) *mcp.ServerSession {
	session, _ := req.GetSession().(*mcp.ServerSession)
	if from, ok := req.(request); !ok || headerOf(req) != nil && from.ProtocolVersion() >= upstream.ModernVersion {
		return nil
	}
	return session
}

// loadScopes sets the policies that apply to a request: those of the client's open runs, or
// those that the request has, and always the policy of the gateway.
func (g *Gateway) loadScopes(ctx context.Context, c *Client, r *Request) error {
	if r.Scopes == nil && g.opts.Policies != nil {
		scopes, err := g.opts.Policies.Scopes(ctx, c.connection)
		if err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "the call was not sent, because the step of an open run is unknown: %w", err).
				WithFix("%s", guideway.ErrorFix(err))
		}
		r.Scopes = scopes
	}
	if p := g.tools.Load(); !p.IsZero() {
		r.Scopes = append(r.Scopes[:len(r.Scopes):len(r.Scopes)], toolpolicy.Scope{Policy: p})
	}
	return nil
}

// checkPolicy returns an error if a policy denies a call of a tool. If a policy holds the
// call, it returns the reason.
func (g *Gateway) checkPolicy(t *tool, r Request) (hold string, err error) {
	if len(r.Scopes) == 0 {
		return "", nil
	}
	d := toolpolicy.DecideAll(r.Scopes, t.policyCall(r.Arguments))
	switch d.Verdict {
	case toolpolicy.Denied:
		return "", &policyError{tool: t.name, decision: d}
	case toolpolicy.Held:
		return fmt.Sprintf("%s holds calls of %s", d.Scope, d.Rule), nil
	default:
		return "", nil
	}
}

// refuseByPolicy loads the policies of a request, and returns an error if one denies the
// call. Hooks can change a call later, so checkPolicy checks it again before it is sent.
func (g *Gateway) refuseByPolicy(ctx context.Context, c *Client, t *tool, r *Request) error {
	err := g.loadScopes(ctx, c, r)
	if err == nil {
		_, err = g.checkPolicy(t, *r)
	}
	return err
}

// policyError is the error of a call that a policy denies.
type policyError struct {
	tool     string
	decision toolpolicy.Decision
}

// Error implements error.
func (e *policyError) Error() string {
	if e.decision.Rule == nil {
		return fmt.Sprintf("%s does not allow %s: no entry of allow matches the call", e.decision.Scope, e.tool)
	}
	return fmt.Sprintf("%s does not allow %s: deny contains %s", e.decision.Scope, e.tool, e.decision.Rule)
}

// Unwrap returns an error with the code and the fix.
func (e *policyError) Unwrap() error {
	fix := "ask the user to change the setting gateway.tools, which restricts all calls"
	if e.decision.Scope.Run != "" {
		fix = "do the step with the tools that it allows, then submit its result; if the run is no longer wanted, ask the user and call workflow_abort"
	}
	return &guideway.Error{Code: guideway.CodeRefused, Message: e.Error(), Fix: fix}
}

// result returns the tool error, which names the run, the step and what is allowed.
func (e *policyError) result() json.RawMessage {
	s := e.decision.Scope
	members := []jsonrpc.Member{{Key: "rule", Value: jsonrpc.Text("tool-not-allowed")}}
	if s.Run != "" {
		members = append(members, jsonrpc.Member{Key: "runId", Value: jsonrpc.Text(s.Run)}, jsonrpc.Member{Key: "step", Value: jsonrpc.Text(s.Step)})
	}
	members = append(members, jsonrpc.Member{Key: "tools", Value: jsonrpc.Text(s.Policy.String())})
	return toolError(guideway.CodeRefused, e.Error(), guideway.ErrorFix(e), members...)
}

// annotate returns a tool with the annotations of its rule. A tool that the rule declares
// read-only is not destructive, and a destructive one is not read-only, even if the upstream
// declares it.
func annotate(raw json.RawMessage, rule config.UpstreamTool) json.RawMessage {
	no := false
	if rule.ReadOnly != nil && *rule.ReadOnly {
		rule.Destructive = &no
	} else if rule.Destructive != nil && *rule.Destructive {
		rule.ReadOnly = &no
	}
	var set []jsonrpc.Member
	add := func(key string, value *bool) {
		if value != nil {
			text, _ := json.Marshal(*value) // a boolean always marshals
			set = append(set, jsonrpc.Member{Key: key, Value: text})
		}
	}
	add("readOnlyHint", rule.ReadOnly)
	add("destructiveHint", rule.Destructive)
	add("idempotentHint", rule.Idempotent)
	add("openWorldHint", rule.OpenWorld)
	if set == nil {
		return raw
	}
	annotations, err := jsonrpc.With(jsonrpc.ObjectMember(raw, "annotations"), set...)
	if err != nil { // The tool was parsed before.
		return raw
	}
	if out, err := jsonrpc.With(raw, jsonrpc.Member{Key: "annotations", Value: annotations}); err == nil {
		return out
	}
	return raw
}

// policyCall returns the description of a call of the tool on which policies decide.
func (t *tool) policyCall(arguments json.RawMessage) toolpolicy.Call {
	c := toolpolicy.Call{Tool: t.full, Annotations: annotationsOf(t.shown), Arguments: arguments}
	if t.name != t.full {
		c.Short = t.name
	}
	return c
}

// annotationsOf returns the annotations that a tool declares, by their names in the
// configuration.
func annotationsOf(raw json.RawMessage) map[string]bool {
	var declared map[string]any
	if json.Unmarshal(jsonrpc.ObjectMember(raw, "annotations"), &declared) != nil {
		return nil
	}
	hints := map[string]bool{}
	for name := range toolpolicy.Annotations {
		if set, ok := declared[name+"Hint"].(bool); ok {
			hints[name] = set
		}
	}
	return hints
}
