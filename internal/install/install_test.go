package install

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const binary = "/opt/guideway/bin/guideway"

func findClient(t *testing.T, name string) Client {
	t.Helper()
	c, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func existingFile(content string, backups ...string) File {
	f := File{Path: "config", Exists: true, Content: []byte(content)}
	for _, b := range backups {
		f.Backups = append(f.Backups, Backup{Path: "backup", Content: []byte(b)})
	}
	return f
}

func mustPlan(t *testing.T, c Client, req Request, f File) Change {
	t.Helper()
	change, err := Plan(Env{}, c, req, f)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

func TestLocate(t *testing.T) {
	t.Parallel()
	roaming := `C:\Users\u\AppData\Roaming`
	tests := []struct {
		name, client, goos string
		scope              Scope
		env                map[string]string
		want               string
	}{
		{"desktop linux", "claude-desktop", "linux", "", nil, "/h/.config/Claude/claude_desktop_config.json"},
		{"desktop xdg", "claude-desktop", "linux", "", map[string]string{"XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"},
		{"desktop relative xdg is ignored", "claude-desktop", "linux", "", map[string]string{"XDG_CONFIG_HOME": "x"}, "/h/.config/Claude/claude_desktop_config.json"},
		{"desktop mac", "claude-desktop", "darwin", "", nil, "/h/Library/Application Support/Claude/claude_desktop_config.json"},
		{"desktop windows", "claude-desktop", "windows", "", map[string]string{"APPDATA": `D:\R`}, `D:\R\Claude\claude_desktop_config.json`},
		{"desktop windows bare", "claude-desktop", "windows", "", nil, roaming + `\Claude\claude_desktop_config.json`},
		{"code linux", "claude-code", "linux", "", nil, "/h/.claude.json"},
		{"code windows", "claude-code", "windows", "", nil, `C:\Users\u\.claude.json`},
		{"code own dir", "claude-code", "darwin", "", map[string]string{"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"},
		{"code project", "claude-code", "linux", ScopeProject, nil, "/p/.mcp.json"},
		{"cursor mac", "cursor", "darwin", "", nil, "/h/.cursor/mcp.json"},
		{"cursor windows", "cursor", "windows", "", nil, `C:\Users\u\.cursor\mcp.json`},
		{"cursor project", "cursor", "linux", ScopeProject, nil, "/p/.cursor/mcp.json"},
		{"vscode linux", "vscode", "linux", "", nil, "/h/.config/Code/User/mcp.json"},
		{"vscode mac", "vscode", "darwin", "", nil, "/h/Library/Application Support/Code/User/mcp.json"},
		{"vscode windows", "vscode", "windows", "", nil, roaming + `\Code\User\mcp.json`},
		{"vscode portable", "vscode", "linux", "", map[string]string{"VSCODE_PORTABLE": "/d"}, "/d/user-data/User/mcp.json"},
		{"vscode project windows", "vscode", "windows", ScopeProject, nil, `C:\p\.vscode\mcp.json`},
		{"windsurf linux", "windsurf", "linux", "", nil, "/h/.codeium/windsurf/mcp_config.json"},
		{"windsurf windows", "windsurf", "windows", "", nil, `C:\Users\u\.codeium\windsurf\mcp_config.json`},
		{"codex linux", "codex", "linux", "", nil, "/h/.codex/config.toml"},
		{"codex own dir", "codex", "linux", "", map[string]string{"CODEX_HOME": "/x"}, "/x/config.toml"},
		{"codex project", "codex", "linux", ScopeProject, nil, "/p/.codex/config.toml"},
		{"gemini mac", "gemini", "darwin", "", nil, "/h/.gemini/settings.json"},
		{"gemini own home", "gemini", "linux", "", map[string]string{"GEMINI_CLI_HOME": "/g"}, "/g/.gemini/settings.json"},
		{"gemini project", "gemini", "linux", ScopeProject, nil, "/p/.gemini/settings.json"},
		{"copilot windows", "copilot", "windows", "", nil, `C:\Users\u\.copilot\mcp-config.json`},
		{"copilot own dir", "copilot", "linux", "", map[string]string{"COPILOT_HOME": "/c"}, "/c/mcp-config.json"},
		{"copilot project", "copilot", "linux", ScopeProject, nil, "/p/.mcp.json"},
		{"opencode mac", "opencode", "darwin", "", nil, "/h/.config/opencode/opencode.json"},
		{"opencode xdg", "opencode", "linux", "", map[string]string{"XDG_CONFIG_HOME": "/x"}, "/x/opencode/opencode.json"},
		{"opencode project", "opencode", "linux", ScopeProject, nil, "/p/opencode.json"},
		{"qwen", "qwen", "linux", "", nil, "/h/.qwen/settings.json"},
		{"qwen own dir", "qwen", "linux", "", map[string]string{"QWEN_HOME": "~/q"}, "/h/q/settings.json"},
		{"qwen project", "qwen", "linux", ScopeProject, nil, "/p/.qwen/settings.json"},
		{"cline", "cline", "linux", "", nil, "/h/.cline/data/settings/cline_mcp_settings.json"},
		{"cline own dir", "cline", "linux", "", map[string]string{"CLINE_DIR": "/c"}, "/c/data/settings/cline_mcp_settings.json"},
		{"cline own file", "cline", "linux", "", map[string]string{"CLINE_MCP_SETTINGS_PATH": "/c.json"}, "/c.json"},
		{"continue windows", "continue", "windows", "", nil, `C:\Users\u\.continue\config.yaml`},
		{"continue own dir", "continue", "linux", "", map[string]string{"CONTINUE_GLOBAL_DIR": "/c"}, "/c/config.yaml"},
		{"continue project", "continue", "linux", ScopeProject, nil, "/p/.continue/mcpServers/guideway.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := Env{GOOS: tt.goos, Home: "/h", Dir: "/p", Getenv: func(k string) string { return tt.env[k] }}
			if tt.goos == "windows" {
				env.Home, env.Dir = `C:\Users\u`, `C:\p`
			}
			loc, err := Locate(env, findClient(t, tt.client), tt.scope)
			if err != nil || loc.Path != tt.want {
				t.Errorf("Locate = %q, %v; want %q", loc.Path, err, tt.want)
			}
		})
	}
}

// opencode reads the file with comments too; it is edited if it is the only one.
func TestLocateCommented(t *testing.T) {
	t.Parallel()
	existing := map[string]bool{"/p/opencode.jsonc": true}
	env := Env{GOOS: "linux", Home: "/h", Dir: "/p", Exists: func(p string) bool { return existing[p] }}
	if loc, err := Locate(env, findClient(t, "opencode"), ScopeProject); err != nil || loc.Path != "/p/opencode.jsonc" {
		t.Errorf("path = %s, %v", loc.Path, err)
	}
	existing["/p/opencode.json"] = true
	if loc, err := Locate(env, findClient(t, "opencode"), ScopeProject); err != nil || loc.Path != "/p/opencode.json" {
		t.Errorf("path with both = %s, %v", loc.Path, err)
	}
}

func TestLocatePackagedClaude(t *testing.T) {
	t.Parallel()
	a, b := `C:\L\Packages\Claude_a\LocalCache\Roaming`, `C:\L\Packages\Claude_b\LocalCache\Roaming`
	env := Env{
		GOOS: "windows", Home: `C:\Users\u`,
		Getenv: func(k string) string { return map[string]string{"LOCALAPPDATA": `C:\L`}[k] },
		Glob: func(p string) []string {
			if p != `C:\L\Packages\Claude_*\LocalCache\Roaming` {
				t.Errorf("pattern = %s", p)
			}
			return []string{a, b}
		},
	}
	const file = `\Claude\claude_desktop_config.json`
	if loc, _ := Locate(env, findClient(t, "claude-desktop"), ScopeUser); loc.Path != a+file {
		t.Errorf("path = %s", loc.Path)
	}
	env.Exists = func(p string) bool { return p == b+file }
	if loc, _ := Locate(env, findClient(t, "claude-desktop"), ScopeUser); loc.Path != b+file {
		t.Errorf("path with a file = %s", loc.Path)
	}
}

func TestLocateRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Locate(Env{GOOS: "linux", Dir: "/p"}, findClient(t, "windsurf"), ScopeProject); err == nil {
		t.Error("windsurf has no project file")
	}
	_, err := Locate(Env{GOOS: "windows"}, findClient(t, "cursor"), ScopeUser)
	if err == nil || guideway.ErrorFix(err) != "set USERPROFILE" {
		t.Errorf("no home: %v", err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for alias, want := range map[string]string{
		"Claude Desktop": "claude-desktop", "vs-code": "vscode", "VS Code": "vscode", "code": "vscode",
		"claude_code": "claude-code", "CURSOR": "cursor", "Windsurf": "windsurf", "codex-cli": "codex",
		"gemini-cli": "gemini", "GitHub Copilot": "copilot", "copilot-cli": "copilot", "qwen-code": "qwen", "cn": "continue", "OpenCode": "opencode", "Cline": "cline",
	} {
		if got := findClient(t, alias); got.ID != want {
			t.Errorf("Find(%q) = %s, want %s", alias, got.ID, want)
		}
	}
	for _, name := range []string{"", "x", "emacs", "claude-desk"} {
		if c, err := Find(name); err == nil || guideway.ErrorFix(err) == "" {
			t.Errorf("Find(%q) = %s, %v", name, c.ID, err)
		}
	}
}

// Each client's entry, of a program and of a URL, is installed into a realistic file of that
// client. Undo restores the file with and without the backup.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, c := range Clients() {
		for suffix, req := range map[string]Request{
			".golden":     {Command: binary, Env: map[string]string{"GUIDEWAY_LOG": "debug"}},
			".url.golden": {Command: binary, URL: "https://guideway.example.com/mcp", TokenEnv: "TEAM_TOKEN", Token: "s3cret"},
		} {
			t.Run(c.ID+suffix, func(t *testing.T) {
				t.Parallel()
				in, err := os.ReadFile(filepath.Join("testdata", "edit", c.ID+".in"))
				if err != nil {
					t.Fatal(err)
				}
				got := mustPlan(t, c, req, existingFile(string(in)))
				golden := filepath.Join("testdata", "edit", c.ID+suffix)
				if *update {
					if err := os.WriteFile(golden, got.After, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got.After)); diff != "" {
					t.Errorf("after (-want +got):\n%s", diff)
				}
				secret := strings.Contains(string(got.After), "s3cret")
				if secret != got.Secret || secret != (req.URL != "" && c.NeedsToken()) {
					t.Errorf("Secret = %v, and the file contains the token: %v", got.Secret, secret)
				}
				if again := mustPlan(t, c, req, existingFile(string(got.After))); again.Action != ActionNone {
					t.Errorf("again = %s", again.Action)
				}
				if undo, err := PlanUndo(Env{}, c, Request{}, existingFile(string(got.After), string(in))); err != nil || string(undo.After) != string(in) {
					t.Errorf("undo with the backup: %v\n%s", err, cmp.Diff(string(in), string(undo.After)))
				}
				if bare, err := c.Form.removeEntry(got.After, DefaultName, in); err != nil || string(bare) != string(in) {
					t.Errorf("undo by an edit: %v\n%s", err, cmp.Diff(string(in), string(bare)))
				}
			})
		}
	}
}

func TestPlanPreservesFile(t *testing.T) {
	t.Parallel()
	const entry = `"guideway": {`
	tests := []struct{ name, client, before, after string }{
		{"empty", "cursor", "", "{\n  \"mcpServers\": {\n    \"guideway\": {\n      \"command\": \"C\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n"},
		{"minified", "cursor", `{"a":1}`, `{"a":1,"mcpServers":{"guideway":{"command":"C","args":["mcp"]}}}`},
		{"one line", "cursor", `{"a": 1}`, `{"a": 1, "mcpServers": {"guideway": {"command": "C", "args": ["mcp"]}}}`},
		{
			"line endings and byte order mark", "windsurf", "\xef\xbb\xbf{\r\n    \"a\": 1\r\n}",
			"\xef\xbb\xbf{\r\n    \"a\": 1,\r\n    \"mcpServers\": {\r\n        " + entry + "\r\n            \"command\": \"C\",\r\n            \"args\": [\"mcp\"]\r\n        }\r\n    }\r\n}",
		},
		{
			"comment at the end", "vscode", "{\n\t\"a\": 1 // one\n\t// more\n}",
			"{\n\t\"a\": 1, // one\n\t// more\n\t\"servers\": {\n\t\t" + entry + "\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"C\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}\n\t}\n}",
		},
		{
			"other path keeps what the user added", "cursor", `{"mcpServers": {"guideway": {"command": "/old", "args": ["mcp"], "disabled": true /* now */}}}`,
			`{"mcpServers": {"guideway": {"command": "C", "args": ["mcp"], "disabled": true /* now */}}}`,
		},
		{
			"remote entry is replaced", "cursor", `{"mcpServers": {"guideway": {"url": "http://x"}}}`,
			`{"mcpServers": {"guideway": {"command": "C", "args": ["mcp"]}}}`,
		},
		{"toml without an end of line", "codex", "a = 1", "a = 1\n\n[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\n"},
		{"toml line endings", "codex", "a = 1\r\n", "a = 1\r\n\r\n[mcp_servers.guideway]\r\ncommand = \"C\"\r\nargs = [\"mcp\"]\r\n"},
		{
			"toml inline servers", "codex", "mcp_servers = { a = { command = \"x\" } } # c\n",
			"mcp_servers = { a = { command = \"x\" }, guideway = { command = \"C\", args = [\"mcp\"] } } # c\n",
		},
		{"toml empty inline", "codex", "mcp_servers = {}\n", "mcp_servers = { guideway = { command = \"C\", args = [\"mcp\"] } }\n"},
		{
			"toml inline entry", "codex", "[mcp_servers]\nguideway = { command = \"/o\", args = [\"mcp\"] } # c\n",
			"[mcp_servers]\nguideway = { command = \"C\", args = [\"mcp\"] } # c\n",
		},
		{
			"toml other path", "codex", "[mcp_servers.guideway]\ncommand = '/o' # c\nargs = [\n  \"mcp\", # m\n]\nstartup_timeout_sec = 9\n",
			"[mcp_servers.guideway]\ncommand = \"C\" # c\nargs = [\n  \"mcp\", # m\n]\nstartup_timeout_sec = 9\n",
		},
		{
			"toml dotted", "codex", "mcp_servers.guideway.command = \"/o\"\nmcp_servers.guideway.args = [\"mcp\"]\n",
			"mcp_servers.guideway.command = \"C\"\nmcp_servers.guideway.args = [\"mcp\"]\n",
		},
		{"opencode, one line", "opencode", `{"theme": "x"}`, `{"theme": "x", "mcp": {"guideway": {"type": "local", "command": ["C", "mcp"], "enabled": true}}}`},
		{
			"opencode, another path", "opencode", `{"mcp": {"guideway": {"type": "local", "command": ["/o", "mcp"], "enabled": false /* now */}}}`,
			`{"mcp": {"guideway": {"type": "local", "command": ["C", "mcp"], "enabled": false /* now */}}}`,
		},
		{
			"copilot, another path", "copilot", `{"mcpServers": {"guideway": {"type": "local", "command": "/o", "args": ["mcp"], "tools": ["workflow_list"]}}}`,
			`{"mcpServers": {"guideway": {"type": "local", "command": "C", "args": ["mcp"], "tools": ["workflow_list"]}}}`,
		},
		{
			"cline, another path", "cline", `{"mcpServers": {"guideway": {"transport": {"type": "stdio", "command": "/o", "args": ["mcp"]}, "disabled": true}}}`,
			`{"mcpServers": {"guideway": {"transport": {"type": "stdio", "command": "C", "args": ["mcp"]}, "disabled": true}}}`,
		},
		{
			"cline, the flat form of its extension", "cline", `{"mcpServers": {"guideway": {"command": "/o", "args": ["mcp"], "autoApprove": []}}}`,
			`{"mcpServers": {"guideway": {"command": "C", "args": ["mcp"], "autoApprove": []}}}`,
		},
		{"yaml empty", "continue", "", "name: Local Config\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: guideway\n    command: C\n    args: [mcp]\n"},
		{"yaml comment only", "continue", "# mine", "# mine\nname: Local Config\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: guideway\n    command: C\n    args: [mcp]\n"},
		{"yaml without an end of line", "continue", "name: x", "name: x\nmcpServers:\n  - name: guideway\n    command: C\n    args: [mcp]\n"},
		{"yaml line endings and byte order mark", "continue", "\xef\xbb\xbfname: x\r\n", "\xef\xbb\xbfname: x\r\nmcpServers:\r\n  - name: guideway\r\n    command: C\r\n    args: [mcp]\r\n"},
		{"yaml indented", "continue", "  name: x\n", "  name: x\n  mcpServers:\n    - name: guideway\n      command: C\n      args: [mcp]\n"},
		{
			"yaml list without indentation", "continue", "mcpServers:\n- name: a\n  command: b # c\n\n# models\nmodels: []\n",
			"mcpServers:\n- name: a\n  command: b # c\n- name: guideway\n  command: C\n  args: [mcp]\n\n# models\nmodels: []\n",
		},
		{"yaml empty list", "continue", "mcpServers: [] # none\n", "mcpServers: [{name: guideway, command: C, args: [mcp]}] # none\n"},
		{"yaml no value", "continue", "mcpServers: # none\nmodels: []\n", "mcpServers: # none\n  - name: guideway\n    command: C\n    args: [mcp]\nmodels: []\n"},
		{
			"yaml inline list", "continue", "mcpServers: [\n  {name: a, command: 'it''s ]'}, # c\n]\n",
			"mcpServers:\n  - {name: a, command: 'it''s ]'} # c\n  - name: guideway\n    command: C\n    args: [mcp]\n",
		},
		{"yaml in braces", "continue", "{name: x}\n", "{name: x, mcpServers: [{name: guideway, command: C, args: [mcp]}]}\n"},
		{
			"yaml after a text with comments in it", "continue", "mcpServers:\n  - name: a\n    env:\n      A: |\n        # text\n\n\n",
			"mcpServers:\n  - name: a\n    env:\n      A: |\n        # text\n\n\n  - name: guideway\n    command: C\n    args: [mcp]\n",
		},
		{"yaml end of the document", "continue", "---\nname: x\n...\n", "---\nname: x\nmcpServers:\n  - name: guideway\n    command: C\n    args: [mcp]\n...\n"},
		{
			"yaml another path keeps what the user added", "continue", "mcpServers:\n  - name: guideway # ours\n    command: '/o' # c\n    args: # d\n      - mcp\n      - -v\n    cwd: /\n",
			"mcpServers:\n  - name: guideway # ours\n    command: C # c\n    args: # d\n      - mcp\n    cwd: /\n",
		},
		{
			"yaml remote entry is replaced", "continue", "mcpServers:\n  - name: guideway\n    url: http://x\n  - name: b\n",
			"mcpServers:\n  - name: guideway\n    command: C\n    args: [mcp]\n  - name: b\n",
		},
		{"yaml with an explicit key", "continue", "? mcpServers\n: - name: x\n", "? mcpServers\n: - name: x\n  - name: guideway\n    command: C\n    args: [mcp]\n"},
		{
			"yaml replaced in brackets", "continue", "mcpServers: [{name: guideway, url: 'http://x'}, {name: b}] # c\n",
			"mcpServers: [{name: guideway, command: C, args: [mcp]}, {name: b}] # c\n",
		},
		{
			"toml entry in inline servers", "codex", "mcp_servers = { guideway = { command = \"/o\" } }\n",
			"mcp_servers = { guideway = { command = \"C\", args = [\"mcp\"] } }\n",
		},
		{
			"toml inline entry with more", "codex", "[mcp_servers]\nguideway = { command = \"/o\", enabled = false }\n",
			"[mcp_servers]\nguideway = { command = \"C\", enabled = false, args = [\"mcp\"] }\n",
		},
		{"toml missing args", "codex", "[mcp_servers.guideway]\ncommand = \"C\"\n\n[z]\n", "[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\n\n[z]\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, req := findClient(t, tt.client), Request{Command: "C"}
			got := mustPlan(t, c, req, existingFile(tt.before))
			if diff := cmp.Diff(tt.after, string(got.After)); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
			if again := mustPlan(t, c, req, existingFile(tt.after)); again.Action != ActionNone {
				t.Errorf("again = %s", again.Action)
			}
			undo, err := PlanUndo(Env{}, c, req, existingFile(tt.after, tt.before))
			if err != nil || string(undo.After) != tt.before {
				t.Errorf("undo = %q, %v; want %q", undo.After, err, tt.before)
			}
		})
	}
}

func TestPlanEnv(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ client, before, want string }{
		{
			"cursor", `{"mcpServers":{"guideway":{"command":"C","args":["mcp"],"env":{"A":"1"}}}}`,
			`{"mcpServers":{"guideway":{"command":"C","args":["mcp"],"env":{"A":"1","B":"x=\"y\""}}}}`,
		},
		{
			"cursor", `{"mcpServers":{"guideway":{"command":"C","args":["mcp"]}}}`,
			`{"mcpServers":{"guideway":{"command":"C","args":["mcp"],"env":{"B":"x=\"y\""}}}}`,
		},
		{
			"codex", "[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\n[mcp_servers.guideway.env]\nA = \"1\"\n",
			"[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\n[mcp_servers.guideway.env]\nA = \"1\"\nB = \"x=\\\"y\\\"\"\n",
		},
		{
			"codex", "[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\nenv = { A = \"1\" }\n",
			"[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\nenv = { A = \"1\", B = \"x=\\\"y\\\"\" }\n",
		},
		// A value that is not a string is kept, or replaced if the request sets it.
		{
			"codex", "[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\n[mcp_servers.guideway.env]\nPORT = 8080\n",
			"[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\n[mcp_servers.guideway.env]\nPORT = 8080\nB = \"x=\\\"y\\\"\"\n",
		},
		{
			"codex", "[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\nenv = { B = 1, A = \"1\" }\n",
			"[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\nenv = { B = \"x=\\\"y\\\"\", A = \"1\" }\n",
		},
		{
			"codex", "[mcp_servers.guideway]\ncommand = \"O\"\nargs = [\"mcp\"]\nenv = { PORT = 8080, B = 'x=\"y\"' }\n",
			"[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\nenv = { PORT = 8080, B = 'x=\"y\"' }\n",
		},
	} {
		got := mustPlan(t, findClient(t, tt.client), Request{Command: "C", Env: map[string]string{"B": `x="y"`}}, existingFile(tt.before))
		if diff := cmp.Diff(tt.want, string(got.After)); diff != "" || got.Action != ActionUpdated {
			t.Errorf("%s (-want +got):\n%s", got.Action, diff)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, client, before, message string }{
		{"broken", "cursor", "{\n  \"a\": }", "cannot edit config:2:8 (invalid character '}' at start of value); the file is unchanged"},
		{"broken after a byte order mark", "cursor", "\xef\xbb\xbf{é}", "config:1:2"},
		{"an invalid literal with a secret", "cursor", `{"é": "\secret"}`, "config:1:7 (invalid string, number or name)"},
		{"a comment at the end", "cursor", "{} // c\r\n} // d", "config:2:1"},
		{"two roots", "cursor", "{} {}", "config:1:4"},
		{"not an object", "cursor", "[]", "the document is not an object"},
		{"servers are not an object", "cursor", `{"mcpServers": null}`, "config:1:16"},
		{"twice", "cursor", `{"mcpServers": {}, "mcpServers": {}}`, "twice"},
		{"utf-16", "cursor", "\xff\xfe{\x00}\x00", "UTF-16"},
		{"unfinished comment", "vscode", "{ /* ", "config:1:3 (parsing comment: unexpected EOF)"},
		{"deep", "cursor", strings.Repeat("[", 2000), "nested"},
		{"broken toml", "codex", "a = 1\nb = = 2\n", "config:2:5"},
		{"servers are not a table", "codex", "mcp_servers = 1\n", "not a table"},
		{"broken opencode", "opencode", "{\n  \"mcp\": {,}\n}", "config:2:11"},
		{"opencode's servers are a list", "opencode", `{"mcp": []}`, "config:1:9"},
		{"broken yaml", "continue", "a: 1\nb: [\nc: 2\n", "cannot edit config:"},
		{"yaml with a tab", "continue", "a:\n\tb: 1\n", "config:2 (found character that cannot start any token)"},
		{"yaml with a key twice", "continue", "a: 1\na: 2\n", "config:2"},
		{"yaml with two documents", "continue", "a: 1\n---\nb: 2\n", "config:2 (the file contains more than one document)"},
		{"yaml servers are a mapping", "continue", "mcpServers:\n  guideway: {}\n", "config:2:3 (\"mcpServers\" is not a list)"},
		{"yaml servers are null", "continue", "mcpServers: ~\n", "not a list"},
		{"yaml entry twice", "continue", "mcpServers:\n  - name: guideway\n  - name: guideway\n", "twice"},
		{"yaml root is a list", "continue", "- a\n", "not a mapping"},
		{"yaml servers by a merge", "continue", "a: &x\n  mcpServers: [{name: b}]\n<<: *x\n", "form that cannot be edited"},
		{"yaml servers by an alias", "continue", "a: &x [{name: b}]\nmcpServers: *x\n", "not a list"},
		{"toml dotted entry without args", "codex", "mcp_servers.guideway.command = \"/o\"\n", "form that cannot be edited"},
		{"yaml comment inside empty brackets", "continue", "mcpServers: [\n  # c\n]\n", "form that cannot be edited"},
		{"yaml entry by an alias", "continue", "a: &x {name: guideway}\nmcpServers: [*x]\n", "form that cannot be edited"},
		{"yaml utf-16", "continue", "\xff\xfea\x00", "UTF-16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Plan(Env{}, findClient(t, tt.client), Request{Command: binary}, existingFile(tt.before))
			if err == nil || !strings.Contains(err.Error(), tt.message) {
				t.Fatalf("error = %v, want %q in it", err, tt.message)
			}
			if fix := guideway.ErrorFix(err); !strings.Contains(fix, binary) || !strings.Contains(fix, "guideway") {
				t.Errorf("no snippet in the fix: %q", fix)
			}
		})
	}
}

// A variable of another type stays when a variable is added, also in an inline table.
func TestPlanKeepsVariables(t *testing.T) {
	t.Parallel()
	for _, before := range []string{
		"[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\nenv = { PORT = 8080, A = \"1\" }\n",
		"[mcp_servers]\nguideway = { command = \"C\", args = [\"mcp\"], env = { PORT = 8080, A = \"1\" } }\n",
		"[mcp_servers.guideway]\ncommand = \"C\"\nargs = [\"mcp\"]\nenv = { PORT = true }\n",
	} {
		change := mustPlan(t, findClient(t, "codex"), Request{Command: "C", Env: map[string]string{"B": "2"}}, existingFile(before))
		if want := strings.Replace(before, " }", `, B = "2" }`, 1); string(change.After) != want {
			t.Errorf("after = %s, want %s", change.After, want)
		}
	}
}

func TestForeignEntry(t *testing.T) {
	t.Parallel()
	before := `{"mcpServers":{"github":{"command":"npx","args":["gh"]}}}`
	c, req := findClient(t, "cursor"), Request{Name: "github", Command: binary}
	if _, err := Plan(Env{}, c, req, existingFile(before)); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("install over another server: %v", err)
	}
	if _, err := PlanUndo(Env{}, c, req, existingFile(before)); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("remove another server: %v", err)
	}
	req.Force = true
	change := mustPlan(t, c, req, existingFile(before))
	undo, err := PlanUndo(Env{}, c, req, existingFile(string(change.After), before))
	if err != nil || string(undo.After) != before || undo.Action != ActionRestored {
		t.Errorf("undo = %s %q, %v", undo.Action, undo.After, err)
	}
}

func TestPlanValidatesRequest(t *testing.T) {
	t.Parallel()
	c := findClient(t, "codex")
	for _, req := range []Request{
		{Name: "a b", Command: binary},
		{Name: "a.b", Command: binary},
		{Command: ""},
		{Command: binary, Env: map[string]string{"": "x"}},
		{Command: binary, Env: map[string]string{"A=B": "x"}},
	} {
		if _, err := Plan(Env{}, c, req, File{}); err == nil {
			t.Errorf("Plan(%+v) was accepted", req)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	before := "{\n  // hello\n  \"a\": 1\n}"
	if got := mustPlan(t, findClient(t, "claude-desktop"), Request{Command: binary}, existingFile(before)); len(got.Notes) != 1 ||
		!strings.Contains(got.Notes[0], "line 2") {
		t.Errorf("notes = %q", got.Notes)
	}
	if got := mustPlan(t, findClient(t, "vscode"), Request{Command: binary}, existingFile(before)); len(got.Notes) > 0 {
		t.Errorf("notes = %q", got.Notes)
	}
}
