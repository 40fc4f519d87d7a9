package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hasApps reports whether the client shows the pages of tools.
func (c *Client) hasApps() bool { return c.Capabilities.Extensions.Has(upstream.ExtensionApps) }

// encodeExtensions returns the extensions of a client, nil if none exist. tasks reports
// whether they include the one for tasks.
func (c *Capabilities) encodeExtensions(tasks bool) json.RawMessage {
	var members []jsonrpc.Member
	for _, id := range slices.Sorted(maps.Keys(c.Extensions)) {
		if id != upstream.ExtensionTasks || tasks {
			members = append(members, jsonrpc.Member{Key: id, Value: c.Extensions[id]})
		}
	}
	if members == nil {
		return nil
	}
	return jsonrpc.Object(members...)
}

// extensionTime is the maximum time that a handshake waits for upstreams whose lists are
// unknown.
const extensionTime = 5 * time.Second

// extensionsFor returns the extensions that the client can use with at least one of its
// upstreams. The extensions for pages and for tasks also require the client's support; the
// extension for skills requires only the upstream's.
func (g *Gateway) extensionsFor(ctx context.Context, c *Client) upstream.Extensions {
	if len(c.Capabilities.Extensions) > 0 {
		g.awaitSurface(ctx, c)
	}
	s, may, out := g.surfaceOf(c), g.accessOf(ctx), upstream.Extensions{}
	for _, m := range s.members {
		known := m.Known()
		if known == nil || !may.allowsPart(s, m) {
			continue
		}
		theirs := known.Info.Capabilities.Extensions
		if c.hasApps() && (theirs.Has(upstream.ExtensionApps) || s.hasPages(m)) {
			out[upstream.ExtensionApps] = json.RawMessage(`{}`)
		}
		if theirs.Has(upstream.ExtensionSkills) && may.allowsUpstream(m) && !out.ListsDirectories() {
			out[upstream.ExtensionSkills] = theirs[upstream.ExtensionSkills]
		}
		if c.Capabilities.Extensions.Has(upstream.ExtensionTasks) && c.Modern && runsTasks(known.Info) {
			out[upstream.ExtensionTasks] = json.RawMessage(`{}`)
		}
	}
	return out
}

// runsTasks reports whether an upstream runs the calls of modern clients as tasks.
func runsTasks(info upstream.Info) bool {
	return info.Version >= modernVersion && info.Capabilities.Extensions.Has(upstream.ExtensionTasks)
}

// awaitSurface waits for the upstreams whose lists are unknown, up to extensionTime. A
// request for a list waits longer; see readySurface.
func (g *Gateway) awaitSurface(ctx context.Context, c *Client) {
	ready := make(chan struct{})
	g.wg.Go(func() {
		defer close(ready)
		g.readySurface(context.WithoutCancel(ctx), c)
	})
	late := time.NewTimer(extensionTime)
	defer late.Stop()
	select {
	case <-ready:
	case <-late.C:
	case <-ctx.Done():
	}
}

// negotiateExtensions adds the extensions to the answer of a handshake.
func (d *downstream) negotiateExtensions(ctx context.Context, _ *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	result, err := own()
	if err != nil {
		return nil, err
	}
	var caps *mcp.ServerCapabilities
	switch r := result.(type) {
	case *mcp.InitializeResult:
		caps = r.Capabilities
	case *mcp.DiscoverResult:
		caps = r.Capabilities
	}
	from, ok := req.(request)
	if caps == nil || !ok {
		return result, nil
	}
	c, err := d.clientOf(ctx, from) // The capabilities of a legacy client are known now.
	if err != nil {
		return nil, err
	}
	for id, settings := range d.gateway.extensionsFor(ctx, c) {
		var decoded map[string]any
		_ = json.Unmarshal(settings, &decoded) // The settings are always an object.
		caps.AddExtension(id, decoded)
	}
	return result, nil
}

// extensionParams are the params of a request that the SDK does not know.
type extensionParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *extensionParams) UnmarshalJSON(text []byte) error {
	p.raw = slices.Clone(text)
	return json.Unmarshal(text, &p.ParamsBase)
}

// serveExtension answers a request of an extension. The Request has no name yet.
type serveExtension func(ctx context.Context, c *Client, r Request, params map[string]json.RawMessage) (json.RawMessage, error)

// extensionMethods returns the methods of the extensions.
func (g *Gateway) extensionMethods() map[string]serveExtension {
	return map[string]serveExtension{
		methodListSkills: g.listSkills, methodGetSkill: g.getSkill, methodReadDirectory: g.readDirectory,
		methodGetTask: g.aboutTask(methodGetTask), methodUpdateTask: g.aboutTask(methodUpdateTask), methodCancelTask: g.aboutTask(methodCancelTask),
	}
}

// serveExtension returns the handler of a method of an extension.
func (d *downstream) serveExtension(serve serveExtension) handler {
	return func(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
		r, ok := req.(*mcp.ServerRequest[*extensionParams])
		if !ok || r.Params == nil {
			return own()
		}
		params, err := jsonrpc.Members(r.Params.raw, "uri", "taskId", "inputResponses", "cursor")
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the params are invalid: " + err.Error()}
		}
		in, err := d.newRequest(c, "", r.Params.Meta, nil, "")
		if err != nil {
			return nil, err
		}
		in.Header = headerOf(r)
		result, err := serve(ctx, c, in, params)
		if err != nil {
			return nil, err
		}
		return rawResult(c.finishResult(result))
	}
}

// refuseMethod returns the handler of a method of an extension for the SDK. It refuses
// every request, because the middleware handles those that an upstream can answer.
func refuseMethod(method string) func(context.Context, *mcp.ServerSession, *extensionParams) (*encodedResult, error) {
	return func(context.Context, *mcp.ServerSession, *extensionParams) (*encodedResult, error) {
		return nil, sdkError(methodNotFound(method))
	}
}

// methodNotFound returns the error for a method that no upstream of the client supports.
func methodNotFound(method string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("the method %q is not supported: no upstream declares its extension for this client and protocol version", method)}
}

// missingExtension returns the error for a client that does not declare an extension.
func missingExtension(id, message string) *jsonrpc.Error {
	required := jsonrpc.Object(jsonrpc.Member{Key: "extensions", Value: jsonrpc.Object(jsonrpc.Member{Key: id, Value: json.RawMessage(`{}`)})})
	return &jsonrpc.Error{
		Code: missingCapability, Message: message,
		Data: jsonrpc.Object(jsonrpc.Member{Key: "requiredCapabilities", Value: required}),
	}
}

// uses are the uses of a tool that its definition declares for MCP Apps.
type uses struct {
	// page reports whether the tool has a page.
	page bool
	// appOnly and modelOnly report whether only pages or only models may call the tool.
	appOnly, modelOnly bool
}

// usesOf returns the uses of a tool.
func usesOf(definition json.RawMessage) uses {
	var u uses
	members, _ := jsonrpc.Members(definition)
	meta, _ := jsonrpc.Members(members["_meta"])
	ui, _ := jsonrpc.Members(meta["ui"])
	u.page = ui["resourceUri"] != nil || meta["ui/resourceUri"] != nil
	var visibility []string
	if json.Unmarshal(ui["visibility"], &visibility) == nil && ui["visibility"][0] == '[' {
		u.appOnly, u.modelOnly = !slices.Contains(visibility, "model"), !slices.Contains(visibility, "app")
	}
	return u
}

// checkUse returns an error if a tool is for pages only, and a model calls it through
// tool_call or the client shows no pages.
func (t *tool) checkUse(c *Client, byModel bool) error {
	switch {
	case !t.uses.appOnly:
		return nil
	case byModel:
		return guideway.Errorf(guideway.CodeRefused, "the tool %s is only for the page of its upstream, not for models", t.name).
			WithFix("call tool_search to find tools for models")
	case !c.hasApps():
		return missingExtension(upstream.ExtensionApps, fmt.Sprintf("the tool %s is only for pages of MCP Apps, which this client does not support", t.name))
	}
	return nil
}

// hasPages reports whether an upstream has tools with pages.
func (s *surface) hasPages(m *member) bool {
	return slices.ContainsFunc(s.tools, func(t *tool) bool { return t.member.Upstream == m.Upstream && t.uses.page })
}

// findPageTool returns the tool that a page calls by the upstream's name of the tool: pages do
// not know the names that this server gives to tools. The tool must be the only one with this
// name among the upstreams that have pages.
func (g *Gateway) findPageTool(c *Client, s *surface, name string) *tool {
	if !c.hasApps() || s.names.taken[name] {
		return nil
	}
	var found *tool
	for _, t := range s.tools {
		if t.original != name || t.uses.modelOnly || !s.hasPages(t.member) {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	return found
}
