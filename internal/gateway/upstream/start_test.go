package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// TestSessionUnusedAfterItsStartIsClosed checks that a session is closed if its call was
// cancelled during the start: immediately if the client was released, otherwise after the
// idle time.
func TestSessionUnusedAfterItsStartIsClosed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		want    upstream.Want
		idle    time.Duration
		release bool
	}{
		"the client was released": {upstream.Want{Client: "session:1", Capabilities: json.RawMessage(`{}`)}, time.Hour, true},
		"the call was cancelled":  {upstream.Lister(nil), time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starting, proceed, deleted := make(chan struct{}), make(chan struct{}), make(chan struct{})
			srv := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var m struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				_ = json.NewDecoder(r.Body).Decode(&m)
				switch {
				case r.Method == http.MethodDelete:
					close(deleted)
				case m.Method == "initialize":
					close(starting)
					<-proceed
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Mcp-Session-Id", "s")
					_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{}}}`, m.ID)
				case m.Method == "notifications/initialized":
					w.WriteHeader(http.StatusAccepted)
				default:
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
			}))
			spec := upstream.Spec{Name: "http", URL: srv.URL, Protocol: "2025-11-25"}
			u := openUpstream(t, spec, upstream.Options{IdleTime: tt.idle})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-starting
				cancel()
			}()
			if _, _, err := u.Session(ctx, tt.want); err == nil {
				t.Error("the cancelled call got a session")
			}
			if tt.release {
				u.Release(tt.want.Client)
			}
			close(proceed)
			<-deleted
		})
	}
}
