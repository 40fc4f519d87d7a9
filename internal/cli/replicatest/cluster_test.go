package replicatest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// envServe makes the test binary run the command line.
const envServe = "GUIDEWAY_REPLICATEST"

// TestMain runs the tests, the command line, or the upstream of the tests.
func TestMain(m *testing.M) {
	if modes, ok := os.LookupEnv(upstreamtest.Variable); ok {
		_ = upstreamtest.New(os.Stdout, modes).Serve(os.Stdin)
		os.Exit(0)
	}
	if os.Getenv(envServe) != "" || len(os.Args) == 2 && os.Args[1] == "script-worker" { // script workers have no variables
		os.Exit(cli.Main(os.Args[1:], app.NewSystemHost()))
	}
	os.Exit(m.Run())
}

// cluster is a database and the secrets that all replicas mount.
type cluster struct {
	t testing.TB
	// store is the URL of the database.
	store string
	// secrets is the directory of the shared secrets.
	secrets string
	// env are further variables of all processes.
	env      []string
	replicas []*replica
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	return &cluster{t: t, store: crash.EmptyPostgres(t), secrets: t.TempDir()}
}

// replica is one process of `guideway serve`.
type replica struct {
	t       testing.TB
	home    string
	env     []string
	cmd     *exec.Cmd
	address string
	// log is the error output.
	log *lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// environment returns the environment of a process of the cluster with a home directory.
func (c *cluster) environment(home string, more ...string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, envServe + "=1", "GUIDEWAY_STORE=" + c.store, "GUIDEWAY_USER=ann", "NO_COLOR=1",
		"GUIDEWAY_JOURNAL_KEY_FILE=" + filepath.Join(c.secrets, "journal.key"), "GUIDEWAY_LISTEN=127.0.0.1:0",
	}
	return append(append(env, c.env...), more...)
}

// start starts a replica with a new home directory and waits until it listens. more are
// further variables.
func (c *cluster) start(more ...string) *replica {
	c.t.Helper()
	r := c.newReplica(more...)
	r.run()
	return r
}

// newReplica returns a replica that is not started.
func (c *cluster) newReplica(more ...string) *replica {
	r := &replica{t: c.t, home: c.t.TempDir()}
	r.env = c.environment(r.home, more...)
	c.replicas = append(c.replicas, r)
	return r
}

// run starts the process of a replica.
func (r *replica) run() {
	r.t.Helper()
	self, err := os.Executable()
	checkError(r.t, err)
	r.cmd = exec.CommandContext(context.Background(), self, "serve") // stop ends it
	r.cmd.Env, r.cmd.Dir, r.log = r.env, r.home, &lockedBuffer{}
	out, err := r.cmd.StderrPipe()
	checkError(r.t, err)
	checkError(r.t, r.cmd.Start())
	r.t.Cleanup(func() { r.stop(syscall.SIGKILL) })
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(io.TeeReader(out, r.log))
		listens := regexp.MustCompile(`MCP\s+http://(\S+)/mcp`)
		for lines.Scan() {
			if m := listens.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
		close(address)
	}()
	var ok bool
	if r.address, ok = <-address; !ok {
		r.t.Fatalf("the server ended:\n%s", r.log)
	}
}

// stop ends the process and waits for its end.
func (r *replica) stop(sig syscall.Signal) {
	if r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Signal(sig)
		_ = r.cmd.Wait()
	}
}

// command runs a command with the environment of a replica, and returns its output.
func (c *cluster) command(home string, args ...string) (string, error) {
	self, err := os.Executable()
	checkError(c.t, err)
	cmd := exec.CommandContext(c.t.Context(), self, args...)
	cmd.Env, cmd.Dir = c.environment(home), home
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// config returns the settings of a machine with a home directory.
func (c *cluster) config(home string) *config.Config {
	c.t.Helper()
	env := map[string]string{}
	for _, entry := range c.environment(home) {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	a := &app.App{Host: &app.Host{Getenv: func(name string) string { return env[name] }, Dir: home, Err: io.Discard}, Flags: &app.SettingFlags{}}
	c.t.Cleanup(a.Close)
	cfg, err := a.Load()
	checkError(c.t, err)
	return cfg
}

// url returns a URL at the replica.
func (r *replica) url(path string) string { return "http://" + r.address + path }

// token returns the token of the replica's token file.
func (r *replica) token() string {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), "find", r.home, "-name", "token").Output()
	checkError(r.t, err)
	text, err := os.ReadFile(strings.TrimSpace(string(out)))
	checkError(r.t, err)
	return strings.TrimSpace(string(text))
}

// roundRobin starts a proxy that sends each request to the next replica, and returns its
// URL.
func (c *cluster) roundRobin() string {
	var next atomic.Int64
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to := c.replicas[int(next.Add(1))%len(c.replicas)]
			r.SetURL(&url.URL{Scheme: "http", Host: to.address})
			r.Out.Host = to.address
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The proxy fails if an answer begins before it has read the end of the body.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	c.t.Cleanup(s.Close)
	return s.URL
}

// request sends a request and returns the status and the body.
func request(t testing.TB, method, url, token string, header map[string]string, body any) (int, []byte, http.Header) {
	t.Helper()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		checkError(t, err)
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, in)
	checkError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	checkError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s %s: %s %v after %q: %v", method, url, answer.Status, answer.Header, text, err)
	}
	return answer.StatusCode, text, answer.Header
}

// callTool calls a tool as a client of 2026-07-28 and returns the structured content.
func callTool(t testing.TB, at, token, tool string, arguments map[string]any) (map[string]any, error) {
	t.Helper()
	status, text, _ := request(t, http.MethodPost, at+"/mcp", token,
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool},
		modernCall(tool, arguments, nil))
	return toolResult(status, text)
}

func modernCall(tool string, arguments, capabilities map[string]any) map[string]any {
	if capabilities == nil {
		capabilities = map[string]any{}
	}
	return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": tool, "arguments": arguments,
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientCapabilities": capabilities,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "replicatest", "version": "1"},
		},
	}}
}

// toolResult returns the structured content of a response in JSON or in one event.
func toolResult(status int, text []byte) (map[string]any, error) {
	if _, data, ok := bytes.Cut(text, []byte("data: ")); ok {
		text, _, _ = bytes.Cut(data, []byte("\n"))
	}
	var answer struct {
		Result struct {
			IsError bool           `json:"isError"`
			Data    map[string]any `json:"structuredContent"`
		} `json:"result"`
		Error any `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || status != http.StatusOK || answer.Error != nil || answer.Result.IsError {
		return answer.Result.Data, fmt.Errorf("%d %s", status, text)
	}
	return answer.Result.Data, nil
}

// waitFor calls f until it returns true.
func waitFor(ctx context.Context, t testing.TB, what string, f func() bool) {
	t.Helper()
	for !f() {
		if ctx.Err() != nil {
			t.Fatalf("%s: %v", what, ctx.Err())
		}
		_ = ctxsleep.For(ctx, 10*time.Millisecond)
	}
}

func checkError(t testing.TB, err error) {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
}
