package install_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/install"
)

// Remote and local servers of each client are imported, including disabled tools and time
// limits. Settings that are not imported are reported.
func TestServersOfClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		client, src string
		want        []install.Server
	}{
		{
			"cursor", `{/* with comments */"mcpServers": {"a": {"url": "https://a.example/mcp", "headers": {"authorization": "Bearer ${env:A}"}, "envFile": ".env", "auth": {}}}}`,
			[]install.Server{{Name: "a", URL: "https://a.example/mcp", Bearer: "${env:A}", Headers: map[string]string{}, Notes: []string{"these members are not imported: auth, envFile"}}},
		},
		{
			"windsurf", `{"mcpServers": {"a": {"serverUrl": "https://a.example/sse", "disabledTools": ["x", "y"]}, "b": 7}}`,
			[]install.Server{{Name: "a", URL: "https://a.example/sse", Hidden: []string{"x", "y"}}, {Name: "b"}},
		},
		{
			"codex", "[mcp_servers.a]\nurl = 'https://a.example/mcp'\nbearer_token_env_var = 'A'\ntool_timeout_sec = 45\ndisabled_tools = ['x']\nenabled_tools = ['y']\n[mcp_servers.b]\ncommand = 'c'\nenabled = false\nstartup_timeout_sec = 9",
			[]install.Server{
				{Name: "a", URL: "https://a.example/mcp", Bearer: "${env:A}", Timeout: 45 * time.Second, Hidden: []string{"x"}, Notes: []string{"these members are not imported: enabled_tools"}},
				{Name: "b", Command: "c", Disabled: true},
			},
		},
		{
			"vscode", `{"servers": {"a": {"type": "http", "url": "https://a.example/mcp", "headers": {"X": "${input:k}"}}}, "inputs": []}`,
			[]install.Server{{
				Name: "a", URL: "https://a.example/mcp", Headers: map[string]string{"X": "${input:k}"},
				Notes: []string{"${input:k} is known only to the editor: replace it with a value or ${env:NAME}"},
			}},
		},
		{
			"claude-code", `{"mcpServers": {"a": {"type": "sse", "url": "https://a.example/sse"}, "b": {"command": "of all"}}, "projects": {
			"/here": {"mcpServers": {"b": {"command": "of here"}, "c": {"command": "c"}}}, "/there": {"mcpServers": {"d": {"command": "d"}}}}}`,
			[]install.Server{{Name: "a", URL: "https://a.example/sse", SSE: true}, {Name: "b", Command: "of here"}, {Name: "c", Command: "c"}},
		},
		{
			"gemini", `{"mcpServers": {"a": {"httpUrl": "https://a.example/mcp", "headers": {"Authorization": "Bearer $A", "X": "${B}"}, "trust": true, "excludeTools": ["x"]}}}`,
			[]install.Server{{Name: "a", URL: "https://a.example/mcp", Bearer: "${env:A}", Headers: map[string]string{"X": "${env:B}"}, Hidden: []string{"x"}}},
		},
		{
			"copilot", `{"mcpServers": {"a": {"type": "local", "command": "c", "args": ["d"], "tools": ["*"]}, "b": {"type": "http", "url": "https://b.example/mcp", "tools": ["t"]}}}`,
			[]install.Server{{Name: "a", Command: "c", Args: []string{"d"}}, {Name: "b", URL: "https://b.example/mcp", Notes: []string{"these members are not imported: tools"}}},
		},
		{
			"opencode", `{"mcp": {"a": {"type": "local", "command": ["c", "d"], "environment": {"K": "{env:K2}"}, "enabled": false}, "b": {"type": "remote", "url": "https://b.example/mcp"},
			"guideway": {"type": "remote", "url": "http://127.0.0.1:3000/mcp"}}}`,
			[]install.Server{{Name: "a", Command: "c", Args: []string{"d"}, Env: map[string]string{"K": "${env:K2}"}, Disabled: true}, {Name: "b", URL: "https://b.example/mcp"}},
		},
		{
			"cline", `{"mcpServers": {"a": {"transport": {"type": "streamableHttp", "url": "https://a.example/mcp", "headers": {"X": "y"}}, "disabled": true}, "b": {"command": "c"}}}`,
			[]install.Server{{Name: "a", URL: "https://a.example/mcp", Headers: map[string]string{"X": "y"}, Disabled: true}, {Name: "b", Command: "c"}},
		},
		{
			"continue", "mcpServers:\n  - uses: x/y\n  - name: a\n    type: streamable-http\n    url: https://a.example/mcp\n    requestOptions:\n      headers:\n        Authorization: Bearer ${{ secrets.A }}\n" +
				"  - name: b\n    command: c\n    args: [d]\n  - name: e\n    url: https://e.example/mcp\n    apiKey: ${{ secrets.E }}\n",
			[]install.Server{
				{Name: "a", URL: "https://a.example/mcp", Bearer: "${env:A}", Headers: map[string]string{}},
				{Name: "b", Command: "c", Args: []string{"d"}},
				{Name: "e", URL: "https://e.example/mcp", Bearer: "${env:E}", Headers: map[string]string{}},
			},
		},
		{
			"claude-desktop", `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"], "env": {"K": "${HOME_OF_K}"}}}}`,
			[]install.Server{{Name: "a", Command: "npx", Args: []string{"-y", "a"}, Env: map[string]string{"K": "${env:HOME_OF_K}"}}},
		},
	} {
		client, err := install.Find(tt.client)
		if err != nil {
			t.Fatal(err)
		}
		got, err := install.Servers(install.Env{GOOS: "linux", Dir: "/here", Getenv: func(string) string { return "" }}, client, []byte(tt.src))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.client, diff)
		}
	}
	// A file whose keys do not lead to objects must not panic.
	client, err := install.Find("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{`{"projects": 7}`, `{"projects": {"/here": []}}`, `[]`, `{"projects": {"/here": {"mcpServers": 1}}}`, ``} {
		if got, _ := install.Servers(install.Env{GOOS: "linux", Dir: "/here", Getenv: func(string) string { return "" }}, client, []byte(src)); len(got) != 0 {
			t.Errorf("%s has %v", src, got)
		}
	}
}
