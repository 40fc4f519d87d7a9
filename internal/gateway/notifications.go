package gateway

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// receivers are the sessions that get an update.
type receivers map[*mcp.ServerSession]bool

// receiversKey is the member of the _meta of an update that passes its receivers from
// sendUpdate to queueNotifications. No client gets it.
const receiversKey = "guideway/receivers"

// sendUpdate sends an update of a resource to the receivers. The SDK sends it to all sessions
// that follow the URI, but the resource may differ from client to client.
func (d *downstream) sendUpdate(uri string, to receivers) {
	p := &mcp.ResourceUpdatedNotificationParams{URI: uri, Meta: mcp.Meta{receiversKey: to}}
	_ = d.server.ResourceUpdated(context.Background(), p) // It does not block, because queueNotifications does not.
}

// updateFor returns an update for a session without its receivers, or nil if the session is
// not one of them. An update of the server's own resources has no receivers and is for all
// sessions.
func updateFor(session *mcp.ServerSession, p *mcp.ResourceUpdatedNotificationParams) mcp.Request {
	if to, limited := p.Meta[receiversKey].(receivers); limited && !to[session] {
		return nil
	}
	copied := &mcp.ResourceUpdatedNotificationParams{URI: p.URI, Meta: maps.Clone(p.Meta)} // The sessions share p.
	delete(copied.Meta, receiversKey)
	return &mcp.ServerRequest[*mcp.ResourceUpdatedNotificationParams]{Session: session, Params: copied}
}

// forwardNotification forwards a notification that an upstream sends, outside of calls, in
// the session that belongs to a legacy client.
func (d *downstream) forwardNotification(client, method string, params json.RawMessage) {
	ctx := context.Background()
	d.mu.Lock()
	defer d.mu.Unlock()
	for session, of := range d.sessions {
		if "session:"+of.id == client {
			of.outbox.addParcel(parcel{size: len(params), send: func() { sendNotification(ctx, session, method, params) }})
		}
	}
}

// sendNotification sends progress or a log message. If ctx is the context of a request, it
// sends them with the response to the request.
func sendNotification(ctx context.Context, session *mcp.ServerSession, method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
		var p mcp.ProgressNotificationParams
		if json.Unmarshal(params, &p) == nil {
			_ = session.NotifyProgress(ctx, &p) // The client may have disconnected.
		}
	case "notifications/message":
		var p mcp.LoggingMessageParams //nolint:staticcheck // SA1019: legacy clients receive log messages
		if json.Unmarshal(params, &p) == nil {
			_ = session.Log(ctx, &p) //nolint:staticcheck // SA1019: legacy clients receive log messages
		}
	}
}

// queueNotifications queues the notifications that the SDK sends to several sessions, one
// after the other: a client that does not read must not block the others. A notification of
// a changed list is dropped if the list of the session has not changed when it is sent: a
// change in the list of one client concerns only that client. An update of a resource is
// dropped for sessions that are not among its receivers.
func (d *downstream) queueNotifications(next mcp.MethodHandler) mcp.MethodHandler {
	kinds := map[string]Kind{
		"notifications/tools/list_changed":     KindTools,
		"notifications/prompts/list_changed":   KindPrompts,
		"notifications/resources/list_changed": KindResources,
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		kind, changed := kinds[method]
		update, updated := req.GetParams().(*mcp.ResourceUpdatedNotificationParams)
		if !ok || !changed && !updated {
			return next(ctx, method, req)
		}
		ctx = context.WithoutCancel(ctx) // The SDK's limit of ten seconds applies to all sessions together.
		p := parcel{name: method}
		if updated {
			if req = updateFor(session, update); req == nil {
				return nil, nil //nolint:nilnil // a notification has no result
			}
			p.name, p.size = "update of "+update.URI, len(update.URI)
		}
		p.send = func() {
			if updated || d.takeChange(session, kind) {
				_, _ = next(ctx, method, req) // The client may have disconnected.
			}
		}
		d.outboxOf(session).addParcel(p)
		return nil, nil //nolint:nilnil // a notification has no result
	}
}

// outboxOf returns the outbox of a session. The session of a modern client is a single
// request, and only subscriptions/listen has an outbox.
func (d *downstream) outboxOf(session *mcp.ServerSession) *outbox {
	if p := session.InitializeParams(); p == nil || p.ProtocolVersion < modernVersion {
		return d.sessionOf(session).outbox
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.held[session]; h != nil {
		return &h.outbox
	}
	return &outbox{}
}
