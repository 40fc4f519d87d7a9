package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// remoteServer is a server process with a public URL, and the project of a developer whose
// files, home directory and approvals the server does not use.
type remoteServer struct {
	*hookProject // the home directory of the server
	process      *serverProcess
	dev          *hookProject
	token        string
}

// startRemote starts the server with a flow whose step the rules decide.
func startRemote(t *testing.T, rules string) *remoteServer {
	t.Helper()
	dev, d := newShellProject(t), newHookProject(t)
	d.write(".guideway/workflows/flow.yaml", strings.Replace(checkedFlow, "[CHECK]", rules, 1))
	r := &remoteServer{hookProject: d, dev: dev}
	r.process = d.startServerWith([]string{"GUIDEWAY_PUBLIC_URL=http://guideway.example"}, "127.0.0.1:0", "steps,runs")
	r.token = r.createToken("laptop")
	return r
}

// createToken creates a token of a client.
func (r *remoteServer) createToken(name string) string {
	r.Helper()
	_, out := r.runCommand("token create " + name + " --toolset runs --json")
	_, rest, _ := strings.Cut(out, "gdn_")
	token, _, found := strings.Cut(rest, `"`)
	if !found {
		r.Fatalf("no token in %s", out)
	}
	return "gdn_" + token
}

// connectedDev is a client with its guideway connect process.
type connectedDev struct {
	*sdkClient
	process *exec.Cmd
}

// connectDev starts guideway connect in the project of the developer, with a client.
func (r *remoteServer) connectDev(version string) *connectedDev {
	r.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(r.Context()), "guideway", "connect", "--url", r.process.url)
	cmd.Dir, cmd.Env = r.dev.host.Dir, append(r.dev.environment(), "GUIDEWAY_TOKEN="+r.token)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(r.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = session.Close() })
	return &connectedDev{sdkClient: &sdkClient{t: r.T, name: version, ClientSession: session}, process: cmd}
}

// start starts a run of the flow, and returns its handle and its id.
func (r *remoteServer) start(c *connectedDev) (handle, id string) {
	r.Helper()
	return r.position(c.callTool(r.Context(), "workflow_start", map[string]any{"workflowId": "flow", "goal": "x", "project": r.dev.host.Dir}))
}

// position reads the handle and the id of a run in an answer.
func (r *remoteServer) position(text string) (handle, id string) {
	r.Helper()
	found := startedRun.FindStringSubmatch(text)
	if found == nil {
		r.Fatalf("no run and no handle in %s", text)
	}
	return found[2], found[1]
}

var startedRun = regexp.MustCompile(`(?s)(r_\w+).*(h_\w+)`)

func submission(handle string) map[string]any {
	return map[string]any{"handle": handle, "output": "All tests pass: ok x/pkg 0.31s"}
}

// TestConnectExecutesChecks checks a step of a remote server that a check decides: guideway
// connect executes it in the project of the developer after the developer has approved it,
// and the record names the computer. It does so in both protocol versions.
func TestConnectExecutesChecks(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := startRemote(t, `{ and: [{ type: check, check: test }, { type: protect, paths: ["*_test.go"] }] }`)
			r.dev.write("a_test.go", "package a\n")
			r.dev.git("init", "-q")
			r.dev.git("add", "-A")
			r.dev.git("commit", "-q", "-m", "base")
			c := r.connectDev(version)
			handle, id := r.start(c)
			want := func(text string) {
				t.Helper()
				if got := c.callTool(t.Context(), "workflow_continue", submission(handle)); !strings.Contains(got, text) {
					t.Errorf("the answer lacks %q:\n%s", text, got)
				}
			}
			want("guideway checks approve test")
			want("in a terminal in " + r.dev.host.Dir)
			r.dev.wantCommand(app.ExitOK, "Approved: test.", "checks approve test", "yes")
			want("exited with 1 instead of 0")
			r.dev.write("done", "")
			r.dev.write("a_test.go", "package b\n")
			want("a_test.go")
			r.dev.write("a_test.go", "package a\n")
			r.dev.write("tests.sh", "exit 0\n")
			want("changed after its approval")
			r.dev.write("tests.sh", "echo testing $1\ntest -f \"$1\"\n")
			want("completed")

			_, out := r.runCommand("runs show " + id + " --json")
			var shown struct {
				Events []struct {
					Kind, Label string
					By          struct{ Client string }
					Data        evidence.Result
				}
			}
			if err := json.Unmarshal([]byte(out), &shown); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var passed []string
			for _, e := range shown.Events {
				if e.Kind == "check_run" && e.Data.Passed {
					passed = append(passed, e.Data.ConnectHost()+" "+e.By.Client+" "+e.Data.Workspace.Root)
				}
			}
			host := hostName(t)
			if !slices.Contains(passed, host+" laptop "+r.dev.host.Dir) {
				t.Errorf("the checks were executed by %q", passed)
			}
			r.wantCommand(app.ExitOK, "executed on "+host+" through guideway connect", "runs show "+id+" --events")
		})
	}
}

// TestConnectIsLost checks that a run is unchanged if guideway connect is killed while it
// executes a check, and that two other processes of the same user can continue it at the same
// time: both clients get the answer of the one event.
func TestConnectIsLost(t *testing.T) {
	t.Parallel()
	r := startRemote(t, `[{ type: check, check: test }]`)
	for _, name := range []string{"began", "finish"} {
		if err := syscall.Mkfifo(filepath.Join(r.dev.host.Dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.dev.write("tests.sh", "test -f done || { echo x > began; cat finish; }\n")
	r.dev.wantCommand(app.ExitOK, "Approved: test.", "checks approve test", "yes")
	first := r.connectDev("2025-11-25")
	handle, id := r.start(first)
	answered := make(chan string, 1)
	go func() { answered <- first.callTool(t.Context(), "workflow_continue", submission(handle)) }()
	if _, err := os.ReadFile(filepath.Join(r.dev.host.Dir, "began")); err != nil {
		t.Fatal(err)
	}
	if err := first.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; !strings.HasPrefix(got, "error: ") {
		t.Errorf("the client of the killed process received %s", got)
	}
	end, err := os.OpenFile(filepath.Join(r.dev.host.Dir, "finish"), os.O_WRONLY|syscall.O_NONBLOCK, 0) // ends the script, if it runs
	if err == nil {
		_ = end.Close()
	}
	r.dev.write("done", "")
	var clients sync.WaitGroup
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c := r.connectDev(version)
		clients.Go(func() {
			if got := c.callTool(t.Context(), "workflow_continue", submission(handle)); !strings.Contains(got, "completed") {
				t.Errorf("%s: %s", version, got)
			}
		})
	}
	clients.Wait()
	_, out := r.runCommand("runs show " + id + " --json")
	if strings.Count(out, `"kind": "check_run"`) != 1 {
		t.Errorf("the events are %s", out)
	}
}

// TestConnectExecutesNoCheckElsewhere checks that guideway connect does nothing for a run in
// another directory than its own, and that a client without it cannot continue a run that
// was started through it.
func TestConnectExecutesNoCheckElsewhere(t *testing.T) {
	t.Parallel()
	r := startRemote(t, `[{ type: file, path: secret }]`)
	c := r.connectDev("2025-11-25")
	elsewhere := t.TempDir()
	writeFile(t, filepath.Join(elsewhere, "secret"), "x")
	if got := c.callTool(t.Context(), "workflow_start", map[string]any{"workflowId": "flow", "goal": "x", "project": elsewhere}); !strings.Contains(got, "executes no checks in "+elsewhere) {
		t.Errorf("a run in another directory: %s", got)
	}
	handle, _ := r.start(c)
	raw := &rawClient{remoteServer: r, token: r.token}
	if got := raw.call("workflow_continue", submission(handle), nil); !strings.Contains(got.text, "not connected from there through guideway connect") || got.sealed != "" {
		t.Errorf("without guideway connect: %+v", got)
	}
	raw.host = "other"
	if got := raw.call("workflow_continue", submission(handle), nil); !strings.Contains(got.text, "not connected from there through guideway connect") {
		t.Errorf("from another computer: %+v", got)
	}
}

// rawClient sends calls of the modern protocol directly to the server, as a program with the
// token can. host is the computer that it claims.
type rawClient struct {
	*remoteServer
	token, host string
}

type rawAnswer struct {
	text, sealed string
	refused      bool
}

func (c *rawClient) call(tool string, arguments map[string]any, answer any) rawAnswer {
	c.Helper()
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "agent", "version": "1"},
	}
	if answer != nil {
		meta[evidence.ConnectMeta] = answer
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments, "_meta": meta}})
	if err != nil {
		c.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.process.url, bytes.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + c.token,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool, evidence.ConnectHeader: c.host,
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	if _, data, found := strings.Cut(string(text), "data: "); found {
		text = []byte(data)
	}
	var message struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
			Meta    struct {
				Sealed string `json:"dev.guideway/checks"`
			} `json:"_meta"`
		}
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&message); err != nil || len(message.Result.Content) == 0 {
		c.Fatalf("%s: %v: %s", tool, err, text)
	}
	return rawAnswer{text: message.Result.Content[0].Text, sealed: message.Result.Meta.Sealed, refused: message.Result.IsError}
}

// readRequest returns the content of a sealed request.
func (a rawAnswer) readRequest(t *testing.T) (asked evidence.ConnectRequest) {
	t.Helper()
	payload, _, _ := strings.Cut(a.sealed, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(text, &asked) != nil {
		t.Fatalf("the request is %+v", a)
	}
	return asked
}

// startRun starts a run as guideway connect does.
func (c *rawClient) startRun() (handle string) {
	c.Helper()
	arguments := map[string]any{"workflowId": "flow", "goal": "x", "project": c.dev.host.Dir}
	asked := c.call("workflow_start", arguments, nil)
	started := c.call("workflow_start", arguments, evidence.ConnectAnswer{Sealed: asked.sealed, Workspace: &evidence.Workspace{Root: c.dev.host.Dir, Host: c.host}})
	if started.refused {
		c.Fatal(started.text)
	}
	handle, _ = c.position(strings.ReplaceAll(started.text, "\n", " "))
	return handle
}

// TestConnectAnswersAreBound checks the answers that the server refuses: the seal, the call,
// the client and the one use of a request are checked before the results, and the results
// must be those of the requested rule in the workspace of the run.
func TestConnectAnswersAreBound(t *testing.T) {
	t.Parallel()
	r := startRemote(t, `[{ type: command, argv: [make, test] }]`)
	c := &rawClient{remoteServer: r, token: r.token, host: "desk"}
	handle := c.startRun()
	good := func(change func(*evidence.Result)) []evidence.Result {
		result := evidence.Result{Step: "work", Key: "/0", Hash: strings.Repeat("a", 64), Workspace: &evidence.Workspace{Root: r.dev.host.Dir, Host: "desk"}}
		result.Passed = true
		if change != nil {
			change(&result)
		}
		return []evidence.Result{result}
	}
	other := &rawClient{remoteServer: r, token: r.createToken("other"), host: "desk"}
	second := c.startRun()
	submit := submission(handle)
	for name, tt := range map[string]struct {
		by        *rawClient
		arguments map[string]any
		answer    func(sealed string) any
		want      string
	}{
		"malformed":         {answer: func(string) any { return "yes" }, want: "malformed"},
		"no seal":           {answer: func(string) any { return evidence.ConnectAnswer{Results: good(nil)} }, want: "answers no request of this server"},
		"changed request":   {answer: func(s string) any { return evidence.ConnectAnswer{Sealed: "x" + s, Results: good(nil)} }, want: "answers no request of this server"},
		"other client":      {by: other, want: "to another user or client"},
		"other run":         {arguments: submission(second), want: "about another call"},
		"other output":      {arguments: map[string]any{"handle": handle, "output": "something else"}, want: "about another call"},
		"no results":        {answer: func(s string) any { return evidence.ConnectAnswer{Sealed: s} }, want: "0 results for 1 checks"},
		"other rule":        {answer: answerWith(good(func(r *evidence.Result) { r.Key = "/1" })), want: `for the rule \"/1\"`},
		"other step":        {answer: answerWith(good(func(r *evidence.Result) { r.Step = "rest" })), want: `the step \"rest\"`},
		"other directory":   {answer: answerWith(good(func(r *evidence.Result) { r.Workspace.Root = "/" })), want: `executed in \"/\"`},
		"other computer":    {answer: answerWith(good(func(r *evidence.Result) { r.Workspace.Host = "builder" })), want: `on \"builder\"`},
		"no workspace":      {answer: answerWith(good(func(r *evidence.Result) { r.Workspace = nil })), want: "contradicts itself"},
		"no hash":           {answer: answerWith(good(func(r *evidence.Result) { r.Hash = "" })), want: "contradicts itself"},
		"undefined command": {answer: answerWith(good(func(r *evidence.Result) { r.Passed, r.Undefined = false, true })), want: "contradicts itself"},
	} {
		asked := c.call("workflow_continue", submit, nil)
		if request := asked.readRequest(t); len(request.Checks) != 1 || request.Checks[0].Step != "work" || request.Checks[0].Key != "/0" {
			t.Fatalf("%s: the request is %+v", name, request)
		}
		by, arguments, answer := tt.by, tt.arguments, tt.answer
		if by == nil {
			by = c
		}
		if arguments == nil {
			arguments = submit
		}
		if answer == nil {
			answer = answerWith(good(nil))
		}
		if got := by.call("workflow_continue", arguments, answer(asked.sealed)); !got.refused || !strings.Contains(got.text, tt.want) {
			t.Errorf("%s: %+v, want a refusal with %q", name, got, tt.want)
		}
	}

	asked := c.call("workflow_continue", submit, nil)
	failed := answerWith(good(func(r *evidence.Result) { r.Passed, r.Issue = false, "2 tests failed" }))
	if got := c.call("workflow_continue", submit, failed(asked.sealed)); !got.refused || !strings.Contains(got.text, "2 tests failed") {
		t.Errorf("a failed check: %+v", got)
	}
	if got := c.call("workflow_continue", submit, answerWith(good(nil))(asked.sealed)); !strings.Contains(got.text, "was answered before") {
		t.Errorf("a second answer: %+v", got)
	}
	// Two processes of one user may execute the same check: the second one gets the answer of
	// a repeated call.
	both := []rawAnswer{c.call("workflow_continue", submit, nil), c.call("workflow_continue", submit, nil)}
	for _, asked := range both {
		if got := c.call("workflow_continue", submit, answerWith(good(nil))(asked.sealed)); got.refused {
			t.Errorf("an answer: %+v", got)
		}
	}
}

func answerWith(results []evidence.Result) func(sealed string) any {
	return func(sealed string) any { return evidence.ConnectAnswer{Sealed: sealed, Results: results} }
}

// TestLocalServerExecutesItsChecks checks that a server without a public name takes no results
// from clients: it executes checks itself.
func TestLocalServerExecutesItsChecks(t *testing.T) {
	t.Parallel()
	dev, d := newShellProject(t), newHookProject(t)
	d.write(".guideway/workflows/flow.yaml", strings.Replace(checkedFlow, "CHECK", "{ type: command, argv: [make, test] }", 1))
	r := &remoteServer{hookProject: d, dev: dev}
	r.process = d.startServerWith(nil, "127.0.0.1:0", "steps,runs")
	c := &rawClient{remoteServer: r, token: r.createToken("laptop"), host: "desk"}
	started := c.call("workflow_start", map[string]any{"workflowId": "flow", "goal": "x", "project": dev.host.Dir}, nil)
	if started.refused || started.sealed != "" {
		t.Fatalf("the start: %+v", started)
	}
	handle, _ := r.position(started.text)
	if got := c.call("workflow_continue", submission(handle), nil); got.sealed != "" || !strings.Contains(got.text, "guideway checks approve") {
		t.Errorf("the answer: %+v", got)
	}
}

// hostName returns the name of this computer.
func hostName(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
