package cli

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// A bridge finds the server of its data directory and authenticates: without --url, with
// --url, and with a named token.
func TestConnectProvesTheServer(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	s := d.startServer("127.0.0.1:0")
	file := filepath.Join(d.host.Getenv("HOME"), "token")
	_, out := d.runCommand("token create mine --toolset steps --json")
	_, rest, _ := strings.Cut(out, "gdn_")
	mine, _, _ := strings.Cut(rest, `"`)
	for _, args := range [][]string{
		{"--token-file", file},
		{"--token-file", file, "--url", s.url},
		{"--token-file", file, "--token", "gdn_" + mine},
	} {
		c := d.startBridge(args...)
		if answer := c.sendRequest("tools/list", map[string]any{}); answer.Error != nil {
			t.Errorf("connect %v: %+v", args, answer)
		}
		c.end()
	}
}

// A program that listens on the server's address, or on the address given by --url,
// receives no token: neither the token of the token file nor a named token.
func TestConnectSendsNoTokenToOthers(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	file := filepath.Join(d.host.Getenv("HOME"), "token")
	d.startServer("127.0.0.1:0").killProcess() // the token exists, and no server listens
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	address, seen := startSquatter(t)
	other := strings.Repeat("n", 40)
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}` + "\n"
	for _, args := range [][]string{
		{"--listen", address},
		{"--url", "http://" + address + "/mcp"},
		{"--listen", address, "--token", other},
	} {
		host, said := d.host, &bytes.Buffer{}
		host.In, host.Out, host.Err = strings.NewReader(hello), said, io.Discard
		host.InTerminal, host.OutTerminal = false, false
		code := Run(t.Context(), append([]string{"connect", "--token-file", file}, args...), host)
		if code != app.ExitFailed || !strings.Contains(said.String(), `"id":1`) || !strings.Contains(said.String(), "does not prove that it is the server") {
			t.Errorf("connect %v: exit code %d, %s", args, code, said)
		}
	}
	got := seen()
	if !strings.Contains(got, "GET /api/health?challenge=") {
		t.Errorf("the squatter has seen %q", got)
	}
	for _, secret := range []string{strings.TrimSpace(string(token)), other, "Authorization"} {
		if strings.Contains(got, secret) {
			t.Errorf("the squatter has seen %q in %q", secret, got)
		}
	}
}

// startSquatter starts a program that answers each request like a healthy server, but does
// not prove that it has the token. seen returns the text that it has received.
func startSquatter(t *testing.T) (address string, seen func() string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var mu sync.Mutex
	var text bytes.Buffer
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				part := make([]byte, 4096)
				for {
					n, err := conn.Read(part)
					mu.Lock()
					text.Write(part[:n])
					mu.Unlock()
					if err != nil {
						return
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}")
				}
			}()
		}
	}()
	return listener.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}
