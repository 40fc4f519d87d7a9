package gateway_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// TestMain runs the tests, or the upstream that the tests start: the test binary is both.
func TestMain(m *testing.M) {
	if modes, ok := os.LookupEnv(upstreamtest.Variable); ok {
		server := upstreamtest.New(os.Stdout, modes)
		server.Environ = os.Environ()
		server.Crash = func() { os.Exit(3) }
		server.Count = func() {
			f, err := os.OpenFile(os.Getenv(upstreamtest.CountFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, _ = f.WriteString("once\n")
				_ = f.Close()
			}
		}
		_ = server.Serve(os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// newEntry returns an upstream that runs this test binary in the given modes.
func newEntry(t *testing.T, name string, modes ...string) gateway.Entry {
	t.Helper()
	return gateway.Entry{Spec: upstream.Spec{Name: name, Command: os.Args[0], Env: map[string]string{
		upstreamtest.Variable: strings.Join(modes, ","), upstreamtest.CountFile: countFile(t),
	}}}
}

func countFile(t *testing.T) string { return filepath.Join(t.TempDir(), "count") }

// countCalls returns the number of completed calls of the tool "count".
func countCalls(e gateway.Entry) int {
	text, _ := os.ReadFile(e.Spec.Env[upstreamtest.CountFile])
	return strings.Count(string(text), "once")
}

type fixture struct {
	*gateway.Gateway
	server *mcp.Server
	url    string
	// allow maps a user to the access that the user's token allows. It must be set before
	// the user connects.
	allow map[string]auth.Allow
	// exposure maps a user to the exposure of the user's token.
	exposure map[string]auth.Exposure
}

// newFixture returns a gateway with its own tool and an HTTP endpoint for both protocol
// versions.
func newFixture(t *testing.T, opts gateway.Options, change ...string) *fixture {
	t.Helper()
	opts.Key = []byte(strings.Repeat("k", 32))
	g, err := gateway.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	so := &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}}
	g.Extend(so)
	r := &fixture{Gateway: g, server: mcp.NewServer(&mcp.Implementation{Name: "rig", Version: "1"}, so)}
	r.server.AddTool(&mcp.Tool{Name: "own_tool", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "own"}}}, nil
		})
	g.Attach(r.server, []string{"own_tool", "workflow_start"})
	ho := transport.HTTPOptions{HostsChecked: true}
	if !slices.Contains(change, slow) {
		ho.FastPath = g
	}
	h := transport.NewHTTPHandler(r.server, ho)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user := req.Header.Get("X-User")
		ctx := auth.WithPrincipal(req.Context(), guideway.Principal{User: user})
		if allow, ok := r.allow[user]; ok {
			// All tokens belong to one user here.
			ctx = auth.WithTokenLease(auth.WithPrincipal(ctx, guideway.Principal{User: "all"}), &auth.TokenLease{ID: user, Name: user, Allow: allow, Exposure: r.exposure[user]})
		}
		req = req.WithContext(ctx)
		req.Header.Set("Authorization", "Bearer "+user)
		h.ServeHTTP(w, req)
	}))
	r.url = srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.Close(ctx)
		srv.Close()
		g.Close(ctx)
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

type testClient struct {
	t       *testing.T
	session *mcp.ClientSession

	mu       sync.Mutex
	asked    []string
	progress []string
	updated  []string
	logs     []string
	changed  chan struct{}
	// progressed receives a value with each progress notification.
	progressed chan struct{}
}

// slow routes all calls through the SDK.
const slow = "slow"

type clientSetup struct {
	user, version string
	// mute reports that the client declares no capabilities.
	mute bool
	url  bool
	// name is the name of the client, "test" if empty, and elicit its answer to forms.
	name   string
	elicit func(*mcp.ElicitRequest) *mcp.ElicitResult
	// extensions are the declared extensions.
	extensions []string
}

// connectClient connects a client of the SDK.
func (r *fixture) connectClient(t *testing.T, w clientSetup) *testClient {
	t.Helper()
	p := &testClient{t: t, changed: make(chan struct{}, 100), progressed: make(chan struct{}, 100)}
	opts := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			defer func() { p.progressed <- struct{}{} }()
			p.addEntry(&p.progress, fmt.Sprint(req.Params.ProgressToken, " ", req.Params.Progress, " ", req.Params.Message))
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			p.addEntry(&p.updated, req.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { //nolint:staticcheck // SA1019: legacy clients receive log messages
			p.addEntry(&p.logs, fmt.Sprint(req.Params.Data))
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { p.changed <- struct{}{} },
	}
	if !w.mute {
		opts.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p.addEntry(&p.asked, req.Params.Message)
			if w.elicit != nil {
				return w.elicit(req), nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": w.user + " says yes"}}, nil
		}
		if w.url {
			opts.Capabilities.Elicitation = &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}, Form: &mcp.FormElicitationCapabilities{}}
		}
	}
	for _, id := range w.extensions {
		opts.Capabilities.AddExtension(id, map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}, "other": 1})
	}
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	client := mcp.NewClient(&mcp.Implementation{Name: cmp.Or(w.name, "test"), Version: "1"}, opts)
	var to mcp.Transport = &mcp.StreamableClientTransport{Endpoint: r.url, HTTPClient: &http.Client{Transport: asUser(base, w.user)}}
	session, err := client.Connect(t.Context(), to, &mcp.ClientSessionOptions{ProtocolVersion: w.version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	p.session = session
	return p
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func asUser(base http.RoundTripper, user string) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("X-User", user)
		return base.RoundTrip(r)
	})
}

func (p *testClient) addEntry(list *[]string, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, text)
}

func (p *testClient) takeEntries(list *[]string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), *list...)
}

// toolNames returns the tools that the client sees.
func (p *testClient) toolNames() []string {
	p.t.Helper()
	var names []string
	for tool, err := range p.session.Tools(p.t.Context(), nil) {
		if err != nil {
			p.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

type args map[string]any

// callTool calls a tool and returns its text.
func (p *testClient) callTool(tool string, arguments any) string {
	p.t.Helper()
	result, err := p.session.CallTool(p.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "error: " + err.Error()
	}
	text := ""
	if len(result.Content) > 0 {
		if c, ok := result.Content[0].(*mcp.TextContent); ok {
			text = c.Text
		}
	}
	if result.IsError {
		return "isError: " + text
	}
	return text
}

func marshalText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)
