package install_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/install"
)

// Texts that people copy from configuration files and READMEs are recognized.
func TestPaste(t *testing.T) {
	t.Parallel()
	files := install.Server{Name: "files", Command: "npx", Args: []string{"-y", "server-filesystem", "/tmp"}}
	docs := install.Server{Name: "docs", URL: "https://example.com/mcp", Bearer: "${env:DOCS}"}
	for name, tt := range map[string]struct {
		text string
		want []install.Server
	}{
		"Claude, Cursor, Windsurf": {`{"mcpServers": {"files": {"command": "npx", "args": ["-y", "server-filesystem", "/tmp"]},
			"docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS}"}}}}`, []install.Server{docs, files}},
		"VS Code":                    {`{"servers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "server-filesystem", "/tmp"]}}, "inputs": []} // mine`, []install.Server{files}},
		"VS Code, old":               {`{"mcp": {"servers": {"files": {"command": "npx", "args": ["-y", "server-filesystem", "/tmp"]}}}}`, []install.Server{files}},
		"Codex":                      {"[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"server-filesystem\", \"/tmp\"]\n", []install.Server{files}},
		"Codex, with more before it": {"model = \"x\"\n[mcp_servers.docs]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"DOCS\"\n", []install.Server{docs}},
		"by name":                    {`{"files": {"command": "npx", "args": ["-y", "server-filesystem", "/tmp"]}}`, []install.Server{files}},
		"without braces":             {`"files": {"command": "npx", "args": ["-y", "server-filesystem", "/tmp"]},`, []install.Server{files}},
		"alone":                      {`{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]}`, []install.Server{{Name: "filesystem", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/tmp"}}}},
		"a server called servers":    {`{"mcpServers": {"servers": {"command": "npx"}}}`, []install.Server{{Name: "servers", Command: "npx"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := install.Paste(install.Env{}, []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if len(got[i].Headers) == 0 {
					got[i].Headers = nil
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing": "", "no object": "[1, 2]", "incomplete object": `{"mcpServers": {"files": {`, "no server": `{"mcpServers": {}}`, "a text": "npx -y server",
		"ours": `{"mcpServers": {"guideway": {"command": "guideway", "args": ["mcp"]}}}`, "broken TOML": "[mcp_servers.files\ncommand",
		"deep": strings.Repeat(`{"mcp":`, 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := install.Paste(install.Env{}, []byte(text)); guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// An invalid text returns an error and never panics.
func FuzzPaste(f *testing.F) {
	f.Add(`{"mcpServers": {"a": {"command": 1, "args": [null]}}}`)
	f.Add("[mcp_servers.a]\nurl = 1")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := install.Paste(install.Env{}, []byte(text))
		if (err == nil) != (len(list) > 0) {
			t.Errorf("%v, %v", list, err)
		}
	})
}
