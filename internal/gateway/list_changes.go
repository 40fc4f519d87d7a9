package gateway

import (
	"context"
	"strconv"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// changeMark is a name that is added to a list and removed again, which makes the SDK
// notify clients of a changed list.
const changeMark = "guideway-list-changed"

// notifyChanged notifies clients that a list has changed.
func (d *downstream) notifyChanged(kind Kind) {
	switch kind {
	case KindTools:
		d.server.AddTool(&mcp.Tool{Name: changeMark, InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &sdkjsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool"}
			})
		d.server.RemoveTools(changeMark)
	case KindPrompts:
		d.server.AddPrompt(&mcp.Prompt{Name: changeMark}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return nil, &sdkjsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown prompt"}
		})
		d.server.RemovePrompts(changeMark)
	case KindResources:
		uri := "guideway://" + changeMark
		d.server.AddResource(&mcp.Resource{URI: uri, Name: changeMark}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, mcp.ResourceNotFoundError(uri)
		})
		d.server.RemoveResources(uri)
	}
}

// heldLists are the versions of the lists that a session has received or was notified of.
type heldLists struct {
	client string
	// versions holds "" for a list that may be outdated.
	versions map[Kind]string
	// listens counts the subscriptions/listen requests in progress, and outbox sends their
	// notifications.
	listens int
	outbox  outbox
}

// listVersionOf returns the version of a client's list, which changes with the list.
// Reserve and Relist change the version for all clients, and so does a change of the shared
// list. The version covers the lists for requests with and without capabilities, because a
// client of protocol version 2026-07-28 may send both.
func (g *Gateway) listVersionOf(client string, kind Kind) string {
	all := g.surfaces.Load()
	return strconv.FormatInt(g.listVersion.Load(), 10) + " " + all.shared.prints[kind] +
		" " + all.find(client).prints[kind] + " " + all.find(muteKey(client)).prints[kind]
}

// noteLists records the versions of the lists that a session knows. The caller must call
// end at the end of the request. If a list changes while it is requested, the session may
// get either version, and is notified of the next change in any case. A session that has
// not listed yet must be notified only of later changes. The session of a modern client is
// a single request and is recorded only for subscriptions/listen.
func (d *downstream) noteLists(method string, c *Client, req mcp.Request) (end func()) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	listens := method == "subscriptions/listen"
	if !ok || c.Modern && !listens {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.held[session]
	if h == nil {
		h = &heldLists{client: c.sharingKey(), versions: map[Kind]string{}}
		d.held[session] = h
	}
	if listens {
		h.listens++
	}
	listed := map[string]Kind{"tools/list": KindTools, "prompts/list": KindPrompts, "resources/list": KindResources}[method]
	for _, kind := range []Kind{KindTools, KindPrompts, KindResources} {
		if _, noted := h.versions[kind]; !noted || kind == listed {
			h.versions[kind] = d.gateway.listVersionOf(h.client, kind)
		}
	}
	before := h.versions[listed]
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if listed != "" && before != d.gateway.listVersionOf(h.client, listed) {
			h.versions[listed] = ""
		}
		if !listens {
			return
		}
		if h.listens--; h.listens == 0 {
			delete(d.held, session)
		}
	}
}

// takeChange reports whether a session must be notified of a changed list, and records the
// current version as known to the session. A session without recorded lists is always
// notified.
func (d *downstream) takeChange(session *mcp.ServerSession, kind Kind) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.held[session]
	if h == nil {
		return true
	}
	now := d.gateway.listVersionOf(h.client, kind)
	known := h.versions[kind] == now
	h.versions[kind] = now
	return !known
}
