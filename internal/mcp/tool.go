package mcp

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is a tool of this server: its declaration, and its handler.
type tool struct {
	declaration
	// serve answers a call with valid arguments. The answer is a textAnswer, a *question to
	// the person at the client, or must marshal to a JSON object.
	serve func(ctx context.Context, c call) (any, error)
	// legal, if set, returns a legal call to replace the one that an error suggests, or nil
	// to keep the suggested one.
	legal func(ctx context.Context, suggested *run.Call) *run.Call
	// failed, if set, converts an error to the form that callers of this tool expect.
	failed func(*callError) any
}

// effect is the effect of a tool on the server's data.
type effect string

const (
	// effectNone: the call only reads.
	effectNone effect = ""
	// effectAdds: each call adds data.
	effectAdds effect = "adds"
	// effectAddsOnce: the call adds data; repeating it has no further effect.
	effectAddsOnce effect = "addsOnce"
	// effectReplaces: the call overwrites or ends something; repeating it has no further
	// effect.
	effectReplaces effect = "replaces"
)

// question is an answer that asks the person at the client. The client then repeats the
// call with the person's response and the state.
type question struct {
	form  *mcp.ElicitParams
	state string
	// close ends the question, after the client has answered or failed to ask.
	close func()
	// failed is the refusal that is returned if the client cannot ask.
	failed *run.Refusal
}

// gateForm is the name of a question's only form.
const gateForm = "gate"

// mcpTool returns the tool as the protocol describes it.
func (t *tool) mcpTool() *mcp.Tool {
	no, destroys := false, t.Effect == effectReplaces
	hints := &mcp.ToolAnnotations{
		ReadOnlyHint: t.Effect == effectNone, IdempotentHint: t.Effect != effectAdds, OpenWorldHint: &no,
	}
	if t.Effect != effectNone {
		hints.DestructiveHint = &destroys
	}
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema:  inputSchema(t.Params),
		OutputSchema: outputSchema(t.Output), Annotations: hints,
	}
}

// newHandler returns a handler that checks the arguments, makes the call and writes the
// answer in the form that fits the client.
func (t *tool) newHandler(r *responder) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx = withClient(ctx, req)
		in, err := readArguments(t, req.Params.Arguments)
		var out any
		if err == nil {
			out, err = t.answerCall(ctx, r, req, in)
		}
		if q, ok := out.(*question); ok && err == nil {
			noteQuestion(ctx, q)
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{gateForm: q.form}, RequestState: q.state,
			}, nil
		}
		if request, ok := out.(connectRequest); ok && err == nil {
			return request.newResult(), nil
		}
		var res *mcp.CallToolResult
		if err == nil {
			res, err = r.answer(t, req, in, out)
		}
		if err != nil {
			t.suggestLegal(ctx, err)
			return r.refuse(ctx, t, req, err), nil
		}
		return res, nil
	}
}

// call is a call of a known caller.
type call struct {
	tool   *tool
	req    *mcp.CallToolRequest
	caller run.Caller
	arguments
}

// badCall returns an error about one field of the call, with a suggested call.
func (c call) badCall(field, message string) *callError {
	return c.tool.badCall(c.arguments, field, message)
}

func (t *tool) answerCall(ctx context.Context, r *responder, req *mcp.CallToolRequest, in arguments) (any, error) {
	caller, err := callerFrom(ctx)
	if err != nil {
		return nil, err
	}
	c := call{tool: t, req: req, caller: caller, arguments: in}
	if c.caller.Connect, err = r.redeemChecks(ctx, c); err != nil {
		return nil, err
	}
	out, err := t.serve(ctx, c)
	if needed := (*run.ConnectNeeded)(nil); errors.As(err, &needed) {
		return r.requestChecks(ctx, c, needed)
	}
	return out, err
}

// suggestLegal replaces the call that an error suggests by one that is legal now.
func (t *tool) suggestLegal(ctx context.Context, err error) {
	var bad *callError
	if t.legal == nil || !errors.As(err, &bad) || bad.Next == nil || bad.Next.Tool != t.Name {
		return
	}
	if better := t.legal(ctx, bad.Next); better != nil {
		bad.Next = better
	}
}

// newTextAnswer returns an answer with its text, which is compact JSON unless the answer has
// a different one.
func newTextAnswer(out any) (textAnswer, error) {
	switch a := out.(type) {
	case textAnswer:
		return a, a.indentText()
	case interface{ textAnswer() (textAnswer, error) }:
		return a.textAnswer()
	}
	text, err := jsontext.Marshal(out)
	if err != nil {
		return textAnswer{}, fmt.Errorf("write the answer: %w", err)
	}
	return textAnswer{text: string(text), structure: json.RawMessage(text)}, nil
}

// callError is the error of a bad call.
type callError struct {
	Code    guideway.Code `json:"code"`
	Message string        `json:"error"`
	Field   string        `json:"field,omitempty"`
	Given   any           `json:"given,omitempty"`
	Allowed any           `json:"allowed,omitempty"`
	// Fix describes how to correct the call.
	Fix string `json:"fix,omitempty"`
	// Next is a suggested call. It works if the objects that it names exist.
	Next *run.Call `json:"next,omitempty"`
	// Diagnostics explain why a definition did not load.
	Diagnostics []guideway.Diagnostic `json:"diagnostics,omitempty"`
}

// Error implements error.
func (e *callError) Error() string { return e.Message }

// newCallError returns the content of the answer to a failed call. The details of an
// internal error are only logged.
func (t *tool) newCallError(ctx context.Context, logger *slog.Logger, err error) any {
	var ce *callError
	if !errors.As(err, &ce) {
		ce = &callError{Code: guideway.ErrorCode(err), Message: err.Error(), Fix: guideway.ErrorFix(err)}
		if ce.Code == guideway.CodeInternal {
			logger.ErrorContext(ctx, "a tool failed", "tool", t.Name, "error", err)
			ce.Message = t.Name + " failed; see the server's log"
		}
	}
	if t.failed != nil {
		return t.failed(ce)
	}
	return ce
}

// encodeError returns an error as the JSON text of a failed call.
func encodeError(content any) *mcp.CallToolResult {
	text, err := jsontext.Marshal(content)
	if err != nil {
		text = []byte(`{"code":"internal","error":"the error could not be written"}`)
	}
	return newErrorResult(string(text))
}

// newErrorResult returns the result of a failed call. An error is sent once, as text: some
// clients show their models both the text and the structured content of an error.
func newErrorResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
}

// outputSchema returns the JSON Schema of an answer with members, which are of a kind or have
// a schema.
func outputSchema(members map[string]any) map[string]any {
	properties := maps.Clone(members)
	for name, member := range members {
		if kind, ok := member.(string); ok {
			properties[name] = valueKind(kind).jsonSchema()
		}
	}
	return map[string]any{"type": "object", "properties": properties}
}

// shortenValue cuts a long string of a caller, so that an error never echoes a large input.
func shortenValue(v any) any {
	if s, ok := v.(string); ok {
		return textpart.Shorten(s, 80)
	}
	return v
}

// resolveToolsets checks the toolsets, and replaces ToolsetAuto by its toolsets. It returns
// those that are offered only as soon as a definition needs them.
func (opts *Options) resolveToolsets() (automatic []string, err error) {
	for _, name := range opts.Toolsets {
		if name != ToolsetAuto && !slices.Contains(Toolsets(), name) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "there is no toolset %q", name).
				WithFix("use one of: %s, %s", ToolsetAuto, strings.Join(Toolsets(), ", "))
		}
	}
	if !slices.Contains(opts.Toolsets, ToolsetAuto) {
		return nil, nil
	}
	named := slices.DeleteFunc(slices.Clone(opts.Toolsets), func(name string) bool { return name == ToolsetAuto })
	for _, name := range Toolsets() {
		if slices.Contains(named, name) {
			continue
		}
		named = append(named, name)
		if name == ToolsetPhases || name == ToolsetMachines {
			automatic = append(automatic, name)
		}
	}
	opts.Toolsets = named
	return automatic, nil
}

// neededNow returns the toolsets without the automatic ones that no definition needs yet.
func (s *Server) neededNow(toolsets, automatic []string) []string {
	snap := s.catalog.Snapshot()
	return slices.DeleteFunc(slices.Clone(toolsets), func(name string) bool {
		return slices.Contains(automatic, name) && !needsToolset(snap, name)
	})
}

// needsToolset reports whether a source other than the bundled one has a definition for a
// toolset.
func needsToolset(snap *catalog.Snapshot, toolset string) bool {
	if toolset == ToolsetMachines {
		return NeedsMachines(snap)
	}
	return slices.ContainsFunc(snap.List(catalog.Filter{}), func(e *catalog.Entry) bool {
		return e.Dialect == guideway.DialectPhases && e.Source.Trust != catalog.TrustBundled
	})
}

// NeedsMachines reports whether a source other than the bundled one has a machine.
func NeedsMachines(snap *catalog.Snapshot) bool {
	return slices.ContainsFunc(snap.Machines(), func(m *catalog.MachineEntry) bool { return m.Source.Trust != catalog.TrustBundled })
}

// toolFilter limits a client with its own token to the toolsets that the token allows. It
// does not limit the tools of upstreams.
type toolFilter struct {
	// toolset maps the server's own tools to their toolsets.
	toolset map[string]string
}

// wrapHandler is the innermost middleware, so that it sees only the server's own tools,
// prompts and resources.
func (a *toolFilter) wrapHandler(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		holder := auth.TokenLeaseFrom(ctx)
		if holder == nil || holder.Allow.All {
			return next(ctx, method, req)
		}
		may := allowedToolsets(holder.Allow.Toolsets)
		if err := a.rejectForbidden(may, req); err != nil {
			return nil, err
		}
		result, err := next(ctx, method, req)
		if err == nil {
			a.filterList(may, result)
		}
		return result, err
	}
}

// allowedToolsets are the toolsets that a client may use.
type allowedToolsets []string

// mayUse reports whether the client of ctx may use a toolset. A client without its own token
// may use all.
func mayUse(ctx context.Context, toolset string) bool {
	holder := auth.TokenLeaseFrom(ctx)
	return holder == nil || holder.Allow.All || allowedToolsets(holder.Allow.Toolsets).hasAny(toolset)
}

// hasAny reports whether the client may use one of the toolsets.
func (m allowedToolsets) hasAny(toolsets ...string) bool {
	return slices.ContainsFunc(toolsets, func(t string) bool { return slices.Contains(m, t) })
}

// hasWorkflows reports whether the client may see workflows.
func (m allowedToolsets) hasWorkflows() bool {
	return m.hasAny(ToolsetSteps, ToolsetRuns, ToolsetPhases)
}

// canReadURI reports whether the client may read a URI or a URI template.
func (m allowedToolsets) canReadURI(uri string) bool {
	switch {
	case strings.HasPrefix(uri, workflowPrefix), strings.HasPrefix(uri, guidePrefix), strings.HasPrefix(uri, templatePrefix), uri == stepsSchemaURI:
		return m.hasWorkflows()
	case strings.HasPrefix(uri, runPrefix):
		return m.hasAny(ToolsetRuns)
	case strings.HasPrefix(uri, sessionPrefix):
		return m.hasAny(ToolsetSessions)
	}
	return false
}

// rejectForbidden returns a not-found error for anything that the client may not use.
func (a *toolFilter) rejectForbidden(m allowedToolsets, req mcp.Request) error {
	missing := func(what, name string) error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown %s %q", what, name)}
	}
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		if !m.hasAny(a.toolset[r.Params.Name]) {
			return missing("tool", r.Params.Name)
		}
	case *mcp.GetPromptRequest:
		if !m.hasWorkflows() {
			return missing("prompt", r.Params.Name)
		}
	case *mcp.ReadResourceRequest:
		if !m.canReadURI(r.Params.URI) {
			return mcp.ResourceNotFoundError(r.Params.URI)
		}
	case *mcp.CompleteRequest:
		ref := r.Params.Ref
		switch {
		case ref == nil:
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params.ref is missing: name a prompt or a resource template"}
		case ref.Type == "ref/prompt" && !m.hasWorkflows(), ref.Type != "ref/prompt" && !m.canReadURI(ref.URI):
			return missing("reference", cmp.Or(ref.URI, ref.Name))
		}
	}
	return nil
}

// filterList removes the entries that the client may not use from a list. The SDK makes a
// new list for each request.
func (a *toolFilter) filterList(m allowedToolsets, result mcp.Result) {
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t *mcp.Tool) bool { return !m.hasAny(a.toolset[t.Name]) })
	case *mcp.ListPromptsResult:
		if !m.hasWorkflows() {
			r.Prompts = nil
		}
	case *mcp.ListResourcesResult:
		r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(e *mcp.Resource) bool { return !m.canReadURI(e.URI) })
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates = slices.DeleteFunc(slices.Clone(r.ResourceTemplates), func(e *mcp.ResourceTemplate) bool { return !m.canReadURI(e.URITemplate) })
	}
}

// toolsJSON declares the tools of all toolsets: names, texts, parameters and outputs. A
// parameter with "use" is a shared one, of which it can change the name, the description and
// the example. A tool without an output has the output of its toolset.
//
//go:embed tools.json
var toolsJSON []byte

// declaration describes a tool to clients.
type declaration struct {
	Name, Title, Description string
	Params                   []param
	// Effect is the effect of a call on the server's data.
	Effect effect
	// Paged is set if a call can be repeated for the next page although it does not only
	// read.
	Paged bool
	// Output has a valueKind or a JSON Schema for each member of the answer. The schema of the
	// answer requires no member, because errors have different members.
	Output map[string]any
}

var declaredTools = sync.OnceValue(func() map[string]map[string]declaration {
	tools, _ := parseDeclarations(toolsJSON) // A test parses the file, which is a part of the program.
	return tools
})

// parseDeclarations returns the declarations of a file by toolset and name.
func parseDeclarations(text []byte) (map[string]map[string]declaration, error) {
	var file struct {
		Params   map[string]param
		Toolsets map[string]struct {
			Output map[string]any
			Tools  []declaration
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	all := map[string]map[string]declaration{}
	for toolset, set := range file.Toolsets {
		all[toolset] = map[string]declaration{}
		for _, d := range set.Tools {
			for i, p := range d.Params {
				d.Params[i] = p.overlay(file.Params[p.Use])
			}
			if d.Output == nil {
				d.Output = set.Output
			}
			if d.Effect == effectNone || d.Paged {
				d.Params = append(d.Params, param{Name: "page", Kind: kindInteger})
			}
			all[toolset][d.Name] = d
		}
	}
	return all, nil
}

// overlay returns the shared parameter that p uses, with the changes that p states.
func (p param) overlay(shared param) param {
	if p.Use == "" {
		return p
	}
	shared.Name, shared.Description = cmp.Or(p.Name, shared.Name), cmp.Or(p.Description, shared.Description)
	if p.Example != nil {
		shared.Example = p.Example
	}
	return shared
}

// handlers are the handlers of the tools of a toolset, by the names of the tools.
type handlers map[string]func(ctx context.Context, c call) (any, error)

// newTools returns the tools of a toolset that have handlers, by their names.
func newTools(toolset string, serve handlers) map[string]*tool {
	tools := map[string]*tool{}
	for name, handler := range serve {
		d := declaredTools()[toolset][name]
		d.Params = slices.Clone(d.Params)
		tools[name] = &tool{declaration: d, serve: handler}
	}
	return tools
}
