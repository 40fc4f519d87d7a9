package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// realServer is a server from npm with its test plan in testdata/real/calls.json;
// conformance/upstreams runs the same plan with other clients.
type realServer struct {
	Package string            `json:"package"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Tools   []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Progress  int32          `json:"progress"`
	} `json:"tools"`
	Prompts []struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	} `json:"prompts"`
	Resources   []string             `json:"resources"`
	Completions []mcp.CompleteParams `json:"completions"`
	// Follow is a resource, and a tool whose first call starts update notifications of the
	// resource and whose next call stops them.
	Follow *struct{ URI, Tool string } `json:"follow"`
	// Logs is a tool whose first call starts log messages and whose next call stops them.
	Logs string `json:"logs"`
	// Cancel is a slow call that reports progress.
	Cancel *struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"cancel"`
}

// realServers returns the servers in the test plan, with dir and url inserted.
func realServers(t *testing.T, dir, url string) map[string]realServer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "real", "calls.json"))
	if err != nil {
		t.Fatal(err)
	}
	var servers map[string]realServer
	if err := json.Unmarshal([]byte(strings.NewReplacer("$DIR", dir, "$URL", url).Replace(string(text))), &servers); err != nil {
		t.Fatal(err)
	}
	return servers
}

// newSpec returns the spec that starts the server. It skips the test if node or the server
// is not installed.
func (s *realServer) newSpec(t *testing.T, name string) upstream.Spec {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	main, err := filepath.Abs(filepath.Join("testdata", "real", "node_modules", filepath.FromSlash(s.Package), "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(main); err != nil {
		t.Skip("the servers are not installed: npm ci in internal/gateway/testdata/real")
	}
	return upstream.Spec{Name: name, Command: node, Args: append([]string{main}, s.Args...), Env: s.Env}
}

// transcript holds the notifications and questions of a server.
type transcript struct {
	mu                             sync.Mutex
	progress, asked, updated, logs []string
}

func (h *transcript) addEntry(list *[]string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, text)
}

// takeAll returns a list and empties it.
func (h *transcript) takeAll(list *[]string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := *list
	*list = nil
	return all
}

func (h *transcript) countEntries(list *[]string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(*list)
}

// whoAsks matches the text that the gateway adds to a question.
var whoAsks = regexp.MustCompile(`The MCP server \\"[^"]*\\" asks: |,"includeContext":"[^"]*"`)

// addQuestion records a question as the server sent it.
func (h *transcript) addQuestion(params any) {
	text, _ := json.Marshal(params) // The params were decoded from JSON.
	h.addEntry(&h.asked, whoAsks.ReplaceAllString(string(text), ""))
}

// realClient returns an SDK client that answers every question.
func realClient(dir string, h *transcript) *mcp.Client {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			req.Params.Meta = nil
			h.addQuestion(req.Params)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann", "check": true}}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) { //nolint:staticcheck // SA1019: the server sends sampling requests
			req.Params.Meta = nil
			h.addQuestion(req.Params)
			return &mcp.CreateMessageResult{Model: "none", Role: "assistant", Content: &mcp.TextContent{Text: "said"}}, nil //nolint:staticcheck // SA1019: the server sends sampling requests
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			h.addEntry(&h.progress, fmt.Sprint(req.Params.Progress, " of ", req.Params.Total, " ", req.Params.Message))
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			h.addEntry(&h.updated, req.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { //nolint:staticcheck // SA1019: the server sends log messages
			h.addEntry(&h.logs, fmt.Sprint(req.Params.Data))
		},
	})
	client.AddRoots(&mcp.Root{URI: "file://" + dir, Name: "root"}) //nolint:staticcheck // SA1019: the server asks for roots
	return client
}

// varies matches the parts that differ between two answers to the same request.
var varies = regexp.MustCompile(`\b\d{1,2}:\d{2}:\d{2}( [AP]M)?|\w{3} \w{3} \d{2} \d{4}|GMT[+-]\d{4} \([^)]*\)|\\"date\\": \\"[^,]*|"blob":"UmVz[^"]*"|(created|modified|accessed): [^\\]*|"etag[^,]*|127.0.0.1:\d+`)

// normalizeReal returns an answer without the parts that differ between two runs.
func normalizeReal(t *testing.T, prefix, dir string, answer any, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + regexp.MustCompile(`^calling "[^"]*": `).ReplaceAllString(err.Error(), "")
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(marshalText(t, answer)), &members); err != nil {
		t.Fatal(err)
	}
	for _, ours := range []string{"_meta", "resultType", "ttlMs", "cacheScope"} { // These members depend on the protocol version and the answering server.
		delete(members, ours)
	}
	text := strings.NewReplacer(prefix, "", dir, "$DIR").Replace(marshalText(t, members))
	if raw, err := json.Marshal(dir); err == nil { // The directory also occurs in texts that are JSON.
		text = strings.ReplaceAll(text, strings.Trim(string(raw), `"`), "$DIR")
	}
	return varies.ReplaceAllString(text, "")
}

// askEverything sends the requests of the test plan, and maps each request to its answer.
func (s *realServer) askEverything(t *testing.T, session *mcp.ClientSession, prefix, dir string, h *transcript) map[string]string {
	t.Helper()
	ctx, answers := t.Context(), map[string]string{}
	for _, tool := range s.Tools {
		params := &mcp.CallToolParams{Name: prefix + tool.Name, Arguments: tool.Arguments}
		h.takeAll(&h.progress)
		h.takeAll(&h.asked)
		if tool.Progress > 0 {
			params.SetProgressToken("p")
		}
		result, err := session.CallTool(ctx, params)
		question := "tool " + tool.Name + " " + strings.ReplaceAll(marshalText(t, tool.Arguments), dir, "$DIR")
		answers[question] = normalizeReal(t, prefix, dir, result, err)
		if tool.Progress > 0 {
			waitFor(t, func() bool { return h.countEntries(&h.progress) >= int(tool.Progress) })
			answers[question+": progress"] = strings.Join(h.takeAll(&h.progress), ", ")
		}
		answers[question+": asked"] = strings.ReplaceAll(strings.Join(h.takeAll(&h.asked), ", "), dir, "$DIR")
	}
	s.checkNotifications(t, session, prefix, h, answers)
	for _, p := range s.Prompts {
		result, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prefix + p.Name, Arguments: p.Arguments})
		answers["prompt "+p.Name] = normalizeReal(t, prefix, dir, result, err)
	}
	for _, uri := range s.Resources {
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		answers["resource "+uri] = normalizeReal(t, prefix, dir, result, err)
	}
	for _, c := range s.Completions {
		if c.Ref.Name != "" {
			ref := *c.Ref
			ref.Name = prefix + ref.Name
			c.Ref = &ref
		}
		result, err := session.Complete(ctx, &c)
		answers["complete "+c.Ref.URI+c.Argument.Name] = normalizeReal(t, prefix, dir, result, err)
	}
	return answers
}

// checkNotifications checks the notifications of a server and the cancellation of a call.
func (s *realServer) checkNotifications(t *testing.T, session *mcp.ClientSession, prefix string, h *transcript, answers map[string]string) {
	t.Helper()
	toggle := func(tool string) {
		t.Helper()
		if result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: prefix + tool}); err != nil || result.IsError {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if s.Follow != nil {
		if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: s.Follow.URI}); err != nil {
			t.Errorf("follow: %v", err)
		}
		waitFor(t, func() bool { // A modern client is not notified when its subscription starts.
			toggle(s.Follow.Tool)
			toggle(s.Follow.Tool)
			return h.countEntries(&h.updated) > 0
		})
		answers["follow"] = h.takeAll(&h.updated)[0]
		if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: s.Follow.URI}); err != nil {
			t.Errorf("unsubscribe: %v", err)
		}
	}
	if s.Logs != "" && session.InitializeResult().ProtocolVersion < modern { // Modern clients ask for logs in each call.
		if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil { //nolint:staticcheck // SA1019: the server sends log messages
			t.Errorf("log: %v", err)
		}
		h.takeAll(&h.logs)
		toggle(s.Logs)
		waitFor(t, func() bool { return h.countEntries(&h.logs) > 0 })
		toggle(s.Logs)
	}
	if s.Cancel != nil {
		h.takeAll(&h.progress)
		params := &mcp.CallToolParams{Name: prefix + s.Cancel.Name, Arguments: s.Cancel.Arguments}
		params.SetProgressToken("cancelled")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, params)
			failed <- err
		}()
		waitFor(t, func() bool { return h.countEntries(&h.progress) > 0 })
		cancel()
		answers["cancel"] = fmt.Sprint(errors.Is(<-failed, context.Canceled))
	}
}

// listAll maps the kind and name of each entry in the lists of a server to the entry. It
// removes prefix from names and omits tools and prompts without it.
func listAll(t *testing.T, session *mcp.ClientSession, prefix string) map[string]string {
	t.Helper()
	ctx, offered := t.Context(), map[string]string{}
	note := func(kind, name string, entry any, err error) {
		if err != nil {
			return // The server has no such list.
		}
		if short, ok := strings.CutPrefix(name, prefix); ok {
			offered[kind+short] = strings.Replace(marshalText(t, entry), `"`+prefix, `"`, 1)
		}
	}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		note("tool ", tool.Name, tool, nil)
	}
	for p, err := range session.Prompts(ctx, nil) {
		if err != nil {
			break
		}
		note("prompt ", p.Name, p, err)
	}
	for r, err := range session.Resources(ctx, nil) {
		if err != nil {
			break
		}
		note("resource ", prefix+r.URI, r, err)
	}
	for r, err := range session.ResourceTemplates(ctx, nil) {
		if err != nil {
			break
		}
		note("template ", prefix+r.URITemplate, r, err)
	}
	return offered
}

// A real server has the same lists and answers through the gateway as directly, for both
// protocol versions of the client.
func TestRealServers(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+string(body))
	}))
	t.Cleanup(web.Close)
	for name := range realServers(t, "", "") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &transcript{}
			dir := realTempDir(t)
			server := realServers(t, dir, web.URL)[name]
			spec := server.newSpec(t, name)
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), spec.Command, spec.Args...)
			for key, value := range spec.Env {
				cmd.Env = append(os.Environ(), key+"="+value)
			}
			session, err := realClient(dir, h).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { session.Close() })
			offered := listAll(t, session, "")
			want := server.askEverything(t, session, "", dir, h)
			for _, version := range []string{legacy, modern} {
				dir, h := realTempDir(t), &transcript{} // Each session has a new server without earlier state.
				server := realServers(t, dir, web.URL)[name]
				spec := server.newSpec(t, name)
				spec.Env = server.Env
				r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{{Spec: spec}}})
				base := &http.Transport{}
				t.Cleanup(base.CloseIdleConnections)
				through, err := realClient(dir, h).Connect(t.Context(),
					&mcp.StreamableClientTransport{Endpoint: r.url, HTTPClient: &http.Client{Transport: asUser(base, "ann")}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { through.Close() })
				if diff := cmp.Diff(offered, listAll(t, through, name+"__")); diff != "" {
					t.Errorf("%s: lists (-direct +through the gateway):\n%s", version, diff)
				}
				if diff := cmp.Diff(want, server.askEverything(t, through, name+"__", dir, h)); diff != "" {
					t.Errorf("%s: answers (-direct +through the gateway):\n%s", version, diff)
				}
			}
		})
	}
}

// realTempDir returns a new directory with its symlinks resolved, because servers answer
// with the real path.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
