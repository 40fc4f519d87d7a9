package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

// Sample is a request for a trial run of a graph without a server.
type Sample struct {
	// Request is {method, params}, or the params only.
	Request json.RawMessage
	// Response is the server's answer: a result, {"result": ...}, or {"error": {"code": ...,
	// "message": ...}} for a failing call, the last two with a list "progress"; empty means
	// an empty result.
	Response json.RawMessage
	// Client and Server are the names and IDs that hooks see.
	Client, Server string
	// Variables replace the initial values of the graph's variables.
	Variables map[string]json.RawMessage
	// Owner is the user for whom the scripts run.
	Owner string
	// Detail adds the input and output of each script.
	Detail bool
}

// Trial is the result of a trial run.
type Trial struct {
	Outcome hookengine.Status `json:"outcome"`
	// Request is the request that the server would have got.
	Request  TriedRequest    `json:"request"`
	Response json.RawMessage `json:"response,omitempty"`
	Error    *TrialError     `json:"error,omitempty"`
	// Progress are the progress messages that the client would have got.
	Progress []json.RawMessage `json:"progress,omitempty"`
	Nodes    []TriedNode       `json:"nodes"`
	// Audit are the audit records of the hooks.
	Audit []json.RawMessage `json:"audit,omitempty"`
}

// TriedRequest is a request.
type TriedRequest struct {
	Method hookdef.Type    `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// Hold is the reason why the gateway would hold the call for a person, or "".
	Hold string `json:"hold,omitempty"`
}

// TrialError is the reason why there is no response.
type TrialError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Node    string `json:"node,omitempty"`
	// Sent reports whether the call was sent.
	Sent bool `json:"sent"`
}

// TriedNode is the trace of a node and, if requested, the input and output of its script.
type TriedNode struct {
	hookengine.NodeTrace
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
}

// TryRequest is a sample for a graph, which need not be saved.
type TryRequest struct {
	CheckRequest
	Sample
}

// Try runs a graph on a sample. Its scripts run in the sandbox, no server is called, and
// audit records are returned instead of stored.
func (d *Service) Try(ctx context.Context, r TryRequest) (*Trial, error) {
	v, err := d.Check(ctx, r.CheckRequest)
	if err != nil {
		return nil, err
	}
	if v.linked == nil || !v.Valid {
		return nil, v.firstError()
	}
	return Try(ctx, v.linked, r.Sample, d.opts.Scripts, d.opts.Now)
}

// Try runs a linked graph on a sample.
func Try(ctx context.Context, linked *hookdef.Linked, s Sample, scriptRunner runner.Runner, now func() time.Time) (*Trial, error) {
	linked, err := WithVariables(linked, s.Variables)
	if err != nil {
		return nil, err
	}
	method, params, err := s.readParams(linked.AllTypes())
	if err != nil {
		return nil, err
	}
	var progress []json.RawMessage
	server, err := s.newServer(method, func(params json.RawMessage) { progress = append(progress, params) })
	if err != nil {
		return nil, err
	}
	program, err := hookengine.Compile(linked)
	if err != nil {
		return nil, err
	}
	heard := &auditList{}
	scripts := &observedScripts{Scripts: &runner.Scripts{
		Runner: scriptRunner, Owner: func(context.Context) string { return s.Owner }, State: &hookstate.Memory{}, Now: time.Now,
	}, seen: map[string]passage{}}
	engine := hookengine.New(hookengine.Options{Scripts: scripts, Audit: heard, Now: now})
	defer engine.Close(ctx)
	out := engine.Run(ctx, program, hookengine.Request{
		Method: method, Params: params, Metadata: hookengine.Metadata{ClientID: s.Client, ClientName: s.Client, ServerID: s.Server, ServerName: s.Server},
	}, server)
	nodes, err := out.Settle(ctx)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the trial was interrupted: %w", err)
	}
	trial := &Trial{
		Outcome: out.Status, Response: out.Response, Progress: progress, Nodes: []TriedNode{}, Audit: heard.allRecords(),
		Request: TriedRequest{Method: out.Request.Method, Params: out.Request.Params, Hold: out.Request.Hold}, Error: trialError(out),
	}
	for _, n := range nodes {
		tried := TriedNode{NodeTrace: n}
		if s.Detail {
			p := scripts.passageOf(n.ID)
			tried.Input, tried.Output = p.in, p.out
		}
		trial.Nodes = append(trial.Nodes, tried)
	}
	return trial, nil
}

func trialError(out *hookengine.Outcome) *TrialError {
	if out.Err == nil {
		return nil
	}
	e := &TrialError{Code: string(guideway.ErrorCode(out.Err)), Message: out.Err.Error(), Node: out.Node, Sent: out.Sent}
	var refusal *hookengine.Refusal
	if errors.As(out.Err, &refusal) {
		e.Code = refusal.Code
	}
	return e
}

// WithVariables returns a graph with other initial values of its variables.
func WithVariables(linked *hookdef.Linked, values map[string]json.RawMessage) (*hookdef.Linked, error) {
	if len(values) == 0 {
		return linked, nil
	}
	other, g := *linked, *linked.Graph
	g.Variables = maps.Clone(linked.Variables)
	for name, value := range values {
		if _, ok := g.Variables[name]; !ok {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the hook graph %s has no variable %q", linked.ID, name).
				WithFix("list the variables with: guideway hooks show %s", linked.ID)
		}
		g.Variables[name] = value
	}
	other.Graph = &g
	return &other, nil
}

// readParams returns the method and the params of the request; types are those of the graph.
func (s *Sample) readParams(types []hookdef.Type) (hookdef.Type, json.RawMessage, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(s.Request, &whole); err != nil {
		return "", nil, guideway.Errorf(guideway.CodeInvalid, "the request is not a JSON object: %w", err).
			WithFix("write the params of %s as one JSON object", types[0])
	}
	said, isRequest := whole["method"]
	if !isRequest {
		return types[0], s.Request, nil
	}
	var got hookdef.Type
	if json.Unmarshal(said, &got) != nil || !slices.Contains(types, got) {
		return "", nil, guideway.Errorf(guideway.CodeInvalid, "the method of the request is %s, but the graph applies to %s", said, strings.Trim(fmt.Sprint(types), "[]")).
			WithFix("set the method to %q, or omit it", types[0])
	}
	return got, whole["params"], nil
}

// newServer returns a simulated server. seen gets the progress messages that the client gets.
func (s *Sample) newServer(method hookdef.Type, seen func(json.RawMessage)) (hookengine.Caller, error) {
	result := map[hookdef.Type]json.RawMessage{
		hookdef.ToolsCall: json.RawMessage(`{"content":[]}`), hookdef.ToolsList: json.RawMessage(`{"tools":[]}`),
		hookdef.ResourceRead: json.RawMessage(`{"contents":[]}`), hookdef.PromptGet: json.RawMessage(`{"messages":[]}`),
	}[method]
	var failure error
	var progress []json.RawMessage
	if len(s.Response) > 0 {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(s.Response, &whole); err != nil {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the response is not a JSON object: %w", err).
				WithFix(`write {"content": [{"type": "text", "text": "..."}]}`)
		}
		result = s.Response
		if whole["progress"] != nil && json.Unmarshal(whole["progress"], &progress) != nil {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the progress of the response is not a list").WithFix(`write {"progress": [{"progress": 1, "message": "..."}], "result": {...}}`)
		}
		var failed jsonrpc.Error
		switch {
		case whole["result"] != nil:
			result = whole["result"]
		case whole["error"] != nil && json.Unmarshal(whole["error"], &failed) == nil:
			failure = &failed
		}
	}
	return hookengine.CallerFunc(func(ctx context.Context, c hookengine.Call) (json.RawMessage, error) {
		for _, params := range progress {
			if c.Progress != nil {
				params = c.Progress(ctx, params)
			}
			if params != nil {
				seen(params)
			}
		}
		return result, failure
	}), nil
}

// passage is the input and output of one execution of a script.
type passage struct{ in, out json.RawMessage }

// observedScripts records the input and output of scripts by node.
type observedScripts struct {
	hookengine.Scripts
	mu   sync.Mutex
	seen map[string]passage
}

// RunHook implements hookengine.Scripts.
func (o *observedScripts) RunHook(ctx context.Context, call hookengine.ScriptCall) (*hookengine.ScriptResult, error) {
	result, err := o.Scripts.RunHook(ctx, call)
	var who struct{ Metadata struct{ NodeID string } }
	if json.Unmarshal(call.Context, &who) == nil {
		p := passage{in: call.Context}
		if result != nil {
			p.out = result.Context
		}
		o.mu.Lock()
		o.seen[who.Metadata.NodeID] = p
		o.mu.Unlock()
	}
	return result, err
}

func (o *observedScripts) passageOf(node string) passage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[node]
}

// auditList collects audit records.
type auditList struct {
	mu      sync.Mutex
	records []json.RawMessage
}

// Audit implements hookengine.Auditor.
func (h *auditList) Audit(_ context.Context, e hookengine.AuditEntry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, e.Record)
	return nil
}

func (h *auditList) allRecords() []json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.records
}
