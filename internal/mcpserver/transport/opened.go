package transport

import (
	"net/http"
	"time"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// opened notes a session of the legacy era that the SDK has opened by this request.
func (h *HTTPHandler) opened(w http.ResponseWriter, r *http.Request) {
	id := w.Header().Get("Mcp-Session-Id")
	owner, ok := authn.Identity(r.Context())
	holder := authn.TokenLeaseFrom(r.Context())
	if id == "" || !ok || r.Header.Get("Mcp-Session-Id") != "" || h.shortcut == nil && holder == nil {
		return
	}
	for session := range h.server.Sessions() {
		if session.ID() != id {
			continue
		}
		if h.shortcut != nil {
			h.shortcut.note(session, owner)
		}
		go h.attend(session, holder)
		return
	}
}

// holderTime is how often the token that a session was opened with is looked at.
const holderTime = 2 * time.Second

// attend waits for the end of a session, and ends it when its token is no longer
// good.
func (h *HTTPHandler) attend(session *mcp.ServerSession, holder *authn.TokenLease) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = session.Wait() // however it has ended
	}()
	if holder != nil {
		look := time.NewTicker(holderTime)
		defer look.Stop()
		for ended := false; !ended; {
			select {
			case <-over:
				ended = true
			case <-look.C:
				if ended = !holder.IsValid(); ended {
					_ = session.Close() // it waits for calls under way, which are cancelled
				}
			}
		}
	}
	<-over
	if h.shortcut != nil {
		h.shortcut.forget(session)
	}
}
