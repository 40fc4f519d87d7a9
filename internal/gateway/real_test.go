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
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// realServer is a server from npm and what is asked of it, as testdata/real/calls.json
// has it; conformance/upstreams asks the same by other clients.
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
	// Follow is a resource and a tool that has the server tell of its updates, and at
	// the next call no more.
	Follow *struct{ URI, Tool string } `json:"follow"`
	// Logs is a tool that does so with log messages.
	Logs string `json:"logs"`
	// Cancel is a call that takes long and tells of progress.
	Cancel *struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"cancel"`
}

// realServers reads the plan for one directory; the test is skipped where the
// servers are not there.
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

// spec starts the server.
func (s *realServer) spec(t *testing.T, name string) upstream.Spec {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not there")
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

// heard is what a server has told and asked a client.
type heard struct {
	mu                             sync.Mutex
	progress, asked, updated, logs []string
}

func (h *heard) note(list *[]string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, text)
}

// take gives a list and begins it anew.
func (h *heard) take(list *[]string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := *list
	*list = nil
	return all
}

func (h *heard) count(list *[]string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(*list)
}

// whoAsks is what the gateway adds to a question.
var whoAsks = regexp.MustCompile(`The MCP server \\"[^"]*\\" asks: |,"includeContext":"[^"]*"`)

// asks notes a question as the server has asked it.
func (h *heard) asks(params any) {
	text, _ := json.Marshal(params) // what was read is written
	h.note(&h.asked, whoAsks.ReplaceAllString(string(text), ""))
}

// realClient is a client of the SDK that answers whatever it is asked.
func realClient(dir string, h *heard) *mcp.Client {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			req.Params.Meta = nil
			h.asks(req.Params)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann", "check": true}}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) { //nolint:staticcheck // SA1019: the server samples
			req.Params.Meta = nil
			h.asks(req.Params)
			return &mcp.CreateMessageResult{Model: "none", Role: "assistant", Content: &mcp.TextContent{Text: "said"}}, nil //nolint:staticcheck // SA1019: the server samples
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			h.note(&h.progress, fmt.Sprint(req.Params.Progress, " of ", req.Params.Total, " ", req.Params.Message))
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			h.note(&h.updated, req.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { //nolint:staticcheck // SA1019: the server logs
			h.note(&h.logs, fmt.Sprint(req.Params.Data))
		},
	})
	client.AddRoots(&mcp.Root{URI: "file://" + dir, Name: "root"}) //nolint:staticcheck // SA1019: the server asks for roots
	return client
}

// varies is what differs between two answers to the same question.
var varies = regexp.MustCompile(`\b\d{1,2}:\d{2}:\d{2}( [AP]M)?|\w{3} \w{3} \d{2} \d{4}|GMT[+-]\d{4} \([^)]*\)|\\"date\\": \\"[^,]*|"blob":"UmVz[^"]*"|(created|modified|accessed): [^\\]*|"etag[^,]*|127.0.0.1:\d+`)

// told is an answer as it is compared.
func told(t *testing.T, prefix, dir string, answer any, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + regexp.MustCompile(`^calling "[^"]*": `).ReplaceAllString(err.Error(), "")
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(marshal(t, answer)), &members); err != nil {
		t.Fatal(err)
	}
	for _, ours := range []string{"_meta", "resultType", "ttlMs", "cacheScope"} { // of the era and the server that answers
		delete(members, ours)
	}
	text := strings.NewReplacer(prefix, "", dir, "$DIR").Replace(marshal(t, members))
	if raw, err := json.Marshal(dir); err == nil { // in a text that is JSON itself
		text = strings.ReplaceAll(text, strings.Trim(string(raw), `"`), "$DIR")
	}
	return varies.ReplaceAllString(text, "")
}

// walk asks all that there is and gives the answers by the questions.
func (s *realServer) walk(t *testing.T, session *mcp.ClientSession, prefix, dir string, h *heard) map[string]string {
	t.Helper()
	ctx, answers := t.Context(), map[string]string{}
	for _, tool := range s.Tools {
		params := &mcp.CallToolParams{Name: prefix + tool.Name, Arguments: tool.Arguments}
		h.take(&h.progress)
		h.take(&h.asked)
		if tool.Progress > 0 {
			params.SetProgressToken("p")
		}
		result, err := session.CallTool(ctx, params)
		question := "tool " + tool.Name + " " + strings.ReplaceAll(marshal(t, tool.Arguments), dir, "$DIR")
		answers[question] = told(t, prefix, dir, result, err)
		if tool.Progress > 0 {
			await(t, func() bool { return h.count(&h.progress) >= int(tool.Progress) })
			answers[question+": progress"] = strings.Join(h.take(&h.progress), ", ")
		}
		answers[question+": asked"] = strings.ReplaceAll(strings.Join(h.take(&h.asked), ", "), dir, "$DIR")
	}
	s.live(t, session, prefix, h, answers)
	for _, p := range s.Prompts {
		result, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prefix + p.Name, Arguments: p.Arguments})
		answers["prompt "+p.Name] = told(t, prefix, dir, result, err)
	}
	for _, uri := range s.Resources {
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		answers["resource "+uri] = told(t, prefix, dir, result, err)
	}
	for _, c := range s.Completions {
		if c.Ref.Name != "" {
			ref := *c.Ref
			ref.Name = prefix + ref.Name
			c.Ref = &ref
		}
		result, err := session.Complete(ctx, &c)
		answers["complete "+c.Ref.URI+c.Argument.Name] = told(t, prefix, dir, result, err)
	}
	return answers
}

// live has a server tell what it tells by itself, and takes a call back.
func (s *realServer) live(t *testing.T, session *mcp.ClientSession, prefix string, h *heard, answers map[string]string) {
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
		await(t, func() bool { // a client of the newer era does not say from when on it is told
			toggle(s.Follow.Tool)
			toggle(s.Follow.Tool)
			return h.count(&h.updated) > 0
		})
		answers["follow"] = h.take(&h.updated)[0]
		if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: s.Follow.URI}); err != nil {
			t.Errorf("no longer follow: %v", err)
		}
	}
	if s.Logs != "" && session.InitializeResult().ProtocolVersion < modern { // newer ones ask for logs call by call
		if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil { //nolint:staticcheck // SA1019: the server logs
			t.Errorf("log: %v", err)
		}
		h.take(&h.logs)
		toggle(s.Logs)
		await(t, func() bool { return h.count(&h.logs) > 0 })
		toggle(s.Logs)
	}
	if s.Cancel != nil {
		h.take(&h.progress)
		params := &mcp.CallToolParams{Name: prefix + s.Cancel.Name, Arguments: s.Cancel.Arguments}
		params.SetProgressToken("cancelled")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, params)
			failed <- err
		}()
		await(t, func() bool { return h.count(&h.progress) > 0 })
		cancel()
		answers["cancel"] = fmt.Sprint(errors.Is(<-failed, context.Canceled))
	}
}

// lists are what a server offers, each by its name, below a prefix.
func lists(t *testing.T, session *mcp.ClientSession, prefix string) map[string]string {
	t.Helper()
	ctx, offered := t.Context(), map[string]string{}
	note := func(kind, name string, entry any, err error) {
		if err != nil {
			return // it has no such list
		}
		if short, ok := strings.CutPrefix(name, prefix); ok {
			offered[kind+short] = strings.Replace(marshal(t, entry), `"`+prefix, `"`, 1)
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

// Through the gateway a real server offers and answers what it does directly, all
// of it, in both eras of the client.
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
			h := &heard{}
			dir := resolved(t)
			server := realServers(t, dir, web.URL)[name]
			spec := server.spec(t, name)
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), spec.Command, spec.Args...)
			for key, value := range spec.Env {
				cmd.Env = append(os.Environ(), key+"="+value)
			}
			session, err := realClient(dir, h).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { session.Close() })
			offered := lists(t, session, "")
			want := server.walk(t, session, "", dir, h)
			for _, version := range []string{legacy, modern} {
				dir, h := resolved(t), &heard{} // what the server keeps is new
				server := realServers(t, dir, web.URL)[name]
				spec := server.spec(t, name)
				spec.Env = server.Env
				r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{{Spec: spec}}})
				base := &http.Transport{}
				t.Cleanup(base.CloseIdleConnections)
				through, err := realClient(dir, h).Connect(t.Context(),
					&mcp.StreamableClientTransport{Endpoint: r.url, HTTPClient: &http.Client{Transport: as(base, "ann")}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { through.Close() })
				if diff := cmp.Diff(offered, lists(t, through, name+"__")); diff != "" {
					t.Errorf("%s: what is offered (-direct +through the gateway):\n%s", version, diff)
				}
				if diff := cmp.Diff(want, server.walk(t, through, name+"__", dir, h)); diff != "" {
					t.Errorf("%s: what is answered (-direct +through the gateway):\n%s", version, diff)
				}
			}
		})
	}
}

// resolved is a new directory by its real name, which servers answer with.
func resolved(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
