package cli

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverProcess is a `guideway serve` process with the settings of a project.
type serverProcess struct {
	cmd        *exec.Cmd
	url, token string
}

var servesAt = regexp.MustCompile(`^ *MCP +(\S+)$`)

// startServer starts the server and waits until it listens.
func (d *hookProject) startServer(listen string) *serverProcess {
	d.Helper()
	return d.startServerWith(nil, listen, "gateway")
}

// startServerWith starts the server with further variables of the environment and with
// toolsets.
func (d *hookProject) startServerWith(env []string, listen, toolsets string) *serverProcess {
	d.Helper()
	file := filepath.Join(d.host.Getenv("HOME"), "token")
	cmd := exec.CommandContext(context.WithoutCancel(d.Context()), "guideway", "serve", "--listen", listen, "--token-file", file, "--toolsets", toolsets)
	cmd.Env = append(d.environment(), env...)
	cmd.Dir = d.host.Dir
	said, err := cmd.StderrPipe()
	if err != nil {
		d.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	s := &serverProcess{cmd: cmd}
	d.Cleanup(s.killProcess)
	lines := bufio.NewScanner(said)
	for s.url == "" && lines.Scan() {
		if found := servesAt.FindStringSubmatch(lines.Text()); found != nil {
			s.url = found[1]
		}
	}
	go func() { // otherwise the server blocks when the pipe is full
		for lines.Scan() {
		}
	}()
	token, err := os.ReadFile(file)
	if err != nil || s.url == "" {
		d.Fatalf("the server did not start: %v", err)
	}
	s.token = strings.TrimSpace(string(token))
	return s
}

// killProcess kills the server without a warning.
func (s *serverProcess) killProcess() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	_ = s.cmd.Wait()
}

// environment returns the environment of the project's processes, without the variables of
// this test process.
func (d *hookProject) environment() []string {
	return []string{"HOME=" + d.host.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
}

// sdkClient is a client of the SDK, with the notifications that it received.
type sdkClient struct {
	*mcp.ClientSession
	t *testing.T
	// name describes the connection in messages.
	name string

	mu      sync.Mutex
	events  []string
	working chan struct{}
}

func (c *sdkClient) addEvent(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event)
	if event == "progress" {
		select {
		case c.working <- struct{}{}:
		default:
		}
	}
}

// waitWorking waits for the progress of a call. It fails the test if the call ends before.
func (c *sdkClient) waitWorking(done <-chan string) {
	c.t.Helper()
	select {
	case <-c.working:
	case got := <-done:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.t.Fatalf("%s: the call ended without progress: %s; the notifications were %q", c.name, got, c.events)
	}
}

func (c *sdkClient) hasEvent(event string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.events, event)
}

// eventsOf returns the events with a prefix.
func (c *sdkClient) eventsOf(prefix string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.events), func(event string) bool { return !strings.HasPrefix(event, prefix) })
}

// connectVersion connects a client of a protocol version, over HTTP or through guideway
// connect.
func (d *hookProject) connectVersion(s *serverProcess, version string, bridged bool) *sdkClient {
	d.Helper()
	c := &sdkClient{t: d.T, name: version + " bridged " + strconv.FormatBool(bridged), working: make(chan struct{}, 1)}
	c.ClientSession = d.connectSession(s, "agent", version, bridged, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": "yes"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.addEvent("progress")
			c.addEvent("progress: " + r.Params.Message)
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.addEvent("changed") },
	})
	return c
}

// connectSession connects a client with a name; the version can be empty.
func (d *hookProject) connectSession(s *serverProcess, name, version string, bridged bool, opts *mcp.ClientOptions) *mcp.ClientSession {
	d.Helper()
	var way mcp.Transport = &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(s.token)}}
	if bridged {
		cmd := exec.CommandContext(context.WithoutCancel(d.Context()), "guideway", "connect", "--url", s.url)
		cmd.Env = append(d.environment(), "GUIDEWAY_TOKEN="+s.token)
		way = &mcp.CommandTransport{Command: cmd}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, opts).Connect(d.Context(), way, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = session.Close() })
	return session
}

type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// callTool calls a tool, and returns the text of the answer.
func (c *sdkClient) callTool(ctx context.Context, tool string, arguments map[string]any) string {
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken("p")
	result, err := c.CallTool(ctx, params)
	if err != nil {
		return "error: " + err.Error()
	}
	text := ""
	for _, part := range result.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if result.IsError {
		return "isError: " + text
	}
	return text
}

func countLines(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// TestServeAndConnect checks a server process with a gateway and hooks, with legacy and
// modern protocols, over HTTP and through guideway connect: calls, questions, progress,
// cancellation and templates. Legacy clients are notified of changed lists. If the server
// is killed, a bridged client gets an error; after a restart the same client continues.
func TestServeAndConnect(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	d.wantCommand(app.ExitOK, "", "hooks import --template redact-secrets --id redact --upstream one --tool echo")
	d.wantCommand(app.ExitOK, "", `hooks import --template rename-tools --id names --upstream one --set names={"params":"show"}`)
	d.wantCommand(app.ExitOK, "", "hooks enable redact")
	s := d.startServer("127.0.0.1:0")
	var all []*sdkClient
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, bridged := range []bool{false, true} {
			c := d.connectVersion(s, version, bridged)
			all = append(all, c)
			name := c.name
			tools, err := c.ListTools(t.Context(), nil)
			if err != nil || !slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "one__params" }) {
				t.Fatalf("%s: the tools are %v, %v", name, tools, err)
			}
			if got := c.callTool(t.Context(), "one__echo", map[string]any{"text": "key AKIAABCDEFGHIJKLMNOP"}); got != "key [redacted]" {
				t.Errorf("%s: the hook returned %s", name, got)
			}
			if got := c.callTool(t.Context(), "one__ask", map[string]any{"text": "sure?"}); !strings.Contains(got, "yes") {
				t.Errorf("%s: the call with a question returned %s", name, got)
			}
			if templates, err := c.ListResourceTemplates(t.Context(), nil); err != nil || !slices.ContainsFunc(templates.ResourceTemplates, func(r *mcp.ResourceTemplate) bool { return r.URITemplate == "note://{id}" }) {
				t.Errorf("%s: the templates are %v, %v", name, templates, err)
			}
			before := countLines(t, count)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan string, 1)
			go func() { done <- c.callTool(ctx, "one__sleep", map[string]any{"ms": 600_000}) }()
			c.waitWorking(done)
			cancel()
			if got := <-done; !strings.Contains(got, "canceled") {
				t.Errorf("%s: the cancelled call returned %s", name, got)
			}
			waitFor(t, func() bool { return countLines(t, count) == before+1 }) // the upstream was notified of the cancellation
		}
	}
	d.wantCommand(app.ExitOK, "", "hooks enable names")
	for _, c := range all[:2] { // the modern clients would have to subscribe, which the client of the SDK does not do
		waitFor(t, func() bool { return c.hasEvent("changed") })
	}
	before := countLines(t, count)
	bridged := all[1]
	done := make(chan string, 1)
	go func() { done <- bridged.callTool(t.Context(), "one__work", map[string]any{"ms": 600_000}) }()
	bridged.waitWorking(done)
	s.killProcess()
	if got := <-done; !strings.HasPrefix(got, "error: ") || !strings.Contains(got, "unknown whether") {
		t.Errorf("during the kill of the server, the call returned %s", got)
	}
	if got := bridged.callTool(t.Context(), "one__count", nil); !strings.Contains(got, "guideway serve") {
		t.Errorf("without a server, the call returned %s", got)
	}
	d.startServer(strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp"))
	if got := bridged.callTool(t.Context(), "one__count", nil); got != "counted" {
		t.Errorf("after the restart, the call returned %s", got)
	}
	if got := countLines(t, count) - before; got != 2 {
		t.Errorf("%d calls were counted, want one before the kill and one after it", got)
	}
}

const slowGraph = `id: slow
name: Slow
workflowType: tools/call
bindings: [{ upstream: one, tool: count }]
nodes:
  - { id: start, type: start }
  - { id: h, type: hook, data: { hook: { script: "console.log('here'); await sleep(4000);" } } }
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`

// TestServerKilledDuringCall checks that, if a process is killed by SIGKILL during a call,
// the client gets an error and the call is not repeated. It kills an upstream, a script
// worker (whose call is not sent) and the gateway.
func TestServerKilledDuringCall(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	slow := filepath.Join(t.TempDir(), "slow.yaml")
	writeFile(t, slow, slowGraph)
	d.wantCommand(app.ExitOK, "", "hooks import "+slow)
	d.wantCommand(app.ExitOK, "", "hooks enable slow")
	s := d.startServer("127.0.0.1:0")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c := d.connectVersion(s, version, false)
		before := countLines(t, count)
		done := make(chan string, 1)
		work := func(tool string) { done <- c.callTool(t.Context(), tool, map[string]any{"ms": 600_000}) }

		go work("one__work")
		c.waitWorking(done)
		killChildren(t, s.cmd.Process.Pid, os.Args[0])
		if got := <-done; !strings.HasPrefix(got, "isError: ") || !strings.Contains(got, "unknown whether") {
			t.Errorf("%s: during the kill of the upstream, the call returned %s", version, got)
		}
		back := func() bool { return c.callTool(t.Context(), "one__echo", map[string]any{"text": "back"}) == "back" }
		waitFor(t, back) // a worker that was killed again is restarted only after a delay
		if got := countLines(t, count) - before; got != 1 {
			t.Errorf("%s: the upstream ran the call %d times, want once", version, got)
		}

		go work("one__count")
		got := ""
		waitFor(t, func() bool { // the first kill may hit an idle worker while another one runs the call
			select {
			case got = <-done:
				return true
			default:
				killChildren(t, s.cmd.Process.Pid, "script-worker")
				return false
			}
		})
		if !strings.HasPrefix(got, "isError: ") {
			t.Errorf("%s: during the kill of the hook's worker, the call returned %s", version, got)
		}
		if got := countLines(t, count) - before; got != 1 {
			t.Errorf("%s: a call was sent although its hook was killed", version)
		}
	}
	c := d.connectVersion(s, "2025-11-25", false)
	waitFor(t, func() bool { // an upstream that was killed twice is restarted only after a delay
		return c.callTool(t.Context(), "one__echo", map[string]any{"text": "x"}) == "x"
	})
	before := countLines(t, count)
	done := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { done <- c.callTool(ctx, "one__work", map[string]any{"ms": 600_000}) }()
	c.waitWorking(done)
	upstreams := childProcesses(t, s.cmd.Process.Pid, os.Args[0])
	s.killProcess()
	again := d.startServer(strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp"))
	if got := d.connectVersion(again, "2025-11-25", false).callTool(t.Context(), "one__echo", map[string]any{"text": "x"}); got != "x" {
		t.Errorf("after the kills, the gateway returned %s", got)
	}
	cancel() // the SDK's client waits until the stream reconnects
	if got := <-done; !strings.HasPrefix(got, "error: ") {
		t.Errorf("during the kill of the gateway, the call returned %s", got)
	}
	if got := countLines(t, count) - before; got != 1 {
		t.Errorf("the upstream ran the call %d times, want once", got)
	}
	waitFor(t, func() bool { // child processes exit when their input ends
		return !slices.ContainsFunc(upstreams, func(pid int) bool { return syscall.Kill(pid, 0) == nil && !isZombie(pid) })
	})
}

// childProcesses returns the child processes of a process that have a text in their command.
func childProcesses(t *testing.T, parent int, command string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // exited in the meantime
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) && strings.Contains(string(line), command) {
			found = append(found, pid)
		}
	}
	return found
}

// killChildren kills the matching child processes and returns their number.
func killChildren(t *testing.T, parent int, command string) int {
	t.Helper()
	found := childProcesses(t, parent, command)
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have exited
	}
	return len(found)
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

const hostileGraph = `id: hostile
name: Hostile
workflowType: tools/call
bindings: [{ upstream: one, tool: echo }]
nodes:
  - { id: start, type: start }
  - id: h
    type: hook
    data:
      hook:
        script: |
          const attacks = {
            loop() { for (;;); },
            finally() { while (true) try { while (true); } catch {} finally { while (true); } },
            async never() { await new Promise(() => {}); },
            fill() { const a = []; for (;;) a.push(new Array(5e7).fill(1)); },
            typed() { const a = []; for (;;) a.push(new Uint8Array(64 << 20)); },
            repeat() { "x".repeat(2 ** 30); },
            regex() { /^((a+)+)\1$/.test("a".repeat(50) + "b"); },
            parse() { JSON.parse("[".repeat(5e6)); },
            deep() { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; String(a); },
            reach() { attacks.constructor.constructor("return process")(); },
          };
          await attacks[context.request.params.arguments.text]();
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`

// A call with a hostile hook is refused; other calls, with hooks and without, are served.
func TestGatewayWithHostileHooks(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	hostile := filepath.Join(t.TempDir(), "hostile.yaml")
	writeFile(t, hostile, hostileGraph)
	d.wantCommand(app.ExitOK, "", "hooks import "+hostile)
	d.wantCommand(app.ExitOK, "", "hooks import --template redact-secrets --id redact --upstream one --tool params")
	d.wantCommand(app.ExitOK, "", "hooks enable hostile")
	d.wantCommand(app.ExitOK, "", "hooks enable redact")
	s := d.startServer("127.0.0.1:0")
	mallory, ann := d.connectVersion(s, "2025-11-25", false), d.connectVersion(s, "2026-07-28", false)
	calls := 0
	for _, attack := range []string{"loop", "finally", "never", "fill", "typed", "repeat", "regex", "parse", "deep", "reach"} {
		done := make(chan string, 1)
		go func() { done <- mallory.callTool(t.Context(), "one__echo", map[string]any{"text": attack}) }()
		for ended := false; !ended; {
			calls++
			if got := ann.callTool(t.Context(), "one__count", nil); got != "counted" {
				t.Errorf("during %s another client got %s", attack, got)
			}
			if got := ann.callTool(t.Context(), "one__params", map[string]any{"text": "AKIAABCDEFGHIJKLMNOP"}); !strings.Contains(got, "[redacted]") {
				t.Errorf("during %s another client's hook returned %s", attack, got)
			}
			select {
			case got := <-done:
				ended = true
				if !strings.HasPrefix(got, "isError: ") {
					t.Errorf("the call with %s returned %s", attack, got)
				}
			default:
			}
		}
	}
	if got := countLines(t, count); got != calls {
		t.Errorf("%d calls were sent, and %d ran", calls, got)
	}
}
