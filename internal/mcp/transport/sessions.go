package transport

import (
	"net/http"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// recordSession records a legacy session that the SDK has opened with this request.
func (h *HTTPHandler) recordSession(w http.ResponseWriter, r *http.Request) {
	id := w.Header().Get("Mcp-Session-Id")
	owner, ok := auth.Identity(r.Context())
	holder := auth.TokenLeaseFrom(r.Context())
	if id == "" || !ok || r.Header.Get("Mcp-Session-Id") != "" || h.fastPath == nil && holder == nil {
		return
	}
	for session := range h.server.Sessions() {
		if session.ID() != id {
			continue
		}
		if h.fastPath != nil {
			h.fastPath.addSession(session, owner)
		}
		go h.watchSession(session, holder)
		return
	}
}

// tokenCheckInterval is the interval of checks of a session's token.
const tokenCheckInterval = 2 * time.Second

// watchSession waits for the end of a session, and ends it when its token becomes invalid.
func (h *HTTPHandler) watchSession(session *mcp.ServerSession, holder *auth.TokenLease) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = session.Wait() // the reason does not matter
	}()
	if holder != nil {
		look := time.NewTicker(tokenCheckInterval)
		defer look.Stop()
		for ended := false; !ended; {
			select {
			case <-over:
				ended = true
			case <-look.C:
				if ended = !holder.IsValid(); ended {
					_ = session.Close() // Close waits for calls in progress, which are cancelled
				}
			}
		}
	}
	<-over
	if h.fastPath != nil {
		h.fastPath.removeSession(session)
	}
}
