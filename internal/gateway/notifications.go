package gateway

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// forwardNotification forwards notifications that an upstream sends outside of calls.
func (d *downstream) forwardNotification(client, method string, params json.RawMessage) {
	ctx := context.Background()
	if method == "notifications/resources/updated" {
		var p mcp.ResourceUpdatedNotificationParams
		if json.Unmarshal(params, &p) == nil {
			_ = d.server.ResourceUpdated(ctx, &p) // queueNotifications does not block.
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for session, of := range d.sessions {
		if "session:"+of.id == client {
			of.outbox.addParcel(parcel{size: len(params), send: func() { sendNotification(ctx, session, method, params) }})
		}
	}
}

// sendNotification sends a notification with the response to the request of ctx.
func sendNotification(ctx context.Context, session *mcp.ServerSession, method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
		var p mcp.ProgressNotificationParams
		if json.Unmarshal(params, &p) == nil {
			_ = session.NotifyProgress(ctx, &p) // The client may have disconnected.
		}
	case "notifications/message":
		var p mcp.LoggingMessageParams //nolint:staticcheck // SA1019: legacy clients listen
		if json.Unmarshal(params, &p) == nil {
			_ = session.Log(ctx, &p) //nolint:staticcheck // SA1019: legacy clients listen
		}
	}
}

// queueNotifications queues the notifications that the SDK sends to several sessions, one
// after the other: a client that does not read must not block the others. A notification of
// a changed list is dropped if the list of the session has not changed when it is sent: a
// change in the list of one client concerns only that client.
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
		ctx = context.WithoutCancel(ctx) // The SDK gives all sessions together ten seconds.
		p := parcel{name: method}
		if updated {
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

// outboxOf returns the outbox of a session: a modern client gets notifications only during
// subscriptions/listen.
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
