package install

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// Scope is the scope of a configuration.
type Scope string

// The scopes.
const (
	// ScopeUser is the configuration for all projects of the user.
	ScopeUser Scope = "user"
	// ScopeProject is the file in the project's directory.
	ScopeProject Scope = "project"
)

// Client is an MCP client and the location of its configuration.
type Client struct {
	// ID is the name on the command line, Title the name for people.
	ID, Title string
	// Aliases are other names of the client.
	Aliases []string
	// Project is the path of the file in a project, with slashes. It is empty if the client
	// has no project configuration.
	Project string

	form format
	user func(Env) Location
	// next is the action after which the client uses the change. projectNext is the action
	// for a file in a project, if it differs.
	next, projectNext string
	// reference is the form in which an entry refers to the environment variable with the
	// token of a URL. It is empty if the client cannot refer to one.
	reference string
	// bridge reports that the client only starts programs, and reaches a URL through
	// guideway connect.
	bridge bool
	// newFile is a note for a file of the user that did not exist.
	newFile string
	// commented reports that the client uses the file with the same name and a final c
	// (JSON with comments) instead, if that file exists.
	commented bool
}

// Next returns the action after which the client uses a change of the named entry in a scope.
func (c Client) Next(scope Scope, name string) string {
	if scope == ScopeProject && c.projectNext != "" {
		return strings.ReplaceAll(c.projectNext, "NAME", name)
	}
	return c.next
}

// NewFileNote returns what a person must know about a new file in a scope, or "".
func (c Client) NewFileNote(scope Scope) string {
	if scope == ScopeProject {
		return ""
	}
	return c.newFile
}

// Location is a configuration file and the paths that exist if the client is installed.
type Location struct {
	Path    string
	Markers []string
}

const (
	// shellForm refers to an environment variable as a shell does, and editorForm as editors do.
	shellForm  = "Bearer ${%s}"
	editorForm = "Bearer ${env:%s}"
)

// Clients returns the supported clients in the order of lists.
func Clients() []Client { return append(desktopClients(), terminalClients()...) }

// desktopClients returns the desktop clients and editors, Claude Code and Codex.
func desktopClients() []Client {
	plain := shape{url: "url", env: "env"}
	return []Client{
		{
			ID: "claude-desktop", Title: "Claude Desktop", Aliases: []string{"claude"},
			next: "quit Claude Desktop and open it again", bridge: true,
			form: format{key: "mcpServers", shape: plain, strict: true}, user: claudeDesktop,
		},
		{
			ID: "claude-code", Title: "Claude Code", Aliases: []string{"cc"}, Project: ".mcp.json",
			next:        "start a new session of Claude Code; /mcp shows the server",
			projectNext: "start claude in this directory and approve the server when Claude Code asks; until then claude -p ignores the server",
			reference:   shellForm, user: claudeCode,
			form: format{key: "mcpServers", shape: shape{local: "stdio", remote: "http", url: "url", env: "env"}, strict: true},
		},
		{
			ID: "cursor", Title: "Cursor", Project: ".cursor/mcp.json",
			next: "restart Cursor, or enable the server in its MCP settings", reference: editorForm,
			form: format{key: "mcpServers", shape: plain}, user: inHome(".cursor", "mcp.json"),
		},
		{
			ID: "vscode", Title: "VS Code", Aliases: []string{"code", "visualstudiocode"},
			Project: ".vscode/mcp.json", next: `run "MCP: List Servers" in VS Code and start the server`, reference: editorForm,
			form: format{key: "servers", shape: shape{local: "stdio", remote: "http", url: "url", env: "env"}}, user: locateVSCode,
		},
		{
			ID: "windsurf", Title: "Windsurf", Aliases: []string{"codeium"},
			next: "refresh the MCP servers in Windsurf", reference: editorForm,
			form: format{key: "mcpServers", shape: shape{url: "serverUrl", env: "env"}, strict: true},
			user: inHome(".codeium", "windsurf", "mcp_config.json"),
		},
		{
			ID: "codex", Title: "Codex", Aliases: []string{"openaicodex", "codexcli"}, Project: ".codex/config.toml",
			next:        "start a new session of Codex; /mcp shows the server",
			projectNext: "start codex in this directory and trust the directory when Codex asks; until then Codex ignores the file without a message",
			reference:   "%s", form: format{language: languageTOML, key: "mcp_servers", shape: shape{url: "url", env: "env", auth: []string{"bearer_token_env_var"}}}, user: locateCodex,
		},
	}
}

// terminalClients returns the clients that run in a terminal.
func terminalClients() []Client {
	http := shape{url: "httpUrl", env: "env"}
	return []Client{
		{
			ID: "gemini", Title: "Gemini CLI", Aliases: []string{"geminicli"}, Project: ".gemini/settings.json",
			next:        "start a new session of Gemini CLI in a trusted folder; /mcp shows the server",
			projectNext: "start gemini in this directory and trust the folder when Gemini CLI asks; Gemini CLI disables all servers in other folders",
			reference:   shellForm, form: format{key: "mcpServers", shape: http}, user: locateGemini,
		},
		{
			ID: "copilot", Title: "Copilot CLI", Aliases: []string{"copilotcli", "githubcopilot", "githubcopilotcli"}, Project: ".mcp.json",
			next:        "start a new session of Copilot CLI; /mcp show lists the servers",
			projectNext: "start copilot in this directory and trust the directory when Copilot CLI asks; copilot -p also needs GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP=true",
			reference:   shellForm, user: locateCopilot,
			form: format{key: "mcpServers", shape: shape{
				local: "stdio", remote: "http", url: "url", env: "env", more: []field{{"tools", []string{"*"}}},
			}},
		},
		{
			ID: "opencode", Title: "opencode", Project: "opencode.json", commented: true,
			next: "start opencode again; opencode mcp list shows the server", reference: "Bearer {env:%s}", user: locateOpencode,
			form: format{key: "mcp", shape: shape{
				local: "local", remote: "remote", url: "url", env: "environment", list: true, more: []field{{"enabled", true}},
			}},
		},
		{
			ID: "qwen", Title: "Qwen Code", Aliases: []string{"qwencode"}, Project: ".qwen/settings.json",
			next:        "start a new session of Qwen Code; /mcp shows the server",
			projectNext: "run qwen mcp approve NAME in this directory; until then the server is pending",
			reference:   shellForm, form: format{key: "mcpServers", shape: http}, user: locateQwen,
		},
		{
			ID: "cline", Title: "Cline", Aliases: []string{"clinecli"},
			next: "start a new session of Cline", user: locateCline,
			form: format{key: "mcpServers", shape: shape{
				wrap: "transport", local: "stdio", remote: "streamableHttp", url: "url", env: "env",
			}, strict: true},
		},
		{
			ID: "continue", Title: "Continue", Aliases: []string{"cn", "continuecli"}, Project: ".continue/mcpServers/guideway.yaml",
			next:        "start a new session of Continue; /mcp shows the server",
			projectNext: "reload the editor; its extension reads this file, the command cn (1.5.47) does not",
			reference:   "Bearer ${{ secrets.%s }}", user: locateContinue,
			form: format{language: languageYAML, key: "mcpServers", shape: shape{
				remote: "streamable-http", url: "url", env: "env", auth: []string{"requestOptions", "headers", authorizationHeader},
			}},
			newFile: "without this file, Continue used its default configuration; now add your models to the file",
		},
	}
}

// Find returns the client with a name or alias. Case, spaces, dashes and underscores are
// ignored.
func Find(name string) (Client, error) {
	want := plainName(name)
	var known []string
	for _, c := range Clients() {
		for _, n := range append([]string{c.ID, c.Title}, c.Aliases...) {
			if want == plainName(n) {
				return c, nil
			}
		}
		known = append(known, c.ID)
	}
	err := guideway.Errorf(guideway.CodeNotFound, "unknown client %q (known: %s)", name, strings.Join(known, ", "))
	if near := spelling.Closest(name, known); near != "" {
		return Client{}, err.WithFix("guideway install %s", near)
	}
	return Client{}, err.WithFix("guideway install")
}

func plainName(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// syntaxError is an error in a file and its position. The line or the column is 0 if it is
// unknown.
type syntaxError struct {
	line, column int
	message      string
}

func (s *syntaxError) Error() string { return s.message }

// withPosition returns a syntax error with its position before the message. It returns other
// errors unchanged.
func withPosition(err error) error {
	var s *syntaxError
	if !errors.As(err, &s) || s.line == 0 {
		return err
	}
	if s.column == 0 {
		return fmt.Errorf("line %d: %w", s.line, err)
	}
	return fmt.Errorf("line %d, column %d: %w", s.line, s.column, err)
}

func (s *syntaxError) positionIn(file string) string {
	switch {
	case s.line == 0:
		return file
	case s.column == 0:
		return fmt.Sprintf("%s:%d", file, s.line)
	}
	return fmt.Sprintf("%s:%d:%d", file, s.line, s.column)
}

// manualClient is a client whose file guideway install does not edit, with its documented
// form.
type manualClient struct {
	title   string
	aliases []string
	// file is the file of the user, or of the project if the client has only that.
	file string
	// key is the member of the root that contains the entries.
	key string
	// shape is the form of an entry, unless text is set.
	shape shape
	// text returns the entry in another format.
	text func(name string, e Entry) string
}

func manualClients() []manualClient {
	plain := shape{url: "url", env: "env"}
	return []manualClient{
		{title: "Zed", aliases: []string{"zed"}, file: "~/.config/zed/settings.json", key: "context_servers", shape: plain},
		{title: "Goose", aliases: []string{"goose"}, file: "~/.config/goose/config.yaml", text: gooseEntry},
		{title: "Kiro", aliases: []string{"kiro", "kirocli"}, file: "~/.kiro/settings/mcp.json", key: "mcpServers", shape: plain},
		{title: "Amp", aliases: []string{"amp"}, file: "~/.config/amp/settings.json", key: "amp.mcpServers", shape: plain},
		{title: "Warp", aliases: []string{"warp"}, file: "~/.warp/.mcp.json", key: "mcpServers", shape: plain},
		{title: "Amazon Q", aliases: []string{"amazonq", "q", "amazonqcli"}, file: "~/.aws/amazonq/mcp.json", key: "mcpServers", shape: plain},
		{
			title: "Roo Code", aliases: []string{"roo", "roocode"}, file: ".roo/mcp.json in the project", key: "mcpServers",
			shape: shape{remote: "streamable-http", url: "url", env: "env"},
		},
	}
}

// gooseEntry returns an entry for Goose, which has other member names for the command and
// the variables.
func gooseEntry(name string, e Entry) string {
	f := []field{{"enabled", true}, {"name", name}}
	if e.URL != "" {
		f = append(f, field{"type", "streamable_http"}, field{"uri", e.URL})
		if e.Authorization != "" {
			f = append(f, field{"headers", []field{{authorizationHeader, e.Authorization}}})
		}
	} else {
		f = append(f, field{"type", "stdio"}, field{"cmd", e.Command}, field{"args", e.Args})
		if len(e.Env) > 0 {
			f = append(f, field{"envs", variableFields(e.Env)})
		}
	}
	return strings.TrimSpace(encodeYAML(newNode([]field{{"extensions", []field{{name, f}}}})))
}

// UnsupportedClient returns the error for a client that install cannot edit. Its fix
// contains the entry to paste: in the form of the client if it is known, and else in the
// form that most clients take.
func UnsupportedClient(name string, req Request) error {
	e := Entry{Command: cmp.Or(req.Command, "/path/to/guideway"), Args: req.Args, Env: req.Env}
	if len(e.Args) == 0 {
		e.Args = mcpArgs()
	}
	if req.URL != "" {
		e = Entry{URL: req.URL}
		if req.TokenEnv != "" {
			e.Authorization = "Bearer TOKEN"
		}
	}
	want := plainName(name)
	for _, c := range manualClients() {
		for _, alias := range c.aliases {
			if want == alias {
				return guideway.Errorf(guideway.CodeNotFound, "guideway install does not edit the configuration of %s", c.title).
					WithFix("add this entry to %s (see docs/clients.md):\n%s", c.file, c.entryText(nameOf(req), e))
			}
		}
	}
	_, err := Find(name)
	generic := manualClient{key: "mcpServers", shape: shape{remote: "http", url: "url", env: "env"}}
	return guideway.Errorf(guideway.CodeNotFound, "%w", err).
		WithFix("%s; or add this entry, which most clients take (see docs/clients.md):\n%s", guideway.ErrorFix(err), generic.entryText(nameOf(req), e))
}

func (c manualClient) entryText(name string, e Entry) string {
	if c.text != nil {
		return c.text(name, e)
	}
	return renderSnippet([]field{{c.key, []field{{name, c.shape.entryFields(e)}}}})
}
