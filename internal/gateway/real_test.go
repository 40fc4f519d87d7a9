package gateway_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// realServer is a server from npm; the test is skipped where it is not there.
func realServer(t *testing.T, name string, args ...string) gateway.Entry {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not there")
	}
	main, err := filepath.Abs(filepath.Join("testdata", "real", "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(main); err != nil {
		t.Skip("the servers are not installed: npm ci in internal/gateway/testdata/real")
	}
	return gateway.Entry{Spec: upstream.Spec{Name: name, Command: node, Args: append([]string{main}, args...)}}
}

// Through the gateway a real server offers and answers what it does directly.
func TestRealServers(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "a.txt"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		entry gateway.Entry
		tool  string
		args  args
		want  string
	}{
		{realServer(t, "everything", "stdio"), "echo", args{"message": "hi"}, "Echo: hi"},
		{realServer(t, "filesystem", files), "read_text_file", args{"path": filepath.Join(files, "a.txt")}, "content"},
		{realServer(t, "memory"), "read_graph", args{}, "entities"},
	} {
		name := c.entry.Spec.Name
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
			session, err := direct.Connect(t.Context(), &mcp.CommandTransport{Command: exec.CommandContext(context.WithoutCancel(t.Context()), c.entry.Spec.Command, c.entry.Spec.Args...)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { session.Close() })
			want, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{c.entry}})
			for _, version := range []string{legacy, modern} {
				p := r.connect(t, ways{user: "ann", version: version, mute: true})
				var got []*mcp.Tool
				for tool, err := range p.session.Tools(t.Context(), nil) {
					if err != nil {
						t.Fatal(err)
					}
					if short, ok := strings.CutPrefix(tool.Name, name+"__"); ok {
						tool.Name = short
						got = append(got, tool)
					}
				}
				if diff := cmp.Diff(marshal(t, want.Tools), marshal(t, got)); diff != "" {
					t.Errorf("tools (-direct +through the gateway):\n%s", diff)
				}
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
				if err != nil {
					t.Fatal(err)
				}
				through, err := p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: name + "__" + c.tool, Arguments: c.args})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(marshal(t, result.Content), marshal(t, through.Content)); diff != "" || !strings.Contains(marshal(t, through), c.want) {
					t.Errorf("%s (-direct +through the gateway):\n%s", c.tool, diff)
				}
			}
		})
	}
}
