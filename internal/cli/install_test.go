package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	installcmd "github.com/guideway-dev/guideway/internal/cli/install"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/spf13/cobra"
)

// installBench is a separate home directory for one test.
type installBench struct {
	home, binary string
	out          bytes.Buffer
	host         app.Host
}

func newInstallBench(t *testing.T) *installBench {
	t.Helper()
	dir := t.TempDir()
	b := &installBench{home: filepath.Join(dir, "home"), binary: filepath.Join(dir, "bin", "guideway")}
	b.writeFile(t, b.binary, "")
	b.writeFile(t, filepath.Join(b.home, ".keep"), "")
	b.host = app.Host{
		In: strings.NewReader(""), Out: &b.out, Err: &b.out, Dir: filepath.Join(dir, "project"),
		Getenv: func(k string) string { return map[string]string{"HOME": b.home, "PATH": filepath.Dir(b.binary)}[k] },
	}
	return b
}

func (b *installBench) writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// runCommand runs one command line; in the output, the home directory is replaced with HOME
// and the binary with BIN.
func (b *installBench) runCommand(args ...string) (string, error) {
	b.out.Reset()
	cmd := installcmd.NewInstallCmdWith(&b.host, func(ctx context.Context, o *installcmd.InstallOptions) error {
		o.GOOS = "linux"
		o.Executable = func() (string, error) { return b.binary, nil }
		return installcmd.RunInstall(ctx, o)
	})
	cmd.SetArgs(append([]string{}, args...)) // cobra would replace nil with the test's own arguments
	cmd.SetOut(&b.out)
	cmd.SetErr(&b.out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(context.Background())
	return strings.NewReplacer(b.binary, "BIN", b.home, "HOME", b.host.Dir, "PROJECT").Replace(b.out.String()), err
}

func (b *installBench) wantOutput(t *testing.T, want string, args ...string) {
	t.Helper()
	got, err := b.runCommand(args...)
	if err != nil {
		t.Fatalf("install %v: %v", args, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("install %v (-want +got):\n%s", args, diff)
	}
}

func TestInstallCycle(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	path := filepath.Join(b.home, ".cursor", "mcp.json")
	const before = `{"a": 1}`
	b.writeFile(t, path, before)
	b.wantOutput(t, `--- HOME/.cursor/mcp.json
+++ HOME/.cursor/mcp.json
@@ -1,1 +1,1 @@
-{"a": 1}
\ No newline at end of file
+{"a": 1, "mcpServers": {"guideway": {"command": "BIN", "args": ["mcp"]}}}
\ No newline at end of file
`, "cursor", "--dry-run")
	if got, _ := os.ReadFile(path); string(got) != before {
		t.Fatalf("--dry-run wrote %q", got)
	}
	b.wantOutput(t, `Installed in Cursor: HOME/.cursor/mcp.json
  backup   HOME/.cursor/mcp.json.guideway-backup-1
  next     restart Cursor, or enable the server in its MCP settings
`, "cursor")
	b.wantOutput(t, "Already installed in Cursor: HOME/.cursor/mcp.json\n", "Cursor")
	first := b.binary
	b.binary += "-2"
	b.writeFile(t, b.binary, "")
	b.wantOutput(t, `Updated in Cursor: HOME/.cursor/mcp.json
  target   BIN
  was      `+first+`
  backup   HOME/.cursor/mcp.json.guideway-backup-2
  next     restart Cursor, or enable the server in its MCP settings
`, "cursor")
	b.wantOutput(t, "Removed from Cursor: HOME/.cursor/mcp.json\n  next     restart Cursor if it is open\n", "cursor", "--undo")
	b.wantOutput(t, "Not installed in Cursor: HOME/.cursor/mcp.json\n", "cursor", "--undo")
	if got, _ := os.ReadFile(path); string(got) != before {
		t.Errorf("the file after undo is %q", got)
	}
}

func TestInstallList(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	b.writeFile(t, filepath.Join(b.home, ".config", "Code", "User", "mcp.json"), "{ oops }")
	b.writeFile(t, filepath.Join(b.home, ".codex", "config.toml"), "[mcp_servers.guideway]\ncommand = \"/old\"\n")
	b.writeFile(t, filepath.Join(b.home, ".claude", "x"), "")
	b.writeFile(t, filepath.Join(b.home, ".continue", "config.yaml"), "name: x\n")
	if _, err := b.runCommand("windsurf"); err != nil {
		t.Fatal(err)
	}
	b.wantOutput(t, `CLIENT          STATE                        CONFIG
claude-desktop  client not found             HOME/.config/Claude/claude_desktop_config.json
claude-code     not installed                HOME/.claude.json
cursor          client not found             HOME/.cursor/mcp.json
vscode          config unreadable            HOME/.config/Code/User/mcp.json (line 1, column 3: invalid string, number or name)
windsurf        installed                    HOME/.codeium/windsurf/mcp_config.json
codex           installed with another path  HOME/.codex/config.toml
gemini          client not found             HOME/.gemini/settings.json
copilot         client not found             HOME/.copilot/mcp-config.json
opencode        client not found             HOME/.config/opencode/opencode.json
qwen            client not found             HOME/.qwen/settings.json
cline           client not found             HOME/.cline/data/settings/cline_mcp_settings.json
continue        not installed                HOME/.continue/config.yaml
`)
	got, err := b.runCommand("--json")
	var rows []installcmd.InstallRow
	if err != nil || json.Unmarshal([]byte(got), &rows) != nil || len(rows) != 12 {
		t.Fatalf("--json = %s, %v", got, err)
	}
	want := installcmd.InstallRow{Client: "codex", Title: "Codex", Scope: "user", State: "installed_with_another_path", Path: "HOME/.codex/config.toml", Command: "/old"}
	if diff := cmp.Diff(want, rows[5]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestInstallProject(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	b.wantOutput(t, `Installed in VS Code: PROJECT/.vscode/mcp.json
  next     run "MCP: List Servers" in VS Code and start the server
  note     the entry starts BIN, a path on this computer; before you commit the file, check that the path is right for every user of the project
`, "vs-code", "--scope", "project", "--env", "A=b=c", "--name", "gw")
	got, err := os.ReadFile(filepath.Join(b.host.Dir, ".vscode", "mcp.json"))
	if err != nil || !strings.Contains(string(got), `"A": "b=c"`) || !strings.Contains(string(got), `"gw": {`) {
		t.Errorf("file = %s, %v", got, err)
	}
}

// TestInstallContinue checks the notes for Continue: the file of a project contains only
// the server, but a new file of the user also needs the models.
func TestInstallContinue(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	b.wantOutput(t, `Installed in Continue: PROJECT/.continue/mcpServers/guideway.yaml
  next     reload the editor; its extension reads this file, the command cn (1.5.47) does not
  note     the entry starts BIN, a path on this computer; before you commit the file, check that the path is right for every user of the project
`, "continue", "--scope", "project")
	b.wantOutput(t, `Installed in Continue: HOME/.continue/config.yaml
  next     start a new session of Continue; /mcp shows the server
  note     Continue was not found; its configuration file is new
  note     without this file, Continue used its default configuration; now add your models to the file
`, "continue")
}

// A client that connects to a URL itself starts no program, so --launch has no meaning.
func TestInstallURLWithoutProgram(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	_, err := b.runCommand("gemini", "--url", "https://guideway.example.com/mcp", "--launch", "binary")
	if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) != "guideway install gemini --url https://guideway.example.com/mcp" {
		t.Errorf("error %v, fix %q", err, guideway.ErrorFix(err))
	}
	if _, err := b.runCommand("claude-desktop", "--url", "https://guideway.example.com/mcp", "--launch", "binary"); err != nil {
		t.Errorf("a client that starts guideway connect: %v", err)
	}
}

func TestInstallJSON(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	got, err := b.runCommand("codex", "--json")
	var a installcmd.InstallAnswer
	if err != nil || json.Unmarshal([]byte(got), &a) != nil {
		t.Fatalf("--json = %s, %v", got, err)
	}
	want := installcmd.InstallAnswer{Client: "codex", Action: "installed", Path: "HOME/.codex/config.toml", Command: "BIN", Next: "start a new session of Codex; /mcp shows the server"}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestInstallUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"emacs"},
		{"cursor", "codex"},
		{"--undo"},
		{"--dry-run"},
		{"--force"},
		{"--env", "A=1"},
		{"cursor", "--env", "A"},
		{"cursor", "--env", "=x"},
		{"cursor", "--scope", "world"},
		{"--scope", "x"},
		{"cursor", "--name", "a b"},
		{"cursor", "--undo", "--env", "A=1"},
		{"--url", "http://x/mcp"},
		{"cursor", "--token-env", "T"},
		{"cursor", "--url", "http://127.0.0.1:3000/mcp", "--token-env", "a-token"},
		{"cursor", "--url", "http://127.0.0.1:3000/mcp", "--env", "A=1"},
		{"cursor", "--url", "http://127.0.0.1:3000/mcp", "--token-env", "T", "--undo"},
	} {
		b := newInstallBench(t)
		_, err := b.runCommand(args...)
		if err == nil || exitCode(err) != app.ExitUsage || guideway.ErrorFix(err) == "" {
			t.Errorf("install %v: %v, exit %d, fix %q", args, err, exitCode(err), guideway.ErrorFix(err))
		}
	}
}

func TestInstallFailures(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	if _, err := b.runCommand("windsurf", "--scope", "project"); err == nil || exitCode(err) != app.ExitFailed {
		t.Errorf("windsurf with the scope project: %v, want a usage error", err)
	}
	b.binary = filepath.Join(b.home, "go-build1", "b001", "exe", "guideway")
	if _, err := b.runCommand("cursor"); err == nil || !strings.Contains(err.Error(), "go run") {
		t.Errorf("install of a temporary binary: %v, want an error", err)
	}
	if _, err := b.runCommand("cursor", "--undo"); err != nil {
		t.Errorf("undo from a temporary binary: %v", err)
	}
	if _, err := b.runCommand(); err != nil {
		t.Errorf("a list from a temporary binary: %v", err)
	}
}

// A server over HTTP is added by a reference to the variable with its token. The token is in
// no file of a project, and in the file of a client without references only its owner can
// read it; no output contains it.
func TestInstallURL(t *testing.T) {
	t.Parallel()
	const token, url = "s3cret-token", "https://guideway.example.com/mcp"
	for _, client := range install.Clients() {
		for _, scope := range []install.Scope{install.ScopeUser, install.ScopeProject} {
			if scope == install.ScopeProject && client.Project == "" {
				continue
			}
			t.Run(client.ID+" "+string(scope), func(t *testing.T) {
				t.Parallel()
				b := newInstallBench(t)
				getenv := b.host.Getenv
				b.host.Getenv = func(k string) string {
					if k == "TEAM_TOKEN" {
						return token
					}
					return getenv(k)
				}
				loc, err := install.Locate(b.host.InstallEnv("linux"), client, scope)
				if err != nil {
					t.Fatal(err)
				}
				b.writeFile(t, loc.Path, "") // readable by all
				args := []string{client.ID, "--scope", string(scope), "--url", url, "--token-env", "TEAM_TOKEN"}
				for _, more := range [][]string{{"--dry-run"}, {"--dry-run", "--json"}, {}, {}} {
					out, err := b.runCommand(append(args, more...)...)
					if err != nil || strings.Contains(out, token) {
						t.Fatalf("install %v: %v\n%s", more, err, out)
					}
				}
				content, err := os.ReadFile(loc.Path)
				if err != nil || !strings.Contains(string(content), url) {
					t.Fatalf("file = %s, %v", content, err)
				}
				secret := strings.Contains(string(content), token)
				if secret != client.NeedsToken() || secret && scope == install.ScopeProject || secret == strings.Contains(string(content), "TEAM_TOKEN") {
					t.Errorf("file = %s", content)
				}
				if info, err := os.Stat(loc.Path); err != nil || secret && runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
					t.Errorf("mode = %v, %v", info.Mode(), err)
				}
				if _, err := b.runCommand(client.ID, "--scope", string(scope), "--undo"); err != nil {
					t.Fatal(err)
				}
				if content, err := os.ReadFile(loc.Path); err != nil || len(content) > 0 {
					t.Errorf("file after undo = %q, %v", content, err)
				}
			})
		}
	}
}

// A client without references needs the value of the token; an invalid URL is refused.
func TestInstallURLRefuses(t *testing.T) {
	t.Parallel()
	b := newInstallBench(t)
	for _, args := range [][]string{
		{"cline", "--url", "https://x.example/mcp", "--token-env", "UNSET"},
		{"claude-desktop", "--url", "https://x.example/mcp", "--token-env", "UNSET"},
		{"cursor", "--url", "x.example/mcp"},
		{"cursor", "--url", "ftp://x.example/mcp"},
		{"cursor", "--url", "https://user:pw@x.example/mcp"},
		{"cursor", "--url", "https://x.example/${HOME}"},
	} {
		if _, err := b.runCommand(args...); guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
			t.Errorf("install %v: %v", args, err)
		}
	}
	b.wantOutput(t, `Installed in Cursor: HOME/.cursor/mcp.json
  next     restart Cursor, or enable the server in its MCP settings
  note     Cursor was not found; its configuration file is new
  note     Cursor reads the token from the environment variable T when it starts
  note     the connection is not encrypted: use https for a server on another machine
`, "cursor", "--url", "http://x.example/mcp", "--token-env", "T")
}

// The next step of a project's file names the approval that the client wants.
func TestInstallNext(t *testing.T) {
	t.Parallel()
	for client, want := range map[string]string{
		"claude-code": "approve the server", "codex": "trust the directory", "gemini": "trust the folder", "copilot": "trust the directory", "qwen": "qwen mcp approve gw in",
	} {
		b := newInstallBench(t)
		out, err := b.runCommand(client, "--scope", "project", "--name", "gw")
		if _, next, _ := strings.Cut(out, "next "); err != nil || !strings.Contains(next, want) {
			t.Errorf("%s: %v\n%s", client, err, out)
		}
	}
}

// The error for a client that install does not know has the entry to paste, in the form of
// that client if it is documented.
func TestInstallUnsupportedClient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"emacs"}, []string{`"mcpServers": {`, `"command": "BIN"`, "docs/clients.md"}},
		{[]string{"gemni"}, []string{"guideway install gemini", `"command": "BIN"`}},
		{[]string{"emacs", "--url", "https://x.example/mcp", "--token-env", "T"}, []string{`"type": "http"`, `"Bearer TOKEN"`}},
		{[]string{"zed"}, []string{"~/.config/zed/settings.json", `"context_servers": {`, `"args": ["mcp"]`}},
		{[]string{"Goose", "--name", "gw"}, []string{"extensions:\n  gw:\n    enabled: true\n    name: gw\n    type: stdio\n    cmd: BIN\n    args: [mcp]"}},
		{[]string{"goose", "--url", "https://x.example/mcp"}, []string{"type: streamable_http\n    uri: https://x.example/mcp"}},
		{[]string{"amp"}, []string{`"amp.mcpServers": {`}},
		{[]string{"roo-code", "--url", "https://x.example/mcp"}, []string{`"type": "streamable-http"`}},
	} {
		b := newInstallBench(t)
		_, err := b.runCommand(tt.args...)
		fix := strings.ReplaceAll(guideway.ErrorFix(err), b.binary, "BIN")
		if err == nil || exitCode(err) != app.ExitUsage {
			t.Errorf("install %v: %v", tt.args, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(fix, want) {
				t.Errorf("install %v: no %q in the fix:\n%s", tt.args, want, fix)
			}
		}
	}
}

func TestInstallCompletion(t *testing.T) {
	t.Parallel()
	names, _ := installcmd.CompleteInstallClients()(&cobra.Command{}, nil, "")
	if len(names) != 12 || names[3] != "vscode\tVS Code" {
		t.Errorf("names = %q", names)
	}
	if names, _ := installcmd.CompleteInstallClients()(&cobra.Command{}, []string{"codex"}, ""); len(names) > 0 {
		t.Errorf("second argument = %q", names)
	}
}
