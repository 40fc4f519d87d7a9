package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// runningCommand is a command that runs until its input or context ends.
type runningCommand struct {
	*transcriptClient
	end  func()
	err  *lockedBuffer
	done chan int
}

// lockedBuffer is a buffer for standard error that is safe for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() {
		select {
		case b.news <- struct{}{}:
		default:
		}
	}()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// waitFor waits until the output has a text.
func (b *lockedBuffer) waitFor(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.news:
		case <-t.Context().Done():
			t.Fatalf("the output did not contain %q in time: %s", text, b.String())
		}
	}
}

// startCommand starts a command in the home directory of a test. It listens only on free
// ports.
func startCommand(t *testing.T, home string, args ...string) *runningCommand {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &runningCommand{err: &lockedBuffer{news: make(chan struct{}, 1)}, done: make(chan int, 1)}
	host := app.Host{In: inR, Out: outW, Err: r.err, Dir: home, Getenv: homeDirectory(home)}
	ctx, cancel := context.WithCancel(context.Background())
	r.transcriptClient = &transcriptClient{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20)}
	r.end = sync.OnceFunc(func() {
		_ = inW.Close()
		if args[0] != "mcp" {
			cancel()
		}
		if code := <-r.done; code != app.ExitOK {
			t.Errorf("%v: exit code %d: %s", args, code, r.err)
		}
		cancel()
	})
	go func() { r.done <- Run(ctx, args, host) }()
	t.Cleanup(r.end)
	return r
}

func homeDirectory(home string) func(string) string {
	return func(name string) string {
		return map[string]string{"HOME": home, "GUIDEWAY_LISTEN": "127.0.0.1:0", "NO_COLOR": "1"}[name]
	}
}

func (r *runningCommand) shakeHands() {
	r.sendRequest("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	r.writeMessage(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

func getURL(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestDashboardUsesLiveServer checks that the process of the first client serves the
// dashboard until the client ends, and that the process of a second client links to it.
// After that, the second process serves the dashboard.
func TestDashboardUsesLiveServer(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	one := startCommand(t, home, "mcp")
	one.shakeHands()
	first, _ := one.callTool("workrail_open_dashboard", map[string]any{})["url"].(string)
	two := startCommand(t, home, "mcp")
	two.shakeHands()
	page, _ := two.callTool("workrail_open_dashboard", map[string]any{"sessionId": "DASH-1"})["url"].(string)
	if !strings.HasPrefix(first, "http://127.0.0.1:") || page != first+"dashboard/DASH-1" {
		t.Fatalf("the dashboards are %q and %q", first, page)
	}
	if status, body := getURL(t, first+"api/health"); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	// The address that an agent gets requires a login.
	for _, path := range []string{"", "api/runs", "dashboard/DASH-1"} {
		if status, body := getURL(t, first+path); status != http.StatusUnauthorized {
			t.Errorf("/%s answers %d without a login: %s", path, status, body)
		}
	}
	// The dashboard server does not serve /mcp.
	if status, _ := getURL(t, first+"mcp"); status != http.StatusNotFound {
		t.Errorf("/mcp returned the status %d, want 404", status)
	}
	one.end()
	if status, body := getURL(t, first+"api/health"); status != 0 {
		t.Errorf("the server still runs after its client ended: %d %s", status, body)
	}
	again, _ := two.callTool("workrail_open_dashboard", map[string]any{})["url"].(string)
	if status, body := getURL(t, again+"api/health"); status != http.StatusOK {
		t.Errorf("%s: %d %s", again, status, body)
	}
	two.end()
	left, err := os.ReadDir(filepath.Join(home, ".local", "share", "guideway", "servers"))
	if err != nil || len(left) > 0 {
		t.Errorf("files left over: %v (%v)", left, err)
	}
}

// At a terminal, open prints a link that logs in a browser. If a passphrase is set, open
// asks for the passphrase first.
func TestOpenMakesALoginLink(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	open := func(typed ...string) (int, string) {
		host, out := newTerminal(t, nil)
		host.Getenv, host.Dir = homeDirectory(home), home
		in := &fakeTerminal{lines: typed, echo: out}
		host.In = in
		typeSecrets(&host, in)
		code := Run(t.Context(), typedCommand(&in.lines), host)
		return code, out.String()
	}
	if code, out := open("open"); code != app.ExitFailed || !strings.Contains(out, "try: guideway serve") {
		t.Errorf("without a server: %d %s", code, out)
	}
	server := startCommand(t, home, "serve")
	server.err.waitFor(t, "Stop with Ctrl-C")
	code, out := open("open")
	link := regexp.MustCompile(`http://\S+/login/\S+`).FindString(out)
	if code != app.ExitOK || link == "" {
		t.Fatalf("%d %s", code, out)
	}
	if status, body := getURL(t, link); status != http.StatusOK {
		t.Errorf("the link returned %d %s", status, body)
	}
	if strings.Contains(server.err.String(), "/login/") {
		t.Errorf("the server's output contains a login link:\n%s", server.err)
	}
	if code, out := open("runs approve --set-passphrase", "four words in a row", "four words in a row"); code != app.ExitOK {
		t.Fatalf("%d %s", code, out)
	}
	if code, out := open("open", "wrong"); code != app.ExitFailed || strings.Contains(out, "/login/") {
		t.Errorf("open with a wrong passphrase: exit code %d: %s", code, out)
	}
	if code, out := open("open", "four words in a row"); code != app.ExitOK || !strings.Contains(out, "/login/") {
		t.Errorf("open with the passphrase: exit code %d: %s", code, out)
	}
	if code, out := open("tokens create phone --scope approve", "wrong"); code != app.ExitFailed || strings.Contains(out, "gdn_") {
		t.Errorf("tokens create with a wrong passphrase: exit code %d: %s", code, out)
	}
}

// typedCommand removes the first line, which is the command, from the typed lines.
func typedCommand(lines *[]string) []string {
	command := strings.Fields((*lines)[0])
	*lines = (*lines)[1:]
	return command
}
