package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
)

// TestConnect checks that a client that starts programs can use a server over HTTP through
// the bridge: it lists tools and templates, calls tools, and is notified of a changed list.
// It continues after a restart of the server.
func TestConnect(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	d.wantCommand(app.ExitOK, "", `hooks import --template rename-tools --id names --upstream one --set names={"echo":"say"}`)
	host := d.host
	a := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Toolsets = []string{"gateway"}
	s, err := server.OpenSurface(t.Context(), a, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var current atomic.Pointer[transport.HTTPHandler]
	start := func() {
		if old := current.Swap(transport.NewHTTPHandler(s.Server.MCP(), transport.HTTPOptions{HostsChecked: true, FastPath: s.Upstreams.FastPath()})); old != nil {
			server.CloseSessions(old)
		}
	}
	start()
	defer func() { server.CloseSessions(current.Load()) }()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		current.Load().ServeHTTP(w, r)
	}))
	defer server.Close()

	c := d.startBridge("--url", server.URL, "--token", "secret")
	if names := c.toolNames(); !slices.Contains(names, "one__echo") {
		t.Errorf("the tools are %v", names)
	}
	if got := c.callWithText("one__echo", "hi"); got != "hi" {
		t.Errorf("the call returned %s, want hi", got)
	}
	if answer := c.sendRequest("resources/templates/list", map[string]any{}); !strings.Contains(string(answer.Result), "note://{id}") {
		t.Errorf("the templates are %s", answer.Result)
	}
	s.Upstreams.Relist()
	for told := false; !told; {
		line, err := c.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		told = strings.Contains(line, "notifications/tools/list_changed")
	}
	start() // the restarted server does not know the session
	if got := c.callWithText("one__count", "x"); got != "counted" {
		t.Errorf("after a restart the call returned %s, want counted", got)
	}
	c.end()
	server.CloseClientConnections()
}

// A rejected token is reported to the client.
func TestConnectWithWrongToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	defer server.Close()
	d := newHookProject(t)
	c := d.startBridge("--url", server.URL, "--token", "wrong")
	if answer := c.sendRequest("tools/list", map[string]any{}); answer.Error == nil || !strings.Contains(answer.Error.Message, "does not accept the token") {
		t.Errorf("the answer is %+v, want an error", answer)
	}
	c.end()
}

// startBridge starts guideway connect and does the handshake.
func (d *hookProject) startBridge(args ...string) *gatewayClient {
	d.Helper()
	return d.startClient(append([]string{"connect"}, args...)...)
}

// startClient starts an MCP server command and does the handshake.
func (d *hookProject) startClient(args ...string) *gatewayClient {
	d.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	host := d.host
	host.In, host.Out, host.Err = inR, outW, d.Output()
	host.InTerminal, host.OutTerminal = false, false
	done := make(chan int, 1)
	go func() {
		done <- Run(context.WithoutCancel(d.Context()), args, host)
		_ = outW.Close()
	}()
	c := &gatewayClient{transcriptClient: &transcriptClient{t: d.T, in: inW, out: bufio.NewReaderSize(outR, 1<<20)}}
	c.end = func() {
		_ = inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		if code := <-done; code != app.ExitOK {
			d.Errorf("exit code %d", code)
		}
	}
	c.sendRequest("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "agent", "version": "1"},
	})
	c.writeMessage(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c
}
