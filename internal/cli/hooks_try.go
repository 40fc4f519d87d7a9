package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
	"github.com/guideway-dev/guideway/internal/hookgraph"
	"github.com/guideway-dev/guideway/internal/hookgraph/sandbox"
	"github.com/guideway-dev/guideway/internal/script"
	"github.com/spf13/cobra"
)

// hooksTestOptions is the command line of guideway hooks test.
type hooksTestOptions struct {
	app  *app
	Name string
	// Request and Response are files; - is the standard input.
	Request, Response string
	Client, Server    string
	Variables         []string
	JSON              bool
}

func newHooksTestCmd(a *app, run func(context.Context, *hooksTestOptions) error) *cobra.Command {
	o := &hooksTestOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test {ID|FILE} --request FILE",
		Short: "Take a request through a hook graph without any server",
		Long: `Take a request through a hook graph, with its real scripts in the sandbox, and show how it
comes out and what each node did. No server is called: the response is that of
--response, or an empty one. Whether the graph is enabled does not matter.

The request is a JSON file, - for the standard input: {"method": ..., "params": ...}, or
the params alone: {"name": "read_file", "arguments": {...}}. The response is a result, or
{"error": {"code": ..., "message": ...}} for a call that fails.

The exit code is 1 if a hook or the call failed.`,
		Example: `  guideway hooks test block-by-argument --request call.json
  guideway hooks test ./redact.yaml --request call.json --response result.json --json
  echo '{"name": "search"}' | guideway hooks test default-argument --request -`,
		Args:              exactly(1, "one hook graph, by id or file", "guideway hooks test block-by-argument --request call.json"),
		ValidArgsFunction: a.completeHooks,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if o.Request == "" {
				return usageError{guideway.Errorf(guideway.CodeInvalid, "which request? Name its file, or - for the standard input").
					WithFix("guideway hooks test %s --request call.json", o.Name)}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Request, "request", "", "`file` of the request")
	f.StringVar(&o.Response, "response", "", "`file` of what the server would answer")
	f.StringVar(&o.Client, "client", "test", "`name` of the client, in metadata.clientId")
	f.StringVar(&o.Server, "server", "test", "`name` of the server, in metadata.serverName")
	f.StringArrayVar(&o.Variables, "set", nil, "begin with another value of a variable: `name=json`")
	f.BoolVar(&o.JSON, "json", false, "answer in JSON")
	return cmd
}

// hooksTestAnswer is the answer of guideway hooks test --json.
type hooksTestAnswer struct {
	Outcome  hookgraph.Status      `json:"outcome"`
	Request  hookRequest           `json:"request"`
	Response json.RawMessage       `json:"response,omitempty"`
	Error    *hookError            `json:"error,omitempty"`
	Nodes    []hookgraph.NodeTrace `json:"nodes"`
	// Audit is what the hooks handed to the audit.
	Audit []json.RawMessage `json:"audit,omitempty"`
}

// hookRequest is the request as the server would have got it.
type hookRequest struct {
	Method hooks.Type      `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// hookError is why there is no response.
type hookError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Node    string `json:"node,omitempty"`
	// Sent says whether the call was sent.
	Sent bool `json:"sent"`
}

func runHooksTest(ctx context.Context, o *hooksTestOptions) error {
	_, e, err := o.app.hookThatLoads(ctx, o.Name)
	if err != nil {
		return err
	}
	linked, err := withVariables(e, o.Variables)
	if err != nil {
		return usageError{err}
	}
	request, err := o.request(ctx, linked.Type)
	if err != nil {
		return err
	}
	server, err := o.server(ctx, linked.Type)
	if err != nil {
		return err
	}
	program, err := hookgraph.Compile(linked)
	if err != nil {
		return err
	}
	answer, err := o.try(ctx, program, request, server)
	if err != nil {
		return err
	}
	if err := o.write(answer); err != nil {
		return err
	}
	if answer.Outcome == hookgraph.StatusError {
		return silentError{exitFailed}
	}
	return nil
}

// withVariables is a graph that begins with other values.
func withVariables(e *catalog.HookEntry, set []string) (*hooks.Linked, error) {
	values, err := parseSet(set)
	if err != nil || len(values) == 0 {
		return e.Linked, err
	}
	linked, g := *e.Linked, *e.Graph
	g.Variables = map[string]json.RawMessage{}
	for name, value := range e.Graph.Variables {
		g.Variables[name] = value
	}
	for name, value := range values {
		if _, ok := g.Variables[name]; !ok {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the hook graph %s has no variable %q", e.ID, name).
				WithFix("guideway hooks show %s, which names those that it has", e.ID)
		}
		g.Variables[name] = value
	}
	linked.Graph = &g
	return &linked, nil
}

// parseSet reads values of variables. What is no JSON is a text.
func parseSet(set []string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, one := range set {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, guideway.Errorf(guideway.CodeInvalid, "%q sets nothing", one).WithFix(`--set name=value, such as --set limit=100 or --set 'names=["a", "b"]'`)
		}
		if !json.Valid([]byte(value)) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, guideway.Errorf(guideway.CodeInternal, "write %q: %w", value, err)
			}
			value = string(text)
		}
		values[name] = json.RawMessage(value)
	}
	return values, nil
}

// request reads the params of the request.
func (o *hooksTestOptions) request(ctx context.Context, method hooks.Type) (json.RawMessage, error) {
	data, err := o.app.host.readDefinition(ctx, o.Request)
	if err != nil {
		return nil, err
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the request in %s is no JSON object: %w", o.Request, err).
			WithFix(`write {"name": "a_tool", "arguments": {...}}`)
	}
	said, isRequest := whole["method"]
	if !isRequest {
		return json.RawMessage(data), nil
	}
	var got hooks.Type
	if json.Unmarshal(said, &got) != nil || got != method {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the request in %s is %s, and the graph stands around %s", o.Request, said, method)
	}
	return whole["params"], nil
}

// server stands for a server.
func (o *hooksTestOptions) server(ctx context.Context, method hooks.Type) (hookgraph.Caller, error) {
	result := json.RawMessage(`{"content":[]}`)
	if method == hooks.ToolsList {
		result = json.RawMessage(`{"tools":[]}`)
	}
	var failure error
	if o.Response != "" {
		data, err := o.app.host.readDefinition(ctx, o.Response)
		if err != nil {
			return nil, err
		}
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(data, &whole); err != nil {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the response in %s is no JSON object: %w", o.Response, err).
				WithFix(`write {"content": [{"type": "text", "text": "..."}]}`)
		}
		result = json.RawMessage(data)
		var failed struct{ Message string }
		switch {
		case whole["result"] != nil:
			result = whole["result"]
		case whole["error"] != nil && json.Unmarshal(whole["error"], &failed) == nil:
			failure = guideway.Errorf(guideway.CodeUnavailable, "the server failed: %s", failed.Message)
		}
	}
	return hookgraph.CallerFunc(func(context.Context, hookgraph.Call) (json.RawMessage, error) { return result, failure }), nil
}

// try takes the request through the graph.
func (o *hooksTestOptions) try(ctx context.Context, program *hookgraph.Program, params json.RawMessage, server hookgraph.Caller) (*hooksTestAnswer, error) {
	answer := &hooksTestAnswer{}
	err := withPool(ctx, func(pool *script.Pool) error {
		heard := &heardAudit{}
		engine := hookgraph.New(hookgraph.Options{Scripts: &sandbox.Scripts{Runner: pool}, Audit: heard, Now: o.app.host.now})
		defer engine.Close(ctx)
		out := engine.Run(ctx, program, hookgraph.Request{
			Params: params, Metadata: hookgraph.Metadata{ClientID: o.Client, ClientName: o.Client, ServerID: o.Server, ServerName: o.Server},
		}, server)
		nodes, err := out.Settle(ctx)
		if err != nil {
			return interrupted(err)
		}
		answer.Outcome, answer.Response, answer.Nodes, answer.Audit = out.Status, out.Response, nodes, heard.all()
		answer.Request = hookRequest{Method: out.Request.Method, Params: out.Request.Params}
		if out.Err != nil {
			answer.Error = &hookError{Code: string(guideway.ErrorCode(out.Err)), Message: out.Err.Error(), Node: out.Node, Sent: out.Sent}
			var refusal *hookgraph.Refusal
			if errors.As(out.Err, &refusal) {
				answer.Error.Code = refusal.Code
			}
		}
		return nil
	})
	return answer, err
}

// heardAudit keeps the audit to show it.
type heardAudit struct {
	mu      sync.Mutex
	records []json.RawMessage
}

// Audit implements hookgraph.Auditor.
func (h *heardAudit) Audit(_ context.Context, e hookgraph.AuditEntry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, e.Record)
	return nil
}

func (h *heardAudit) all() []json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.records
}

func (o *hooksTestOptions) write(answer *hooksTestAnswer) error {
	host := o.app.host
	if o.JSON {
		return writeJSON(host.Out, answer)
	}
	s := host.outStyles()
	paint := map[hookgraph.Status]func(string) string{hookgraph.StatusError: s.red, hookgraph.StatusRefused: s.yellow}[answer.Outcome]
	if paint == nil {
		paint = s.green
	}
	fmt.Fprintf(host.Out, "%s\n", s.bold(paint(string(answer.Outcome))))
	if answer.Error != nil {
		fmt.Fprintf(host.Out, "%s\n", oneLine(answer.Error.Message))
	}
	for _, n := range answer.Nodes {
		writeNodeTrace(host, s, n)
	}
	fmt.Fprintf(host.Out, "%s %s\n", s.cyan("request"), oneLine(string(answer.Request.Params)))
	if len(answer.Response) > 0 {
		fmt.Fprintf(host.Out, "%s %s\n", s.cyan("response"), oneLine(string(answer.Response)))
	}
	for _, record := range answer.Audit {
		fmt.Fprintf(host.Out, "%s %s\n", s.cyan("audit"), oneLine(string(record)))
	}
	return nil
}

// writeNodeTrace prints what a node did.
func writeNodeTrace(host *Host, s styles, n hookgraph.NodeTrace) {
	more := ""
	switch {
	case n.Aside:
		more = ", aside"
	case n.Skipped:
		more = ", passed over"
	case n.Branch != "":
		more = ", " + string(n.Branch)
	}
	fmt.Fprintf(host.Out, "  %s %s\n", oneLine(n.ID), s.faint(fmt.Sprintf("(%s%s) %.1f ms", n.Kind, more, n.MS)))
	for _, line := range n.Console {
		fmt.Fprintf(host.Out, "    %s %s\n", s.faint(line.Level), oneLine(line.Text))
	}
	for _, c := range n.Changes {
		fmt.Fprintf(host.Out, "    %s %s %s\n", s.cyan(c.Op), oneLine(c.Pointer), oneLine(string(c.After)))
	}
	if n.Error != nil {
		place := ""
		if n.Error.Line > 0 {
			place = fmt.Sprintf(" (%s:%d:%d)", oneLine(n.Error.File), n.Error.Line, n.Error.Column)
		}
		fmt.Fprintf(host.Out, "    %s %s%s\n", s.red(oneLine(n.Error.Code)), oneLine(n.Error.Message), place)
	}
}
