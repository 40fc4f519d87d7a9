package cli

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/testutil/authserver"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// loginHome is a home directory with an upstream that requires a login.
type loginHome struct {
	t      *testing.T
	dir    string
	server *authserver.Server
}

func newLoginHome(t *testing.T) *loginHome {
	t.Helper()
	protected := mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1"}, nil)
	mcp.AddTool(protected, &mcp.Tool{Name: "search"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil, nil
	})
	h := &loginHome{t: t, dir: t.TempDir(), server: authserver.New(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return protected }, &mcp.StreamableHTTPOptions{Stateless: true}))}
	t.Cleanup(h.server.Close)
	config := filepath.Join(h.dir, ".config", "guideway")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"encryption": {"mode": "key-file"}, "upstreams": {"wiki": {"url": "` + h.server.URL + `/mcp"}}}`
	if err := os.WriteFile(filepath.Join(config, "guideway.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs a command and returns its exit code and its outputs.
func (h *loginHome) run(args ...string) (code int, out string) {
	h.t.Helper()
	var text bytes.Buffer
	code = Run(h.t.Context(), args, app.Host{In: strings.NewReader(""), Out: &text, Err: &text, Dir: h.dir, Getenv: homeDirectory(h.dir)})
	return code, text.String()
}

var loginPage = regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize\S+`)

// logIn logs in with a browser.
func (h *loginHome) logIn(args ...string) string {
	h.t.Helper()
	c := startCommand(h.t, h.dir, append([]string{"upstream", "login", "wiki", "--no-browser"}, args...)...)
	c.err.waitFor(h.t, "/authorize?")
	status, page := getURL(h.t, loginPage.FindString(c.err.String()))
	if status != http.StatusOK || !strings.Contains(page, "You are logged in") {
		h.t.Fatalf("status %d: %s", status, page)
	}
	c.err.waitFor(h.t, "Logged in to wiki")
	return c.err.String()
}

// TestUpstreamLogin checks that a login makes the tools of an upstream available, and that a
// logout ends that.
func TestUpstreamLogin(t *testing.T) {
	t.Parallel()
	h := newLoginHome(t)
	if code, out := h.run("upstream", "show", "wiki", "--check"); code == 0 || !strings.Contains(out, "log in: guideway upstream login wiki") {
		t.Fatalf("without a login: %d %s", code, out)
	}
	h.logIn()
	code, out := h.run("upstream", "show", "wiki", "--check")
	if code != 0 || !strings.Contains(out, "search") || !strings.Contains(out, "at "+h.server.URL+" since ") {
		t.Errorf("after the login: %d %s", code, out)
	}
	files, _ := filepath.Glob(filepath.Join(h.dir, ".local", "share", "guideway", "logins", "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || bytes.Contains(text, []byte("access-")) || bytes.Contains(text, []byte("refresh-")) {
			t.Errorf("%s has the mode %v and contains %s (%v)", file, info.Mode(), text, err)
		}
	}
	if len(files) != 2 { // the login and its lock
		t.Errorf("the files are %v", files)
	}
	if code, out := h.run("upstream", "logout", "wiki"); code != 0 || !strings.Contains(out, "Logged out of wiki.") || h.server.Asked("/revoke") != 1 {
		t.Errorf("logout: %d %s", code, out)
	}
	if code, out := h.run("upstream", "show", "wiki", "--check"); code == 0 {
		t.Errorf("after the logout: %s", out)
	}
}

// TestLoginWhileServerRuns checks that a running server uses a login at once: it notifies the
// client of the tools and calls them. After the logout a call fails with the way to log in.
func TestLoginWhileServerRuns(t *testing.T) {
	t.Parallel()
	h := newLoginHome(t)
	server := startCommand(t, h.dir, "mcp")
	server.shakeHands()
	c := &gatewayClient{transcriptClient: server.transcriptClient}
	if tools := c.toolNames(); slices.Contains(tools, "wiki__search") {
		t.Fatalf("before the login, the tools are %v", tools)
	}
	h.logIn()
	for line := ""; !strings.Contains(line, "notifications/tools/list_changed"); {
		var err error
		if line, err = c.out.ReadString('\n'); err != nil {
			t.Fatalf("no notification: %v: %s", err, server.err)
		}
	}
	if tools := c.toolNames(); !slices.Contains(tools, "wiki__search") {
		t.Errorf("after the login, the tools are %v", tools)
	}
	if got := c.callWithText("wiki__search", ""); got != "found" {
		t.Errorf("after the login, the call returned %s", got)
	}
	if code, out := h.run("upstream", "logout", "wiki"); code != 0 {
		t.Fatalf("logout: %d %s", code, out)
	}
	if got := c.callWithText("wiki__search", ""); !strings.Contains(got, "guideway upstream login wiki") {
		t.Errorf("after the logout, the call returned %s", got)
	}
}
