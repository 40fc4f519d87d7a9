package replicatest

import (
	"bytes"
	"net/http"
	"syscall"
	"testing"
)

// legacySession opens a session of 2025-11-25 at a URL and returns its headers.
func legacySession(t *testing.T, at, token string) map[string]string {
	t.Helper()
	status, text, header := request(t, http.MethodPost, at+"/mcp", token, nil, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": map[string]any{"name": "old", "version": "1"},
	}})
	id := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %s", status, text)
	}
	session := map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-11-25"}
	status, text, _ = request(t, http.MethodPost, at+"/mcp", token, session, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	if status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", status, text)
	}
	return session
}

// TestSessionsAreForwarded checks that a client with a session of a legacy protocol version
// is served through any replica, and gets 404 after the instance of its session has ended.
func TestSessionsAreForwarded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	at := c.startReplicas(3)
	token := c.replicas[0].token()
	list := func(session map[string]string) int {
		status, text, _ := request(t, http.MethodPost, at+"/mcp", token, session, map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
		if status == http.StatusOK && !bytes.Contains(text, []byte("workflow_start")) {
			t.Errorf("tools/list: %s", text)
		}
		return status
	}
	for range 3 {
		session := legacySession(t, at, token)
		for i := range 9 {
			if status := list(session); status != http.StatusOK {
				t.Errorf("call %d of a session: %d", i, status)
			}
		}
	}
	victim := c.replicas[2]
	session := legacySession(t, victim.url(""), token)
	if status := list(session); status != http.StatusOK {
		t.Errorf("before the end: %d", status)
	}
	victim.stop(syscall.SIGKILL)
	c.replicas = c.replicas[:2]
	for range 4 {
		if status := list(session); status != http.StatusNotFound {
			t.Errorf("a session of a killed instance: %d", status)
		}
	}
	victim.run() // the instance has another id, at another address
	if status, text, _ := request(t, http.MethodPost, victim.url("/mcp"), token, session, map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}); status != http.StatusNotFound {
		t.Errorf("after a restart: %d %s", status, text)
	}
}
